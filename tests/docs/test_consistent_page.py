"""The page on consistent clustering runs as it stands, and its tests are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, links
from tests.docs.running import Reader
from tests.docs.test_links import broken

PAGE = DOCS / "consistent-clustering.md"


def test_the_examples_run_as_they_stand(
    ram: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ram)
    reader = Reader(ram, capsys)
    reader.follow(PAGE)
    assert len(reader.names["recourse"]) == 20
    assert reader.names["theory"].k == 10


def test_every_lemma_of_the_table_has_a_test_that_names_it() -> None:
    table = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if "lemma" in line]
    rows = [line.split("|")[1] for line in table if line.startswith("| ")]
    numbers = {number for row in rows for number in re.findall(r"\d+", row)} - {"4", "13", "16"}
    tests = "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "clustering").glob("*.py")
    )
    named = {
        number
        for number in numbers
        if re.search(rf"def test_(lemma|theorem|corollary)_{number}_", tests)
    }
    assert numbers >= {"5", "10", "12", "14", "17", "27", "28", "29", "30", "32", "33", "34"}
    assert numbers - named <= {"31"}  # theorem 31 is lemmas 29 and 30 put together


def test_links_lead_somewhere() -> None:
    assert [target for target in links(PAGE) if broken(PAGE, target)] == []
