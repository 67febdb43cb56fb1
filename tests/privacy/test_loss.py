"""Losses are exact descriptions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from retrodp.errors import PlanError
from retrodp.privacy import (
    GaussianLoss,
    GaussianNorm,
    PrivacyLoss,
    PureLoss,
    pure_epsilon,
    total_rho,
)
from tests.privacy.reference import discrete_delta


def test_rho_adds_exactly() -> None:
    losses: list[PrivacyLoss] = [
        GaussianLoss(shift=-2, variance=Fraction(20, 3), count=1),
        GaussianLoss(shift=1, variance=Fraction(20, 3), count=16),
        GaussianNorm(norm_squared=Fraction(20), variance=Fraction(7)),
        PureLoss(epsilon=Fraction(1, 10)),
    ]
    assert total_rho(losses) == Fraction(3, 2) + Fraction(10, 7) + Fraction(1, 200)


def test_pure_losses_add_exactly_and_a_gaussian_has_no_largest_loss() -> None:
    tenths = [PureLoss(epsilon=Fraction(1, 10))] * 3
    assert pure_epsilon(tenths) == Fraction(3, 10)
    assert pure_epsilon([*tenths, GaussianLoss(shift=1, variance=Fraction(1))]) is None
    assert pure_epsilon([*tenths, GaussianLoss(shift=0, variance=Fraction(1))]) == Fraction(3, 10)


@pytest.mark.parametrize("variance", [0, -1, 1.0, float("nan"), float("inf"), Fraction(0), True])
def test_a_variance_that_is_not_an_exact_positive_number_is_refused(variance: Any) -> None:
    with pytest.raises(PlanError):
        GaussianLoss(shift=1, variance=variance)
    with pytest.raises(PlanError):
        GaussianNorm(norm_squared=Fraction(1), variance=variance)
    with pytest.raises(PlanError):
        PureLoss(epsilon=variance)


@pytest.mark.parametrize(("shift", "count"), [(1.0, 1), (True, 1), (1, -1), (1, 1.0)])
def test_shifts_and_counts_are_whole(shift: Any, count: Any) -> None:
    with pytest.raises(PlanError):
        GaussianLoss(shift=shift, variance=Fraction(1), count=count)


@pytest.mark.parametrize("variance", [0.3, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_a_larger_shift_dominates(variance: float, epsilon: float) -> None:
    deltas = [discrete_delta(variance, shift, epsilon) for shift in (0, 1, 2, 3, 5)]
    assert deltas == sorted(deltas)
