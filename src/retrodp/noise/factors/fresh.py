"""Independent noise every round: the best factor for short windows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from retrodp import _check
from retrodp.noise.factors.contract import PartialSum, Profile, WeightedNode, chain
from retrodp.noise.key import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshFactor:
    """One node a round.

    A life is live in at most `window` rounds of a release restricted to the last `window` rounds,
    so its difference moves at most that many nodes by one each: window L1 = window L2 squared =
    min(window, horizon).

    Attributes:
        horizon: Rounds covered; public.
        window: Length of the release's sliding window, in rounds; public.
    """

    horizon: int
    window: int

    def __post_init__(self) -> None:
        _check.whole(least=1, horizon=self.horizon, window=self.window)

    @property
    def name(self) -> str:
        """Part of the label of every node."""
        return "fresh"

    @property
    def denominator(self) -> int:
        """Weights are whole."""
        return 1

    def nodes(self, round_: int) -> tuple[WeightedNode, ...]:
        """The round's own node."""
        _check.round_within(round_, self.horizon)
        return (((round_,), 1),)

    def sums(self, round_: int) -> tuple[PartialSum, ...]:
        """The node alone."""
        return chain(self.nodes(round_))

    def last(self, node: Node) -> int:
        """A node serves one round."""
        round_ = node[0]
        assert isinstance(round_, int)
        return round_

    @property
    def window_l1(self) -> int:
        """Most nodes that one life moves, by one each."""
        return min(self.window, self.horizon)

    @property
    def window_l2sq(self) -> int:
        """The same: each shift is one."""
        return self.window_l1

    @property
    def window_shape(self) -> tuple[tuple[int, int], ...]:
        """(shift, count) of the worst life."""
        return ((1, self.window_l1),)

    def unit_variance(self, round_: int) -> Fraction:
        """One node of weight one."""
        _check.round_within(round_, self.horizon)
        return Fraction(1)

    def profile(self) -> Profile:
        """One node of weight one in every round."""
        return Profile.of_signs(np.ones(self.horizon, np.int64))

    def spec(self) -> dict[str, object]:
        """What the resolved plan stores."""
        return {"factor": self.name, "horizon": self.horizon, "window": self.window}
