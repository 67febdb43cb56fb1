"""Budgets are exact and refuse what promises nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from retrodp.errors import BudgetError, PlanError
from retrodp.privacy import ApproxDP, PureDP, require_fit, shares_of, zCDP
from retrodp.privacy.round_up import decimal_below, exp_above, float_above, float_below

NOT_A_BUDGET = [
    math.nan,
    math.inf,
    -math.inf,
    0,
    0.0,
    -0.0,
    -1,
    Fraction(-1, 3),
    "nan",
    "inf",
    "",
    "1/0",
    Decimal("NaN"),
    Decimal("Infinity"),
    True,
]


@pytest.mark.parametrize("value", NOT_A_BUDGET)
@pytest.mark.parametrize("budget", [PureDP, zCDP, lambda value: ApproxDP(value, 1e-9)])
def test_what_is_not_a_positive_number_is_refused_with_advice(
    budget: Callable[[Any], object], value: Any
) -> None:
    with pytest.raises(PlanError) as refusal:
        budget(value)
    assert refusal.value.expected
    assert refusal.value.do


@pytest.mark.parametrize("delta", [*NOT_A_BUDGET, 1, 1.0, 1.5, "1", "1e3"])
def test_a_delta_outside_0_to_1_is_refused_with_advice(delta: Any) -> None:
    with pytest.raises(PlanError) as refusal:
        ApproxDP(1, delta)
    assert refusal.value.do


@pytest.mark.parametrize(
    "value", [0.1, "0.1", "1/10", Decimal("0.1"), Fraction(1, 10), np.float64(0.1)]
)
def test_every_way_to_write_a_tenth_is_a_tenth(value: float | str | Decimal | Fraction) -> None:
    assert PureDP(value).epsilon == zCDP(value).rho == ApproxDP(1, value).delta == Fraction(1, 10)


def test_three_times_a_tenth_fits_three_tenths() -> None:
    spent = {name: PureDP(0.1).epsilon for name in "abc"}
    assert require_fit(PureDP(0.3).epsilon, spent, quantity="epsilon") == 0
    assert 0.1 + 0.1 + 0.1 > 0.3


def test_the_part_that_does_not_fit_is_named() -> None:
    spent = {"lines": Fraction(2, 10), "by_product": Fraction(2, 10)}
    with pytest.raises(BudgetError, match="by_product"):
        require_fit(Fraction(3, 10), spent, quantity="epsilon")


def test_one_delta_pays_for_conversion_thresholds_and_collisions_together() -> None:
    """Each sparse release spending its own delta is refused (attack 13)."""
    delta = ApproxDP(1, 1e-9).delta
    parts = {"conversion": delta * 6 / 10, "by_product": delta * 4 / 10}
    assert require_fit(delta, parts, quantity="delta") == 0
    naive = {**parts, "by_country": delta * 4 / 10}
    with pytest.raises(BudgetError, match="by_country"):
        require_fit(delta, naive, quantity="delta")


def test_shares_add_up_exactly() -> None:
    shares = shares_of(Fraction(1, 3), {"a": Fraction(1), "b": Fraction(3), "c": Fraction("0.7")})
    assert sum(shares.values()) == Fraction(1, 3)
    assert shares["b"] == 3 * shares["a"]


def test_shares_of_nothing_or_of_nothing_positive_are_refused() -> None:
    with pytest.raises(BudgetError):
        shares_of(Fraction(1), {})
    with pytest.raises(PlanError):
        shares_of(Fraction(1), {"a": Fraction(0)})


@pytest.mark.parametrize("exact", [Fraction(1, 3), Fraction(1, 10), Fraction(2, 3), Fraction(1)])
def test_floats_are_rounded_to_the_named_side(exact: Fraction) -> None:
    above, below = float_above(exact), float_below(exact)
    assert Fraction(below) <= exact <= Fraction(above)
    assert above <= math.nextafter(below, math.inf)


def test_rounding_down_to_decimals_never_rounds_up() -> None:
    assert decimal_below(0.123456789, 4) == Fraction(1234, 10000)
    assert decimal_below(math.nextafter(0.1234, 0), 4) == Fraction(1233, 10000)


def test_a_tiny_delta_is_never_reported_as_zero() -> None:
    assert exp_above(-1e9) > 0
    assert exp_above(-math.inf) == 0
