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

Integers = NDArray[np.int64 | np.int32]


@dataclass(slots=True, eq=False)
class RunningSums:
    """The partial sums of the round asked for last, for a batch of coordinates.

    A round that begins with the same partial sums takes them over, so a run through neighbouring
    rounds draws every node about once.

    Attributes:
        draw_into: Writes the draws of a node into a vector.
        rows: Memory for the sums, shape (most sums of a round, coordinates), of a type that holds
            any of them.
        pinned: What a sum of 0 stands for. Any number adds itself to every sum that comes from
            means alone; it is even.
        path: What the rows hold.
        spare: A row to work in.
    """

    draw_into: Callable[[Integers, Node], None]
    rows: Integers
    pinned: int = 0
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
        bases, weight = partial.bases, partial.weight
        if weight == -1 and len(bases) == 1 and bases[0] != PINNED:
            np.subtract(self.rows[bases[0]], row, out=row)
            return
        multiply(row, weight)
        halve = len(bases) - 1
        held = [self.rows[base] for base in bases if base != PINNED]
        for below in held:
            np.add(row, np.right_shift(below, 1, out=self.spare) if halve else below, out=row)
        fixed = self.pinned * bases.count(PINNED) >> halve
        if fixed:
            np.add(row, fixed, out=row)


def multiply(row: Integers, weight: int) -> None:
    """Multiply in place; by a power of two, which the weights of some factors are, faster."""
    if weight > 0 and weight & weight - 1 == 0:
        if weight > 1:
            np.left_shift(row, weight.bit_length() - 1, out=row)
    else:
        np.multiply(row, weight, out=row)
