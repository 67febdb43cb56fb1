r"""How much noise hides that answers remember: the Gaussian compiler's parameters and its guarantee.

Promise: every number errs towards the promise, for the integer noise that is really added. Knows no
algorithm and no data.

Source: Kaplan et al. 2026 (arXiv 2609.05329), theorem 5.2, corollary 5.3, remark 5.4. A continual
algorithm that is within E of the truth in every round, except with probability beta0, answers within
2 E of itself on two streams that have united. Noise that hides a distance of 2 E hides which of the
streams it was.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from retrodp._check import positive, probability, whole
from retrodp.errors import PlanError
from retrodp.privacy.accountant import delta_of, epsilon_of
from retrodp.privacy.loss import GaussianLoss, GaussianNorm, PrivacyLoss
from retrodp.privacy.round_up import RELATIVE_SLACK

VARIANCE_GRID = 1024  # of variances, in parts of a squared step


class Closeness(NamedTuple):
    """(alpha, beta): how close the laws of answers on united streams are (KKMNS definition 2.9).

    Attributes:
        alpha: In nats.
        beta: Additive part.
    """

    alpha: float
    beta: float


def paper_deviation(error: float, *, alpha: float, beta: float) -> float:
    """``s = (2 E / alpha) sqrt(2 ln(1.25 / beta_K))``, rounded up; alpha at most 1.

    Args:
        error: E, Euclidean.
        alpha: Closeness of one answer.
        beta: beta_K.
    """
    positive(error=error)
    probability(beta=beta)
    if isinstance(alpha, bool) or not 0 < alpha <= 1:
        raise PlanError(
            f"The paper's deviation is proved for alpha of at most 1, got {alpha!r}.",
            do="Use `least_variance`, which needs no such bound.",
        )
    return 2 * error / alpha * math.sqrt(2 * math.log(1.25 / beta)) * (1 + RELATIVE_SLACK)


def least_variance(
    error: int, *, alpha: Fraction, beta: Fraction, coordinates: int = 1
) -> Fraction:
    """Least variance, in squared steps, of discrete Gaussian noise that hides a distance of 2 E.

    Args:
        error: E in whole steps of the answers' grid, Euclidean over the coordinates.
        alpha: Closeness of one answer, above 0.
        beta: beta_K, strictly between 0 and 1.
        coordinates: d. With one the shift is known to be whole; with more only its norm.

    Returns:
        A multiple of 1/1024, within one part in 10^4 of the least; its own delta was computed for
        integer noise (`retrodp.privacy.lattice`), not by the formula of the continuous Gaussian.
    """
    whole(least=1, error=error, coordinates=coordinates)
    positive(alpha=alpha)
    probability(beta=beta)

    def holds(units: int) -> bool:
        variance = Fraction(units, VARIANCE_GRID)
        return delta_of(_shift(error, variance, coordinates), alpha) <= beta

    fails, found = 0, VARIANCE_GRID
    while not holds(found):
        fails, found = found, 4 * found
        if found > 1 << 100:
            raise PlanError("No Gaussian noise of a sensible size hides that.", do="Raise beta.")
    while found - fails > max(1, found // 10_000):
        middle = (found + fails) // 2
        if holds(middle):
            found = middle
        else:
            fails = middle
    return Fraction(found, VARIANCE_GRID)


def block_closeness(length: int, one: Closeness, *, base_miss: float, slack: float) -> Closeness:
    """Theorem 5.2, part 3, for any `length` consecutive answers.

    Args:
        length: B.
        one: (alpha, beta_K) of the mask.
        base_miss: beta0, of the algorithm's accuracy over all rounds.
        slack: beta' of advanced composition; charged also where basic composition is better.

    Returns:
        ``alpha_B = min(B alpha, alpha sqrt(2 B ln(1/beta')) + B alpha (e^alpha - 1))`` and
        ``beta_B = B beta_K + beta' + (2 + e^alpha_B) beta0``.
    """
    whole(least=1, length=length)
    probability(slack=slack)
    _require_miss(base_miss)
    alpha = min(length * one.alpha, _advanced(length, one.alpha, slack))
    beta = length * one.beta + slack + (2 + math.exp(alpha)) * base_miss
    return _up(alpha, beta)


def marginal_closeness(one: Closeness, *, base_miss: float) -> Closeness:
    """Corollary 5.3, for a single answer: ``(alpha, beta_K + (2 + e^alpha) beta0)``."""
    _require_miss(base_miss)
    return _up(one.alpha, one.beta + (2 + math.exp(one.alpha)) * base_miss)


def tight_block_closeness(
    length: int,
    error: int,
    *,
    variance: Fraction,
    beta: float,
    base_miss: float,
    coordinates: int = 1,
) -> Closeness:
    """The least alpha of a block at ``beta + (1 + e^alpha) beta0``, by composing the noise itself.

    Args:
        length: B.
        error: E in steps.
        variance: Of the noise, in squared steps.
        beta: For the noise of the whole block.
        base_miss: beta0.
        coordinates: d.

    Proof of the factor ``1 + e^alpha``, where the paper has ``2 + e^alpha``. With G the answers
    within E, and P[F | a] the law of the masked block given base answers a: P_S[F] is at most
    ``beta0 + sup over G of P[F | a] <= beta0 + e^alpha inf over G of P[F | a] + beta``, and that
    infimum is at most ``P_S'[F and G] + (1 - P_S'[G]) <= P_S'[F] + beta0``.
    """
    whole(least=1, length=length, error=error, coordinates=coordinates)
    _require_miss(base_miss)
    alpha = epsilon_of(_shift(error, variance, coordinates, rounds=length), beta)
    return _up(alpha, beta + (1 + math.exp(alpha)) * base_miss)


def masked_error(error: float, *, deviation: float, coordinates: int, miss: float) -> float:
    """Distance from the truth that a masked answer exceeds with probability `miss` at most.

    ``E + s (sqrt(d) + sqrt(2 ln(1/beta_K)))`` (theorem 5.2, part 2), once the base is within E.
    """
    positive(deviation=deviation)
    whole(least=1, coordinates=coordinates)
    probability(miss=miss)
    if not 0 <= error < math.inf:
        raise PlanError(f"error must be finite and at least 0, got {error!r}.")
    spread = math.sqrt(coordinates) + math.sqrt(2 * math.log(1 / miss))
    return (error + deviation * spread) * (1 + RELATIVE_SLACK)


def _require_miss(base_miss: float) -> None:
    if isinstance(base_miss, bool) or not 0 <= base_miss < 1:
        raise PlanError(f"base_miss must be at least 0 and below 1, got {base_miss!r}.")


def _shift(
    error: int, variance: Fraction, coordinates: int, *, rounds: int = 1
) -> list[PrivacyLoss]:
    if coordinates == 1:
        return [GaussianLoss(shift=2 * error, variance=variance, count=rounds)]
    norm = Fraction((2 * error) ** 2 * rounds)
    return [GaussianNorm(norm_squared=norm, variance=variance, moved=coordinates * rounds)]


def _advanced(length: int, alpha: float, slack: float) -> float:
    return alpha * math.sqrt(2 * length * math.log(1 / slack)) + length * alpha * math.expm1(alpha)


def _up(alpha: float, beta: float) -> Closeness:
    return Closeness(alpha * (1 + RELATIVE_SLACK), min(1.0, beta * (1 + RELATIVE_SLACK)))
