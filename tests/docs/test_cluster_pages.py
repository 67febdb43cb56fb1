"""The pages of clusters and dense balls do what they say."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path

import pytest

from retrodp.plan.kinds import KINDS
from tests.docs.pages import DOCS, links
from tests.docs.running import Reader
from tests.docs.test_links import broken

CLUSTERS, BALLS = DOCS / "kinds" / "kmeans.md", DOCS / "dense-balls.md"
ONLINE = DOCS / "kinds" / "online_kmeans.md"


@pytest.mark.parametrize("page", [CLUSTERS, ONLINE, BALLS], ids=lambda page: page.stem)
def test_the_example_runs_as_it_stands(
    page: Path, ram: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ram)
    moment = int(dt.datetime.fromisoformat("2026-01-04T08:00+00:00").timestamp())
    monkeypatch.setattr(time, "time_ns", lambda: moment * 10**9)
    reader = Reader(ram, capsys)
    reader.follow(page)
    if page in {CLUSTERS, ONLINE}:
        assert {words[1] for words in reader.typed} == {"check", "run"}
        assert float(reader.names["found"]["centres",]["value"]) == 3
    else:
        assert reader.names["several"]


@pytest.mark.parametrize("kind", ["kmeans", "kmedian", "online_kmeans", "online_kmedian"])
def test_every_key_of_the_kinds_is_in_the_table_of_the_page(kind: str) -> None:
    found = KINDS[kind]
    assert found is not None
    page = ONLINE if kind.startswith("online") else CLUSTERS
    lines = page.read_text(encoding="utf-8").splitlines()
    rows = {line[: line.index("`", 3) + 1] for line in lines if line.startswith("| `")}
    assert {f"| `{name}`" for name in found.names} <= rows


@pytest.mark.parametrize("page", [CLUSTERS, ONLINE, BALLS], ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    assert [target for target in links(page) if broken(page, target)] == []
