"""Searches return the most useful parameters whose promise was checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import pytest

from retrodp.errors import BudgetError, PlanError
from retrodp.privacy import (
    DeltaSplit,
    GaussianLoss,
    PrivacyLoss,
    PureLoss,
    delta_of,
    largest_rho,
    least_threshold,
    rho_of,
    split_delta,
)


def typical_plan(rho: Fraction) -> Sequence[PrivacyLoss]:
    """Eight releases of 19 coordinates whose weights differ."""
    variances = [20 * Fraction(36, weight) / (2 * rho) for weight in range(1, 9)]
    twice = [GaussianLoss(shift=2, variance=variance) for variance in variances]
    once = [GaussianLoss(shift=1, variance=variance, count=16) for variance in variances]
    return [*twice, *once]


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1.0, 1e-9), (0.1, 1e-30), (10.0, 1e-5), (1000.0, 1e-5)]
)
def test_the_largest_rho_fits_and_one_slightly_larger_does_not(
    epsilon: float, delta: float
) -> None:
    rho = largest_rho(typical_plan, epsilon, delta)
    assert delta_of(typical_plan(rho), epsilon) <= delta
    assert delta_of(typical_plan(rho * Fraction(10005, 10000)), epsilon) > delta


def test_the_largest_rho_beats_the_closed_form() -> None:
    assert largest_rho(typical_plan, 1.0, 1e-9) > rho_of(1.0, 1e-9) * Fraction(11, 10)


def test_the_largest_rho_is_a_short_decimal_found_again_exactly() -> None:
    rho = largest_rho(typical_plan, 1.0, 1e-9)
    assert rho == largest_rho(typical_plan, 1.0, 1e-9)
    assert rho == Fraction(f"{float(rho):.6g}")


def test_losses_that_no_noise_can_pay_for_are_refused() -> None:
    def hopeless(rho: Fraction) -> Sequence[PrivacyLoss]:
        return [*typical_plan(rho), PureLoss(epsilon=Fraction(2))]

    with pytest.raises(BudgetError):
        largest_rho(hopeless, 1.0, 1e-9)


def test_losses_that_do_not_depend_on_rho_are_refused() -> None:
    with pytest.raises(PlanError):
        largest_rho(lambda _: typical_plan(Fraction(1, 10**4)), 1.0, 1e-9)


@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-30])
def test_the_threshold_is_the_least_that_fits(delta: float) -> None:
    def tail(x: int) -> float:
        return 365 * math.exp(-x / 7)

    x = least_threshold(tail, delta)
    assert tail(x) <= delta < tail(x - 1)


def test_a_tail_that_fits_everywhere_needs_no_threshold() -> None:
    assert least_threshold(lambda _: 0.0, 1e-9) == 0


@pytest.mark.parametrize("stuck", [1.0, math.nan, math.inf])
def test_a_tail_that_never_fits_is_refused(stuck: float) -> None:
    with pytest.raises(PlanError):
        least_threshold(lambda _: stuck, 1e-9)


def test_the_split_adds_up_exactly_and_takes_the_least_cost() -> None:
    total, reserved = Fraction(1, 10**9), Fraction(1, 2**40)
    asked: list[DeltaSplit] = []

    def cost(split: DeltaSplit) -> float:
        asked.append(split)
        return abs(float(split.noise / (total - reserved)) - 0.51)

    best = split_delta(total, reserved=reserved, cost=cost)
    assert best.noise + best.thresholds + best.reserved == total
    assert best.noise == (total - reserved) / 2
    assert len(asked) <= 6


def test_a_delta_below_collisions_and_rounding_is_refused() -> None:
    with pytest.raises(BudgetError, match="collisions"):
        split_delta(Fraction(1, 10**13), reserved=Fraction(1, 2**40), cost=lambda _: 0.0)
