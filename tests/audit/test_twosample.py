"""Alpha and power of the two-sample test, both arms."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from retrodp.audit.twosample import deviation, two_sample
from retrodp.noise.laplace import DiscreteLaplace
from retrodp.noise.prf import BlockPRF, Coordinates
from tests.audit.sizes import SEED

ALPHA = 1e-6
COUNT = 4_000


def draws(
    name: str, *, shift: int = 0, scale: int = 10
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    key = SEED.keys(1).lasting_key(release="two-sample", purpose=name)
    return (
        DiscreteLaplace(scale=Fraction(scale)).draw(BlockPRF(key), Coordinates.of_indices(COUNT))
        + shift
    )


def test_the_deviation_is_that_of_massart() -> None:
    assert 2 * np.exp(-2 * 1000 * deviation(1000, 0.01) ** 2) == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("shift", "scale", "rejected"), [(0, 10, False), (10, 10, True), (-10, 10, True), (0, 30, True)]
)
def test_equal_laws_pass_and_shifted_or_wider_ones_do_not(
    shift: int,
    scale: int,
    rejected: bool,  # noqa: FBT001
) -> None:
    outcome = two_sample(draws("a"), draws("b", shift=shift, scale=scale), alpha=ALPHA)
    assert outcome.rejected == rejected


def test_a_distance_that_the_contract_allows_is_allowed() -> None:
    one, two = draws("a"), draws("b", shift=10)
    strict = two_sample(one, two, alpha=ALPHA)
    assert two_sample(one, two, alpha=ALPHA, claimed=strict.distance).rejected is False


def test_laws_at_the_stated_distance_are_found() -> None:
    """Atoms at 0 and 1: the Kolmogorov distance is the difference of their weights."""
    outcome = two_sample(np.zeros(COUNT), np.zeros(COUNT), alpha=ALPHA, beta=1e-3)
    missed = 0
    for number in range(20):
        coins = SEED.coins("power", number)
        one = (coins.uniforms(COUNT) < 0.5).astype(np.int64)
        two = (coins.uniforms(COUNT) < 0.5 + outcome.detected).astype(np.int64)
        missed += not two_sample(one, two, alpha=ALPHA).rejected
    assert missed == 0


def test_samples_of_different_sizes_are_compared() -> None:
    outcome = two_sample(draws("a"), draws("b")[:100], alpha=ALPHA)
    assert not outcome.rejected
    assert outcome.allowed > deviation(100, ALPHA / 2)
