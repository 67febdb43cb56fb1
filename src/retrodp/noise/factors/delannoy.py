"""The cyclic Delannoy tree: signed intervals, walked from the nearer end of the horizon.

Promise: at most w nodes a round, each of weight 1 or -1, and every step in at most one node of its
side on each of z levels: a left node counts the steps of the left half only, a right node those of
the right half, so a window moves at most 2z nodes by one each. Knows no key, no law and no data.

With D(w, z) = D(w-1, z) + D(w, z-1) + D(w-1, z-1), D = 1 at a zero argument (Delannoy numbers) and
r = (D - 1) / 2, the walk from one end reaches r(w, z) rounds. The first half of the rounds is walked
from the left end, the rest from the right end with offset `horizon + 1 - round`: minus the sum over
the later steps equals the sum over the earlier ones, because the steps of a window (+1 at its first
round, -1 at the round after it) sum to zero.

A node is `(side, level, lo, hi)`: the steps at offsets lo+1..hi from its side's end. The **side
belongs to the identity**; without it, rounds l and `horizon + 1 - l` would share their draws and
their noise would cancel. The direction of travel is a weight only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb
from typing import ClassVar, NamedTuple

import numpy as np

from retrodp._check import round_within, whole
from retrodp.errors import PlanError
from retrodp.noise.factors.contract import (
    LONGEST_HORIZON,
    IntArray,
    PartialSum,
    Profile,
    WeightedNode,
    chain,
    check_horizon,
    not_a_node,
)
from retrodp.noise.key import Node

LARGEST_TABLE = 2 * LONGEST_HORIZON  # w z: the memory of one table of r

Table = tuple[tuple[int, ...], ...]


class _Step(NamedTuple):
    """One node of a walk, and the offsets of all rounds that use it."""

    level: int
    low: int
    high: int
    direction: int
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DelannoyFactor:
    """Cyclic Delannoy tree.

    Attributes:
        horizon: Rounds covered, at most `2 r(w, z)`.
        w: Most nodes a round uses.
        z: Levels: most nodes that hold one step.
    """

    horizon: int
    w: int
    z: int

    name: ClassVar[str] = "delannoy"
    denominator: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_horizon(self.horizon)
        whole(least=1, w=self.w, z=self.z)
        if self.w * self.z > LARGEST_TABLE or 2 * reach(self.w, self.z) < self.horizon:
            raise PlanError(
                f"A delannoy factor with w = {self.w} and z = {self.z} does not fit "
                f"{self.horizon} rounds.",
                expected=f"2 r(w, z) at least the horizon, w z at most {LARGEST_TABLE}",
            )

    @property
    def window_l1(self) -> int:
        """2 z: both ends of a window are steps, each in at most z nodes, shifted by 1 or -1.

        1 for a single round, whose only window is hidden by its only node.
        """
        return 1 if self.horizon == 1 else 2 * self.z

    @property
    def window_l2sq(self) -> int:
        """The same number: every shift is 1 or -1."""
        return self.window_l1

    @property
    def window_shape(self) -> tuple[tuple[int, int], ...]:
        """`window_l1` shifts of 1: a node that holds both ends is not shifted at all."""
        return ((1, self.window_l1),)

    @property
    def _half(self) -> int:
        """Last round that is walked from the left."""
        return (self.horizon + 1) // 2

    def nodes(self, round: int, /) -> tuple[WeightedNode, ...]:  # noqa: A002
        """Nodes of the walk to the round, in its order."""
        round_within(round, self.horizon)
        if round <= self._half:
            side, offset, sign = "L", round, 1
        else:
            side, offset, sign = "R", self.horizon + 1 - round, -1
        return tuple(
            ((side, step.level, step.low, step.high), sign * step.direction)
            for step in _walk(offset, self.w, self.z)
        )

    def sums(self, round: int, /) -> tuple[PartialSum, ...]:  # noqa: A002
        """A chain along the walk; the walks that take a step have all steps before it in common."""
        return chain(self.nodes(round))

    def last(self, node: Node, /) -> int:
        """Farthest round of the interval of rounds whose walk takes the node's step."""
        match node:
            case (("L" | "R") as side, int(level), int(low), int(high)) if 0 <= low < high:
                rounds = self._half if side == "L" else self.horizon - self._half
                for end in (high, low):  # the step ends at the one or the other
                    if not 0 < end <= reach(self.w, self.z):
                        continue
                    for step in _walk(end, self.w, self.z):
                        if (step.level, step.low, step.high) != (level, low, high):
                            continue
                        if step.first <= rounds:
                            farthest = min(step.last, rounds)
                            return farthest if side == "L" else self.horizon + 1 - step.first
        raise not_a_node(self.name, node)

    def unit_variance(self, round: int, /) -> Fraction:  # noqa: A002
        """The number of nodes, at most w."""
        return Fraction(len(self.nodes(round)))

    def profile(self) -> Profile:
        """Length of every round's walk."""
        left = _lengths(self._half, self.w, self.z)
        squares = np.concatenate([left, left[: self.horizon - self._half][::-1]])
        return Profile.of_signs(squares)

    def spec(self) -> dict[str, object]:
        """Name, horizon, w and z."""
        return {"factor": self.name, "horizon": self.horizon, "w": self.w, "z": self.z}


