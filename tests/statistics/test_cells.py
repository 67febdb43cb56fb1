"""Cells: where points fall, what they add, and that no record adds more than is charged."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from retrodp.engine.compile import statistic_of
from retrodp.errors import PlanError, UsageError
from retrodp.plan.plan import Plan
from retrodp.statistics.cells import COUNT, SQUARE, SUM, Cells
from retrodp.statistics.contract import Keyed
from retrodp.statistics.grid import RADIUS
from retrodp.stream.batch import Batch
from tests.support.clusters import HALF, Points, batch, bound, plan, tree

DIMENSIONS = [1, 2, 8, 12]


def cells(dimensions: int, *, number: int = 0, extra: str = "") -> Cells:
    statistic, _ = bound(plan(dimensions, extra=extra), tree(number))
    return statistic


def some_points(dimensions: int, number: int = 300) -> Points:
    """Uniform points, the corners of the box and points in its middle."""
    rng = np.random.default_rng(dimensions)
    corners = rng.choice([-HALF, HALF], size=(20, dimensions))
    inner = rng.integers(-HALF, HALF + 1, size=(number, dimensions))
    return np.concatenate([corners, inner, np.zeros((3, dimensions), dtype=np.int64)])


def by_component(totals: dict[bytes, int]) -> dict[str, dict[str, list[int]]]:
    """Amounts of each cell by component."""
    found: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for name, amount in totals.items():
        component, _, place = name.decode().partition("\n")
        found[component][":".join(place.split(":")[:3])].append(amount)
    return found


def test_it_waits_for_its_secret() -> None:
    open_ = statistic_of(plan(), plan().releases[0])
    assert isinstance(open_, Keyed)
    assert not open_.bound
    with pytest.raises(UsageError):
        open_.encode(batch([[0, 0]]))
    assert open_.keyed(bytes(32)).bound


@pytest.mark.parametrize("dimensions", DIMENSIONS)
def test_a_point_counts_once_a_level(dimensions: int) -> None:
    statistic = cells(dimensions)
    totals = by_component(statistic.encode(batch(some_points(dimensions))))
    by_level: dict[str, int] = defaultdict(int)
    for cell, (amount,) in totals[COUNT].items():
        by_level[cell.split(":")[1]] += amount
    assert by_level == {str(level): 323 for level in statistic.grid.counted}


@pytest.mark.parametrize("dimensions", DIMENSIONS)
def test_cells_of_a_level_lie_in_those_of_the_level_above(dimensions: int) -> None:
    statistic = cells(dimensions)
    positions, _ = statistic.points(batch(some_points(dimensions)))
    (placed,) = statistic.placed
    numbers = dict(placed.numbers(positions))
    first, last = statistic.grid.levels
    assert len(numbers) == last - first + 1
    for level in range(first + 1, last + 1):
        bits = statistic.grid.branching(level)
        assert (numbers[level] >> bits == numbers[level - 1]).all()
        assert (placed.inside(level, numbers[level]) == numbers[level]).all()
        assert int(numbers[level].max()) < 1 << statistic.grid.bits(level)


@pytest.mark.parametrize("dimensions", [1, 2, 8])
def test_a_point_lies_in_its_cell(dimensions: int) -> None:
    statistic = cells(dimensions)
    positions, _ = statistic.points(batch(some_points(dimensions)))
    (placed,) = statistic.placed
    inside = []
    for level, numbers in placed.numbers(positions):
        place = placed.place(level, numbers)
        inside.append(
            bool((place.low <= 2 * positions).all() and (2 * positions <= place.high).all())
        )
    assert inside == [True] * len(statistic.grid.counted)


@pytest.mark.parametrize(
    ("dimensions", "extra"), [(1, ""), (2, ""), (2, 'variant = "lths"'), (8, ""), (12, "")]
)
def test_what_a_record_adds_keeps_to_the_norms_that_are_charged(
    dimensions: int, extra: str
) -> None:
    statistic = cells(dimensions, extra=extra)
    components = {component.name: component for component in statistic.components}
    assert sum(component.share for component in components.values()) == 1
    longest: dict[str, tuple[int, int]] = dict.fromkeys(components, (0, 0))
    for point in some_points(dimensions, 10):
        for name, found in by_component(statistic.encode(batch([point]))).items():
            amounts = [amount for own in found.values() for amount in own]
            l1, l2 = sum(map(abs, amounts)), sum(amount**2 for amount in amounts)
            longest[name] = max(longest[name][0], l1), max(longest[name][1], l2)
            assert max(map(abs, amounts)) <= components[name].amount
            assert len(amounts) <= len(components[name].partitions)
    many = len(statistic.grid.counted) * statistic.instances
    assert longest[COUNT] == (many, many)
    for name in (SUM, SQUARE):
        norms = components[name].norms
        assert norms is not None
        assert longest[name][0] <= norms.l1
        assert longest[name][1] <= norms.l2_squared
    # A corner of the box is a corner of its cell at every level: no smaller charge would do.
    if dimensions < 11:
        norms = components[SUM].norms
        assert norms is not None
        assert longest[SUM][1] > 0.999 * norms.l2_squared
        assert longest[SUM][0] > 0.8 * norms.l1  # cells at the border are no cubes
        assert longest[SQUARE][0] > 0.999 * many * RADIUS


def test_twin_rounding_offsets_to_the_nearest_step_would_exceed_the_radius() -> None:
    worst = 0
    for radius in range(3, 40):
        offset = [radius / math.sqrt(8)] * 8
        worst = max(worst, sum(round(one) ** 2 for one in offset) - radius**2)
    assert worst > 0


@pytest.mark.parametrize("dimensions", [2, 8, 12])
def test_the_statistic_is_linear(dimensions: int) -> None:
    statistic = cells(dimensions)
    points = some_points(dimensions, 60)
    both = statistic.encode(batch(points))
    parts = [statistic.encode(batch(points[:30])), statistic.encode(batch(points[30:]))]
    added: dict[bytes, int] = defaultdict(int)
    for part in parts:
        for name, amount in part.items():
            added[name] += amount
    assert {k: v for k, v in added.items() if v} == {k: v for k, v in both.items() if v}
    thrice = statistic.encode(batch(points[:1], copies=[3]))
    assert thrice == {k: 3 * v for k, v in statistic.encode(batch(points[:1])).items()}


def test_a_mean_is_found_again_from_count_and_sums() -> None:
    statistic = cells(2)
    point = [123, -45]
    totals = by_component(statistic.encode(batch([point] * 7)))
    grid = statistic.grid
    found = []
    for cell, sums in totals[SUM].items():
        _, level, number = map(int, cell.split(":"))
        place = statistic.placed[0].place(level, np.array([number]))
        for column in range(2):
            offset = Fraction(sums[column], 7) * int(place.radii[0]) / RADIUS
            position = (offset + int(place.centres[0, column])) / 2
            up, down = grid.factors[column]
            value = position * 2**down / up + grid.minima[column]
            found.append(abs(float(value) - point[column]))
    assert len(found) == 2 * len(grid.counted)
    assert max(found) < 0.25  # a 4096th of the widest cell's radius, in steps


def test_null_and_filtered_points_count_nowhere() -> None:
    text = plan().text.replace('step = "0.001"', 'step = "0.001"')
    nullable = Plan.loads(
        text.replace("step = 0.001 }", "step = 0.001, nullable = true }").replace(
            "k = 3", 'k = 3\nwhere = "x0 > 0"'
        )
    )
    statistic, _ = bound(nullable, tree())
    columns: dict[str, list[object]] = {"x0": [100, None, -100, 100], "x1": [5, 5, 5, None]}
    totals = statistic.encode(Batch(4, columns, np.ones(4, dtype=np.int64)))
    assert {amount for name, amount in totals.items() if name.startswith(b"count")} == {1}
    nothing = {"x0": [None], "x1": [5]}
    assert statistic.encode(Batch(1, nothing, np.ones(1, dtype=np.int64))) == {}  # type: ignore[arg-type]


def test_another_key_places_another_grid_and_the_same_key_the_same() -> None:
    points = batch(some_points(2))
    one, same, other = (cells(2, number=number).encode(points) for number in (1, 1, 2))
    assert one == same
    assert one != other


def test_the_geometry_depends_on_the_plan_alone() -> None:
    assert cells(2, number=1).grid == cells(2, number=2).grid
    assert cells(2, number=1).grid.spec() == cells(2, number=2).grid.spec()


def test_a_narrow_column_is_halved_later() -> None:
    text = plan().text.replace(
        'x1 = { type = "number", min = -0.5, max = 0.5',
        'x1 = { type = "number", min = 0, max = 0.1',
    )
    statistic, _ = bound(Plan.loads(text), tree())
    cuts = statistic.grid.cuts
    assert [own[0] for own in cuts] == [0, 1, 2, 3, 4, 5, 6]
    assert [own[1] for own in cuts] == [0, 0, 0, 0, 1, 2, 3]


def test_columns_of_wildly_different_ranges_are_refused() -> None:
    text = plan().text.replace(
        'x1 = { type = "number", min = -0.5, max = 0.5, step = 0.001',
        'x1 = { type = "number", min = 0, max = 9e12, step = 1',
    )
    wild = Plan.loads(text)
    with pytest.raises(PlanError, match="ranges"):
        statistic_of(wild, wild.releases[0])
