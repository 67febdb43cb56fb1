"""Noise of a series that is cumulative in stamp: arrival nodes times stamp slots.

Promise: a draw is a function of key, release, round, slot and coordinate alone; what is returned is
exactly `floor(N + 1/2)` of the combination that the two axes define, whatever library evaluates it.
Knows no data.

`N_(l, s) = sum over nodes v of round l and slots j of stamp s of a_v(l) b_j(s) z_(v, j)`. A record
with stamp t that is there in the rounds of a window moves z by the outer product of the node shifts
of the window and the slot shifts of the stamp: by exactly 1 at every round of the window and every
stamp from t on, and by 0 elsewhere. So the sizes of the shifts multiply, in L1 and in L2. Both
factors of the shift are whole, so the proof for discrete draws applies as it stands.

**Rounding.** Sums over the nodes, Y_j, are whole numbers. With walks the rest is whole as well. With
a root, L Y is evaluated in floating point, whose error `noise.dense` bounds; where the float lies
closer than that to a half, the combination is worked out in whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from retrodp._check import exact, positive, round_within, whole
from retrodp.errors import PlanError
from retrodp.noise.dense import exactly, rounding_of
from retrodp.noise.factors.axis import RootAxis, StampAxis, WalkAxis, axis_from_spec, signs_of
from retrodp.noise.factors.contract import Factor, Profile, WeightedNode
from retrodp.noise.factors.dense import rows_of
from retrodp.noise.factors.spec import factor_from_spec
from retrodp.noise.gaussian import DiscreteGaussian
from retrodp.noise.key import Node, NoiseKeys
from retrodp.noise.laplace import DiscreteLaplace
from retrodp.noise.prf import BlockPRF, Coordinates
from retrodp.noise.process import ROUNDING_VARIANCE, Law, profile_of
from retrodp.noise.sampler import Desk, sampler

IntArray = NDArray[np.int64]

MOST_EXACT = 2**53
"""Whole numbers up to here are floats without rounding."""

_UNIT = 2.0**-53


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductFactor:
    """Arrival nodes times stamp slots; public.

    Attributes:
        arrival: Nodes of the rounds. What is kept of a key, and for how long, is decided here.
        axis: Slots of the stamps.
        rounds: Stamps that a round publishes, the newest last.
    """

    arrival: Factor
    axis: StampAxis
    rounds: int

    name: ClassVar[str] = "product"

    def __post_init__(self) -> None:
        whole(least=1, rounds=self.rounds)
        if self.axis.stamps != self.arrival.horizon:
            raise PlanError("A product of factors needs a stamp for every round.")

    @property
    def horizon(self) -> int:
        """Rounds covered."""
        return self.arrival.horizon

    @property
    def denominator(self) -> int:
        """Of the arrival weights; those of a root are real."""
        return self.arrival.denominator

    @property
    def window_l1(self) -> int:
        """Size of a window times that of a stamp, which only walks have in L1."""
        assert isinstance(self.axis, WalkAxis)
        return self.arrival.window_l1 * self.axis.moved

    @property
    def window_l2sq(self) -> int:
        """Squared size of a window times that of a stamp."""
        return self.arrival.window_l2sq * self.axis.shift_l2sq

    @property
    def moved(self) -> int:
        """Most draws that one record moves."""
        return sum(count for _, count in self.arrival.window_shape) * self.axis.moved

    def first_stamp(self, round_: int) -> int:
        """First stamp that is published in a round."""
        round_within(round_, self.horizon)
        return max(1, round_ - self.rounds + 1)

    def nodes(self, round: int, /) -> tuple[WeightedNode, ...]:  # noqa: A002
        """The arrival nodes: a key each, for all slots."""
        return self.arrival.nodes(round)

    def last(self, node: Node, /) -> int:
        """Last round that uses the node."""
        return self.arrival.last(node)

    def published(self, round_: int) -> int:
        """Stamps that a round publishes."""
        return round_ - self.first_stamp(round_) + 1

    def profile(self) -> Profile:
        """Of the stamp of most slots, on walks: every arrival weight comes once a slot.

        Dropping all copies of a weight changes the ratio of norms less than dropping the one of a
        single slot, so the arrival's spacing holds.
        """
        assert isinstance(self.axis, WalkAxis)
        own, slots = profile_of(self.arrival), int(self.axis.squares.max())
        return own._replace(squares=own.squares * slots, terms=own.terms * slots)

    def spec(self) -> dict[str, object]:
        """All resolved parameters as JSON values."""
        return {
            "factor": self.name,
            "arrival": self.arrival.spec(),
            "axis": self.axis.spec(),
            "rounds": self.rounds,
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:
        """The factor that `spec` described; nothing is chosen again."""
        arrival, axis, rounds = (spec.get(name) for name in ("arrival", "axis", "rounds"))
        if (
            set(spec) != {"factor", "arrival", "axis", "rounds"}
            or not isinstance(arrival, Mapping)
            or not isinstance(axis, Mapping)
            or type(rounds) is not int
        ):
            raise PlanError(f"A product cannot be read from the fields {sorted(spec)}.")
        return cls(arrival=factor_from_spec(arrival), axis=axis_from_spec(axis), rounds=rounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductProcess:
    """A product of factors, the law of its draws and their scale; all public.

    Attributes:
        factor: Nodes and slots.
        law: Discrete "laplace" (on walks) or "gaussian".
        scale: b or s^2 of every draw, as for `NoiseProcess`, in the units of the factor.
    """

    factor: ProductFactor
    law: Law
    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", exact("scale", self.scale))
        positive(scale=self.scale)
        arrival, axis = profile_of(self.factor.arrival), self.factor.axis
        whole_sums = arrival.terms * arrival.largest_weight * self.node_law.max_magnitude
        spread = axis.slots(axis.stamps) if isinstance(axis, WalkAxis) else 1
        if whole_sums * spread + self.factor.denominator > MOST_EXACT or self._doubt() > 1 / 4:
            raise PlanError(
                f"Noise of scale {float(self.scale):g} on a product of factors over "
                f"{self.factor.horizon} rounds is too large to be drawn and rounded.",
                do="Use a coarser step.",
            )

    @property
    def node_law(self) -> DiscreteLaplace | DiscreteGaussian:
        """Law of one draw."""
        if self.law == "laplace":
            return DiscreteLaplace(scale=self.scale)
        return DiscreteGaussian(variance=self.scale)

    def slots(self, round_: int) -> int:
        """Slots that a round draws; each needs coordinates of its own."""
        round_within(round_, self.factor.horizon)
        return self.factor.axis.slots(round_)

    def draw(
        self,
        *,
        release: str,
        round: int,  # noqa: A002
        keys: NoiseKeys,
        where: Coordinates,
    ) -> IntArray:
        """Rounded noise of one round.

        Args:
            release: Name of the release.
            round: 1..horizon.
            keys: Keys that still derive every node of the round.
            where: `slots(round) * n` coordinates, those of the first slot first; n is any number of
                bins, and every slot lists them in the same order.

        Returns:
            int64, shape (stamps that the round publishes, n), in grid steps.

        Raises:
            KeyDestroyedError: The round is past.

        Sees: no data. Time: a draw a node and slot, some 20 ns each, and for a root half a
        multiplication of a matrix of `round` rows.
        """
        slots = self.slots(round)
        count = len(where) // slots
        sums = self._sums(release, round, keys, where).reshape(slots, count)
        first, axis = self.factor.first_stamp(round), self.factor.axis
        if isinstance(axis, WalkAxis):
            return _halved(signs_of(axis, first, round) @ sums, self.factor.denominator)
        return _combined(axis, sums, first, self.factor.denominator)

    def _sums(self, release: str, round_: int, keys: NoiseKeys, where: Coordinates) -> IntArray:
        """Weighted sums over the round's nodes, for every coordinate."""
        arrival, draws = self.factor.arrival, sampler(self.node_law.exponent)
        desk, drawn = Desk.of(len(where)), np.empty(len(where), dtype=np.int64)
        total = np.zeros(len(where), dtype=np.int64)
        for node, weight in arrival.nodes(round_):
            key = keys.node_key(
                release=release,
                factor=f"{self.factor.name} {arrival.name}",
                node=node,
                last=arrival.last(node),
            )
            draws.draw_into(drawn, BlockPRF(key), where, desk)
            np.multiply(drawn, weight, out=drawn)
            np.add(total, drawn, out=total)
        return total

    def _doubt(self) -> float:
        """Bound on the doubt about the float of any round, stamp and draws."""
        axis = self.factor.axis
        if isinstance(axis, WalkAxis):
            return 0.0
        rows, arrival = rows_of(axis.root), profile_of(self.factor.arrival)
        sizes = np.abs(rows.weights).sum(axis=1)
        relative = rounding_of(axis.stamps) * float(sizes.max()) + float(rows.drift.max())
        largest = arrival.terms * arrival.largest_weight / self.factor.denominator
        return self.node_law.max_magnitude * largest * relative

    def variance(self, round: int, stamp: int | None = None) -> float:  # noqa: A002
        """Variance of a round at a stamp, by default the worst of all, with 1/12 for rounding."""
        squares = self.factor.axis.squares
        own = float(squares.max() if stamp is None else squares[stamp - 1])
        unit = float(self.factor.arrival.unit_variance(round))
        return unit * own * self.node_law.variance_exactish + self._rounding

    def stddev(self, round: int) -> float:  # noqa: A002
        """Root of the worst `variance` of a round, in steps."""
        return math.sqrt(self.variance(round))

    @property
    def max_variance(self) -> float:
        """Largest variance of any round and stamp."""
        return self._scaled(float(profile_of(self.factor.arrival).squares.max()))

    @property
    def mean_variance(self) -> float:
        """Mean over the rounds of the worst stamp's variance."""
        return self._scaled(float(profile_of(self.factor.arrival).squares.mean()))

    def _scaled(self, squares: float) -> float:
        unit = squares / self.factor.denominator**2 * float(self.factor.axis.squares.max())
        return unit * self.node_law.variance_exactish + self._rounding

    @property
    def _rounding(self) -> float:
        whole_noise = self.factor.denominator == 1 and isinstance(self.factor.axis, WalkAxis)
        return 0.0 if whole_noise else ROUNDING_VARIANCE

    def spec(self) -> dict[str, object]:
        """All of it as JSON values; the scale as a ratio."""
        return {"factor": self.factor.spec(), "law": self.law, "scale": str(self.scale)}

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:
        """The process that `spec` described; nothing is chosen again."""
        factor, law, scale = (spec.get(name) for name in ("factor", "law", "scale"))
        if set(spec) != {"factor", "law", "scale"} or not isinstance(factor, Mapping):
            raise PlanError(f"Noise cannot be read from the fields {sorted(spec)}.")
        if (law != "laplace" and law != "gaussian") or not isinstance(scale, str):  # noqa: PLR1714
            raise PlanError("Noise on a product needs a law, and a scale written as a ratio.")
        return cls(factor=ProductFactor.from_spec(factor), law=law, scale=exact("scale", scale))


