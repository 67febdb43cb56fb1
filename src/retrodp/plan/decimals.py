"""Exact decimals: how a whole number of steps is written down."""

from __future__ import annotations

import math
from collections.abc import Iterable
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


def common_step(steps: Iterable[Fraction]) -> Fraction:
    """The coarsest grid that holds all these numbers: the largest of which each is a multiple.

    Args:
        steps: Any exact numbers, not all of them 0.
    """
    found = Fraction(0)
    for step in steps:
        common = math.lcm(found.denominator, step.denominator)
        found = Fraction(math.gcd(int(found * common), int(step * common)), common)
    return found


def is_decimal(value: Fraction) -> bool:
    """Whether a power of ten makes the number whole."""
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1
