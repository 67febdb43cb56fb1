"""Centres of complaints: what is taken back leaves no trace in what is published afterwards."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrodp.engine.store import Store
from retrodp.plan.plan import Plan
from retrodp.stream.sources import read_frame
from tests.examples.scripts import EXAMPLES, answer_of, script
from tests.support.stores import memory_directory, published

FOLDER = EXAMPLES / "chicago_clusters"
DAYS = 45

make: Any = script("chicago_clusters", "make_updates")


def lived(path: Path, *, without_withdrawn: bool = False) -> None:
    text = (FOLDER / "plan.toml").read_text(encoding="utf-8")
    # Six weeks are too few for ten centres at the plan's own budget.
    plan = Plan.loads(text.replace("epsilon = 1.0", "epsilon = 20.0"))
    with Store.create_for_tests(path, plan) as store:
        table = make.table(days=DAYS, without_withdrawn=without_withdrawn)
        tally = store.ingest(read_frame(table, store.layout())).tally
        assert tally.read == tally.accepted == table.num_rows
        store.close_through(DAYS)


@pytest.fixture(scope="module")
def six_weeks() -> Any:
    """Directories of the complaints as they came, and without those that were taken back."""
    with memory_directory() as directory:
        for name, without in (("as_they_came", False), ("without", True)):
            lived(directory / name, without_withdrawn=without)
        yield directory


def test_what_was_taken_back_leaves_no_trace_in_later_releases(six_weeks: Path) -> None:
    one, two = published(six_weeks / "as_they_came"), published(six_weeks / "without")
    assert one[DAYS] == two[DAYS]
    assert sum(one[day] != two[day] for day in one) > 5


def test_centres_lie_in_the_city_and_serve_it_better_than_one_would(six_weeks: Path) -> None:
    answer = answer_of(six_weeks / "as_they_came", DAYS, "places")
    found = {
        tuple(json.loads(figure.key)): Fraction(figure.value or 0) * answer.step
        for figure in answer.figures()
    }
    number = int(found["centres",])
    centres = np.array(
        [[float(found["centre", at, n]) for n in ("east", "north")] for at in range(1, number + 1)]
    )
    table = make.table(days=DAYS, without_withdrawn=True)
    points = np.array(
        [[float(row["east"]), float(row["north"])] for row in table.to_pylist()], dtype=np.float64
    )
    served = float(((points[:, None] - centres[None]) ** 2).sum(axis=2).min(axis=1).sum())
    alone = float(((points - points.mean(axis=0)) ** 2).sum())
    assert 3 <= number <= 10
    assert served < alone / 2


def test_the_picture_is_there_and_the_readme_shows_it() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert "clusters.png" in text
    assert (FOLDER / "clusters.png").stat().st_size > 10_000
    rows = make.table().num_rows
    assert f"{rows:,} updates" in text
