r"""Losses of mechanisms of which only the likelihood ratio is known: sampled rounds of any one-shot.

Promise: a `RatioLoss` bounds the loss of its rounds in both directions, and its laws are exact for
the worst mechanism it admits. Knows no sampling, no data and no other loss.

**Two points are enough.** Let P and Q be the laws of a round with and without a record, and let
``R = dP/dQ`` lie in ``[least, greatest]``. Its mean under Q is 1. Among all such R the one on the
two ends is the greatest in convex order, and every hockey-stick divergence, in either direction, is
the Q-mean of a convex function of R. So the two-point pair with ratios `least` and `greatest`
dominates the round, rounds with fresh coins compose (Zhu, Dong, Wang 2022, theorem 10), and the loss
of `count` of them is a binomial law: nothing is lost by composing.

**One secret coin for all rounds** (`chance` p < 1). Let C be the law of all answers if the coin says
"not in any sample", the same with and without the record; A and B the laws otherwise; and let A, B
and C be pairwise dominated by rounds with ratios in ``[1/greatest, greatest]``. Then by advanced
joint convexity (Balle, Barthe, Gaboardi 2018, theorem 2), for ``alpha = e^epsilon >= 1``,
``alpha' = 1 + (alpha - 1)/p`` and ``beta = alpha/alpha'``,

    H_alpha((1-p) C + p A, (1-p) C + p B) = p H_alpha'(A, (1-beta) C + beta B)
                                         <= p H_alpha'(worst pair of the rounds),

and the same with A and B exchanged. No promise on p is needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from retrodp._check import instance, whole
from retrodp.errors import PlanError
from retrodp.privacy.round_up import RELATIVE_SLACK, exp_above

FloatArray = NDArray[np.float64]

MOST_EPSILON = 500  # of one round; more is no privacy, and its odds are no floats

_LOG_SLACK = Fraction(1, 10**12)
_LARGE = 10**15


def odds_above(epsilon: Fraction) -> Fraction:
    """A fraction not below ``e^epsilon``, and by less than one part in 10^10 above it."""
    if not 0 <= epsilon <= MOST_EPSILON:
        raise PlanError(
            f"epsilon of one round must lie in 0 to {MOST_EPSILON}, got {float(epsilon):g}."
        )
    return Fraction(math.exp(float(epsilon))) * (1 + Fraction(1, 10**11))


def log_above(ratio: Fraction) -> Fraction:
    """A fraction not below the logarithm of a ratio of at least 1."""
    return Fraction(_log(ratio)) * (1 + _LOG_SLACK)


def _log(ratio: Fraction) -> float:
    if ratio > _LARGE:  # several records of a large epsilon: no float holds their odds
        return math.log(ratio.numerator) - math.log(ratio.denominator)
    return math.log1p(float(ratio - 1))


def _log_of(probability: Fraction) -> float:
    if probability > Fraction(1, 2):
        return math.log1p(-float(1 - probability))
    return math.log(probability.numerator) - math.log(probability.denominator)


class Points(NamedTuple):
    """The two-point pair of one round, in floats.

    Attributes:
        high: Loss of the point that speaks for the record, above 0.
        low: Loss of the other, below 0.
        with_: Logarithms of the probabilities of both points under P, the law with the record.
        without: The same under Q.
    """

    high: float
    low: float
    with_: tuple[float, float]
    without: tuple[float, float]


@dataclass(frozen=True)  # no slots: a cached property
class RatioLoss:
    """Rounds with fresh coins, in each of which the likelihood ratio of a record is bounded.

    Attributes:
        greatest: Largest ratio of the law with the record to the law without it, above 1.
        least: Smallest such ratio, between 0 and 1.
        count: Rounds in which the record can matter.
        chance: Probability that it matters at all, decided once for all rounds and kept secret.
            Below 1, the bounds must hold between any two of the laws of the proof above, so that
            `least` must be 1 / `greatest`.
    """

    greatest: Fraction
    least: Fraction
    count: int = 1
    chance: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        whole(least=1, count=self.count)
        instance(
            Fraction,
            expected="an exact fraction",
            greatest=self.greatest,
            least=self.least,
            chance=self.chance,
        )
        if not self.greatest > 1:
            raise PlanError(f"greatest must be a fraction above 1, got {self.greatest!r}.")
        if not 0 < self.least < 1:
            raise PlanError(f"least must be a fraction between 0 and 1, got {self.least!r}.")
        if not 0 < self.chance <= 1:
            raise PlanError(f"chance must be above 0 and at most 1, got {self.chance!r}.")
        if self.chance < 1 and self.least * self.greatest != 1:
            raise PlanError("With a chance below 1, least must be 1 / greatest.")

    @property
    def symmetric(self) -> bool:
        """Whether adding and removing the record lose the same."""
        return self.least * self.greatest == 1

    @property
    def epsilon(self) -> Fraction:
        """A bound on the largest loss of all rounds together."""
        total = self.count * log_above(max(self.greatest, 1 / self.least))
        if self.chance == 1:
            return total
        mixed = np.logaddexp(math.log1p(-self.chance), math.log(self.chance) + float(total))
        return min(total, Fraction(float(mixed)) * (1 + Fraction(1, 10**9)))

    @cached_property
    def rho(self) -> Fraction:
        """Zero-concentrated loss, without the gain of `chance`; rounded up.

        A two-point loss L has ``log E exp(t (L - EL)) <= t^2 v / 2`` with the variance proxy v of
        Kearns and Saul, hence Renyi divergences of order 1 + t of at most ``EL + t v / 2``.
        """
        high, low, with_, without = self.points
        forward = math.exp(with_[0]) * high + math.exp(with_[1]) * low
        backward = -(math.exp(without[0]) * high + math.exp(without[1]) * low)
        proxy = max(_proxy(one - other) for one, other in (with_, without))
        one = max(forward, backward, proxy * (high - low) ** 2 / 2) * (1 + 1e-6) + 1e-15
        return self.count * Fraction(one)

    @cached_property
    def points(self) -> Points:
        """The worst round."""
        spread = self.greatest - self.least
        first, second = (1 - self.least) / spread, (self.greatest - 1) / spread
        return Points(
            high=_log(self.greatest),
            low=-_log(1 / self.least),
            with_=(_log_of(first * self.greatest), _log_of(second * self.least)),
            without=(_log_of(first), _log_of(second)),
        )

    def group(self, size: int) -> RatioLoss:
        """Loss of `size` units together.

        In a round in which m of them matter the ratio is the m-th power. The numbers m of all rounds
        add up to at most ``size * count``. As the ratio of a product is the product of ratios,
        rounds may be put together as long as their numbers add up to at most `size`; with numbers
        of 1 and 2 that leaves `count` rounds, else at most twice as many (two rounds that do not fit
        together add up to more than `size`).
        """
        whole(least=1, size=size)
        if size == 1:
            return self
        return RatioLoss(
            greatest=self.greatest**size,
            least=self.least**size,
            count=self.count if size == 2 else 2 * self.count,
            chance=1 - (1 - self.chance) ** size,
        )


class Atoms(NamedTuple):
    """Law of a loss under the tilt ``exp(tilt L)``; `losses` ascending.

    Attributes:
        losses: In nats, shape ``(atoms,)``.
        masses: Tilted probabilities, same shape; they add up to 1.
        log_moment: ``log E exp(tilt L)``.
        centre: Mean of the tilted law.
        spread: Variance proxy: the tilted law is sub-Gaussian around `centre` with it.
    """

    losses: FloatArray
    masses: FloatArray
    log_moment: float
    centre: float
    spread: float


def tilted_mean(loss: RatioLoss, tilt: float, *, reverse: bool) -> float:
    """Mean of the tilted loss; the gain of `chance` left out, since any tilt is valid."""
    high, low, (win, lose) = _oriented(loss, reverse=reverse)
    share = _logistic(win - lose + tilt * (high - low))
    return loss.count * (share * high + (1 - share) * low)


def greatest_loss(loss: RatioLoss, *, reverse: bool) -> float:
    """The largest loss of all rounds together in a direction, rounded up."""
    if loss.chance < 1:
        return float(loss.epsilon)
    high = _oriented(loss, reverse=reverse)[0]
    return loss.count * high * (1 + 1e-12)


def ratio_atoms(loss: RatioLoss, tilt: float, *, reverse: bool) -> Atoms:
    """The law of the loss of all rounds.

    Args:
        loss: The rounds.
        tilt: At least 0.
        reverse: Whether the record is removed from the data under which the answers are drawn.
    """
    return _binomial(loss, tilt, reverse=reverse) if loss.chance == 1 else _mixed(loss, tilt)


def log_ratio_moment(loss: RatioLoss, tilt: float) -> float:
    """``log E exp(tilt L)``, the larger of both directions."""
    return max(ratio_atoms(loss, tilt, reverse=reverse).log_moment for reverse in (False, True))


def own_delta(loss: RatioLoss, epsilon: float) -> float:
    """Delta at `epsilon` of these rounds alone, rounded up: a sum over the binomial law."""
    deltas = []
    for reverse in (False, True):
        law = ratio_atoms(loss, 0.0, reverse=reverse)
        gap = law.losses - epsilon
        above = gap > 0
        deltas.append(float(np.dot(law.masses[above], -np.expm1(-gap[above]))))
    worst = max(deltas)
    return min(1.0, exp_above(math.log(worst) + RELATIVE_SLACK)) if worst > 0 else 0.0


def _oriented(loss: RatioLoss, *, reverse: bool) -> tuple[float, float, tuple[float, float]]:
    """(larger loss, smaller loss, logarithms of their probabilities) in a direction."""
    high, low, part, without = loss.points
    if reverse:
        high, low, part = -low, -high, (without[1], without[0])
    # Both losses rounded up, whatever their signs.
    return math.nextafter(high, math.inf), math.nextafter(low, math.inf), part


def _logistic(log_odds: float) -> float:
    return 1 / (1 + math.exp(-log_odds)) if log_odds > -700 else 0.0


def _binomial(loss: RatioLoss, tilt: float, *, reverse: bool) -> Atoms:
    high, low, (log_win, log_lose) = _oriented(loss, reverse=reverse)
    count = loss.count
    log_win += tilt * high
    log_lose += tilt * low
    log_one = float(np.logaddexp(log_win, log_lose))
    wins = np.arange(count + 1, dtype=np.float64)
    log_masses = _log_choose(count) + wins * (log_win - log_one)
    log_masses += (count - wins) * (log_lose - log_one)
    win = math.exp(log_win - log_one)
    return Atoms(
        losses=wins * high + (count - wins) * low,
        masses=np.exp(log_masses),
        log_moment=count * log_one,
        centre=count * (win * high + (1 - win) * low),
        spread=count * _proxy(log_win - log_lose) * (high - low) ** 2,
    )


def _mixed(loss: RatioLoss, tilt: float) -> Atoms:
    """The symmetric pair whose divergences of order >= 1 are those of the proof above.

    It has the atoms of positive loss of ``((1-p) B + p A, B)``, their mirror images, and the rest
    at loss 0.
    """
    high, low, (log_win, log_lose) = _oriented(loss, reverse=False)
    count, chance = loss.count, float(loss.chance) * (1 + 1e-12)
    wins = np.arange(count + 1, dtype=np.float64)
    losses = wins * high + (count - wins) * low
    log_with = _log_choose(count) + wins * log_win + (count - wins) * log_lose
    positive = losses > 0
    losses, log_with = losses[positive], log_with[positive]
    log_without = log_with - losses
    mixed = np.logaddexp(
        math.log1p(-min(chance, 1 - 1e-16)) + log_without, math.log(chance) + log_with
    )
    gains = mixed - log_without
    rest = max(1e-300, 1 - float(np.exp(mixed).sum() + np.exp(log_without).sum()))
    all_losses = np.concatenate([-gains[::-1], [0.0], gains])
    log_masses = np.concatenate([log_without[::-1], [math.log(rest)], mixed])
    weights = log_masses + tilt * all_losses
    log_moment = float(logsumexp(weights))
    masses = np.exp(weights - log_moment)
    return Atoms(
        losses=all_losses,
        masses=masses,
        log_moment=log_moment,
        centre=float(np.dot(masses, all_losses)),
        spread=float(all_losses[-1] - all_losses[0]) ** 2 / 4,
    )


def _log_choose(count: int) -> FloatArray:
    wins = np.arange(count + 1, dtype=np.float64)
    found: FloatArray = gammaln(count + 1) - gammaln(wins + 1) - gammaln(count - wins + 1)
    return found


def _proxy(log_odds: float) -> float:
    """Variance proxy of a coin of values 0 and 1, by the logarithm of its odds (Kearns, Saul 1998)."""
    size = abs(log_odds)
    return 0.25 if size < 1e-6 else math.tanh(size / 2) / (2 * size)
