"""The pages of query, cube and gram do what they say."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path

import pytest

from retrodp.plan.kinds import KINDS
from tests.docs.pages import DOCS, links
from tests.docs.running import Reader
from tests.docs.test_links import broken

PAGES = [DOCS / "kinds" / f"{kind}.md" for kind in ("query", "cube", "gram")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_example_runs_as_it_stands(
    page: Path, ram: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ram)
    moment = int(dt.datetime.fromisoformat("2026-02-02T08:00+00:00").timestamp())
    monkeypatch.setattr(time, "time_ns", lambda: moment * 10**9)
    reader = Reader(ram, capsys)
    reader.follow(page)
    assert {words[1] for words in reader.typed} >= {"check", "run"}
    if page.stem == "gram":
        assert -5 < reader.names["slopes"]["rooms"] < 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_key_of_the_kind_is_in_the_table_of_its_page(page: Path) -> None:
    kind = KINDS[page.stem]
    assert kind is not None
    rows = [
        line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| `")
    ]
    assert {f"| `{name}`" for name in kind.names} <= {row[: row.index("`", 3) + 1] for row in rows}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    assert [target for target in links(page) if broken(page, target)] == []