def _halved(total: IntArray, denominator: int) -> IntArray:
    """floor(total / denominator + 1/2), the denominator being a power of two."""
    if denominator == 1:
        return total
    halved: IntArray = (total + denominator // 2) >> (denominator.bit_length() - 1)
    return halved


def _combined(axis: RootAxis, sums: IntArray, first: int, denominator: int) -> IntArray:
    """`floor(L Y / denominator + 1/2)` at the stamps from `first` on.

    Args:
        axis: The root that defines L.
        sums: Y, whole numbers below 2^53, shape (slots, n).
        first: First stamp wanted; the last is the number of slots.
        denominator: A power of two.

    Returns:
        int64, shape (stamps, n); exact, see the module.
    """
    last, count = sums.shape
    rows = rows_of(axis.root)
    weights = rows.weights[first - 1 : last, :last]
    floats = sums.astype(np.float64) / denominator  # exact: a power of two
    largest = np.abs(floats).max(axis=1, initial=0.0)
    doubts = rounding_of(last) * (np.abs(weights) @ largest)
    doubts += rows.drift[first - 1 : last] * largest.max(initial=0.0) + 2 * _UNIT
    totals = weights @ floats
    floors = np.floor(totals)
    beyond = totals - floors - 0.5
    result = (floors + (beyond >= 0)).astype(np.int64)
    if not count:
        return result
    for row, column in zip(*np.nonzero(np.abs(beyond) <= doubts[:, None]), strict=True):
        stamp = first + int(row)
        result[row, column] = exactly(axis.root, sums[:stamp, column], denominator)
    return result
