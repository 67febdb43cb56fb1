"""Closed forms agree with Renyi divergences computed by other means."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from retrodp.errors import PlanError
from retrodp.privacy import (
    GaussianLoss,
    PureLoss,
    delta_of_rho,
    epsilon_integer_orders,
    epsilon_of_rho,
    rho_of,
    total_rho,
)
from retrodp.privacy.conversion import log_peak, log_response_moment

EPSILONS = [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]
DELTAS = [1e-5, 1e-9, 1e-15, 1e-22, 1e-30]


def one(rho: Fraction) -> list[GaussianLoss]:
    return [GaussianLoss(shift=1, variance=1 / (2 * rho))]


def integer_epsilon(rho: float, delta: float) -> float:
    """Corollary 13 of Canonne, Kamath, Steinke, order by order."""
    order = np.arange(2, 300_000, dtype=np.float64)
    bounds = rho * order + np.log1p(-1 / order) - (math.log(delta) + np.log(order)) / (order - 1)
    return float(bounds.min())


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_integer_orders_agree_with_a_search_order_by_order(epsilon: float, delta: float) -> None:
    rho = rho_of(epsilon, delta)
    reported = epsilon_integer_orders(one(rho), delta)
    assert integer_epsilon(float(rho), delta) <= reported
    assert reported <= integer_epsilon(float(rho), delta) * (1 + 1e-6)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_closed_form_undoes_itself_and_errs_upwards(epsilon: float, delta: float) -> None:
    rho = rho_of(epsilon, delta)
    assert delta * (1 - 2e-3) <= delta_of_rho(rho, epsilon) <= delta
    assert epsilon * (1 - 1e-5) <= epsilon_of_rho(rho, delta) <= epsilon


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 1000.0])
def test_the_closed_form_agrees_with_a_search_in_40_digits(epsilon: float, delta: float) -> None:
    rho = rho_of(epsilon, delta)
    with mp.workdps(40):

        def log_delta(order: mp.mpf) -> mp.mpf:
            exponent = (order - 1) * (order * mp.mpf(float(rho)) - epsilon)
            return exponent - mp.log(order - 1) + order * mp.log(1 - 1 / order)

        tilts = mp.mpf(10) ** mp.mpf("0.001")
        centre = max((epsilon - float(rho)) / (2 * float(rho)), 1e-3)
        least = min(log_delta(1 + centre * tilts**power) for power in range(-1500, 1500, 2))
        assert math.log(delta_of_rho(rho, epsilon)) == pytest.approx(float(least), abs=2e-3)


def test_real_orders_are_never_worse_than_whole_ones() -> None:
    rho = Fraction(1, 50)
    assert epsilon_of_rho(rho, 1e-9) <= epsilon_integer_orders(one(rho), 1e-9)


@pytest.mark.parametrize("variance", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("order", [2, 3, 7])
def test_at_whole_orders_the_discrete_gaussian_diverges_like_the_continuous_one(
    variance: float, order: int
) -> None:
    x = np.arange(-200, 201, dtype=np.float64)
    law = np.exp(-(x**2) / (2 * variance))
    tilted = np.exp(((order - 1) * (1 + 2 * x) - x**2) / (2 * variance))
    moment = tilted.sum() / law.sum()
    rho = total_rho([GaussianLoss(shift=1, variance=Fraction(variance))])
    assert math.log(moment) == pytest.approx(float(rho) * order * (order - 1), rel=1e-12)


def test_moments_of_randomised_response_are_its_two_terms() -> None:
    keep = 1 / (1 + math.exp(-0.7))
    expected = math.log(keep * math.exp(2.5 * 0.7) + (1 - keep) * math.exp(-2.5 * 0.7))
    assert log_response_moment(0.7, 2.5) == pytest.approx(expected, rel=1e-13)


def test_pure_losses_have_integer_order_losses_below_their_sum() -> None:
    losses = [PureLoss(epsilon=Fraction(1, 10))] * 100
    assert epsilon_integer_orders(losses, 1e-9) < 10


@pytest.mark.parametrize("tilt", [1e-6, 0.3, 1.0, 50.0, 1e6])
def test_the_peak_is_the_maximum_of_the_weight(tilt: float) -> None:
    at = math.log1p(1 / tilt)
    weights = [-tilt * y + math.log(-math.expm1(-y)) for y in (at / 1.01, at, at * 1.01)]
    assert log_peak(tilt) == pytest.approx(weights[1], abs=1e-9)
    assert max(weights) == weights[1]


@pytest.mark.parametrize("bad", [math.nan, 0.0, 1.0, 1.5, -1e-9, math.inf])
def test_a_delta_that_is_no_probability_never_reads_as_a_small_epsilon(bad: float) -> None:
    for refuse in (epsilon_of_rho, lambda rho, delta: epsilon_integer_orders(one(rho), delta)):
        with pytest.raises(PlanError):
            refuse(Fraction(1, 2), bad)
