"""Nearest representatives and offsets, against whole numbers without any linear algebra."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from retrodp.clustering import places
from retrodp.clustering.places import Box, _way_back
from retrodp.clustering.practical import box_columns
from retrodp.errors import PlanError, UsageError
from retrodp.statistics.grid import RADIUS, Placed

SHIFT = 4  # bits by which distances are coarser than positions


def box(columns: int, high: int = 1000, levels: tuple[int, int] = (1, 3)) -> Box:
    return Box.of(box_columns([0] * columns, [high] * columns, "1"), levels, 4)


def some(columns: int, count: int, high: int = 1000) -> np.ndarray:
    return np.random.default_rng(columns).integers(0, high + 1, (count, columns))


@pytest.mark.parametrize("columns", [1, 2, 5, 10])
def test_the_nearest_is_that_of_exact_arithmetic(columns: int) -> None:
    own = box(columns)
    points, others = (
        own.positions(some(columns, 300)),
        own.positions(some(columns, 41)[::-1].copy()),
    )
    found, squares = own.nearest(points, others)
    exact = [
        [
            sum(((x >> SHIFT) - (y >> SHIFT)) ** 2 for x, y in zip(point, other, strict=True))
            for other in others.tolist()
        ]
        for point in points.tolist()
    ]
    assert squares.tolist() == [float(min(row)) for row in exact]
    assert found.tolist() == [row.index(min(row)) for row in exact]


def test_the_largest_box_leaves_room_in_a_float() -> None:
    """Corner to corner in a hundred columns: every partial sum stays below 2^53."""
    own = box(100, high=2**27)
    low, high = np.zeros((1, 100), np.int64), np.full((1, 100), 2**27)
    _, squares = own.nearest(own.positions(low), own.positions(high))
    side = int(own.positions(high)[0, 0]) >> SHIFT
    assert squares.tolist() == [float(100 * side**2)]
    assert 3 * 100 * side**2 < 2**53


def test_batches_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    own = box(3)
    points, others = own.positions(some(3, 500)), own.positions(some(3, 20))
    whole = own.nearest(points, others)
    monkeypatch.setattr(places, "_CACHED", 1)
    parts = own.nearest(points, others)
    assert np.array_equal(whole[0], parts[0])
    assert np.array_equal(whole[1], parts[1])


def test_ties_go_to_the_oldest() -> None:
    own = box(1)
    twice = own.positions(np.array([[40], [60], [40], [60]]))
    found, _ = own.nearest(own.positions(np.array([[50], [61], [0]])), twice)
    assert found.tolist() == [0, 1, 0]


def offsets(columns: int) -> Iterator[tuple[list[int], list[int]]]:
    own = box(columns)
    points, others = (
        own.positions(some(columns, 400)),
        own.positions(some(columns, 400)[::-1].copy()),
    )
    yield from zip(own.offsets(points, others).tolist(), (points - others).tolist(), strict=True)


@pytest.mark.parametrize("columns", [1, 2, 8, 10])
def test_no_offset_is_longer_than_is_charged(columns: int) -> None:
    lengths = [sum(value**2 for value in offset) for offset, _ in offsets(columns)]
    assert max(lengths) <= RADIUS**2
    assert max(lengths) > (RADIUS * 0.99) ** 2  # some are shortened


def test_short_offsets_are_rounded_toward_zero() -> None:
    own, seen = box(2), 0
    for offset, away in offsets(2):
        wanted = [abs(value) * RADIUS // own.clip for value in away]
        if sum(value**2 for value in wanted) <= RADIUS**2:
            assert [abs(value) for value in offset] == wanted
            assert all(o * a >= 0 for o, a in zip(offset, away, strict=True))
            seen += 1
    assert seen > 30


def test_points_outside_are_moved_into_the_box() -> None:
    own = box(2)
    outside = own.positions(np.array([[-5, 2000], [0, 1000]]))
    assert outside[0].tolist() == outside[1].tolist()


def test_grid_steps_come_back_from_positions() -> None:
    own = box(2, high=777)
    steps = some(2, 200, high=777)
    assert np.array_equal(own.steps(2 * own.positions(steps)), steps)


def test_the_first_representative_lies_in_the_middle_whatever_the_data() -> None:
    assert box(2, high=100).middle.tolist() == [[50, 50]]


def cells_of(own: Box, points: np.ndarray, level: int) -> tuple[Placed, np.ndarray]:
    """A grid at some place, and the numbers of the points' cells at a level."""
    placed = own.grid.placed(b"p" * 32, 0)
    return placed, dict(placed.numbers(own.positions(points)))[level]


def test_the_middle_of_a_cell_lies_in_it() -> None:
    own, points = box(3), some(3, 100)
    placed, numbers = cells_of(own, points, 3)
    _, again = cells_of(own, own.middles(placed, 3, numbers), 3)
    assert np.array_equal(numbers, again)


@pytest.mark.parametrize("columns", [11, 30])
def test_of_many_columns_the_middle_has_the_sums_of_its_cell_and_is_no_farther(
    columns: int,
) -> None:
    own, points = box(columns, high=10**6), some(columns, 200, high=10**6)
    placed, numbers = cells_of(own, points, 3)
    middles = own.middles(placed, 3, numbers)
    # Half a cell from the point on every axis, so it need not be nearer than the middle; it mostly is.
    assert (np.abs(middles - own.middle) <= 10**6).all()
    before = ((points - own.middle) ** 2).sum(axis=1)
    after = ((points - middles) ** 2).sum(axis=1)
    assert (after < before).mean() > 0.9
    _, again = cells_of(own, middles, 3)
    assert (again == numbers).mean() > 0.9  # but where it was moved into the box


def test_the_way_back_is_the_shortest_and_skips_what_is_known() -> None:
    signs = [[1, 1, -1, 1], [1, -1, -1, 1], [-1, 1, 1, -1]]  # the last is the second, turned round
    back = _way_back(signs)
    vector = [sum(w * y for w, y in zip(row, (3, 5, -5), strict=True)) for row in back]
    assert [sum(s * v for s, v in zip(row, vector, strict=True)) for row in signs] == [3, 5, -5]
    shortest = np.linalg.pinv(np.array(signs, float)) @ np.array([3.0, 5.0, -5.0])
    assert np.allclose(np.array(vector, float), shortest)


@pytest.mark.parametrize(
    ("columns", "levels"),
    [(101, (1, 3)), (2, (0, 3)), (2, (4, 3)), (2, (9, 9)), (10, (1, 5)), (20, (4, 4))],
)
def test_boxes_that_have_no_cells_or_too_many_are_refused(
    columns: int, levels: tuple[int, int]
) -> None:
    with pytest.raises(PlanError):
        box(columns, levels=levels)


def test_points_of_another_shape_are_refused() -> None:
    with pytest.raises(UsageError):
        box(2).positions(np.zeros((3, 1), np.int64))
    with pytest.raises(UsageError):
        box(2).positions(np.zeros((3, 2)))  # type: ignore[arg-type]
