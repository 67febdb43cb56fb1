"""Exact decimals: how a whole number of steps is written down."""

from __future__ import annotations

from fractions import Fraction


def decimal_text(steps: int, step: Fraction) -> str:
    """`steps * step` as an exact decimal without exponent.

    Args:
        steps: Whole number of steps.
        step: A positive fraction whose denominator divides a power of ten.
    """
    value = step * steps
    digits = 0
    while 10**digits % value.denominator:
        digits += 1
    whole = value.numerator * 10**digits // value.denominator
    if not digits:
        return str(whole)
    sign = "-" if whole < 0 else ""
    text = str(abs(whole)).rjust(digits + 1, "0")
    return f"{sign}{text[:-digits]}.{text[-digits:]}"
