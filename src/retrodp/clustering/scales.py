"""Shifted grids at several scales, all of whose cells have a noisy count; for static points.

Promise: which cells are full is a function of noisy counts alone, empty cells included, so that no
threshold protects anything and no delta is spent on one. A point lies in one cell a scale.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrodp.clustering.solver import Floats
from retrodp.errors import PlanError
from retrodp.noise.key import NoiseKeys
from retrodp.noise.prf import BlockPRF, Coordinates
from retrodp.noise.process import NoiseProcess
from retrodp.noise.tails import quantile

Ints = NDArray[np.int64]

MOST_CELLS = 1 << 22
"""Cells of all scales together; every one of them has a noisy count."""

SPURIOUS = 0.5
"""Expected number of empty cells that are taken for full."""

PROJECTED_FROM, PROJECTED = 5, 4
"""Dimensions from which cells are made of so many signed sums of the coordinates."""

REACH = 0.75
"""Farthest that signed sums are kept apart, in diameters; what is farther is moved there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scales:
    """Grids over the ball of diameter 1 around the origin, or over its projection.

    Attributes:
        dimensions: Of the points.
        widths: Of the cells, the widest first.
    """

    dimensions: int
    widths: tuple[float, ...]

    @classmethod
    def between(cls, dimensions: int, *, narrowest: float, widest: float, ratio: float) -> Scales:
        """Widths from the narrowest up, each `ratio` times the one before, to the widest.

        Raises:
            PlanError: They have too many cells.
        """
        many = max(0, math.ceil(math.log(widest / narrowest) / math.log(ratio) - 1e-9))
        widths = tuple(narrowest * ratio**power for power in range(many, -1, -1))
        found = cls(dimensions=dimensions, widths=widths)
        if sum(found.cells) > MOST_CELLS:
            raise PlanError(
                f"The least radius needs {sum(found.cells):.3g} cells, all of which are counted.",
                expected=f"at most {MOST_CELLS:,}",
                do="Raise r_min.",
            )
        return found

    @property
    def projected(self) -> bool:
        """Whether axes are signed sums."""
        return self.dimensions >= PROJECTED_FROM

    @property
    def axes(self) -> int:
        """Axes of the grids."""
        return PROJECTED if self.projected else self.dimensions

    @property
    def half(self) -> float:
        """Farthest from the origin on an axis."""
        return REACH if self.projected else 0.5

    @property
    def sides(self) -> tuple[int, ...]:
        """Cells along an axis, by scale; one more than fit, for the shift."""
        return tuple(math.ceil(2 * self.half / width) + 1 for width in self.widths)

    @property
    def cells(self) -> tuple[int, ...]:
        """Cells of each scale."""
        return tuple(side**self.axes for side in self.sides)

    def placed(self, key: bytes) -> Placed:
        """The grids with shifts and signs of 32 secret bytes."""
        axes, scales = self.axes, len(self.widths)
        words = BlockPRF(key).blocks(Coordinates.of_indices(axes * (scales + self.dimensions)))
        units = (words[:, 0] >> np.uint64(11)).astype(np.float64) / 2.0**53
        shifts = units[: axes * scales].reshape(scales, axes)
        signs = np.where(units[axes * scales :] < 0.5, -1.0, 1.0).reshape(axes, self.dimensions)
        return Placed(self, shifts, signs / math.sqrt(axes) if self.projected else None)


class Full(NamedTuple):
    """A full cell.

    Attributes:
        scale: Place of its width.
        number: Within the scale.
        size: Noisy number of points.
    """

    scale: int
    number: int
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Grids at their places.

    Attributes:
        scales: The public part.
        shifts: In widths, shape (scales, axes).
        signs: Of the projection, shape (axes, dimensions), or None. Distances are about kept.
    """

    scales: Scales
    shifts: Floats = field(repr=False)
    signs: Floats | None = field(repr=False)

    def numbers(self, points: Floats) -> list[Ints]:
        """Number of each point's cell, by scale; a point's own business alone."""
        on_axes = points if self.signs is None else self._signed_sums(points)
        half = self.scales.half
        found = []
        for width, side, shift in zip(
            self.scales.widths, self.scales.sides, self.shifts, strict=True
        ):
            index = np.floor((on_axes + half) / width + shift).astype(np.int64)
            number = np.zeros(len(points), dtype=np.int64)
            for axis in range(self.scales.axes):
                number = number * side + np.clip(index[:, axis], 0, side - 1)
            found.append(number)
        return found

    def _signed_sums(self, points: Floats) -> Floats:
        """Column after column: a matrix product's last bits depend on the other points."""
        assert self.signs is not None
        sums = np.zeros((len(points), self.scales.axes), dtype=np.float64)
        for column, signs in enumerate(self.signs.T):
            sums += points[:, column, None] * signs
        return sums

    def centre(self, cell: Full) -> Floats:
        """Of a cell of an unprojected grid."""
        side, width = self.scales.sides[cell.scale], self.scales.widths[cell.scale]
        rest, index = cell.number, []
        for _ in range(self.scales.axes):
            rest, one = divmod(rest, side)
            index.append(one)
        units = np.array(index[::-1], dtype=np.float64) + 0.5 - self.shifts[cell.scale]
        centre: Floats = units * width - self.scales.half
        return centre


@lru_cache(maxsize=64)
def least_counts(process: NoiseProcess, scales: Scales) -> tuple[int, ...]:
    """Least noisy count of a full cell, by scale: empty ones reach it `SPURIOUS` times together."""
    each = SPURIOUS / len(scales.widths)
    return tuple(quantile(process, 1, each / cells) + 1 for cells in scales.cells)


def full_cells(
    placed: Placed,
    numbers: list[Ints],
    process: NoiseProcess,
    least: Sequence[int],
    *,
    release: str,
    keys: NoiseKeys,
) -> Iterator[Full]:
    """Full cells, the narrowest scale first, each scale in rising order.

    Args:
        placed: The grids.
        numbers: Of the points' cells, by scale.
        process: Noise of a count.
        least: Noisy count of a full cell, by scale.
        release: Label of the noise.
        keys: Source of the noise.
    """
    scales = placed.scales
    first = 0
    found: list[list[Full]] = []
    for scale, (own, cells) in enumerate(zip(numbers, scales.cells, strict=True)):
        where = Coordinates.of_indices(np.arange(first, first + cells, dtype=np.int64))
        noisy = np.bincount(own, minlength=cells) + process.draw(
            release=release, round=1, keys=keys, where=where
        )
        full = np.flatnonzero(noisy >= least[scale])
        found.append(
            [
                Full(scale, int(one), int(count))
                for one, count in zip(full, noisy[full], strict=True)
            ]
        )
        first += cells
    for of_scale in reversed(found):
        yield from of_scale
