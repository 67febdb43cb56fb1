"""Keyed noise of a dense factor: real combinations of whole draws, rounded without error.

Promise: a draw is a function of key, release, round and coordinate alone, with exactly the law of
`floor(N + 1/2)`, N = L z the rational combination that the factor's root defines; the floating-point
library that evaluates it, its threads and its order of summation are no part of it. Knows no data.

**Rounding.** With w the float weights of a round of n draws, |z_j| <= m_j and unit roundoff
u = 2^-53, any order of a conventional product, fused or not, gives |fl(w z) - N| at most

    (n + 2) u / (1 - (n + 2) u) * sum of |w_j| m_j  +  drift * max m_j,

one u each for rounding a weight and for its product, n - 1 for the sum (Higham 2002, section 3.1),
and the drift of `rows` for the grid of the weights. Where the float lies farther than that from
the next half, its floor is that of N; elsewhere N is worked out as a ratio of whole numbers. Exact
halves do occur, once in about 4,096 draws of round 1, and are rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from retrodp._check import exact, positive, round_within
from retrodp.errors import PlanError
from retrodp.noise.factors.dense import DenseFactor, rows_of
from retrodp.noise.factors.rows import exact_row
from retrodp.noise.gaussian import MOST_VARIANCE, DiscreteGaussian
from retrodp.noise.key import NoiseKeys
from retrodp.noise.prf import BlockPRF, Coordinates
from retrodp.noise.process import ROUNDING_VARIANCE
from retrodp.noise.sampler import Desk, sampler

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MOST_DRAWS = 1 << 23
"""Draws held at once; more coordinates are worked off in batches (64 MiB)."""

WIDEST = 1 / 4
"""Scales whose rounding could be in doubt more often than every other time are refused."""

_UNIT = 2.0**-53


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseProcess:
    """A dense factor and the variance of its draws; both public.

    Noise of round l is `floor(N_l + 1/2)` with N_l the sum over the rounds j <= l of L_lj z_j.
    Privacy is that of the draws under the factor's shifts, rho `window_l2sq / (2 s^2)` per unit of
    change; rounding costs none, because counts are whole.

    Attributes:
        factor: The root and the rounds.
        scale: s^2 of the law exp(-k^2 / (2 s^2)) of every z_j, exact, in the root's own units: the
            draws are whole numbers there, and L takes them to steps.
    """

    factor: DenseFactor
    scale: Fraction

    law: ClassVar[Literal["gaussian"]] = "gaussian"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", exact("scale", self.scale))
        positive(scale=self.scale)
        # Draws of such a variance are below 2^46 and so are floats without rounding.
        if self.scale > MOST_VARIANCE or self._doubt() > WIDEST:
            raise PlanError(
                f"Noise of scale {float(self.scale):g} on a {self.factor.name} factor over "
                f"{self.factor.horizon} rounds is too large to be drawn and rounded.",
                do='Use a coarser step, or factor = "haar".',
            )

    @property
    def node_law(self) -> DiscreteGaussian:
        """Law of one node's draw."""
        return DiscreteGaussian(variance=self.scale)

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
            release: Name of the release; other releases draw independently.
            round: 1..horizon.
            keys: Keys that still derive round `horizon`.
            where: n coordinates (bins, buckets); each has noise of its own.

        Returns:
            int64, shape (n,), in grid steps. A coordinate gets the same noise in any batch.

        Raises:
            KeyDestroyedError: The horizon is over and its key was destroyed.

        Sees: no data. Time: `round` draws a coordinate, some 30 ns each.
        """
        noise: IntArray = self.draw_rounds(
            release=release, rounds=(round,), keys=keys, where=where
        )[0]
        return noise

    def each_round(
        self, *, release: str, rounds: Iterable[int], keys: NoiseKeys, where: Coordinates
    ) -> Iterator[IntArray]:
        """What `draw` gives for one round after another; every draw is made once.

        Args:
            release: As for `draw`.
            rounds: In any order.
            keys: As for `draw`.
            where: n coordinates.

        Yields:
            int64, shape (n,), in grid steps: `draw` of each round.

        Raises:
            KeyDestroyedError: The horizon is over and its key was destroyed.

        Sees: no data. Memory: as many vectors of floats as the latest round asked for.
        """
        draws, largest = np.empty((self.factor.horizon, len(where))), np.empty(self.factor.horizon)
        drawn = 0
        for round_ in rounds:
            round_within(round_, self.factor.horizon)
            if round_ > drawn:
                columns = range(drawn + 1, round_ + 1)
                functions = [self._function(keys, release, column) for column in columns]
                draws[drawn:round_] = fresh = self._draws(functions, where)
                largest[drawn:round_] = np.abs(fresh).max(axis=1, initial=0)
                drawn = round_
            yield combined(self.factor, draws[:round_], largest[:round_])

    def draw_rounds(
        self, *, release: str, rounds: Sequence[int], keys: NoiseKeys, where: Coordinates
    ) -> IntArray:
        """What `draw` gives for several rounds, at the cost of the last of them.

        Args:
            release: As for `draw`.
            rounds: R rounds, in any order.
            keys: As for `draw`.
            where: n coordinates.

        Returns:
            int64, shape (R, n), in grid steps: row i is `draw` of round `rounds[i]`.

        Raises:
            KeyDestroyedError: The horizon is over and its key was destroyed.
        """
        for round_ in rounds:
            round_within(round_, self.factor.horizon)
        result = np.empty((len(rounds), len(where)), dtype=np.int64)
        functions = [
            self._function(keys, release, column) for column in range(1, max(rounds, default=0) + 1)
        ]
        batch = max(1, MOST_DRAWS // max(1, len(functions)))
        for start in range(0, len(where), batch):
            part = slice(start, start + batch)
            draws = self._draws(functions, where.take(part))
            largest = np.abs(draws).max(axis=1, initial=0)
            for noise, round_ in zip(result, rounds, strict=True):
                noise[part] = combined(self.factor, draws[:round_], largest[:round_])
        return result

    def node_draws(
        self, *, release: str, rounds: Iterable[int], keys: NoiseKeys, where: Coordinates
    ) -> FloatArray:
        """The draws z_j of the nodes first used in some rounds, for whoever adds them up himself.

        Args:
            release: As for `draw`.
            rounds: R numbers j, from 1 to the horizon.
            keys: As for `draw`.
            where: n coordinates.

        Returns:
            Whole numbers, shape (R, n); `combined` of those of rounds 1..l is `draw` of round l.
        """
        return self._draws([self._function(keys, release, round_) for round_ in rounds], where)

    def _function(self, keys: NoiseKeys, release: str, column: int) -> BlockPRF:
        factor, node = self.factor, (column,)
        return BlockPRF(
            keys.node_key(release=release, factor=factor.name, node=node, last=factor.last(node))
        )

    def _draws(self, functions: list[BlockPRF], where: Coordinates) -> FloatArray:
        source, desk = sampler(self.node_law.exponent), Desk.of(len(where))
        draws, drawn = np.empty((len(functions), len(where))), np.empty(len(where), dtype=np.int64)
        for row, function in zip(draws, functions, strict=True):
            source.draw_into(drawn, function, where, desk)
            np.copyto(row, drawn)
        return draws

    def _doubt(self) -> float:
        """Bound on the doubt about the float of any round and draws."""
        rows = rows_of(self.factor)
        sizes = np.abs(rows.weights).sum(axis=1)
        relative = rounding_of(self.factor.horizon) * float(sizes.max()) + float(rows.drift.max())
        return self.node_law.max_magnitude * relative

    def variance(self, round: int) -> float:  # noqa: A002
        """Variance of the round's noise, in squared steps, with 1/12 for the rounding."""
        round_within(round, self.factor.horizon)
        return self._scaled(float(rows_of(self.factor).squares[round - 1]))

    def stddev(self, round: int) -> float:  # noqa: A002
        """Root of `variance`, in steps."""
        return math.sqrt(self.variance(round))

    @property
    def max_variance(self) -> float:
        """Largest variance of any round."""
        return self._scaled(float(rows_of(self.factor).squares.max()))

    @property
    def mean_variance(self) -> float:
        """Mean variance over the rounds."""
        return self._scaled(float(rows_of(self.factor).squares.mean()))

    def _scaled(self, squares: float) -> float:
        return squares * self.node_law.variance_exactish + ROUNDING_VARIANCE

    def spec(self) -> dict[str, object]:
        """All of it as JSON values; the scale as a ratio."""
        return {"factor": self.factor.spec(), "law": self.law, "scale": str(self.scale)}

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:
        """The process that `spec` described; nothing is chosen again.

        Raises:
            PlanError: A field is missing, surplus or wrong.
        """
        factor, scale = spec.get("factor"), spec.get("scale")
        if (
            set(spec) != {"factor", "law", "scale"}
            or not isinstance(factor, Mapping)
            or not isinstance(scale, str)
            or spec["law"] != cls.law
        ):
            raise PlanError(
                f"Noise on a dense factor cannot be read from the fields {sorted(spec)}.",
                expected=f'a described factor, the law "{cls.law}" and a scale written as a ratio',
            )
        return cls(factor=DenseFactor.from_spec(factor), scale=exact("scale", scale))


