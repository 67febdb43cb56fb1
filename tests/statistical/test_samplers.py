"""The laws of the samplers, by chi-square against exact probabilities.

ALPHA is the chance that one true arm is rejected under fresh keys; the keys here are fixed, so that
a run can be repeated. A scale off by a factor of 1.2 either way is missed with probability below
1e-6 at these numbers of draws (20,000 Gaussian, 50,000 Laplace; the power that the noncentral
chi-square gives for the bins used is asserted below), hence the twin arms must be rejected.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from retrodp.noise.gaussian import DiscreteGaussian
from retrodp.noise.laplace import DiscreteLaplace
from retrodp.noise.prf import BlockPRF, Coordinates

ALPHA = 1e-9
MISS = 1e-6
BINS = 40  # at most; every bin expects at least 5 draws
KEY = bytes.fromhex("5eed" * 16)

LAPLACE_DRAWS, GAUSSIAN_DRAWS = 50_000, 20_000
LAPLACE = [Fraction(3, 10), Fraction(1), Fraction(13, 2), Fraction(40), Fraction(10**4)]
GAUSSIAN = [Fraction(1, 4), Fraction(1), Fraction(20), Fraction(10**4), Fraction(10**9)]
ARMS = [(Fraction(1), "accept"), (Fraction(5, 6), "reject"), (Fraction(6, 5), "reject")]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def laplace_weights(scale: float) -> tuple[Integers, Floats]:
    """All k of any weight, and their probabilities."""
    most = int(40 * scale) + 60
    values = np.arange(-most, most + 1)
    weights = np.exp(-np.abs(values) / scale)
    return values, weights / weights.sum()


def gaussian_weights(variance: float) -> tuple[Integers, Floats]:
    """All k of any weight, and their probabilities."""
    most = int(9 * variance**0.5) + 20
    values = np.arange(-most, most + 1)
    weights = np.exp(-(values.astype(np.float64) ** 2) / (2 * variance))
    return values, weights / weights.sum()


def bin_edges(law: tuple[Integers, Floats], draws: int) -> Integers:
    """Upper ends of bins of about equal probability, in each of which 5 draws are expected."""
    values, chances = law
    least = max(1 / BINS, 5 / draws)
    edges: list[int] = []
    held = 0.0
    left = 1.0
    for value, chance in zip(values.tolist(), chances.tolist(), strict=True):
        held += chance
        left -= chance
        if held >= least and left >= least:
            edges.append(value)
            held = 0.0
    return np.array(edges)


def bin_chances(law: tuple[Integers, Floats], edges: Integers) -> Floats:
    values, chances = law
    held = np.bincount(np.searchsorted(edges, values), chances, minlength=len(edges) + 1)
    return held.astype(np.float64)


def verdict(found: Integers, law: tuple[Integers, Floats]) -> str:
    """Chi-square at ALPHA of draws against a law."""
    edges = bin_edges(law, len(found))
    expected = bin_chances(law, edges) * len(found)
    assert expected.min() >= 5
    observed = np.bincount(np.searchsorted(edges, found), minlength=len(edges) + 1)
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return "accept" if stats.chi2.sf(statistic, len(expected) - 1) >= ALPHA else "reject"


def missed(true: tuple[Integers, Floats], claimed: tuple[Integers, Floats], draws: int) -> float:
    """Probability that draws of one law pass for the other (noncentral chi-square)."""
    edges = bin_edges(claimed, draws)
    one, two = bin_chances(true, edges), bin_chances(claimed, edges)
    shift = draws * float(((one - two) ** 2 / two).sum())
    critical = stats.chi2.isf(ALPHA, len(two) - 1)
    return float(stats.ncx2.cdf(critical, len(two) - 1, shift))


def laplace_draws(scale: Fraction, count: int = LAPLACE_DRAWS) -> Integers:
    return DiscreteLaplace(scale=scale).draw(BlockPRF(KEY), Coordinates.of_indices(count))


def gaussian_draws(variance: Fraction, count: int = GAUSSIAN_DRAWS) -> Integers:
    return DiscreteGaussian(variance=variance).draw(BlockPRF(KEY), Coordinates.of_indices(count))


@pytest.mark.parametrize(("factor", "outcome"), ARMS)
@pytest.mark.parametrize("scale", LAPLACE, ids=str)
def test_laplace_draws_follow_their_law_and_no_other(
    scale: Fraction, factor: Fraction, outcome: str
) -> None:
    assert verdict(laplace_draws(scale * factor), laplace_weights(float(scale))) == outcome


@pytest.mark.parametrize(("factor", "outcome"), ARMS)
@pytest.mark.parametrize("variance", GAUSSIAN, ids=str)
def test_gaussian_draws_follow_their_law_and_no_other(
    variance: Fraction, factor: Fraction, outcome: str
) -> None:
    found = gaussian_draws(variance * factor**2)
    assert verdict(found, gaussian_weights(float(variance))) == outcome


@pytest.mark.parametrize("factor", [1.2, 1 / 1.2])
@pytest.mark.parametrize("scale", LAPLACE, ids=str)
def test_a_laplace_scale_off_by_a_fifth_is_seen(scale: Fraction, factor: float) -> None:
    true, claimed = laplace_weights(float(scale) * factor), laplace_weights(float(scale))
    assert missed(true, claimed, LAPLACE_DRAWS) < MISS


@pytest.mark.parametrize("factor", [1.2, 1 / 1.2])
@pytest.mark.parametrize("variance", GAUSSIAN, ids=str)
def test_a_gaussian_scale_off_by_a_fifth_is_seen(variance: Fraction, factor: float) -> None:
    true, claimed = gaussian_weights(float(variance) * factor**2), gaussian_weights(float(variance))
    assert missed(true, claimed, GAUSSIAN_DRAWS) < MISS


@pytest.mark.parametrize("scale", [Fraction(1, 4), Fraction(1)], ids=str)
def test_a_continuous_law_that_is_rounded_is_rejected(scale: Fraction) -> None:
    """Twin: what a float sampler and a rounding would give instead of the discrete law."""
    values, _ = laplace_weights(float(scale))
    upper = stats.laplace.cdf(values + 0.5, scale=float(scale))
    rounded = values, np.diff(upper, prepend=0.0)
    assert verdict(laplace_draws(scale), rounded) == "reject"


LARGE = [
    DiscreteLaplace(scale=Fraction(10**4)),
    DiscreteLaplace(scale=Fraction(2**40)),
    DiscreteGaussian(variance=Fraction(10**9)),
    DiscreteGaussian(variance=Fraction(2**80)),
]


@pytest.mark.parametrize("law", LARGE, ids=str)
def test_the_lowest_bits_of_large_laws_are_uniform(
    law: DiscreteLaplace | DiscreteGaussian,
) -> None:
    """Their exact law differs from uniform by less than a part in a million."""
    found = law.draw(BlockPRF(KEY), Coordinates.of_indices(100_000)) & 15
    assert stats.chisquare(np.bincount(found, minlength=16)).pvalue >= ALPHA


@pytest.mark.parametrize("law", LARGE, ids=str)
def test_signs_do_not_depend_on_magnitudes(law: DiscreteLaplace | DiscreteGaussian) -> None:
    found = law.draw(BlockPRF(KEY), Coordinates.of_indices(100_000))
    quarters = np.searchsorted(np.quantile(np.abs(found), [0.25, 0.5, 0.75]), np.abs(found))
    table = np.array([np.bincount(quarters[found > 0]), np.bincount(quarters[found < 0])])
    assert stats.chi2_contingency(table).pvalue >= ALPHA
    assert stats.binomtest(int((found > 0).sum()), int((found != 0).sum())).pvalue >= ALPHA


@pytest.mark.parametrize("cell", [128, 256])
def test_no_step_shows_where_the_cells_of_a_digit_meet(cell: int) -> None:
    """The law is smooth across multiples of the cell: 128 steps at a Laplace scale of 10**4."""
    scale = Fraction(10**4)
    found = np.abs(laplace_draws(scale, 400_000))
    place = np.bincount(found[found > 0] % cell // 8, minlength=cell // 8)
    magnitudes = np.arange(1, 60 * 10**4)
    weights = np.exp(-magnitudes / float(scale))
    chances = np.bincount(magnitudes % cell // 8, weights)
    expected = chances / chances.sum() * place.sum()
    assert stats.chisquare(place, expected).pvalue >= ALPHA


def test_neighbouring_coordinates_are_uncorrelated() -> None:
    found = gaussian_draws(Fraction(10**4), 200_000).astype(np.float64)
    statistic = float(np.corrcoef(found[:-1], found[1:])[0, 1]) * len(found) ** 0.5
    assert 2 * stats.norm.sf(abs(statistic)) >= ALPHA


def test_repeated_noise_is_noticed() -> None:
    """Twin: 100 draws said 200 times over."""
    repeated = np.tile(gaussian_draws(Fraction(20))[:100], 200)
    assert verdict(repeated, gaussian_weights(20.0)) == "reject"
