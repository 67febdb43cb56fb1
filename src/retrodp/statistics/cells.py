"""Counts, offset sums and sums of squares in the nested cells of a grid: what clusterings need.

One point touches one cell a level (and instance): its count, the sum of its offset from the cell's
centre, and the sum of the offset's square. That is a linear statistic (KKMNS theorem 3.4, P1): the
cells are those of a grid at a secret place that no data decide.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Self

import numpy as np

from retrodp.errors import UsageError
from retrodp.plan.columns import Column
from retrodp.plan.decimals import common_step
from retrodp.plan.expression import Expression
from retrodp.privacy.norms import Norms
from retrodp.statistics.contract import Component, columns_read
from retrodp.statistics.counts import kept_counts
from retrodp.statistics.grid import RADIUS, Grid, Ints, Placed
from retrodp.stream.batch import Batch

COUNT, SUM, SQUARE = "count", "sum", "square"

PART_OF_SQUARES = Fraction(1, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Counters of the cells of nested grids over bounded columns.

    Records in which a column of `of` is null count nowhere.

    Attributes:
        of: Columns of the points.
        levels: First and last level that is counted.
        instances: Grids of their own, each with a place of its own.
        where: Condition on the records that count.
        grid: Public geometry.
        placed: The grids at their places, or empty before `keyed`.
    """

    of: tuple[Column, ...]
    levels: tuple[int, int]
    instances: int = 1
    where: Expression | None = None
    grid: Grid = field(init=False)
    placed: tuple[Placed, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "grid", Grid.of(self.of, self.levels))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the points."""
        return tuple(column.name for column in self.of)

    @property
    def step(self) -> Fraction:
        """The grid that holds every column."""
        return common_step(column.grid[0] for column in self.of)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that `encode` reads."""
        return columns_read(self.names, self.where)

    @property
    def components(self) -> tuple[Component, ...]:
        """Counts, sums and squares; every level and instance has an equal part of each.

        Offsets are whole vectors of a norm of at most `RADIUS`, whatever the cell, so one component
        holds the sums of all levels. The unit of sums is the cell's radius, that of squares its
        square.
        """
        many, columns = self.instances * len(self.grid.counted), len(self.of)
        sums = part_of_sums(self.grid)
        step = Fraction(1, RADIUS)
        return (
            Component(
                *(COUNT, 1, Fraction(1), 1 - sums - PART_OF_SQUARES, ((),) * many),
                separate=True,
            ),
            Component(
                *(SUM, RADIUS, step, sums, ((),) * (many * columns)),
                norms=Norms(
                    many * min(columns * RADIUS, math.isqrt(columns * RADIUS**2)),
                    many * RADIUS**2,
                ),
                separate=True,
            ),
            Component(
                *(SQUARE, RADIUS, step, PART_OF_SQUARES, ((),) * many),
                norms=Norms(many * RADIUS, many * RADIUS**2),
                separate=True,
            ),
        )

    @property
    def bound(self) -> bool:
        """Whether the grids have their places."""
        return bool(self.placed)

    def keyed(self, key: bytes) -> Self:
        """The same statistic with its grids at the places that the key decides."""
        placed = tuple(self.grid.placed(key, instance) for instance in range(self.instances))
        return replace(self, placed=placed)

    def encode(self, batch: Batch) -> dict[bytes, int]:
        """Count, sums and square of every cell that a record lies in; see `coordinate`."""
        if not self.placed:
            raise UsageError("The cells have no place yet.", do="Bind the statistic to its key.")
        positions, counts = self.points(batch)
        found: dict[bytes, int] = {}
        for instance, grid in enumerate(self.placed):
            for level, numbers in grid.numbers(positions):
                found.update(_level(grid, instance, level, numbers, positions, counts))
        return found

    def points(self, batch: Batch) -> tuple[Ints, Ints]:
        """Positions of the records that count, shape (n, columns), and their multiplicities."""
        counts = np.array(kept_counts(self.where, batch), dtype=np.int64)
        kept = counts != 0
        columns: list[Ints] = []
        for column in self.of:
            values = batch.columns[column.name]
            if column.nullable:
                kept &= np.array([value is not None for value in values], dtype=bool)
                values = [0 if value is None else value for value in values]
            columns.append(np.array(values, dtype=np.int64).reshape(-1))
        shape = (int(kept.sum()), len(columns))
        positions = np.empty(shape, dtype=np.int64)
        grid = self.grid
        for place, values_of in enumerate(columns):
            up, down = grid.factors[place]
            own = (values_of[kept] - grid.minima[place]) * up >> down
            positions[:, place] = np.clip(own, 0, grid.extents[place])
        return positions, counts[kept]


def part_of_sums(grid: Grid) -> Fraction:
    """Part of the budget for the sums: the more columns, the more a mean costs beside a count."""
    if grid.projected:
        return Fraction(4, 5)
    return Fraction(3, 10) if grid.axes <= 3 else Fraction(3, 5)


def coordinate(component: str, instance: int, level: int, number: int) -> bytes:
    """Coordinate of a cell's count or square; a sum adds a colon and the column's place."""
    return b"%s\n%d:%d:%d" % (component.encode(), instance, level, number)


def _level(
    grid: Placed, instance: int, level: int, numbers: Ints, positions: Ints, counts: Ints
) -> Iterator[tuple[bytes, int]]:
    """Coordinates and amounts of one level, cells in rising order."""
    if not len(numbers):
        return
    offsets = grid.offsets(positions, grid.place(level, numbers))
    squares = (offsets * offsets).sum(axis=1) // RADIUS
    order = np.argsort(numbers, kind="stable")
    cells, starts = np.unique(numbers[order], return_index=True)
    weighted = np.column_stack([np.ones_like(counts), offsets, squares]) * counts[:, None]
    totals = np.add.reduceat(weighted[order], starts, axis=0).T.tolist()
    tails = [b"\n%d:%d:%d" % (instance, level, cell) for cell in cells.tolist()]
    count, *sums, square = totals
    for name, values in ((COUNT, count), (SQUARE, square)):
        head = name.encode()
        yield from zip((head + tail for tail in tails), values, strict=True)
    for place, values in enumerate(sums):
        end = b":%d" % place
        yield from zip((b"sum" + tail + end for tail in tails), values, strict=True)
