"""The only checks of public arguments, written so that NaN fails every one of them."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from retrodp.errors import PlanError


def positive(**named: float | Fraction) -> None:
    """Each value is finite and above 0."""
    for name, value in named.items():
        if not 0 < value < math.inf:
            raise PlanError(f"{name} must be finite and above 0, got {value!r}.")


def probability(**named: float | Fraction) -> None:
    """Each value lies strictly between 0 and 1."""
    for name, value in named.items():
        if not 0 < value < 1:
            raise PlanError(f"{name} must lie between 0 and 1 (both excluded), got {value!r}.")


def whole(*, least: int, **named: int) -> None:
    """Each value is an `int` (not a `bool`) of at least `least`."""
    for name, value in named.items():
        if type(value) is not int or not value >= least:
            raise PlanError(f"{name} must be a whole number of at least {least}, got {value!r}.")


def round_within(round_: int, horizon: int) -> None:
    """The round lies in 1..horizon."""
    if type(round_) is not int or not 1 <= round_ <= horizon:
        raise PlanError(f"round must be a whole number from 1 to {horizon}, got {round_!r}.")


def exact(name: str, value: float | str | Fraction | Decimal) -> Fraction:
    """The number that was meant, exactly.

    A float stands for its shortest decimal (0.1 is one tenth), a string may be a decimal or a
    ratio ("1/3"). NaN and infinities are refused.
    """
    if isinstance(value, bool):
        raise PlanError(f"{name} must be a number, got {value!r}.")
    try:
        if isinstance(value, float):
            return Fraction(Decimal(repr(value)))
        return Fraction(value)
    except (ValueError, OverflowError, InvalidOperation, ZeroDivisionError, TypeError):
        raise PlanError(f"{name} must be a finite number, got {value!r}.") from None
