"""Nested cells over a public box, shifted by a secret: where a point lies, in whole numbers.

Promise: the cells of a point, and its offset from their centres, are integers that depend on the
columns, the levels, the secret and the point alone, so they are the same on every machine. The
geometry never depends on the data. Knows no noise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrodp.errors import PlanError
from retrodp.plan.cluster_kinds import PROJECTED, PROJECTED_FROM
from retrodp.plan.columns import Column
from retrodp.plan.decimals import common_step

Ints = NDArray[np.int64]

RESOLUTION = 26
"""Bits of the widest column's range: cells and offsets are whole numbers of this size."""

RADIUS = 4096
"""Steps in a cell's radius: offsets are counted in 4096ths of it."""

ROOM = Fraction(3, 2)
"""Width of the root over that of the box: the shift moves the box about in it."""

CLIPS = (Fraction(1), Fraction(3, 4), Fraction(5, 8))
"""Part of the half diagonal that offsets keep: few axes, more, projected. Points that are spread evenly
over a box of many columns have 0.58 of it."""

_LARGEST = 2**40  # ratio of ranges, common steps of a range


class Place(NamedTuple):
    """Cells of one level of one instance, as arrays over the cells asked for.

    Attributes:
        centres: Twice the centre of each cell, relative to the box, shape (n, columns).
        radii: Twice the radius that offsets are clipped to, shape (n,); at least 1.
        low: Lower corner of the part of each cell inside the box, times two, shape (n, columns).
        high: Upper corner, likewise.
    """

    centres: Ints
    radii: Ints
    low: Ints
    high: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Public geometry of nested cells.

    A record's position is ``t = (value - min) factor`` in units of `unit`, a whole number from 0 to
    the column's extent. Axes are the columns; from `PROJECTED_FROM` columns on, axis i is a sum
    of all centred positions with secret signs, cut off at a quarter of the box's diagonal. At each level every axis is halved that is more than
    half as wide as the widest.

    Attributes:
        unit: Of positions, in units of the columns.
        minima: Least value of each column, in its own steps.
        factors: Positions in a step of each column, as (numerator, power of two under it).
        extents: Largest position of each column.
        axes: Number of axes.
        projected: Whether axes are signed sums.
        spans: Largest position on each axis.
        cuts: Halvings of each axis at levels 0, 1, ... last, shape (last + 1, axes).
        finest: Width of a cell of the last level on each axis.
        levels: First and last level that is counted.
        clip: Part of a cell's half diagonal to which offsets are clipped.
    """

    unit: Fraction
    minima: tuple[int, ...]
    factors: tuple[tuple[int, int], ...]
    extents: tuple[int, ...]
    axes: int
    projected: bool
    spans: tuple[int, ...]
    cuts: tuple[tuple[int, ...], ...]
    finest: tuple[int, ...]
    levels: tuple[int, int]
    clip: Fraction

    @classmethod
    def of(cls, columns: Sequence[Column], levels: tuple[int, int]) -> Grid:
        """The geometry of these columns; a function of the plan alone."""
        step = common_step(column.grid[0] for column in columns)
        grids = [column.grid for column in columns]
        multiples = [int(own / step) for own, _ in grids]
        ranges = [(high - low) * m for (_, (low, high)), m in zip(grids, multiples, strict=True)]
        if not min(ranges) or max(ranges) > min(ranges) * _LARGEST or max(ranges) > 2**60:
            raise PlanError(
                "Columns of a clustering have ranges, or steps, that differ too much, or a single "
                "value.",
                expected="ranges and steps of similar size",
                do="Bring the columns to similar units; distances are taken in them as they are.",
            )
        shift = RESOLUTION - max(ranges).bit_length()
        down = max(0, -shift)
        factors = tuple((multiple << max(0, shift), down) for multiple in multiples)
        extents = tuple(
            max(1, ((high - low) * up) >> down)
            for (_, (low, high)), (up, _) in zip(grids, factors, strict=True)
        )
        projected = len(columns) >= PROJECTED_FROM
        axes = PROJECTED if projected else len(columns)
        # Farther sums are moved to the ends; those of evenly spread points deviate by 0.29 diagonals.
        spans = (_diagonal(extents) // 2 * 2,) * axes if projected else extents
        cuts = _cuts(spans, levels[1])
        finest = tuple(
            -(-max(int(ROOM * span), span + 2) >> halvings)
            for span, halvings in zip(spans, cuts[-1], strict=True)
        )
        return cls(
            unit=step * Fraction(2) ** -shift,
            minima=tuple(low for _, (low, _) in grids),
            factors=factors,
            extents=extents,
            axes=axes,
            projected=projected,
            spans=spans,
            cuts=cuts,
            finest=finest,
            levels=levels,
            clip=CLIPS[2 if projected else axes > 3],
        )

    def spec(self) -> dict[str, Any]:
        """What the resolved plan stores; JSON values."""
        return {
            "unit": str(self.unit),
            "minima": [*self.minima],
            "factors": [[*one] for one in self.factors],
            "extents": [*self.extents],
            "projected": self.projected,
            "spans": [*self.spans],
            "cuts": [[*one] for one in self.cuts],
            "finest": [*self.finest],
            "levels": [*self.levels],
            "clip": str(self.clip),
            "radius": RADIUS,
        }

    @property
    def counted(self) -> range:
        """Levels that are counted."""
        return range(self.levels[0], self.levels[1] + 1)

    def bits(self, level: int) -> int:
        """Bits of a cell's number at a level."""
        return sum(self.cuts[level])

    def branching(self, level: int) -> int:
        """Bits that a cell of `level` has more than its parent."""
        return self.bits(level) - self.bits(level - 1)

    def placed(self, key: bytes, instance: int) -> Placed:
        """The same geometry with the shifts and signs of one instance."""
        rooms = [
            (width << halvings) - span
            for width, halvings, span in zip(self.finest, self.cuts[-1], self.spans, strict=True)
        ]
        shifts = tuple(
            _secret(key, instance, "shift", axis) % room for axis, room in enumerate(rooms)
        )
        signs = None
        if self.projected:
            rows = [
                [
                    1 - 2 * (_secret(key, instance, f"sign {axis}", column) & 1)
                    for column in range(len(self.extents))
                ]
                for axis in range(self.axes)
            ]
            signs = np.array(rows, dtype=np.int64)
        return Placed(grid=self, shifts=shifts, signs=signs)


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A grid at a secret place.

    Attributes:
        grid: The public geometry.
        shifts: Of the box in the root, by axis.
        signs: Of the projection, shape (axes, columns), or None.
    """

    grid: Grid
    shifts: tuple[int, ...] = field(repr=False)
    signs: Ints | None = field(repr=False)

    def numbers(self, positions: Ints) -> Iterator[tuple[int, Ints]]:
        """Each counted level and the number of every point's cell at it.

        Args:
            positions: Of n points, shape (n, columns).
        """
        grid = self.grid
        fine = [
            (on_axis + shift) // width
            for on_axis, shift, width in zip(
                self._axes(positions), self.shifts, grid.finest, strict=True
            )
        ]
        number = np.zeros(len(positions), dtype=np.int64)
        last = grid.cuts[-1]
        for level in range(1, grid.levels[1] + 1):
            for axis in range(grid.axes):
                halvings = grid.cuts[level][axis]
                if halvings > grid.cuts[level - 1][axis]:
                    number = number << 1 | (fine[axis] >> (last[axis] - halvings)) & 1
            if level >= grid.levels[0]:
                yield level, number

    def _axes(self, positions: Ints) -> list[Ints]:
        if self.signs is None:
            return [positions[:, axis] for axis in range(self.grid.axes)]
        centred = 2 * positions - np.array(self.grid.extents, dtype=np.int64)
        half = self.grid.spans[0] // 2
        sums: list[Ints] = [(centred * row[None, :]).sum(axis=1) for row in self.signs]
        return [np.clip(one, -half, half) + half for one in sums]

    def inside(self, level: int, numbers: Ints) -> Ints:
        """Those of the cells that meet the box; the others are empty whatever the data."""
        low, high = self._corners(level, numbers)
        return numbers[(low <= high).all(axis=1)]

    def _corners(self, level: int, numbers: Ints) -> tuple[Ints, Ints]:
        """Ends of the positions that lie in each cell, on each axis, within the box."""
        grid, rest = self.grid, numbers.copy()
        index = np.zeros((len(numbers), grid.axes), dtype=np.int64)
        placed = [0] * grid.axes
        for above in range(level, 0, -1):
            for axis in range(grid.axes - 1, -1, -1):
                if grid.cuts[above][axis] > grid.cuts[above - 1][axis]:
                    index[:, axis] |= (rest & 1) << placed[axis]
                    rest >>= 1
                    placed[axis] += 1
        widths = np.array(
            [
                width << (last - cut)
                for width, last, cut in zip(
                    grid.finest, grid.cuts[-1], grid.cuts[level], strict=True
                )
            ],
            dtype=np.int64,
        )
        shifts = np.array(self.shifts, dtype=np.int64)
        low = index * widths - shifts
        high = low + widths - 1
        return np.maximum(low, 0), np.minimum(high, np.array(grid.spans, dtype=np.int64))

    def middles(self, level: int, numbers: Ints) -> Ints:
        """Twice the middle of the part of each cell inside the box, on the axes; shape (n, axes)."""
        low, high = self._corners(level, numbers)
        found: Ints = low + high
        return found

    def place(self, level: int, numbers: Ints) -> Place:
        """Centres and radii of cells: of the part inside the box, or of the box if projected."""
        grid, columns = self.grid, len(self.grid.extents)
        if grid.projected:
            low = np.zeros((len(numbers), columns), dtype=np.int64)
            high = np.broadcast_to(np.array(grid.extents, dtype=np.int64), low.shape)
        else:
            low, high = self._corners(level, numbers)
        squares = np.zeros(len(numbers), dtype=np.float64)
        for column in range(columns):  # one after the other: no order is left to the machine
            squares += (high[:, column] - low[:, column]).astype(np.float64) ** 2
        radii = np.ceil(np.sqrt(squares) * float(grid.clip)).astype(np.int64)
        return Place(low + high, np.maximum(radii, 1), 2 * low, 2 * high)

    def offsets(self, positions: Ints, place: Place) -> Ints:
        """Offsets of points from their cells' centres, in steps of the radius over `RADIUS`.

        Rounded toward the centre, and of a norm of at most `RADIUS`, as integers: a longer offset is
        scaled down and rounded toward the centre again.

        Args:
            positions: Of n points, shape (n, columns).
            place: Of the n points' cells.
        """
        found = _toward_zero((2 * positions - place.centres) * RADIUS, place.radii[:, None])
        squares = (found * found).sum(axis=1)
        long = squares > RADIUS * RADIUS
        if long.any():
            norms = np.floor(np.sqrt(squares[long].astype(np.float64))).astype(np.int64) + 1
            found[long] = _toward_zero(found[long] * RADIUS, norms[:, None])
        return found


def _toward_zero(values: Ints, under: Ints) -> Ints:
    whole: Ints = np.sign(values) * (np.abs(values) // under)
    return whole


def _cuts(spans: Sequence[int], last: int) -> tuple[tuple[int, ...], ...]:
    """Halvings of every axis, level by level: what is more than half as wide as the widest."""
    found = [(0,) * len(spans)]
    for _ in range(last):
        widths = [Fraction(span, 1 << cut) for span, cut in zip(spans, found[-1], strict=True)]
        widest = max(widths)
        found.append(
            tuple(cut + (2 * width > widest) for cut, width in zip(found[-1], widths, strict=True))
        )
    return tuple(found)


def _diagonal(extents: Sequence[int]) -> int:
    """Half the diagonal of the box, in doubled positions, rounded up."""
    squares = sum(extent * extent for extent in extents)
    return int(np.ceil(np.sqrt(float(squares)))) + 1


def _secret(key: bytes, instance: int, what: str, number: int) -> int:
    text = f"{instance} {what} {number}".encode()
    return int.from_bytes(hashlib.blake2b(text, key=key, digest_size=32).digest(), "big")
