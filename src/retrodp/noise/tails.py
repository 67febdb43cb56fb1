"""How far the noise of a round strays: certified upper bounds, tight enough to plan with.

Promise: no probability returned is below the true one. Knows no key and no data.

**Sums of j signed discrete Laplace draws**: the exact law, a finite sum of positive terms. A draw is
the difference of two geometric variables with ratio a = exp(-1/b), so the sum is G - H, both
negative binomial of order j. G >= x + H says that x + H + j - 1 trials see fewer than j failures;
averaging the binomial law over H by Vandermonde's identity gives, for x >= 1,

    P(sum >= x) = sum over k + u <= j - 1 of a^(x + j - 1 - k - u)
                  (1 - a)^k C(x + j - 1, k)  a^(2 u) (1 + a)^(-j - u) C(u + j - 1, u).

**Weighted sums U = a_1 Y_1 + ... + a_m Y_m of discrete Gaussians**, a whole, g = gcd(a): P(U = k) is
a Gaussian sum over the points of Z^m with a.y = k, a shifted copy of the lattice L = {y : a.y = 0} at
the distance k / |a| from the origin. A shift never increases a Gaussian sum over a lattice
(Banaszczyk 1993, lemma 1.1), so P(U = k) <= P(U = 0) exp(-k^2 / (2 s^2 |a|^2)). Leaving out the
first weight cuts L into shifted copies of the lattice of the other weights b, at multiples of
c = (|a| / gcd a) / (|b| / gcd b) from each other (by determinants), so that P(U = 0) is at most the
product of rho(c) over the m - 1 cuts, over rho(1)^m, with rho(c) = sum over k of
exp(-c^2 k^2 / (2 s^2)) = s sqrt(2 pi) / c (1 + 2 sum over k > 0 of exp(-2 pi^2 k^2 s^2 / c^2)). The
product of the c is |a| / g. Hence, at multiples k of g and with sigma = s |a| / g,

    P(U = k) <= excess exp(-(k / g)^2 / (2 sigma^2)) / (sigma sqrt(2 pi)),

where the excess is the product of the brackets: below 1 + 1e-9 from s^2 = 10 on for `haar` and from
s^2 = 3 on for weights of 1 and -1; 1 % a node for `haar` at s^2 = 2, 13 % at s^2 = 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, Protocol, assert_never

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from retrodp._check import exact, positive, probability, round_within
from retrodp.errors import PlanError
from retrodp.noise.dense import DenseProcess
from retrodp.noise.dense_tails import LEAST_VARIANCE, bracket, log_tails, log_tails_of
from retrodp.noise.factors.axis import WalkAxis
from retrodp.noise.factors.contract import Factor, IntArray, Profile
from retrodp.noise.factors.delannoy import DelannoyFactor, least_delannoy
from retrodp.noise.factors.dense import rows_of
from retrodp.noise.process import NoiseProcess, profile_of
from retrodp.noise.processes import Process
from retrodp.noise.product import ProductProcess

FloatArray = NDArray[np.float64]

SLACK = 1e-9  # of a logarithm; covers the rounding of a few hundred floating-point operations
LEAST = 1e-300  # below, floating point loses its relative accuracy
WIDE = 32.0  # deviations, in lattice steps, from which an integral bounds the sum well enough
MOST_SUMMED = 512  # Laplace draws whose exact law is worked out
FARTHEST = 1 << 61
MOST_RATE = Fraction(200)


class _Kinds(NamedTuple):
    """Rounds grouped by the squares of their weights, which decide the bound on their noise.

    Attributes:
        squares: Distinct sums of squared integer weights, shape (kinds,).
        grains: Greatest common divisor of the weights, shape (kinds,).
        rounds: Number of rounds of each kind, shape (kinds,).
        of_round: Kind of each round, shape (horizon,).
    """

    squares: IntArray
    grains: IntArray
    rounds: IntArray
    of_round: NDArray[np.intp]

    def only(self, round_: int) -> _Kinds:
        """The kind of one round, alone."""
        kind = self.of_round[round_ - 1]
        part = slice(kind, kind + 1)
        return self._replace(
            squares=self.squares[part], grains=self.grains[part], rounds=self.rounds[part]
        )


class _Bounds(Protocol):
    """Tail bounds of all rounds of a process, or of one, a kind of round at a time."""

    @property
    def rounds(self) -> IntArray:
        """Number of rounds of each kind."""

    @property
    def of_round(self) -> NDArray[np.intp]:
        """Kind of each round."""

    def only(self, round_: int) -> _Bounds:
        """The kind of one round, alone."""

    def above(self, x: IntArray) -> FloatArray:
        """Bounds of P[floor(N + 1/2) >= x] = P[N >= x - 1/2], one a kind."""

    def strays(self, q: IntArray) -> FloatArray:
        """Bounds of P[absolute floor(N + 1/2) > q], one a kind."""


class _WeightedBounds(NamedTuple):
    """Of a factor of whole weights."""

    process: NoiseProcess | ProductProcess
    kinds: _Kinds

    @property
    def rounds(self) -> IntArray:
        return self.kinds.rounds

    @property
    def of_round(self) -> NDArray[np.intp]:
        return self.kinds.of_round

    def only(self, round_: int) -> _WeightedBounds:
        return self._replace(kinds=self.kinds.only(round_))

    def above(self, x: IntArray) -> FloatArray:
        return _tails(self.process, self.kinds, np.ceil(self._edge(_half(x - 1))))

    def strays(self, q: IntArray) -> FloatArray:
        # Rounding takes ties up, so that the lower side is left a grain later than the upper.
        edge = self._edge(_half(q))
        lower = _tails(self.process, self.kinds, np.floor(edge) + 1)
        return _tails(self.process, self.kinds, np.ceil(edge)) + lower

    def _edge(self, steps: FloatArray) -> FloatArray:
        return steps * (self.process.factor.denominator / self.kinds.grains)


class _DenseBounds(NamedTuple):
    """Of a dense factor, whose rounds are all of different kinds."""

    process: DenseProcess
    squares: FloatArray

    @property
    def rounds(self) -> IntArray:
        return np.ones(len(self.squares), dtype=np.int64)

    @property
    def of_round(self) -> NDArray[np.intp]:
        return np.arange(len(self.squares))

    def only(self, round_: int) -> _DenseBounds:
        return self._replace(squares=self.squares[round_ - 1 : round_])

    def above(self, x: IntArray) -> FloatArray:
        edge = _half(x - 1)
        return _probabilities(log_tails(self.process, self.squares, np.maximum(edge, 0.5)), edge)

    def strays(self, q: IntArray) -> FloatArray:
        return 2 * self.above(q + 1)


class _RootBounds(NamedTuple):
    """Of a product with a root: a round counts once a stamp, each as wide as the widest."""

    process: ProductProcess
    squares: FloatArray
    rounds: IntArray

    @property
    def of_round(self) -> NDArray[np.intp]:
        return np.arange(len(self.squares))

    def only(self, round_: int) -> _RootBounds:
        part = slice(round_ - 1, round_)
        return self._replace(squares=self.squares[part], rounds=self.rounds[part])

    def above(self, x: IntArray) -> FloatArray:
        edge, factor = _half(x - 1), self.process.factor
        draws = factor.axis.stamps * profile_of(factor.arrival).terms
        logs = log_tails_of(self.process.scale, draws, self.squares, np.maximum(edge, 0.5))
        return _probabilities(logs, edge)

    def strays(self, q: IntArray) -> FloatArray:
        return 2 * self.above(q + 1)


def _product_bounds(process: ProductProcess) -> _Bounds:
    factor = process.factor
    stamps = np.array([factor.published(r) for r in range(1, factor.horizon + 1)], dtype=np.int64)
    if isinstance(factor.axis, WalkAxis):
        profile = factor.profile()
        of_round = np.arange(factor.horizon)
        return _WeightedBounds(process, _Kinds(profile.squares, profile.grains, stamps, of_round))
    arrival = profile_of(factor.arrival).squares / float(factor.denominator) ** 2
    return _RootBounds(process, arrival * float(factor.axis.squares.max()), stamps)


def _half(steps: IntArray) -> FloatArray:
    """The halves after whole steps."""
    return steps.astype(np.float64) + 0.5


def _bounds(process: Process) -> _Bounds:
    match process:
        case NoiseProcess():
            return _WeightedBounds(process, _kinds(process.factor))
        case DenseProcess():
            return _DenseBounds(process, rows_of(process.factor).squares)
        case ProductProcess():
            return _product_bounds(process)
        case _:
            assert_never(process)


@lru_cache(maxsize=16)
def _kinds(factor: Factor) -> _Kinds:
    """Kinds of all rounds; depends on the factor alone."""
    profile = profile_of(factor)
    squares, first, of_round, rounds = np.unique(
        profile.squares, return_index=True, return_inverse=True, return_counts=True
    )
    return _Kinds(squares, profile.grains[first], rounds.astype(np.int64), of_round)


def upper_tail(process: Process, round: int, x: int) -> float:  # noqa: A002
    """Certified upper bound of P[rounded noise of the round >= x], x in steps.

    Exact to 8 digits for Laplace draws on weights of 1 and -1, a Chernoff bound on others; within
    the excess of the module for Gaussian draws. It is 1 for x <= 0 and never below 1e-300.
    """
    round_within(round, process.factor.horizon)
    return float(_bounds(process).only(round).above(np.array([x], dtype=np.int64))[0])


def summed_tail(process: Process, x: int) -> float:
    """Certified upper bound of the sum over all rounds of P[rounded noise >= x].

    For a product it is the sum over all published pairs of a round and a stamp.

    Time: 2 ms up to some thousand rounds, 0.1 s for haar at 2**20.
    """
    bounds = _bounds(process)
    tails = bounds.above(np.full(len(bounds.rounds), x, dtype=np.int64))
    return math.fsum(tails * bounds.rounds) * (1 + SLACK)


def summed_tail_at(process: Process, x: IntArray) -> float:
    """Certified sum over rounds of P[rounded noise of the round >= x of the round].

    Args:
        process: Noise.
        x: Shape (horizon,); rounds of one kind have one, as those of `half_widths`.
    """
    bounds = _bounds(process)
    of_kind = np.zeros(len(bounds.rounds), dtype=np.int64)
    of_kind[bounds.of_round] = x
    tails = bounds.above(of_kind)
    return math.fsum(tails * bounds.rounds) * (1 + SLACK)


def quantile(process: Process, round: int, tail_probability: float) -> int:  # noqa: A002
    """Least q >= 0 with certified P[rounded noise of the round > q] <= tail_probability."""
    round_within(round, process.factor.horizon)
    bounds = _bounds(process).only(round)

    def exceeds(q: IntArray) -> FloatArray:
        return bounds.above(q + 1)

    return int(_least(exceeds, tail_probability, 1)[0])


def half_width(process: Process, round: int, miss: float) -> int:  # noqa: A002
    """Least q with certified P[absolute rounded noise of the round > q] <= miss, in steps.

    The first call for a process and a miss works out all rounds; see `half_widths`.
    """
    round_within(round, process.factor.horizon)
    return int(half_widths(process, miss)[round - 1])


def half_width_all(process: Process, round: int, miss: float) -> int:  # noqa: A002
    """Half width at the round of a band that the noise leaves in any round with at most `miss`.

    Every round gets miss / horizon (Bonferroni).
    """
    return half_width(process, round, miss / process.factor.horizon)


@lru_cache(maxsize=16)
def half_widths(process: Process, miss: float) -> IntArray:
    """`half_width` of every round; shape (horizon,), read-only.

    Time: 10 ms at 365 rounds, 3 s for haar at 2**20.
    """
    bounds = _bounds(process)
    widths = _least(bounds.strays, miss, len(bounds.rounds))[bounds.of_round]
    widths.flags.writeable = False
    return widths


def least_threshold_of(process: Process, delta: float) -> int:
    """Least tau with certified sum over rounds of P[rounded noise >= tau - 1] <= delta."""

    def crosses(x: IntArray) -> FloatArray:
        return np.array([summed_tail(process, int(x[0]))])

    return int(_least(crosses, delta, 1)[0]) + 1


def best_delannoy_for_threshold(
    horizon: int, *, epsilon: float | str | Fraction, delta: float
) -> DelannoyFactor:
    """The (w, z) of least threshold for a sparse histogram under pure `epsilon` and `delta`.

    Far tails favour fewer levels than the variance does. The search goes down and up from the z of
    least variance as long as the threshold falls.
    """
    budget = exact("epsilon", epsilon)
    positive(epsilon=budget)

    def threshold(factor: DelannoyFactor) -> int:
        scale = factor.window_l1 / budget
        return least_threshold_of(NoiseProcess(factor=factor, law="laplace", scale=scale), delta)

    return least_delannoy(horizon, threshold, most_w=MOST_SUMMED)


def _least(bound: Callable[[IntArray], FloatArray], most: float, count: int) -> IntArray:
    """Least whole numbers >= 0, `count` of them, at which a falling bound is at most `most`."""
    probability(**{"a tail probability": most})
    high = np.ones(count, dtype=np.int64)
    while (over := bound(high) > most).any():
        if high.max() >= FARTHEST:
            raise PlanError(f"A tail probability of {most:g} is too small to be certified.")
        high[over] *= 2
    low = np.full(count, -1, dtype=np.int64)
    while (high - low > 1).any():
        middle = (low + high) // 2
        fits = bound(middle) <= most
        low, high = np.where(fits, low, middle), np.where(fits, middle, high)
    return high


def _tails(process: NoiseProcess | ProductProcess, kinds: _Kinds, least: FloatArray) -> FloatArray:
    """Bounds of P[weighted sum of draws >= least * grain], one a kind."""
    factor = process.factor
    profile = profile_of(factor) if isinstance(process, NoiseProcess) else factor.profile()
    match process.law:
        case "gaussian":
            variance = float(max(process.scale, LEAST_VARIANCE))
            logs = _gaussian(variance, profile, kinds, least)
        case "laplace":
            rate = float(min(1 / process.scale, MOST_RATE))
            if profile.largest_weight == 1 and profile.terms <= MOST_SUMMED:
                logs = _laplace(rate, kinds, least)
            else:
                logs = _laplace_chernoff(rate, profile.largest_weight, kinds, least)
        case _:
            assert_never(process.law)
    return _probabilities(logs, least)


def _probabilities(logs: FloatArray, least: FloatArray) -> FloatArray:
    """Bounds from their logarithms; 1 where what is to be reached is not above 0."""
    bounds = np.exp(np.minimum(logs + SLACK, 0.0)) + LEAST
    return np.where(least > 0, np.minimum(bounds, 1.0), 1.0)


def _gaussian(variance: float, profile: Profile, kinds: _Kinds, least: FloatArray) -> FloatArray:
    """Logarithms of the bounds for discrete Gaussian draws; see the module."""
    squares = kinds.squares / kinds.grains.astype(np.float64) ** 2 * variance
    sigma = np.sqrt(squares)
    excess = (profile.terms - 1) * math.log(bracket(variance / profile.spacing_sq))
    excess -= math.log(bracket(variance))
    # exp(-k^2 / 2 sigma^2) is at most exp(1 / 24 sigma^2) times its integral over k - 1/2..k + 1/2.
    logs: FloatArray = log_ndtr(-(least - 0.5) / sigma) + 1 / (24 * squares)
    narrow = sigma < WIDE
    if narrow.any():
        logs[narrow] = _narrow(sigma[narrow], least[narrow])
    chernoff = -(least**2) / (2 * squares)  # E exp(t Y) <= exp(t^2 s^2 / 2) for every t
    result: FloatArray = np.minimum(logs + excess, chernoff)
    return result


def _narrow(sigma: FloatArray, least: FloatArray) -> FloatArray:
    """Logarithms of sums of exp(-k^2 / 2 sigma^2) / (sigma sqrt(2 pi)) over k >= least."""
    # What is left out after ten deviations is below exp(-50) of the first term's own tail.
    further = np.arange(math.ceil(10 * sigma.max()) + 1)
    exponents = further * (2 * least[:, None] + further) / (2 * sigma[:, None] ** 2)
    sums = np.exp(-exponents).sum(axis=1)
    logs: FloatArray = np.log(sums / (sigma * math.sqrt(2 * math.pi))) - least**2 / (2 * sigma**2)
    return logs


def _laplace(rate: float, kinds: _Kinds, least: FloatArray) -> FloatArray:
    """Logarithms of the exact tails of sums of discrete Laplace draws; see the module."""
    pairs = zip(kinds.squares.tolist(), least.tolist(), strict=True)
    return np.array([_laplace_sum(rate, count, x) if x > 0 else 0.0 for count, x in pairs])


def _laplace_sum(rate: float, count: int, x: float) -> float:
    """Logarithm of P[sum of `count` draws >= x] for x >= 1."""
    ratio = math.exp(-rate)
    k = np.arange(1, count, dtype=np.float64)
    failures = np.log((x + count - k) / k * -math.expm1(-rate)).cumsum()
    failures = np.concatenate([[0.0], failures])
    others = np.log((k + count - 1) / k).cumsum() - k * (2 * rate + math.log1p(ratio))
    others = np.concatenate([[0.0], others]) - count * math.log1p(ratio)
    # The largest term of `failures` meets one of `others` of at least 2**-MOST_SUMMED, so that
    # whatever underflows beside it (below exp(-700)) is negligible.
    top = failures.max()
    totals = np.convolve(np.exp(failures - top), np.exp(others))[:count]
    total = float((totals * np.exp(-rate * np.arange(count - 1, -1, -1))).sum())
    return float(top) + math.log(total) - rate * x


def _laplace_chernoff(rate: float, weight: int, kinds: _Kinds, least: FloatArray) -> FloatArray:
    """Logarithms of Chernoff bounds for any weights up to `weight`.

    A draw has E exp(u Y) = 1 / (1 - v (cosh u - 1)), v its variance. The logarithm of that, divided
    by u^2, grows with u, so weights whose squares sum to A count for no more than A / weight^2
    draws of that weight. The bound is valid at any u below the rate, and least at one root of a
    quadratic in exp(u).
    """
    copies = kinds.squares / float(weight) ** 2
    reached = np.maximum(least, 0.0) * (kinds.grains / weight)
    inverse = 2 * math.sinh(rate / 2) ** 2  # 1 / v
    each = reached / copies
    under = each**2 * inverse * (2 + inverse)
    growth = (each * inverse + under / (1 + np.sqrt(1 + under))) / (1 + each)
    u = np.minimum(np.log1p(growth), rate * (1 - 2.0**-40))
    logs: FloatArray = -u * reached - copies * np.log1p(-2 * np.sinh(u / 2) ** 2 / inverse)
    return logs
