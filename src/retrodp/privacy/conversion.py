"""From Renyi losses to (epsilon, delta): closed forms that hold for integer noise.

Promise: every function errs towards privacy, in the log domain, for any delta down to 1e-300 and
any epsilon that is finite. Every order gives a valid bound, so that a poor search can only make a
bound looser, never wrong. Knows losses, no noise and no lattice.

Source: Canonne, Kamath, Steinke 2020, proposition 12 and corollary 13: if the Renyi divergence of
order ``a > 1`` is at most ``r``, then
``delta <= exp((a - 1) (r - epsilon)) / (a - 1) * (1 - 1/a)^a``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from retrodp._check import exact, positive, probability
from retrodp.errors import PlanError
from retrodp.privacy.loss import PrivacyLoss, PureLoss, total_rho
from retrodp.privacy.ratio import RatioLoss, log_ratio_moment
from retrodp.privacy.round_up import (
    RELATIVE_SLACK,
    decimal_below,
    exp_above,
    float_above,
    log_below,
)

_LEAST_LOG_TILT = -40.0
_GREATEST_LOG_TILT = 60.0


def log_peak(tilt: float) -> float:
    """Logarithm of the maximum over y > 0 of ``exp(-tilt y) (1 - exp(-y))``.

    It is ``tilt^tilt / (tilt + 1)^(tilt + 1)``: the factor by which Markov's inequality for the
    moment ``E exp(tilt L)`` improves on a tail bound.
    """
    return -tilt * math.log1p(1 / tilt) - math.log1p(tilt)


def delta_of_rho(rho: Fraction, epsilon: float | Fraction) -> float:
    """Delta at `epsilon` of any mechanism that is `rho`-zCDP, rounded up."""
    positive(rho=rho)
    allowed = exact("epsilon", epsilon)
    if not allowed >= 0:
        raise PlanError(f"epsilon must be at least 0, got {epsilon!r}.")
    return min(1.0, exp_above(_log_delta(float_above(rho), float(allowed) * (1 - 1e-15))))


def epsilon_of_rho(rho: Fraction, delta: float | Fraction) -> float:
    """Epsilon at `delta` of any mechanism that is `rho`-zCDP, rounded up."""
    positive(rho=rho)
    probability(delta=delta)
    spent, log_delta = float_above(rho), log_below(delta)

    def epsilon_at(log_tilt: float) -> float:
        tilt = math.exp(log_tilt)
        return spent * (tilt + 1) + (log_peak(tilt) - log_delta) / tilt

    return max(0.0, _least(epsilon_at)) * (1 + RELATIVE_SLACK)


def rho_of(epsilon: float | Fraction, delta: float | Fraction) -> Fraction:
    """Largest rho, to six digits, that the closed form converts to (epsilon, delta)."""
    positive(epsilon=epsilon)
    probability(delta=delta)
    log_delta = log_below(delta)
    allowed = float(epsilon)

    def negative_rho(log_tilt: float) -> float:
        tilt = math.exp(log_tilt)
        return (-allowed - (log_delta - log_peak(tilt)) / tilt) / (tilt + 1)

    return decimal_below(-_least(negative_rho) * (1 - RELATIVE_SLACK), 6)


def epsilon_integer_orders(losses: Sequence[PrivacyLoss], delta: float | Fraction) -> float:
    """Epsilon at `delta` proved from Renyi orders 2, 3, 4, ... alone, rounded up.

    Guarantee: holds for adaptively chosen streams too, also when discrete Gaussian nodes reach
    into the future, because at integer orders the divergence of the discrete Gaussian is at most
    that of the continuous one whatever the shift. Pure losses enter through randomised response,
    which dominates every mechanism of that epsilon.
    """
    probability(delta=delta)
    log_delta = log_below(delta)
    pure = [float_above(loss.epsilon) for loss in losses if isinstance(loss, PureLoss)]
    ratio = [loss for loss in losses if isinstance(loss, RatioLoss)]
    gaussian = [loss for loss in losses if not isinstance(loss, PureLoss | RatioLoss)]
    rho = float_above(total_rho(gaussian))
    if rho == 0 and not pure and not ratio:
        return 0.0

    def epsilon_at(order: float) -> float:
        tilt = order - 1
        moment = rho * order * tilt + sum(log_response_moment(one, tilt) for one in pure)
        moment += sum(log_ratio_moment(loss, tilt) for loss in ratio)
        return (moment + log_peak(tilt) - log_delta) / tilt

    best = math.exp(_argument(lambda log_tilt: epsilon_at(1 + math.exp(log_tilt)))) + 1
    first = max(2, math.floor(best) - 1)
    orders = range(first, first + 4)
    return max(0.0, min(epsilon_at(order) for order in orders)) * (1 + RELATIVE_SLACK)


def log_response_moment(epsilon: float, tilt: float) -> float:
    """``log E exp(tilt L)`` of randomised response with loss `epsilon`."""
    other = math.exp(-(2 * tilt + 1) * epsilon)
    return tilt * epsilon - math.log1p(math.exp(-epsilon)) + math.log1p(other)


def _log_delta(rho: float, epsilon: float) -> float:
    def log_delta_at(log_tilt: float) -> float:
        tilt = math.exp(log_tilt)
        return tilt * (rho * (tilt + 1) - epsilon) + log_peak(tilt)

    return _least(log_delta_at)


def _least(bound: Callable[[float], float]) -> float:
    return bound(_argument(bound))


def _argument(bound: Callable[[float], float]) -> float:
    """Where a unimodal bound is least; a poor answer is a looser bound."""
    from scipy.optimize import minimize_scalar  # noqa: PLC0415  takes a while to load

    found = minimize_scalar(
        bound,
        bounds=(_LEAST_LOG_TILT, _GREATEST_LOG_TILT),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return float(found.x)
