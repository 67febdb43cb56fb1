"""A clipped vector of whole steps keeps to its norm, exactly (attack 19)."""

from __future__ import annotations

import math
from fractions import Fraction

import hypothesis.strategies as st
from hypothesis import given

from retrodp.statistics.clip import clipped_l1, clipped_l2

VECTORS = st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=8)
NORMS = st.fractions(min_value=Fraction(1, 3), max_value=10**12)


@given(VECTORS, NORMS)
def test_no_clipped_vector_exceeds_its_norm(vector: list[int], norm: Fraction) -> None:
    assert sum(value * value for value in clipped_l2(vector, norm)) <= norm * norm
    assert sum(map(abs, clipped_l1(vector, norm))) <= norm


@given(VECTORS, NORMS)
def test_a_clip_scales_and_rounds_toward_zero_by_less_than_a_step(
    vector: list[int], norm: Fraction
) -> None:
    for clipped, size in (
        (clipped_l2(vector, norm), math.sqrt(sum(value * value for value in vector))),
        (clipped_l1(vector, norm), float(sum(map(abs, vector)))),
    ):
        factor = min(1.0, float(norm) / size) if size else 1.0
        slack = 1e-3 + 1e-9 * float(norm)
        wrong = [
            (value, found)
            for value, found in zip(vector, clipped, strict=True)
            if value * found < 0 or not -1 - slack < abs(found) - abs(value) * factor < slack
        ]
        assert wrong == []


@given(VECTORS)
def test_a_vector_within_its_norm_is_left_as_it_is(vector: list[int]) -> None:
    squares = sum(value * value for value in vector)
    assert clipped_l2(vector, Fraction(math.isqrt(squares) + 1)) == tuple(vector)
    assert clipped_l1(vector, Fraction(sum(map(abs, vector)) or 1)) == tuple(vector)


def test_twin_rounding_to_the_nearest_step_after_a_clip_leaves_the_norm() -> None:
    """Eight equal coordinates, scaled to a norm of 10 and rounded: 11.3."""
    vector, norm = [100] * 8, 10.0
    factor = norm / math.sqrt(sum(value * value for value in vector))
    rounded = [round(value * factor) for value in vector]
    assert math.hypot(*rounded) > 1.1 * norm
    assert math.hypot(*clipped_l2(vector, Fraction(10))) <= norm
