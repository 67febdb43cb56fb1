"""Vectors clipped to a public norm, in whole steps: what is encoded keeps to what is charged.

Rounding to the grid after a clip can lead out of the norm again (10 per cent at eight coordinates),
so both are one step here: a vector that is too long is scaled and every coordinate rounded toward
zero, exactly. Its norm never grows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction


def clipped_l2(vector: Sequence[int], norm: Fraction) -> tuple[int, ...]:
    """The vector, or the longest multiple of it within the Euclidean norm, rounded toward zero.

    Args:
        vector: Whole steps.
        norm: In steps, above 0.
    """
    squares = sum(value * value for value in vector)
    bound = norm * norm
    if squares <= bound:
        return tuple(vector)
    # floor(|v| norm / root of squares) = floor(root of floor(v^2 norm^2 / squares))
    over, under = bound.numerator, bound.denominator * squares
    return tuple(_signed(math.isqrt(value * value * over // under), value) for value in vector)


def clipped_l1(vector: Sequence[int], norm: Fraction) -> tuple[int, ...]:
    """The same for the sum of absolute coordinates."""
    total = sum(map(abs, vector))
    if total <= norm:
        return tuple(vector)
    over, under = norm.numerator, norm.denominator * total
    return tuple(_signed(abs(value) * over // under, value) for value in vector)


def _signed(size: int, like: int) -> int:
    return -size if like < 0 else size
