"""The only checks of public arguments, written so that NaN fails every one of them.

They quote settings alone: no id, no person and no value of a record is to be checked here.
"""

from __future__ import annotations

import math
import numbers
import operator
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from retrodp.errors import HorizonExceededError, PlanError, UsageError


def _is_number(value: object) -> bool:
    """Whether it can be compared: no truth value, no text, no `Decimal` that is no number."""
    if isinstance(value, Decimal):
        return value.is_finite()
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def positive(**named: float | Fraction) -> None:
    """Each value is finite and above 0."""
    for name, value in named.items():
        if not _is_number(value) or not 0 < value < math.inf:
            raise PlanError(f"{name} must be finite and above 0, got {value!r}.")


def probability(**named: float | Fraction) -> None:
    """Each value lies strictly between 0 and 1."""
    for name, value in named.items():
        if not _is_number(value) or not 0 < value < 1:
            raise PlanError(f"{name} must lie between 0 and 1 (both excluded), got {value!r}.")


def whole(*, least: int, **named: int) -> None:
    """Each value is an `int` (not a `bool`) of at least `least`."""
    for name, value in named.items():
        if type(value) is not int or not value >= least:
            raise PlanError(f"{name} must be a whole number of at least {least}, got {value!r}.")


def instance(of: Any, *, expected: str, **named: object) -> None:
    """Each value is an instance of a class, of one of several, or of a runtime protocol."""
    for name, value in named.items():
        if not isinstance(value, of):
            raise UsageError(f"{name} cannot be of type {type(value).__name__}.", expected=expected)


def integer(*, expected: str, **named: Any) -> int:
    """The one value, as an `int`; whatever has an index, a number of NumPy for one, is whole."""
    ((name, value),) = named.items()
    try:
        return operator.index(value)
    except TypeError:
        raise UsageError(
            f"{name} cannot be of type {type(value).__name__}.", expected=expected
        ) from None


def round_within(round_: int, horizon: int) -> None:
    """The round lies in 1..horizon; one after it is refused by its own error, and never wraps."""
    if type(round_) is int and round_ > horizon:
        raise HorizonExceededError(
            f"Round {round_} lies after the horizon of {horizon} rounds.",
            do="Plan a longer horizon, with a budget of its own.",
        )
    if type(round_) is not int or not 1 <= round_ <= horizon:
        raise PlanError(f"round must be a whole number from 1 to {horizon}, got {round_!r}.")


LARGEST_EXPONENT = 400  # of ten; longer numbers are no budgets and would take for ever


def exact(name: str, value: float | str | Fraction | Decimal) -> Fraction:
    """The number that was meant, exactly.

    A float stands for its shortest decimal (0.1 is one tenth), a string may be a decimal or a
    ratio ("1/3"). NaN, infinities and numbers beyond 10^400 are refused.
    """
    try:
        if isinstance(value, bool):
            raise TypeError  # noqa: TRY301
        if isinstance(value, float):
            return Fraction(Decimal(float.__repr__(value)))
        if isinstance(value, str) and "/" not in value:
            value = Decimal(value)
        if isinstance(value, Decimal) and abs(value.adjusted()) > LARGEST_EXPONENT:
            raise OverflowError  # noqa: TRY301
        return Fraction(value)
    except (ValueError, OverflowError, InvalidOperation, ZeroDivisionError, TypeError):
        raise PlanError(f"{name} must be a finite number, got {value!r}.") from None


def texts(*, expected: str, **named: Any) -> tuple[str, ...]:
    """The one value, any collection of texts, as a tuple.

    Args:
        expected: What each of the texts is, such as "names of columns".
        named: The collection, by the name of the argument.

    Raises:
        UsageError: It is a text itself, or holds something else.
    """
    ((name, value),) = named.items()
    if isinstance(value, str | bytes):
        raise UsageError(
            f"{name} is the one text {value!r}, not a collection of texts.",
            expected=f"{expected}, in a list or tuple",
            do=f"Write {name}=[{value!r}].",
        )
    try:
        found = tuple(value)
    except TypeError:
        raise UsageError(
            f"{name} cannot be of type {type(value).__name__}.",
            expected=f"{expected}, in a list or tuple",
        ) from None
    for one in found:
        if not isinstance(one, str):
            raise UsageError(
                f"{name} holds a {type(one).__name__}, {one!r}.", expected=f"{expected}, as texts"
            )
    return found
