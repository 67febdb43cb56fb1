"""Points as they arrive: with an identity each, in no order, nulls and conditions left out."""

from __future__ import annotations

import numpy as np

from retrodp.engine.compile import statistic_of
from retrodp.plan.plan import Plan
from retrodp.statistics.arrivals import ArrivingPoints
from retrodp.stream.batch import Batch
from tests.support.online import plan


def watched(made: Plan) -> ArrivingPoints:
    found = statistic_of(made, made.releases[0])
    assert isinstance(found, ArrivingPoints)
    return found


def batch(xs: list[object], ys: list[object], counts: list[int] | None = None) -> Batch:
    many = [1] * len(xs) if counts is None else counts
    return Batch(len(xs), {"x": xs, "y": ys}, np.array(many, dtype=np.int64))


def test_points_come_back_with_their_places_and_identities() -> None:
    statistic = watched(plan())
    seen = statistic.arrivals(batch([-5, 7, 1], [2, -3, 4]), [b"ann", b"bob", b"eve"])
    points, identities = statistic.arrived(seen)
    found = {name[:3]: row for name, row in zip(identities, points.tolist(), strict=True)}
    assert found == {b"ann": [-5, 2], b"bob": [7, -3], b"eve": [1, 4]}
    assert points.dtype == np.int64


def test_the_order_of_arrival_is_not_shown() -> None:
    statistic = watched(plan())
    one = statistic.arrivals(batch([1, 2], [3, 4]), [b"a", b"b"])
    two = statistic.arrivals(batch([2, 1], [4, 3]), [b"b", b"a"])
    first, second = statistic.arrived(one), statistic.arrived(two)
    assert first.identities == second.identities
    assert np.array_equal(first.points, second.points)


def test_copies_have_identities_of_their_own_and_one_more_leaves_the_others_alone() -> None:
    statistic = watched(plan())
    few, many = (
        statistic.arrived(statistic.arrivals(batch([1], [1], [copies]), [b"same"]))
        for copies in (3, 4)
    )
    assert len(set(few.identities)) == 3
    assert set(few.identities) < set(many.identities)


def test_nulls_are_left_out() -> None:
    nullable = plan(column='{ type = "number", min = -5, max = 5, step = 0.01, nullable = true }')
    statistic = watched(nullable)
    seen = statistic.arrivals(batch([None, 1, 2], [1, None, 2]), [b"a", b"b", b"c"])
    assert statistic.arrived(seen).points.tolist() == [[2, 2]]


def test_no_point_makes_no_row_and_nothing_is_totalled() -> None:
    statistic = watched(plan())
    assert statistic.arrived({}).points.shape == (0, 2)
    assert statistic.encode(batch([1], [2])) == {}


def test_only_records_for_which_the_condition_holds_are_shown() -> None:
    statistic = watched(plan(keys='where = "x > 0"'))
    seen = statistic.arrivals(batch([-5, 7], [2, -3]), [b"a", b"b"])
    assert statistic.arrived(seen).points.tolist() == [[7, -3]]
