"""README and quick start do what they say."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path

import pytest

import retrodp as rdp
from tests.docs.pages import DOCS, ROOT, blocks
from tests.docs.running import Reader


def at(monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """Make it that moment, for the command line's clock."""
    nanoseconds = int(dt.datetime.fromisoformat(moment).timestamp()) * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: nanoseconds)


@pytest.fixture
def reader(
    ram: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Reader:
    monkeypatch.chdir(ram)
    return Reader(ram, capsys)


def test_the_readme_runs_as_it_stands(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, "2026-01-04T08:00+00:00")
    reader.follow(ROOT / "README.md")
    assert [words[1] for words in reader.typed] == [
        *("check", "run", "show", "export", "report", "forget", "verify")
    ]
    assert (reader.directory / "numbers.csv").read_text().startswith("round,round_start,")
    with rdp.Store.open("my-store") as store:
        assert store.round == 3
    assert reader.names["release"].round == 1


def test_the_quick_start_runs_as_it_stands_and_prints_what_it_shows(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, "2025-03-07T08:00+00:00")
    reader.follow(DOCS / "quickstart.md")
    assert {words[1] for words in reader.typed} == {
        *("check", "run", "show", "export", "report", "forget", "verify", "status")
    }
    with rdp.Store.open("shop") as store:
        assert store.round == 4
        left = {record.id for batch in store.ledger.survivors() for record in batch}
    assert left == {"order-1003", "order-1004"}
    assert reader.names["outcome"].passed
    assert reader.said != []
    promised = {line for block, _ in reader.said for line in block.splitlines()}
    printed = {line for _, output in reader.said for line in output.splitlines()}
    assert promised - printed == set()


def test_a_snippet_that_is_wrong_is_noticed(reader: Reader) -> None:
    page = reader.directory / "page.md"
    page.write_text("```sh\nretrodp show --store nowhere\n```\n")
    with pytest.raises(AssertionError, match="left with 2"):
        reader.follow(page)


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_every_block_names_its_language(page: str) -> None:
    assert [block.line for block in blocks(ROOT / page) if not block.language] == []
