"""Search for the most useful parameters that keep a promise; errors fall on the private side.

Promise: what is returned was itself checked against the promise, by the same functions that report
losses. Knows losses and tails as callables, no mechanism, no factor and no data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from retrodp._check import positive, probability
from retrodp.errors import BudgetError, PlanError
from retrodp.privacy.accountant import delta_of, least_that_holds
from retrodp.privacy.conversion import rho_of
from retrodp.privacy.loss import PrivacyLoss
from retrodp.privacy.round_up import decimal_below, log_below

RHO_TOLERANCE = 3e-4
RHO_DIGITS = 6
NOISE_SHARES = tuple(Fraction(share, 100) for share in (30, 40, 50, 60, 70, 80, 85, 90, 95, 98))
FIRST_NOISE_SHARE = Fraction(7, 10)


def largest_rho(
    losses_at: Callable[[Fraction], Sequence[PrivacyLoss]],
    epsilon: float | Fraction,
    delta: float | Fraction,
) -> Fraction:
    """The largest rho whose losses stay within (epsilon, delta), less at most 0.05 per cent.

    Args:
        losses_at: All losses of a plan as a function of its rho; more rho, more loss.
        epsilon: Above 0.
        delta: Between 0 and 1: the share of the conversion, without thresholds and collisions.

    Returns:
        A decimal of six digits; ``delta_of(losses_at(rho), epsilon) <= delta`` was computed.

    Raises:
        BudgetError: No rho within a factor of 2^60 of the closed form's fits.

    Time: eight to fifteen times `delta_of`.
    """
    positive(epsilon=epsilon)
    probability(delta=delta)
    log_allowed = log_below(delta)

    def excess(rho: Fraction) -> float:
        spent = delta_of(losses_at(rho), epsilon)
        return (math.log(spent) if spent > 0 else -math.inf) - log_allowed

    def excess_at_inverse(inverse: float) -> float:
        return excess(decimal_below(1 / inverse, RHO_DIGITS))

    holds = 1 / float(rho_of(epsilon, delta))
    for _ in range(60):
        if excess_at_inverse(holds) <= 0:
            break
        holds *= 2
    else:
        raise BudgetError(
            f"No noise keeps the losses within epsilon {float(epsilon):.6g} and delta "
            f"{float(delta):.6g}.",
            do="Raise epsilon or delta, or drop releases of pure loss.",
        )
    fails = holds / 1.5
    for _ in range(60):
        if excess_at_inverse(fails) > 0:
            break
        holds, fails = fails, fails / 2
    else:
        raise PlanError("The losses do not grow with rho, so there is no largest rho.")
    inverse = least_that_holds(excess_at_inverse, fails, holds, tolerance=RHO_TOLERANCE)
    return decimal_below(1 / inverse, RHO_DIGITS)


def least_threshold(summed_tail: Callable[[int], float], delta: float | Fraction) -> int:
    """The least whole x >= 0 with ``summed_tail(x) <= delta``.

    Args:
        summed_tail: Falling; an upper bound of the sum over rounds of P[noise >= x].
        delta: Between 0 and 1.

    Raises:
        PlanError: The tail stays above delta up to 2^62, or is not a number.
    """
    probability(delta=delta)

    def fits(x: int) -> bool:
        return summed_tail(x) <= delta  # NaN does not fit

    if fits(0):
        return 0
    fails, holds = 0, 1
    while not fits(holds):
        fails, holds = holds, 2 * holds
        if holds > 2**62:
            raise PlanError(
                "No threshold below 2^62 keeps the tail of the noise within its delta.",
                do="Raise delta or epsilon.",
            )
    while holds - fails > 1:
        middle = (holds + fails) // 2
        if fits(middle):
            holds = middle
        else:
            fails = middle
    return holds


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaSplit:
    """Where one plan's delta goes; the three add up to the plan's delta exactly.

    Attributes:
        noise: For the conversion of the noise's loss.
        thresholds: For all thresholds of all sparse releases together.
        reserved: For label collisions and rounding.
    """

    noise: Fraction
    thresholds: Fraction
    reserved: Fraction


def split_delta(
    total: Fraction,
    *,
    reserved: Fraction,
    cost: Callable[[DeltaSplit], float],
    noise_shares: Sequence[Fraction] = NOISE_SHARES,
) -> DeltaSplit:
    """Split a plan's delta between noise and thresholds so that `cost` is least.

    Args:
        total: The plan's delta.
        reserved: Taken off first.
        cost: What to minimise, usually a threshold or a weighted sum of thresholds; it should
            have one minimum over the shares.
        noise_shares: Candidates for the share of the noise, ascending, between 0 and 1.

    Raises:
        BudgetError: Nothing is left after the reserve.

    Time: four to six evaluations of `cost`.
    """
    probability(delta=total)
    left = total - reserved
    if not (reserved >= 0 and left > 0):
        raise BudgetError(
            f"delta {float(total):.3g} does not cover label collisions and rounding "
            f"({float(reserved):.3g}).",
            do="Raise delta, or lower max_bins, the planned number of labels.",
        )
    if not noise_shares:
        raise PlanError("split_delta needs at least one candidate share.")
    probability(**{f"noise share {share}": share for share in noise_shares})
    splits = [
        DeltaSplit(noise=left * share, thresholds=left * (1 - share), reserved=reserved)
        for share in noise_shares
    ]
    costs: dict[int, float] = {}

    def cost_at(index: int) -> float:
        if not 0 <= index < len(splits):
            return math.inf
        if index not in costs:
            costs[index] = cost(splits[index])
        return costs[index]

    here = min(range(len(splits)), key=lambda i: abs(noise_shares[i] - FIRST_NOISE_SHARE))
    while True:
        best = min((here, here + 1, here - 1), key=cost_at)
        if best == here:
            return splits[here]
        here = best
