"""Reading noisy cells from the top: every child is looked at, and points add up to their cells."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from retrodp.clustering.cell_tree import Cell, NoisyCells, weighted_points
from retrodp.clustering.retroactive import Clusters
from retrodp.statistics.cells import Cells
from tests.support.clusters import batch, blobs, bound, plan, tree

ROUND = 5


def noisy(statistic: Cells, mechanism: Clusters) -> NoisyCells:
    return NoisyCells(
        statistic=statistic, count=mechanism.count, sums=mechanism.sums, square=mechanism.square
    )


def read(number: int = 0, *, threshold: int | None = None, points: int = 4000) -> tuple[Cell, ...]:
    keys = tree(number)
    statistic, mechanism = bound(plan(), keys)
    exact = statistic.encode(batch(blobs(points)[0])) if points else {}
    least = mechanism.thresholds[ROUND - 1] if threshold is None else threshold
    return noisy(statistic, mechanism).read(0, ROUND, exact, keys, threshold=least)


def test_cells_come_in_canonical_order_and_children_follow_their_parents() -> None:
    cells = read()
    order = [(cell.level, cell.number) for cell in cells]
    assert order == sorted(order)
    children = [child for cell in cells for child in cell.children]
    first = cells[0].level
    assert sorted(children) == [at for at, cell in enumerate(cells) if cell.level > first]
    pairs = [(cells[child], cell) for cell in cells for child in cell.children]
    assert len(pairs) > 10
    assert all(child.number >> 2 == cell.number for child, cell in pairs)


def test_without_a_threshold_every_cell_of_the_box_is_looked_at_and_has_noise() -> None:
    cells = read(threshold=-(10**9), points=0)
    statistic, _ = bound(plan(), tree())
    placed = statistic.placed[0]
    expected = [
        (level, number)
        for level in statistic.grid.counted
        for number in placed.inside(
            level, np.arange(1 << statistic.grid.bits(level), dtype=np.int64)
        ).tolist()
    ]
    assert [(cell.level, cell.number) for cell in cells] == expected
    drawn = {cell.count for cell in cells} | {one for cell in cells for one in cell.sums}
    assert len(drawn) > len(cells) / 50
    assert 0.4 < np.mean([cell.count > 0 for cell in cells]) < 0.6


def test_an_emptied_cell_keeps_the_noise_it_would_have_had() -> None:
    full, empty = read(threshold=-(10**9)), read(threshold=-(10**9), points=0)
    statistic, _ = bound(plan(), tree())
    totals = statistic.encode(batch(blobs(4000)[0]))
    differences = [one.count - other.count for one, other in zip(full, empty, strict=True)]
    exact = [totals.get(b"count\n0:%d:%d" % (c.level, c.number), 0) for c in full]
    assert differences == exact
    assert sum(map(bool, exact)) > 20


@pytest.mark.parametrize("part", ["count", "sums", "square"])
def test_every_counter_has_the_error_that_is_stated(part: str) -> None:
    """Without data all counters are noise: over 2,000 cells, so 8 % are five deviations."""
    _, mechanism = bound(plan(), tree())
    noise = {"count": mechanism.count, "sums": mechanism.sums, "square": mechanism.square}[part]
    found: list[int] = []
    for cell in read(threshold=-(10**9), points=0):
        own = getattr(cell, part)
        found += own if isinstance(own, tuple) else [own]
    stated = float(noise.stddev[ROUND - 1]) / float(noise.step)
    assert len(found) >= 2000
    assert abs(float(np.std(found)) / stated - 1) < 0.08
    assert abs(float(np.mean(found))) < 5 * stated / len(found) ** 0.5
    # The twin: a scale that is off by a fifth stands out.
    assert abs(float(np.std(found)) / (1.2 * stated) - 1) > 0.08


def test_weights_of_the_points_add_up_to_the_first_level() -> None:
    cells = read()
    points = weighted_points(cells, threshold=100)
    first = sum(cell.count for cell in cells if cell.level == cells[0].level)
    assert sum(point.weight for point in points) == first
    assert any(not point.kept for point in points)
    assert all(point.weight > 100 for point in points if point.kept)


def test_means_lie_in_their_cells() -> None:
    cells = read()
    points = weighted_points(cells, threshold=100)
    outside = [
        point
        for point in points
        for low, mean, high in zip(
            cells[point.cell].low, point.mean, cells[point.cell].high, strict=True
        )
        if not low <= mean <= high
    ]
    assert len(points) > 20
    assert outside == []


def test_a_point_left_beside_its_children_is_the_difference_of_the_sums() -> None:
    def cell(count: int, total: int, *children: int) -> Cell:
        return Cell(
            level=1,
            number=0,
            count=count,
            sums=(total,),
            square=0,
            centre=(0,),
            radius=4096,
            low=(-9000,),
            high=(9000,),
            children=children,
        )

    parent, child = cell(30, 80, 1), cell(10, 20)
    rest, own = weighted_points([parent, child], threshold=0)
    assert (rest.weight, rest.mean) == (20, (Fraction(3),))
    assert (own.weight, own.mean) == (10, (Fraction(2),))


@pytest.mark.parametrize("number", [1, 2])
def test_another_key_reads_other_cells(number: int) -> None:
    assert read(number) != read(0)