def best_delannoy(horizon: int) -> DelannoyFactor:
    """The (w, z) with the least `w * (2 z)^2`, and the smallest z on a tie.

    That is, up to a common factor, the largest variance of a round's noise for Laplace draws at a
    fixed pure epsilon.
    """
    check_horizon(horizon)
    best: tuple[int, int, int] | None = None
    z = 1
    while best is None or 4 * z * z < best[0]:
        w = least_w(horizon, z)
        if best is None or 4 * w * z * z < best[0]:
            best = (4 * w * z * z, w, z)
        z += 1
    return DelannoyFactor(horizon=horizon, w=best[1], z=best[2])


def least_delannoy(
    horizon: int, cost: Callable[[DelannoyFactor], float], *, most_w: int
) -> DelannoyFactor:
    """The (w, z) of least cost, where costs have one valley over z; on a tie the less noise.

    The search goes down and up from the z of `best_delannoy` as long as the cost falls.

    Args:
        horizon: Rounds covered.
        cost: What to minimise, such as a threshold.
        most_w: Nodes a round beyond which no factor is tried.
    """
    start = best_delannoy(horizon)
    best, lowest = start, cost(start)
    for direction in (-1, 1):
        z = start.z + direction
        while z >= 1 and (w := least_w(horizon, z)) <= most_w:
            factor = DelannoyFactor(horizon=horizon, w=w, z=z)
            found = cost(factor)
            if found >= lowest:
                break
            best, lowest = factor, found
            z += direction
    return best


def least_w(horizon: int, z: int) -> int:
    """Least w with room for the horizon at z levels."""
    low, high = 0, (horizon + 1) // 2  # r(w, z) >= r(w, 1) = w
    while high - low > 1:
        middle = (low + high) // 2
        if 2 * reach(middle, z) >= horizon:
            high = middle
        else:
            low = middle
    return high


def reach(w: int, z: int) -> int:
    """r(w, z) = (D(w, z) - 1) / 2: rounds that a walk of w nodes on z levels reaches."""
    return sum(comb(z, i) * comb(w, i) << i for i in range(1, min(w, z) + 1)) // 2


@lru_cache(maxsize=16)
def _reaches(w: int, z: int) -> Table:
    """Values of r up to (w, z), by level first; capped far above any horizon."""
    rows = [[0] * (w + 1)]
    for _ in range(z):
        before, row = rows[-1], [0]
        for i in range(1, w + 1):
            row.append(min(row[-1] + before[i] + before[i - 1] + 1, 4 * LONGEST_HORIZON))
        rows.append(row)
    return tuple(tuple(row) for row in rows)


@lru_cache(maxsize=4096)
def _walk(offset: int, w: int, z: int) -> tuple[_Step, ...]:
    """Steps from the end of a side to the round at `offset`, which is at most r(w, z)."""
    steps: list[_Step] = []
    table = _reaches(w, z)
    anchor, direction = 0, 1
    while offset > 0:
        near = table[z - 1][w]  # rounds next to the anchor that the finer levels reach
        if offset > near:
            length = near + 1 + table[z - 1][w - 1]
            landing = anchor + direction * length
            users = anchor + direction * (near + 1), anchor + direction * table[z][w]
            ends = min(anchor, landing), max(anchor, landing)
            steps.append(_Step(z, *ends, direction, min(users), max(users)))
            anchor = landing
            offset -= length
            w -= 1
            if offset >= 0:
                continue
            offset, direction = -offset, -direction  # it overshot: the finer levels go back
        z -= 1
    return tuple(steps)


def _lengths(rounds: int, w: int, z: int) -> IntArray:
    """Number of steps of the walks to offsets 1..rounds; all walks at once."""
    table = np.array(_reaches(w, z), dtype=np.int64)
    offset = np.arange(1, rounds + 1, dtype=np.int64)
    lengths = np.zeros(rounds, dtype=np.int64)
    who = np.arange(rounds)
    left, levels = np.full(rounds, w), np.full(rounds, z)
    while len(who):
        near = table[levels - 1, left]
        far = offset > near
        lengths[who] += far
        moved = offset - (near + 1 + table[levels - 1, np.maximum(left - 1, 0)])
        offset = np.where(far, np.abs(moved), offset)
        left = left - far
        levels = levels - (~far | (moved < 0))
        going = offset > 0
        who, offset, left, levels = who[going], offset[going], left[going], levels[going]
    return lengths
