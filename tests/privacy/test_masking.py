"""Parameters of the Gaussian compiler: the paper's numbers, and the tight ones beside them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from retrodp.errors import PlanError
from retrodp.privacy.masking import (
    Closeness,
    block_closeness,
    least_variance,
    marginal_closeness,
    masked_error,
    paper_deviation,
    tight_block_closeness,
)
from tests.privacy.pairs import Pair, delta, power

ONE = Closeness(0.5, 1e-6)


def test_the_paper_s_deviation_is_its_formula() -> None:
    expected = 2 * 7 / 0.5 * math.sqrt(2 * math.log(1.25 / 1e-6))
    assert paper_deviation(7, alpha=0.5, beta=1e-6) == pytest.approx(expected, rel=1e-8)
    with pytest.raises(PlanError, match="alpha of at most 1"):
        paper_deviation(7, alpha=1.5, beta=1e-6)


@pytest.mark.parametrize("length", [1, 4, 30])
def test_a_block_is_as_close_as_theorem_5_2_says(length: int) -> None:
    slack, miss = 1e-7, 1e-9
    advanced = 0.5 * math.sqrt(2 * length * math.log(1e7)) + length * 0.5 * math.expm1(0.5)
    alpha = min(length * 0.5, advanced)
    found = block_closeness(length, ONE, base_miss=miss, slack=slack)
    beta = length * 1e-6 + slack + (2 + math.exp(alpha)) * miss
    assert found == pytest.approx((alpha, beta), rel=1e-6)


def test_one_answer_is_as_close_as_corollary_5_3_says() -> None:
    found = marginal_closeness(ONE, base_miss=1e-8)
    assert found == pytest.approx((0.5, 1e-6 + (2 + math.exp(0.5)) * 1e-8), rel=1e-6)


@pytest.mark.parametrize("coordinates", [1, 3])
@pytest.mark.parametrize("error", [1, 10, 1000])
def test_tight_noise_is_less_than_the_paper_s(error: int, coordinates: int) -> None:
    variance = least_variance(
        error, alpha=Fraction(1, 2), beta=Fraction(1, 10**6), coordinates=coordinates
    )
    assert math.sqrt(variance) < 0.8 * paper_deviation(error, alpha=0.5, beta=1e-6)


def discrete(shift: int, variance: Fraction) -> Pair:
    points = np.arange(-300, 301)
    laws = [np.exp(-((points - at) ** 2) / (2 * float(variance))) for at in (0, shift)]
    return Pair([*(laws[0] / laws[0].sum())], [*(laws[1] / laws[1].sum())])


def test_a_tight_block_is_the_exact_composition_of_its_noise() -> None:
    """Two rounds, by brute force over the noise, which the paper's bound is far above."""
    variance = least_variance(2, alpha=Fraction(1, 2), beta=Fraction(1, 100))
    found = tight_block_closeness(2, 2, variance=variance, beta=0.02, base_miss=0.0)
    one = discrete(4, variance)
    keep = [i for i in range(601) if one.one[i] + one.other[i] > 1e-12]
    small = Pair([one.one[i] for i in keep], [one.other[i] for i in keep])
    assert delta(power(small, 2), found.alpha) <= 0.02
    assert delta(power(small, 2), found.alpha * 0.99) > 0.02
    assert found.alpha < block_closeness(2, Closeness(0.5, 0.01), base_miss=0, slack=1e-9).alpha


def test_an_inaccurate_base_is_charged_in_every_promise() -> None:
    base = tight_block_closeness(3, 2, variance=Fraction(500), beta=1e-3, base_miss=1e-2)
    assert base.beta == pytest.approx(1e-3 + (1 + math.exp(base.alpha)) * 1e-2, rel=1e-6)


def test_the_error_adds_base_and_mask() -> None:
    expected = 10 + 3 * (math.sqrt(4) + math.sqrt(2 * math.log(1 / 0.05)))
    found = masked_error(10, deviation=3, coordinates=4, miss=0.05)
    assert found == pytest.approx(expected, rel=1e-6)
