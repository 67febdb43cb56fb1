"""Budgets: what a plan promises, as exact numbers.

A float stands for its shortest decimal, so three times 0.1 fits 0.3; a string may be a decimal or
a ratio. Whatever cannot be a promise (NaN, infinities, 0, a delta of 1) is refused here, and only
here. Knows no mechanism, no data and no accountant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from retrodp._check import exact
from retrodp.errors import BudgetError, PlanError

ExactNumber = int | float | str | Decimal | Fraction


def positive_exact(name: str, value: ExactNumber) -> Fraction:
    """The number that was meant, refused unless finite and above 0."""
    number = _exact(name, value)
    if not number > 0:
        raise PlanError(
            f"{name} must be above 0, got {value!r}.",
            expected="a finite number above 0",
            do=f"Write {name} as a positive number or an exact string such as '1/3'.",
        )
    return number


def probability_exact(name: str, value: ExactNumber) -> Fraction:
    """The number that was meant, refused unless strictly between 0 and 1."""
    number = _exact(name, value)
    if not 0 < number < 1:
        raise PlanError(
            f"{name} must lie between 0 and 1, both excluded, got {value!r}.",
            expected="a probability such as 1e-9, well below one over the number of people",
            do="Use the pure model if no failure probability is allowed.",
        )
    return number


def _exact(name: str, value: ExactNumber) -> Fraction:
    # NumPy's floats are floats whose repr is not a number.
    plain = float(value) if isinstance(value, float) else value
    try:
        return exact(name, plain)
    except PlanError as refusal:
        raise PlanError(
            refusal.what,
            expected="a finite number, or an exact string such as '0.5' or '1/3'",
            do=f"Correct {name}; NaN and infinities promise nothing.",
        ) from None


@dataclass(frozen=True, slots=True, init=False)
class ApproxDP:
    """Approximate differential privacy of the whole sequence of releases.

    Attributes:
        epsilon: Above 0, exact.
        delta: Strictly between 0 and 1, exact.
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: ExactNumber, delta: ExactNumber) -> None:
        object.__setattr__(self, "epsilon", positive_exact("epsilon", epsilon))
        object.__setattr__(self, "delta", probability_exact("delta", delta))


@dataclass(frozen=True, slots=True, init=False)
class PureDP:
    """Pure differential privacy of the whole sequence of releases.

    Attributes:
        epsilon: Above 0, exact.
    """

    epsilon: Fraction

    def __init__(self, epsilon: ExactNumber) -> None:
        object.__setattr__(self, "epsilon", positive_exact("epsilon", epsilon))


@dataclass(frozen=True, slots=True, init=False)
class zCDP:  # noqa: N801 - the field's own name
    """Zero-concentrated differential privacy of the whole sequence of releases.

    Attributes:
        rho: Above 0, exact.
    """

    rho: Fraction

    def __init__(self, rho: ExactNumber) -> None:
        object.__setattr__(self, "rho", positive_exact("rho", rho))


Budget = ApproxDP | PureDP | zCDP


def shares_of(total: Fraction, weights: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Split a budget that adds up (rho or pure epsilon) by the weights of a plan, exactly."""
    named = {name: positive_exact(f"share of {name}", weight) for name, weight in weights.items()}
    if not named:
        raise BudgetError(
            "A budget was to be split among no releases.", do="Add a [release.NAME] table."
        )
    total = positive_exact("total", total)
    whole = sum(named.values(), Fraction(0))
    return {name: total * weight / whole for name, weight in named.items()}


def require_fit(total: Fraction, parts: Mapping[str, Fraction], *, quantity: str) -> Fraction:
    """What is left of `total` after all `parts`; names the first part that does not fit.

    Args:
        total: The budget.
        parts: What each named release or reserve spends, in the order of the plan.
        quantity: "epsilon", "delta" or "rho", for the message.

    Raises:
        BudgetError: The parts exceed the total; exact, so that equality fits.
    """
    left = positive_exact(quantity, total)
    for name, spent in parts.items():
        part = _exact(f"{quantity} of {name}", spent)
        if not part >= 0:
            raise PlanError(f"{quantity} of {name} must be at least 0, got {spent!r}.")
        if not part <= left:
            raise BudgetError(
                f"The {quantity} of {name} does not fit: it needs {float(part):.6g} and "
                f"{float(left):.6g} of {float(total):.6g} is left.",
                do=f"Raise {quantity} or lower what {name} spends.",
            )
        left -= part
    return left