def combined(factor: DenseFactor, draws: FloatArray, largest: FloatArray | None = None) -> IntArray:
    """`floor(L z + 1/2)` for the round that as many draws as there are rows belong to.

    Args:
        factor: The root that defines L.
        draws: Whole numbers of at most 2^53, shape (round, n): z_1 to z_round of n coordinates.
        largest: Of the absolute values of each of their rows, if the caller knows it.

    Returns:
        int64, shape (n,); exact, see the module.
    """
    round_ = len(draws)
    if not draws.shape[1]:
        return np.empty(0, dtype=np.int64)
    rows = rows_of(factor)
    weights = rows.weights[round_ - 1, :round_]
    if largest is None:
        largest = np.abs(draws).max(axis=1)
    doubt = rounding_of(round_) * float(np.abs(weights) @ largest)
    doubt += float(rows.drift[round_ - 1] * largest.max()) + 2 * _UNIT
    totals = weights @ draws
    floors = np.floor(totals)
    beyond = totals - floors - 0.5  # within u of the exact difference
    result = (floors + (beyond >= 0)).astype(np.int64)
    for doubtful in np.flatnonzero(np.abs(beyond) <= doubt):
        result[doubtful] = exactly(factor, draws[:, doubtful])
    return result


def exactly(factor: DenseFactor, draws: FloatArray | IntArray, denominator: int = 1) -> int:
    """One rounded combination in whole numbers, over a denominator."""
    numerators, common = _exact_row(factor, len(draws))
    total = sum(n * int(draw) for n, draw in zip(numerators, draws.tolist(), strict=True))
    under = common * denominator
    return (2 * total + under) // (2 * under)


@lru_cache(maxsize=64)
def _exact_row(factor: DenseFactor, round_: int) -> tuple[tuple[int, ...], int]:
    """One row of L in ratios, worked out once."""
    return exact_row(factor.matrix(), round_)


def rounding_of(terms: int) -> float:
    """Relative to the sum of absolute products; 1e-6 covers the rounding of that sum."""
    return (terms + 2) * _UNIT / (1 - (terms + 2) * _UNIT) * (1 + 1e-6)
