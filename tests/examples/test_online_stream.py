"""An online clusterer learns from what was published alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrodp.engine.store import Store
from retrodp.plan.plan import Plan
from retrodp.stream.sources import read_frame
from tests.examples.scripts import EXAMPLES, script
from tests.support.stores import memory_directory

FOLDER = EXAMPLES / "online_stream"
WEEKS = 12

make: Any = script("chicago_clusters", "make_updates")
consume: Any = script("online_stream", "consume")


@pytest.fixture(scope="module")
def a_quarter() -> Any:
    """The store of twelve weeks; they are too few at the plan's own budget."""
    text = (FOLDER / "plan.toml").read_text(encoding="utf-8")
    plan = Plan.loads(text.replace("epsilon = 1.0", "epsilon = 20.0"))
    with memory_directory() as directory:
        with Store.create_for_tests(directory / "store", plan) as store:
            tally = store.ingest(read_frame(table(), store.layout())).tally
            assert tally.read == tally.accepted
            store.close_through(WEEKS)
        yield directory / "store"


def table() -> Any:
    return make.table(days=7 * WEEKS - 1)  # the first week begins on a Tuesday


def points() -> Any:
    rows = table().to_pylist()
    return np.array([[float(r["east"]), float(r["north"])] for r in rows if r["op"] == "add"])


def cost(centres: Any) -> float:
    return float(((points()[:, None] - centres[None]) ** 2).sum(axis=2).min(axis=1).sum())


def test_the_stream_is_that_of_the_published_rounds(a_quarter: Path) -> None:
    rounds = [*consume.stream(a_quarter)]
    assert [one.block for one in rounds] == [*range(1, WEEKS + 1)]
    assert all((one.additions.weights > 0).all() for one in rounds)
    total = sum(int(one.additions.weights.sum()) for one in rounds)
    assert 0.5 * len(points()) < total < 1.1 * len(points())


def test_a_clusterer_learns_from_it(a_quarter: Path) -> None:
    pytest.importorskip("sklearn")
    learned = consume.scikit(consume.stream(a_quarter), 10)
    alone = cost(points().mean(axis=0)[None])
    assert cost(learned) < alone / 4
    assert cost(consume.centres(a_quarter)) < alone / 4


def test_river_learns_from_it_too(a_quarter: Path) -> None:
    pytest.importorskip("river")
    learned = consume.river(consume.stream(a_quarter), 10)
    assert cost(learned) < cost(points().mean(axis=0)[None]) / 2


def test_the_readme_says_how_many_updates_there_are() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert f"{make.table().num_rows:,} updates" in text
