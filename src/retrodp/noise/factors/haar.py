"""The pinned Haar tree: hat functions that vanish at both ends of the horizon.

Promise: `height` nodes a round at most, exact integer weights over `2**height`. Knows no key, no law
and no data.

Positions 1..n-1 with n = 2**height; the noise is 0 at 0 and n. Node `(level, index)` covers the cell
`(lo, hi]` of size `n / 2**level` and weighs `min(p - lo, hi - p) / size` at position p: half a hat.

Shift identity: write c for the indicator of a window on positions, c(0) = c(n) = 0. Its
coefficient in the hats is `c(mid) - (c(lo) + c(hi)) / 2`, so the shifts are the integers
`2 c(mid) - c(lo) - c(hi)`. Going down from the root, as long as the window lies inside one half of
a cell the shift is 0; in the first cell whose middle the window holds, it is 2; below that, on
either side, exactly one cell a level has ends of different c, and its shift is 1 or -1. Hence one
shift of 2 and at most `2 (height - 1)` of size 1: 2 height in L1, 2 height + 2 in squared L2. Any
strictly increasing map of rounds to positions keeps this, because a window of rounds is then a
window of positions.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

import numpy as np

from retrodp._check import round_within, whole
from retrodp.errors import PlanError
from retrodp.noise.factors.contract import (
    LONGEST_HORIZON,
    PINNED,
    IntArray,
    PartialSum,
    Profile,
    WeightedNode,
    check_horizon,
    not_a_node,
)
from retrodp.noise.key import Node

TALLEST = LONGEST_HORIZON.bit_length() + 2
HEIGHTS_TRIED = 3  # a third step up never paid off for any horizon below 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class HaarFactor:
    """Pinned Haar tree with an explicit map of rounds to positions.

    Attributes:
        horizon: Rounds covered.
        height: Levels; positions are 1 to 2**height - 1.
        positions: Position of each round, strictly increasing. Stored, never recomputed: it
            belongs to the mechanism.
    """

    horizon: int
    height: int
    positions: tuple[int, ...] = field(repr=False)

    name: ClassVar[str] = "haar"

    def __post_init__(self) -> None:
        check_horizon(self.horizon)
        whole(least=1, height=self.height)
        if self.height > TALLEST:
            raise PlanError(f"height must be at most {TALLEST}, got {self.height}.")
        if len(self.positions) != self.horizon:
            raise PlanError(
                f"A haar factor needs a position for each of its {self.horizon} rounds, "
                f"got {len(self.positions)}."
            )
        if set(map(type, self.positions)) != {int} or not (
            self.positions[0] >= 1
            and self.positions[-1] < 1 << self.height
            and all(before < after for before, after in pairwise(self.positions))
        ):
            raise PlanError(
                "The positions of a haar factor must rise strictly.",
                expected=f"whole numbers from 1 to {(1 << self.height) - 1}",
            )

    @property
    def denominator(self) -> int:
        """Of every weight: 2**height."""
        return 1 << self.height

    @property
    def window_l1(self) -> int:
        """2 height; see the module."""
        return 2 * self.height

    @property
    def window_l2sq(self) -> int:
        """2 height + 2; see the module."""
        return 2 * self.height + 2

    @property
    def window_shape(self) -> tuple[tuple[int, int], ...]:
        """One shift of 2 and `2 (height - 1)` of 1; see the module.

        Attained by the window that is the position n/2 alone, if its neighbours are used too.
        """
        if self.height == 1:
            return ((2, 1),)
        return ((2, 1), (1, 2 * (self.height - 1)))

    def nodes(self, round: int, /) -> tuple[WeightedNode, ...]:  # noqa: A002
        """Cells around the round's position, largest first, until it is a cell's end."""
        round_within(round, self.horizon)
        position = self.positions[round - 1]
        below = (position & -position).bit_length() - 1  # levels at which it is an end
        found: list[WeightedNode] = []
        for level in range(self.height - below):
            size = 1 << self.height - level
            inside = position & size - 1
            weight = min(inside, size - inside) << level
            found.append(((level, position >> self.height - level), weight))
        return tuple(found)

    def sums(self, round: int, /) -> tuple[PartialSum, ...]:  # noqa: A002
        """The noise in the middle of each cell, largest cell first, down to the position itself.

        All coarser hats are straight lines on a cell, so in its middle they amount to the mean of
        the noise at its two ends, which are middles of larger cells or pinned. The middle of a
        cell of level l is a multiple of `2**(height - 1 - l)` over the denominator: even if a cell
        ends in it.
        """
        round_within(round, self.horizon)
        position = self.positions[round - 1]
        below = (position & -position).bit_length() - 1
        half, low, high = self.denominator // 2, PINNED, PINNED
        found: list[PartialSum] = []
        for level in range(self.height - below):
            index = position >> self.height - level
            found.append(PartialSum((level, index), half, (low, high)))
            if position >> self.height - level - 1 & 1:  # beyond the middle, or in it
                low = level
            else:
                high = level
        return tuple(found)

    def last(self, node: Node, /) -> int:
        """Round of the last position strictly inside the node's cell."""
        match node:
            case (int(level), int(index)) if 0 <= level < self.height and 0 <= index < 1 << level:
                low = index << self.height - level
                high = index + 1 << self.height - level
                last = bisect_left(self.positions, high)
                if last > 0 and self.positions[last - 1] > low:
                    return last
        raise not_a_node(self.name, node)

    def unit_variance(self, round: int, /) -> Fraction:  # noqa: A002
        """Sum of the squared half hats; 1/4 in the middle of the positions."""
        squares = sum(weight * weight for _, weight in self.nodes(round))
        return Fraction(squares, self.denominator**2)

    def profile(self) -> Profile:
        """Squares over all levels; a position's largest power of two divides all its weights.

        The weight of the largest cell is that power times an odd number and the others are
        multiples of twice it, so the squares determine the grain. In the middle of the horizon
        there is one weight only. Spacing: over the common denominator the last weights of any
        position are 1/4 and 1/2, and dropping a first weight v doubles the grain, so with V the
        squares of the rest it is `4 (1 + v^2 / V)`: 5 for v = 1/4, V = 1/4, and otherwise, as
        v < 1/2 and V >= 1/4 + 1/16, below 7.2.
        """
        positions = np.array(self.positions, dtype=np.int64)
        grains = positions & -positions
        squares = _squares(positions, self.height)
        return Profile(squares, grains, self.height, self.denominator // 2, 7.2)

    def spec(self) -> dict[str, object]:
        """Name, horizon, height and the whole position map."""
        return {
            "factor": self.name,
            "horizon": self.horizon,
            "height": self.height,
            "positions": list(self.positions),
        }


def best_haar(horizon: int) -> HaarFactor:
    """The height and positions of least error.

    The rounds take the positions of least variance, the smaller position where variances tie.
    The height is the one with the least `max variance * (2 height + 2)`, the smallest on a tie, of
    the three lowest that have room. Integers only, and no sorting: every machine gets the same
    positions.
    """
    check_horizon(horizon)
    lowest = horizon.bit_length()
    worst = {
        height: int(np.partition(_everywhere(height), horizon - 1)[horizon - 1])
        for height in range(lowest, lowest + HEIGHTS_TRIED)
    }

    def cost(height: int) -> int:
        return worst[height] * (2 * height + 2) << 2 * (TALLEST - height)

    height = min(worst, key=cost)
    squares = _everywhere(height)
    chosen = squares < worst[height]
    tied = np.flatnonzero(squares == worst[height])
    chosen[tied[: horizon - np.count_nonzero(chosen)]] = True
    positions = tuple((np.flatnonzero(chosen) + 1).tolist())
    return HaarFactor(horizon=horizon, height=height, positions=positions)


def _everywhere(height: int) -> IntArray:
    """Squares at the positions 1, 2, ... 2**height - 1, from those of the lower trees."""
    squares = np.zeros(1, dtype=np.int64)  # at position 0, where the noise is pinned
    for upper in range(1, height + 1):
        size = 1 << upper
        positions = np.arange(size, dtype=np.int64)
        squares = np.minimum(positions, size - positions) ** 2 + 4 * np.tile(squares, 2)
    return squares[1:]


def _squares(positions: IntArray, height: int) -> IntArray:
    """Sum of squared integer weights at each position; below 2**62 up to height 29."""
    squares = np.zeros_like(positions)
    for level in range(height):
        size = 1 << height - level
        inside = positions & size - 1
        weight = np.minimum(inside, size - inside) << level
        squares += weight * weight
    return squares
