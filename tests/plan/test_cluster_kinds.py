"""Keys of `kmeans` and `kmedian`: what is taken, filled in and refused."""

from __future__ import annotations

import pytest

from retrodp.errors import PlanError
from retrodp.plan.kinds import KMeans, KMedian
from retrodp.plan.plan import Plan
from tests.support.clusters import plan


def keys_of(made: Plan) -> KMeans:
    keys = made.releases[0].statistic
    assert isinstance(keys, KMeans)
    return keys


@pytest.mark.parametrize(
    ("dimensions", "levels"),
    [(1, (3, 9)), (2, (3, 6)), (3, (2, 6)), (4, (1, 3)), (10, (1, 3)), (11, (1, 3))],
)
def test_levels_follow_from_the_number_of_columns(dimensions: int, levels: tuple[int, int]) -> None:
    assert keys_of(plan(dimensions)).levels == levels


def test_keys_are_read_and_survive_a_stored_plan() -> None:
    made = plan(kind="kmedian", k=7, extra='levels = [2, 4]\nvariant = "lths"\ncoreset = true')
    keys = keys_of(made)
    assert keys == KMedian(of=("x0", "x1"), k=7, levels=(2, 4), variant="lths", coreset=True)
    assert keys_of(Plan.from_dict(made.to_dict())) == keys


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        ("levels = 4", "first and the last level"),
        ("levels = [4, 2]", "first and the last level"),
        ("levels = [0, 2]", "first and the last level"),
        ("levels = [true, 2]", "first and the last level"),
        ("levels = [9, 10]", "at most 8"),
        ("levels = [2, 23]", "at most 22"),
        ('variant = "best"', "tree, lths"),
        ("coreset = 1", "coreset"),
        ("norm = 3", "norm"),
    ],
)
def test_what_cannot_be_is_refused_by_name(extra: str, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        plan(extra=extra)


def test_cells_are_never_narrower_than_positions_are_told_apart() -> None:
    """Of a column halved 30 times the first levels would be the whole box."""
    assert keys_of(plan(1, extra="levels = [3, 24]")).levels == (3, 24)
    with pytest.raises(PlanError, match="at most 24"):
        plan(1, extra="levels = [3, 25]")


@pytest.mark.parametrize("k", [0, -1, 1001])
def test_a_number_of_centres_is_at_least_one_and_not_absurd(k: int) -> None:
    with pytest.raises(PlanError, match=r"places\.k"):
        plan(k=k)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('["x0", "x1"]', '["x0", "who"]', "of type text"),
        ('["x0", "x1"]', '["x0", "x9"]', "no column"),
        ('["x0", "x1"]', '["x0", "x0"]', "twice"),
        ('["x0", "x1"]', "[]", "a list of them"),
        ("max = 0.5", "max = -0.5", "min below max"),
    ],
)
def test_columns_are_bounded_numbers_each_once(old: str, new: str, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        Plan.loads(plan().text.replace(old, new))
