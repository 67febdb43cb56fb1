"""Every kind that is linear in the records has a page, and what stands on it runs."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path

import pytest

from retrodp.plan.kinds import KINDS
from tests.docs.pages import DOCS
from tests.docs.running import Reader

PAGE_OF = {kind: kind for kind in ("count", "sum", "mean", "histogram", "cdf", "quantiles")}
PAGE_OF |= {kind: kind for kind in ("query", "cube", "gram")} | {"range": "cdf"}
RUNNING = ("count", "sum", "mean", "histogram", "cdf", "windows")


@pytest.mark.parametrize("name", RUNNING)
def test_the_commands_of_the_page_run_as_they_stand(
    name: str, ram: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ram)
    moment = int(dt.datetime.fromisoformat("2026-02-02T08:00+00:00").timestamp())
    monkeypatch.setattr(time, "time_ns", lambda: moment * 10**9)
    reader = Reader(ram, capsys)
    reader.follow(DOCS / "kinds" / f"{name}.md")
    assert "check" in {words[1] for words in reader.typed}


@pytest.mark.parametrize("kind", PAGE_OF)
def test_the_plan_page_links_to_the_page_of_the_kind(kind: str) -> None:
    lines = (DOCS / "plan.md").read_text(encoding="utf-8").splitlines()
    (row,) = (line for line in lines if line.startswith(f"| `{kind}` | "))
    assert f"(kinds/{PAGE_OF[kind]}.md)" in row
    assert (DOCS / "kinds" / f"{PAGE_OF[kind]}.md").is_file()


@pytest.mark.parametrize("kind", ["sum", "mean", "histogram", "cdf", "range"])
def test_every_key_of_the_kind_is_in_the_table_of_its_page(kind: str) -> None:
    known = KINDS[kind]
    assert known is not None
    text = (DOCS / "kinds" / f"{PAGE_OF[kind]}.md").read_text(encoding="utf-8")
    assert [name for name in known.names if f"| `{name}` |" not in text] == []


@pytest.mark.parametrize("kind", sorted(set(PAGE_OF.values())))
def test_every_page_says_what_is_promised_and_how_well_it_does(kind: str) -> None:
    text = (DOCS / "kinds" / f"{kind}.md").read_text(encoding="utf-8")
    assert "**Privacy.**" in text
    assert "etroactiv" in text
    assert "## Source" in text or kind == "quantiles"
