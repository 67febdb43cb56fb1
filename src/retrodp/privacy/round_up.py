"""Exact numbers become floats here, always on the side that promises less.

Nothing else in the package may turn an exact loss, budget or variance into a float that is
reported. Knows no mechanism and no budget.
"""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction

RELATIVE_SLACK = 1e-9
"""Added to the logarithm of every computed loss: more than all elementary rounding errors."""

LEAST_POSITIVE = 5e-324


def float_above(exact: Fraction) -> float:
    """Least float not below `exact`: a loss is never reported smaller than it is."""
    near = float(exact)
    return near if Fraction(near) >= exact else math.nextafter(near, math.inf)


def float_below(exact: Fraction) -> float:
    """Greatest float not above `exact`: what is left is never reported larger than it is."""
    near = float(exact)
    return near if Fraction(near) <= exact else math.nextafter(near, -math.inf)


def exp_above(log_value: float) -> float:
    """A float above ``exp(log_value)``, never 0 unless `log_value` is minus infinity."""
    if log_value == -math.inf:
        return 0.0
    if log_value > 709:
        return math.inf
    return max(math.exp(log_value + RELATIVE_SLACK), LEAST_POSITIVE)


def log_below(probability: float | Fraction) -> float:
    """A float below the logarithm of an exact probability, however small."""
    if isinstance(probability, Fraction):
        log = math.log(probability.numerator) - math.log(probability.denominator)
    else:
        log = math.log(probability)
    return log - 1e-12 * max(1.0, abs(log))


def decimal_below(value: float, digits: int) -> Fraction:
    """Greatest decimal of that many significant digits not above `value`, as a fraction."""
    context = Context(prec=digits, rounding=ROUND_FLOOR)
    return Fraction(context.create_decimal(Decimal(value)))
