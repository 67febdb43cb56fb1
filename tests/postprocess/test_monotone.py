"""The fit never falls and is the nearest that does not."""

from __future__ import annotations

from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import isotonic_regression

from retrodp.postprocess.monotone import never_falling

VALUES = st.lists(st.integers(-1000, 1000), max_size=30)


@given(VALUES)
def test_the_fit_never_falls_and_keeps_the_length(values: list[int]) -> None:
    fitted = never_falling(values)
    assert len(fitted) == len(values)
    assert all(before <= after for before, after in pairwise(fitted))


@given(VALUES.filter(bool))
def test_it_is_the_least_squares_fit_rounded(values: list[int]) -> None:
    exact = isotonic_regression(np.array(values, dtype=float)).x
    assert np.abs(np.array(never_falling(values)) - exact).max() <= 0.5 + 1e-9


@given(VALUES)
def test_what_never_falls_stays_as_it_is(values: list[int]) -> None:
    assert never_falling(sorted(values)) == sorted(values)


@given(VALUES.filter(bool), st.lists(st.integers(0, 50), min_size=30, max_size=30))
def test_the_fit_is_no_farther_from_a_truth_that_never_falls(
    noise: list[int], steps: list[int]
) -> None:
    truth = np.cumsum(steps[: len(noise)])
    noisy = truth + np.array(noise)
    off = np.linalg.norm(np.array(never_falling(noisy.tolist())) - truth)
    assert off <= np.linalg.norm(noisy - truth) + len(noise) ** 0.5 / 2  # halves of rounding


@pytest.mark.parametrize(
    ("values", "fitted"),
    [([], []), ([3], [3]), ([2, 1], [2, 2]), ([5, 1, 1], [2, 2, 2]), ([0, 3, 2, 9], [0, 3, 3, 9])],
)
def test_halves_are_rounded_up(values: list[int], fitted: list[int]) -> None:
    assert never_falling(values) == fitted


def test_numbers_beyond_64_bits_do_not_wrap() -> None:
    assert never_falling([2**80, 0]) == [2**79, 2**79]
