"""Nearest representatives, distances and offsets of points, in whole numbers.

Promise: which representative is nearest, how far it is and which offset is counted are exact
integers, so they are equal on every machine, whatever its linear algebra. Knows no noise.

**Exact by size.** Distances are taken between positions of `BITS` bits. Every product and every
partial sum of a matrix product of them, for up to 100 columns, is a whole number below 2^53, which a float holds exactly;
so neither the order of summation, nor threads, nor fused products can change a bit. Ties go to the
representative that was born first.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import NDArray

from retrodp.errors import PlanError, UsageError
from retrodp.plan.cluster_kinds import (
    MOST_BITS,
    MOST_COLUMNS,
    MOST_FIRST_BITS,
    MOST_HALVINGS,
    PROJECTED,
    PROJECTED_FROM,
)
from retrodp.plan.columns import Column
from retrodp.statistics.grid import RADIUS, RESOLUTION, Grid, Placed

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

BITS = 22
"""Of the positions that distances are taken between."""

_SHIFT = RESOLUTION - BITS
_CACHED = 1 << 15  # scores worked on at a time: in the processor's cache
_PRODUCTS = 1 << 18  # of a matrix product: too few for the library to start threads for


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """The public box that points lie in, as positions of whole numbers.

    Attributes:
        grid: Nested cells over the box; its positions are those of `retrodp.statistics.grid`.
        limits: Least and greatest value of each column, in the column's own steps.
        clip: Longest offset that is counted in full, in positions.
    """

    grid: Grid
    limits: tuple[tuple[int, int], ...]
    clip: int

    @classmethod
    def of(cls, columns: Sequence[Column], levels: tuple[int, int], clip_parts: int) -> Self:
        """The box of bounded columns.

        Args:
            columns: Of the points.
            levels: First and last level of the cells that are counted.
            clip_parts: Longest offset as that part of the widest column's range.
        """
        if not 1 <= len(columns) <= MOST_COLUMNS:
            raise PlanError(
                f"An online clustering has {len(columns)} columns.",
                expected=f"1 to {MOST_COLUMNS} columns",
            )
        first, last = levels
        axes = len(columns) if len(columns) < PROJECTED_FROM else PROJECTED
        if not 1 <= first <= last <= MOST_HALVINGS or (
            first * axes > MOST_FIRST_BITS or last * axes > MOST_BITS
        ):
            raise PlanError(
                f"Cells of levels {first} to {last} over {axes} axes are too many, or none.",
                expected=f"a first level from 1 to {MOST_FIRST_BITS // axes}, a last one up "
                f"to {min(MOST_BITS // axes, MOST_HALVINGS)}",
            )
        grid = Grid.of(columns, levels)
        return cls(
            grid=grid,
            limits=tuple(column.grid[1] for column in columns),
            clip=max(1, max(grid.extents) // clip_parts),
        )

    @property
    def columns(self) -> int:
        """Of the points."""
        return len(self.limits)

    def positions(self, steps: Ints) -> Ints:
        """Positions of points given in grid steps, moved into the box; shape (n, columns)."""
        if steps.ndim != 2 or steps.shape[1] != self.columns or steps.dtype != np.int64:
            raise UsageError(f"Points must be an int64 array of {self.columns} columns.")
        found = np.empty(steps.shape, dtype=np.int64, order="F")
        for place, (low, high) in enumerate(self.limits):
            up, down = self.grid.factors[place]
            inside = np.clip(steps[:, place], low, high)
            inside -= low
            inside *= up
            inside >>= down
            np.minimum(inside, self.grid.extents[place], out=found[:, place])
        return found

    def steps(self, doubled: Ints) -> Ints:
        """Grid steps nearest to positions that are given doubled, halves up; shape (n, columns)."""
        found = np.empty(doubled.shape, dtype=np.int64)
        for place, (low, high) in enumerate(self.limits):
            up, down = self.grid.factors[place]
            whole = ((doubled[:, place] << down) + up) // (2 * up)
            found[:, place] = np.clip(whole + low, low, high)
        return found

    @property
    def middle(self) -> Ints:
        """The middle of the box in grid steps, shape (1, columns): a place without data."""
        found: Ints = np.array([[(low + high) // 2 for low, high in self.limits]], dtype=np.int64)
        return found

    def middles(self, placed: Placed, level: int, numbers: Ints) -> Ints:
        """Places that stand for cells, in grid steps, shape (n, columns).

        The middle of the cell. Where axes are signed sums of many columns, the place nearest to the
        middle of the box that has the sums of the cell's middle: it is never farther from a point
        with these sums than the middle of the box is.
        """
        on_axes = placed.middles(level, numbers)
        if placed.signs is None:
            return self.steps(on_axes)
        half = self.grid.spans[0] // 2
        sums = [[value - 2 * half for value in row] for row in on_axes.tolist()]
        back = _way_back(placed.signs.tolist())
        found = [
            [
                extent + math.floor(sum(map(operator.mul, weights, row)) / 2 + Fraction(1, 2))
                for extent, weights in zip(self.grid.extents, back, strict=True)
            ]
            for row in sums
        ]
        return self.steps(np.array(found, dtype=np.int64).reshape(-1, self.columns))

    @property
    def unit(self) -> int:
        """Units of a distance in the width of the widest column."""
        return max(1, max(self.grid.extents) >> _SHIFT)

    def apart(self, positions: float) -> float:
        """A length in positions as one in the units that distances are told in."""
        return positions / (1 << _SHIFT)

    def nearest(self, points: Ints, representatives: Ints) -> tuple[NDArray[np.intp], Floats]:
        """Place of each point's nearest representative, and the squared distance to it.

        Args:
            points: Positions, shape (n, columns).
            representatives: Positions, shape (m, columns), m at least 1.

        Returns:
            Places, and squares as floats that are whole numbers.
        """
        centres = (representatives >> _SHIFT).astype(np.float64)
        squares = np.zeros(len(centres))
        for column in centres.T:
            squares += column * column
        centres *= -2.0
        own = (points >> _SHIFT).astype(np.float64)
        places = np.empty(len(own), dtype=np.intp)
        distances = np.zeros(len(own))
        for column in own.T:
            distances += column * column
        rows = max(16, min(_CACHED, _PRODUCTS // self.columns) // len(centres))
        turned = np.ascontiguousarray(centres.T)
        room = np.empty((min(rows, len(own)), len(centres)))
        for start in range(0, len(own), rows):
            part = slice(start, min(start + rows, len(own)))
            scores = room[: part.stop - start]
            np.matmul(own[part], turned, out=scores)
            scores += squares
            best = scores.argmin(axis=1)
            places[part] = best
            distances[part] += scores[np.arange(len(best)), best]
        return places, distances

    def offsets(self, points: Ints, centres: Ints) -> Ints:
        """Offsets of points from their representatives, in `clip` over `RADIUS`, both positions.

        Rounded toward zero, and of a norm of at most `RADIUS` as whole numbers: a longer one is
        shortened and rounded toward zero again.
        """
        found = np.empty(points.shape, dtype=np.int64, order="F")
        squares = np.zeros(len(points), dtype=np.int64)
        for place in range(points.shape[1]):
            away = points[:, place] - centres[:, place]
            away *= RADIUS
            _toward_zero(away, self.clip, out=found[:, place])
            squares += found[:, place] * found[:, place]
        long = np.flatnonzero(squares > RADIUS * RADIUS)
        if len(long):
            # The float root of a whole number below 2^53 is off by less than 1.
            norms = np.floor(np.sqrt(squares[long].astype(np.float64))).astype(np.int64) + 1
            shortened = found[long] * RADIUS
            found[long] = np.sign(shortened) * (np.abs(shortened) // norms[:, None])
        return found


def _way_back(signs: list[list[int]]) -> list[list[Fraction]]:
    """From sums with signs to the shortest vector that has them: S' (S S')^-1, exact.

    A row of signs that those before it determine gets no weight.

    Returns:
        One row a column, one weight a sum.
    """
    basis: list[
        tuple[list[Fraction], list[Fraction]]
    ] = []  # orthogonal rows, and what they are made of
    back = [[Fraction(0)] * len(signs) for _ in signs[0]]
    for place, row in enumerate(signs):
        rest = [Fraction(sign) for sign in row]
        made = [Fraction(int(place == other)) for other in range(len(signs))]
        for other, of in basis:
            part = _dot(rest, other) / _dot(other, other)
            rest = [a - part * b for a, b in zip(rest, other, strict=True)]
            made = [a - part * b for a, b in zip(made, of, strict=True)]
        length = _dot(rest, rest)
        if not length:
            continue
        basis.append((rest, made))
        for column, value in enumerate(rest):
            back[column] = [
                have + value * weight / length
                for have, weight in zip(back[column], made, strict=True)
            ]
    return back


def _dot(one: list[Fraction], other: list[Fraction]) -> Fraction:
    return sum(map(operator.mul, one, other), Fraction(0))


def _toward_zero(values: Ints, under: int, *, out: Ints) -> None:
    """Quotients rounded toward zero."""
    np.floor_divide(values, under, out=out)
    out += (values < 0) & (out * under != values)
