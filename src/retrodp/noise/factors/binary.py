"""The binary tree of partial sums, charged for the windows it really hides.

Promise: at most `log2(horizon) + 1` nodes a round, each of weight 1. Knows no key, no law, no data.
Source: Dwork, Naor, Pitassi, Rothblum (2010) and Chan, Shi, Song (2011) for the tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from retrodp._check import round_within
from retrodp.noise.factors.contract import (
    PartialSum,
    Profile,
    WeightedNode,
    chain,
    check_horizon,
    not_a_node,
)
from retrodp.noise.key import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryFactor:
    """One node for every bit of the round's number.

    Node `(level, index)` stands for the `2**level` rounds from `index * 2**level + 1` on. Only
    nodes of even index, complete within the horizon, are ever used: left children and, at a power
    of two, the root.

    Attributes:
        horizon: Rounds covered.
    """

    horizon: int

    name: ClassVar[str] = "binary"
    denominator: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_horizon(self.horizon)

    def nodes(self, round: int, /) -> tuple[WeightedNode, ...]:  # noqa: A002
        """One node of weight 1 for every bit of the round that is 1, coarsest first."""
        round_within(round, self.horizon)
        return tuple(
            ((level, (round >> level) - 1), 1)
            for level in reversed(range(round.bit_length()))
            if round >> level & 1
        )

    def sums(self, round: int, /) -> tuple[PartialSum, ...]:  # noqa: A002
        """A chain from the coarsest node; rounds with the same leading bits share its start."""
        return chain(self.nodes(round))

    def last(self, node: Node, /) -> int:
        """Last round before the sibling of the node is complete too, or the horizon."""
        match node:
            case (int(level), int(index)) if (
                level >= 0 and index >= 0 and index % 2 == 0 and index + 1 <= self.horizon >> level
            ):
                return min(self.horizon, (index + 2 << level) - 1)
            case _:
                raise not_a_node(self.name, node)

    @property
    def window_l1(self) -> int:
        """Exactly the most nodes that contain one of two steps and not the other.

        A window's shift is 1 on used nodes that hold its first round but not the round after it,
        and -1 the other way round. That is `2 h - 1` for horizons `2**h` from 4 on, 2 at horizon 2
        and 1 at horizon 1; never more than that of the next power of two in between.
        """
        return self._most_apart()

    @property
    def window_l2sq(self) -> int:
        """The same number: every shift is 1 or -1."""
        return self.window_l1

    @property
    def window_shape(self) -> tuple[tuple[int, int], ...]:
        """`window_l1` shifts of 1: all shifts are 1 or -1 and at most so many."""
        return ((1, self.window_l1),)

    @property
    def classical_l1(self) -> int:
        """What the usual analysis charges a window, in both norms: twice the levels of the tree.

        An addition and a deletion each touch one node on every level, used or not. For comparison
        in tables only.
        """
        return 2 * ((self.horizon - 1).bit_length() + 1)

    def _most_apart(self) -> int:
        """Largest symmetric difference of used ancestors over two steps, or a step and none."""
        height = (self.horizon - 1).bit_length()
        if self.horizon == 1 << height:
            # The root is one of the h + 1 nodes of the first step, and cancels within a pair.
            return max(height + 1, 2 * height - 1)
        # From right to left, a complete left half for every bit: nodes on the right edge of the
        # tree are incomplete, so that only those halves and their left children are used.
        single = apart = 0
        for level in range(height):
            if self.horizon >> level & 1:
                apart = max(apart, 2 * level - 1, level + 1 + single)
                single = max(single, level + 1)
        return apart

    def unit_variance(self, round: int, /) -> Fraction:  # noqa: A002
        """The number of nodes."""
        round_within(round, self.horizon)
        return Fraction(round.bit_count())

    def profile(self) -> Profile:
        """Bits that are 1 in every round's number."""
        rounds = np.arange(1, self.horizon + 1, dtype=np.int64)
        squares = np.zeros(self.horizon, dtype=np.int64)
        for level in range(self.horizon.bit_length()):
            squares += rounds >> level & 1
        return Profile.of_signs(squares)

    def spec(self) -> dict[str, object]:
        """Name and horizon."""
        return {"factor": self.name, "horizon": self.horizon}
