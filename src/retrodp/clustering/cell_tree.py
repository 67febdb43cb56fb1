"""The noisy cells of a grid, looked at from the top down, and the weighted points they stand for.

All cells inside the public box have noisy counters, empty ones included; what is looked at is a
function of the noisy counts alone. So this is post-processing of one vector of counters (KKMNS
theorem 3.2, lemma 3.3): it needs no threshold for privacy and no delta, and never asks which cells
hold data. Whole numbers until a point is written down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.noise.key import NoiseKeys
from retrodp.noise.prf import Coordinates
from retrodp.statistics.cells import COUNT, SQUARE, SUM, Cells, coordinate
from retrodp.statistics.grid import RADIUS, Ints, Placed

LEVEL_BITS, INSTANCE_BITS = 6, 6
MOST_CELLS = 1 << 22
"""Cells of one level that are looked at; more only where tens of thousands of parents are full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Noisy counters of one accepted cell.

    Attributes:
        level: Of the grid.
        number: Within the level.
        count: Noisy number of points.
        sums: Noisy sums of offsets from the centre, in steps of the radius over `RADIUS`.
        square: Noisy sum of squared offsets, in steps of the squared radius over `RADIUS`.
        centre: Twice the centre, in positions.
        radius: Twice the radius, in positions.
        low: Twice the lower corner, in positions.
        high: Twice the upper corner.
        children: Places of its accepted children in the list of cells.
    """

    level: int
    number: int
    count: int
    sums: tuple[int, ...]
    square: int
    centre: tuple[int, ...]
    radius: int
    low: tuple[int, ...]
    high: tuple[int, ...]
    children: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedPoint:
    """Points of a cell that no accepted child has, as one.

    Attributes:
        cell: Place of the cell in the list of cells; its accepted children are taken off.
        weight: Noisy number of points.
        mean: Exact mean of their noisy sums, kept inside the cell, in doubled positions.
        kept: Whether it stands out of the noise; other points are left out of the coreset.
    """

    cell: int
    weight: int
    mean: tuple[Fraction, ...]
    kept: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyCells:
    """The counters of `Cells` under noise, read from the top.

    Attributes:
        statistic: Bound to its secret.
        count: Noise of counts.
        sums: Noise of sums.
        square: Noise of squares.
    """

    statistic: Cells
    count: CalibratedNoise
    sums: CalibratedNoise
    square: CalibratedNoise

    def read(
        self,
        instance: int,
        round_: int,
        exact: Mapping[bytes, int],
        keys: NoiseKeys,
        *,
        threshold: int,
    ) -> tuple[Cell, ...]:
        """Accepted cells in canonical order: by level, then by number.

        Args:
            instance: Of the statistic's grids.
            round_: From 1 to the horizon.
            exact: Totals of the surviving data by coordinate.
            keys: Source of the noise.
            threshold: A cell is accepted whose noisy count is above it; its children are looked at.

        Time: proportional to the cells looked at, some 0.3 microseconds each.
        """
        grid = self.statistic.placed[instance]
        levels = self.statistic.grid.counted
        asked = _Asked(instance, round_, exact, keys)
        numbers = np.arange(1 << self.statistic.grid.bits(levels[0]), dtype=np.int64)
        found: list[_Accepted] = []
        for level in levels:
            if found:
                bits = self.statistic.grid.branching(level)
                sides = np.arange(1 << bits, dtype=np.int64)
                parents = found[-1].numbers[: MOST_CELLS >> bits]
                numbers = (parents[:, None] << bits | sides[None, :]).reshape(-1)
            numbers = grid.inside(level, numbers)
            counts = _noisy(self.count, COUNT, asked, level, numbers)
            accepted = counts > threshold
            found.append(_Accepted(level, numbers[accepted], counts[accepted]))
        return tuple(self._cells(grid, asked, found))

    def _cells(self, grid: Placed, asked: _Asked, found: Sequence[_Accepted]) -> Iterator[Cell]:
        before = 0
        for (level, numbers, counts), below in zip_longest(found, found[1:]):
            before += len(numbers)
            children: list[list[int]] = [[] for _ in range(len(numbers))]
            if below is not None:
                bits = self.statistic.grid.branching(below.level)
                parents = np.searchsorted(numbers, below.numbers >> bits)
                for own, parent in enumerate(parents.tolist()):
                    children[parent].append(before + own)
            place = grid.place(level, numbers)
            rows = zip(
                numbers.tolist(),
                counts.tolist(),
                _noisy_sums(self.sums, len(self.statistic.of), asked, level, numbers),
                _noisy(self.square, SQUARE, asked, level, numbers).tolist(),
                *(array.tolist() for array in place),
                children,
                strict=True,
            )
            for number, count, sums, square, centre, radius, low, high, own in rows:
                yield Cell(
                    level=level,
                    number=number,
                    count=count,
                    sums=tuple(sums),
                    square=square,
                    centre=tuple(centre),
                    radius=radius,
                    low=tuple(low),
                    high=tuple(high),
                    children=tuple(own),
                )


class _Asked(NamedTuple):
    """Whose counters, and where totals and noise come from."""

    instance: int
    round: int
    exact: Mapping[bytes, int]
    keys: NoiseKeys


class _Accepted(NamedTuple):
    """Accepted cells of one level, in rising order."""

    level: int
    numbers: Ints
    counts: Ints


def _noisy(
    noise: CalibratedNoise, component: str, asked: _Asked, level: int, numbers: Ints
) -> Ints:
    """Noisy counts or squares of cells."""
    instance, round_, exact, keys = asked
    where = Coordinates.of_indices(_index(instance, level, numbers))
    totals = [exact.get(coordinate(component, instance, level, one), 0) for one in numbers.tolist()]
    noisy: Ints = noise.draw(round_, keys, where) + np.array(totals, dtype=np.int64)
    return noisy


def _noisy_sums(
    noise: CalibratedNoise, columns: int, asked: _Asked, level: int, numbers: Ints
) -> list[list[int]]:
    """Noisy offset sums of cells, one row a cell."""
    instance, round_, exact, keys = asked
    first = _index(instance, level, numbers) * columns
    where = Coordinates.of_indices((first[:, None] + np.arange(columns)).reshape(-1))
    rows: list[list[int]] = noise.draw(round_, keys, where).reshape(-1, columns).tolist()
    for row, number in zip(rows, numbers.tolist(), strict=True):
        name = coordinate(SUM, instance, level, number)
        for column in range(columns):
            row[column] += exact.get(name + b":%d" % column, 0)
    return rows


def _index(instance: int, level: int, numbers: Ints) -> Ints:
    """Public index of a cell among all cells of all levels and instances: exact, no hash.

    It stays below 2^56, so that 100 sums of a cell have indices below 2^63.
    """
    head = np.int64(instance << LEVEL_BITS | level)
    index: Ints = (numbers << (LEVEL_BITS + INSTANCE_BITS)) | head
    return index


def weighted_points(cells: Sequence[Cell], threshold: int) -> tuple[WeightedPoint, ...]:
    """One point for each cell: what its accepted children have not.

    It is part of the coreset (a noisy semi-coreset in the sense of Epasto, Mukherjee, Zhong 2026)
    where its weight is above `threshold` times the root of the number of counts that make it.
    """
    found = []
    for place, cell in enumerate(cells):
        children = [cells[child] for child in cell.children]
        weight = cell.count - sum(child.count for child in children)
        kept = weight > 0 and weight * weight > threshold * threshold * (1 + len(children))
        found.append(
            WeightedPoint(
                cell=place,
                weight=weight,
                mean=_mean(cell, children, weight) if weight > 0 else _own_mean(cell),
                kept=kept,
            )
        )
    return tuple(found)


def _own_mean(cell: Cell) -> tuple[Fraction, ...]:
    return _mean(cell, (), cell.count)


def _mean(cell: Cell, children: Sequence[Cell], weight: int) -> tuple[Fraction, ...]:
    """Mean of the cell's noisy sum less its children's, moved into the cell."""
    found = []
    for column in range(len(cell.centre)):
        total = moment(cell, column) - sum(moment(child, column) for child in children)
        mean = Fraction(total, RADIUS * weight)
        low, high = cell.low[column], cell.high[column]
        found.append(min(max(mean, Fraction(low)), Fraction(high)))
    return tuple(found)


def moment(cell: Cell, column: int) -> int:
    """Noisy sum of a column over a cell's points, in doubled positions over `RADIUS`."""
    return cell.sums[column] * cell.radius + cell.count * cell.centre[column] * RADIUS
