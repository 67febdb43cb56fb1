"""What a factor of the counting matrix must say about itself.

Promise: a factor names, for every round, the nodes whose draws make up the round's noise, and
bounds how far the draws must move to hide one window of rounds. Knows no key, no law, no scale and
no data.

A counter releases `c_l + N_l` in round l, with `N_l = sum of weight * draw / denominator` over
`nodes(l)`. Privacy rests on the **shift identity**: for every window `ws <= l < we` with
`1 <= ws < we <= horizon + 1` there are integer shifts of the draws that add exactly 1 to the noise
of every round inside the window and 0 to that of every other round. Round `horizon + 1` is never
released, so every window ends.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from retrodp._check import whole
from retrodp.errors import PlanError, UsageError
from retrodp.noise.key import Node

LONGEST_HORIZON = 1 << 20

WeightedNode = tuple[Node, int]
IntArray = NDArray[np.int64]


class Profile(NamedTuple):
    """The size of every round's noise, up to the law and scale of the draws.

    Attributes:
        squares: Sum of the squared integer weights, shape (horizon,).
        grains: Greatest common divisor of the integer weights, shape (horizon,). Rounds of equal
            squares have equal grains.
        terms: Most nodes that one round uses, or a bound on it.
        largest_weight: Bound on the absolute integer weight of any node in any round.
        spacing_sq: Bound on `(|a| / gcd a)^2 / (|b| / gcd b)^2` where, for every round, a runs
            through the tails of its weights in the order of `nodes` and b is the same tail
            without its first weight. `tails` needs it for sums of discrete Gaussians.
    """

    squares: IntArray
    grains: IntArray
    terms: int
    largest_weight: int
    spacing_sq: float

    @classmethod
    def of_signs(cls, counts: IntArray) -> Profile:
        """The profile of rounds with `counts` nodes of weight 1 or -1 each.

        j weights of that kind have the norm sqrt(j), and j / (j - 1) is at most 2.
        """
        return cls(counts, np.ones_like(counts), int(counts.max()), 1, 2.0)


class PartialSum(NamedTuple):
    """A sum of weighted draws that later sums of the same round build on.

    Its value is the mean of the sums at `bases` plus `weight` times the draw of `node`, over the
    factor's denominator.

    Attributes:
        node: The node whose draw is added.
        weight: Of the draw; an integer numerator.
        bases: Places of one or two earlier sums of the round; `PINNED` stands for a sum of 0. The
            two are even numbers, so their mean is whole.
    """

    node: Node
    weight: int
    bases: tuple[int] | tuple[int, int]


PINNED = -1


def chain(nodes: tuple[WeightedNode, ...]) -> tuple[PartialSum, ...]:
    """Every sum adds one node to the sum before it."""
    return tuple(
        PartialSum(node, weight, (place - 1,)) for place, (node, weight) in enumerate(nodes)
    )


class Factor(Protocol):
    """Noise nodes of a continual counter over rounds 1..horizon; a public, frozen description."""

    @property
    def name(self) -> str:
        """Kind of the factor; part of every node's key."""
        ...

    @property
    def horizon(self) -> int:
        """Rounds covered."""
        ...

    @property
    def denominator(self) -> int:
        """1, or a power of two, by which weighted sums of draws are divided."""
        ...

    @property
    def window_l1(self) -> int:
        """Most that the shifts of one window sum to in absolute value."""
        ...

    @property
    def window_l2sq(self) -> int:
        """Most that the squared shifts of one window sum to."""
        ...

    @property
    def window_shape(self) -> tuple[tuple[int, int], ...]:
        """Pairs (absolute shift, count) that dominate the shifts of every window.

        The shifts of any window, in falling order of their absolute values, are at most those of
        the shape, one by one.
        """
        ...

    def nodes(self, round: int, /) -> tuple[WeightedNode, ...]:  # noqa: A002
        """Nodes of one round and their integer weights. Sees the round only."""
        ...

    def sums(self, round: int, /) -> tuple[PartialSum, ...]:  # noqa: A002
        """The same nodes as sums that build on one another; the last is the round's noise.

        Rounds near one another share their first sums, so that all rounds together need little
        more than one new sum a round. Sees the round only.
        """
        ...

    def last(self, node: Node, /) -> int:
        """Last round whose noise uses the node; its key may be forgotten after that round.

        Raises:
            UsageError: No round uses the node.
        """
        ...

    def unit_variance(self, round: int, /) -> Fraction:  # noqa: A002
        """Sum of the squared weights over the squared denominator: variance at draws of 1."""
        ...

    def profile(self) -> Profile:
        """Squares and grains of all rounds; time linear in the horizon."""
        ...

    def spec(self) -> dict[str, object]:
        """All resolved parameters as JSON values; `factor_from_spec` is the way back."""
        ...

    def __hash__(self) -> int: ...


def check_horizon(horizon: int) -> None:
    """The horizon is a whole number from 1 to `LONGEST_HORIZON`."""
    whole(least=1, horizon=horizon)
    if horizon > LONGEST_HORIZON:
        raise PlanError(
            f"horizon must be at most {LONGEST_HORIZON} rounds, got {horizon}.",
            do="Use longer rounds, or a new store after each horizon.",
        )


def not_a_node(name: str, node: Node) -> UsageError:
    """The error for a node that no round uses."""
    return UsageError(f"No round of the {name} factor uses the node {node!r}.")
