"""Noise of one round after another, each partial sum worked out once.

Promise: the same numbers as the weighted sums of a factor's nodes, in whatever order the rounds are
asked for. Knows no key, no rounding and no data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from retrodp.noise.factors.contract import PINNED, PartialSum
from retrodp.noise.key import Node

Integers = NDArray[np.int64]


@dataclass(slots=True, eq=False)
class RunningSums:
    """The partial sums of the round asked for last, for a batch of coordinates.

    A round that begins with the same partial sums takes them over, so a run through neighbouring
    rounds draws every node about once.

    Attributes:
        draw_into: Writes the draws of a node into a vector.
        rows: Memory for the sums, int64, shape (most sums of a round, coordinates).
        path: What the rows hold.
        spare: A row to work in.
    """

    draw_into: Callable[[Integers, Node], None]
    rows: Integers
    path: tuple[PartialSum, ...] = field(default=(), init=False)
    spare: Integers = field(init=False)

    def __post_init__(self) -> None:
        self.spare = np.empty_like(self.rows[0])

    def at(self, path: tuple[PartialSum, ...]) -> Integers:
        """Noise of the round with these sums, before division; valid until the next call."""
        held = 0
        for ours, asked in zip(self.path, path, strict=False):
            if ours != asked:
                break
            held += 1
        self.path = path[:held]  # what is overwritten below is no longer held
        for place in range(held, len(path)):
            self._fill(place, path[place])
        self.path = path
        total: Integers = self.rows[len(path) - 1]
        return total

    def _fill(self, place: int, partial: PartialSum) -> None:
        row = self.rows[place]
        self.draw_into(row, partial.node)
        if partial.weight != 1:
            np.multiply(row, partial.weight, out=row)
        halve = len(partial.bases) == 2
        for base in partial.bases:
            if base == PINNED:
                continue
            below = self.rows[base]
            if halve:
                below = np.right_shift(below, 1, out=self.spare)
            np.add(row, below, out=row)
