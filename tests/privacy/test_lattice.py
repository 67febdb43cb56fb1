"""The certified pieces: the dominating continuous Gaussian and the error of the FFT."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from scipy.fft import irfft, rfft

from retrodp.privacy.lattice import (
    Coarse,
    coarse_law,
    coarse_rho,
    fft_error,
    gaussian_law,
    log_factor,
    response_law,
)
from tests.privacy.reference import continuous_delta, discrete_delta, loss_atoms


@pytest.mark.parametrize("variance", ["1/5", "1/2", "1", "4", "20", "500"])
@pytest.mark.parametrize("shift", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [-3.0, -1.0, 0.0, 0.1, 0.5, 1.0, 3.0, 6.0])
def test_the_continuous_gaussian_with_its_factor_dominates(
    variance: str, shift: int, epsilon: float
) -> None:
    exact = Fraction(variance)
    bound = math.exp(log_factor(exact)) * continuous_delta(
        coarse_rho(exact, Fraction(shift**2)), epsilon
    )
    assert discrete_delta(float(exact), shift, epsilon) <= bound * (1 + 1e-11)


@pytest.mark.parametrize(("variance", "loosest"), [(500, 1.02), (10**4, 1.002), (10**6, 1.00002)])
def test_the_dominating_gaussian_is_close_where_it_is_used(variance: int, loosest: float) -> None:
    epsilon = 5 / math.sqrt(variance)
    exact = discrete_delta(variance, 1, epsilon)
    bound = math.exp(log_factor(Fraction(variance))) * continuous_delta(
        coarse_rho(Fraction(variance), Fraction(1)), epsilon
    )
    assert 1 - 1e-11 <= bound / exact <= loosest


def test_below_a_twelfth_no_continuous_gaussian_is_claimed_to_dominate() -> None:
    assert log_factor(Fraction(1, 12)) == math.inf


@pytest.mark.parametrize("shifts", [{1: 1}, {2: 1}, {1: 2}, {1: 1, 2: 1}, {2: 1, 4: 1}])
@pytest.mark.parametrize("variance", ["1/20", "1", "4"])
@pytest.mark.parametrize("tilt", [0.0, 0.7, 1.5])
def test_every_atom_of_a_lattice_law_is_bounded_from_above(
    shifts: dict[int, int], variance: str, tilt: float
) -> None:
    exact = Fraction(variance)
    coordinates = tuple((exact, k) for k, count in shifts.items() for _ in range(count))
    law = gaussian_law(exact, shifts, tilt)
    reported = {
        round(loss * 2 * float(exact)): mass
        for loss, mass in zip(law.losses, law.masses, strict=True)
    }
    tilted = [
        (round(loss * 2 * exact), float(mass * mp.exp(tilt * float(loss) - law.log_moment)))
        for loss, mass in loss_atoms(coordinates)
    ]
    ratios = [reported[place] / mass for place, mass in tilted if mass > 1e-7]
    assert len(ratios) >= 1
    assert min(ratios) >= 1 - 1e-12
    assert max(ratios) <= 1 + 1e-5


def test_tilted_laws_hold_all_their_mass() -> None:
    laws = [
        gaussian_law(Fraction(300), {1: 18, 2: 1}, 5.0),
        response_law(Fraction(1, 10), 30, 4.0),
        coarse_law(Coarse(rho=0.02, log_factor=0.0), 40.0, 0.001),
        coarse_law(Coarse(rho=1e-9, log_factor=0.0), 40.0, 0.001),
    ]
    assert [law.masses.sum() for law in laws] == pytest.approx([1, 1, 1, 1], abs=1e-8)
    means = [float(law.masses @ law.losses) for law in laws]
    assert means == pytest.approx([law.centre for law in laws], rel=1e-7)


@pytest.mark.parametrize("points", [2**10, 3 * 2**12, 5 * 7 * 11 * 64])
@pytest.mark.parametrize("factors", [2, 40])
def test_the_fft_errs_far_less_than_its_bound(points: int, factors: int) -> None:
    chance = 0.37
    circle = np.zeros(points)
    circle[:2] = 1 - chance, chance
    by_fft = irfft(rfft(circle) ** factors, n=points)
    exact = np.zeros(points)
    choices = [math.comb(factors, k) for k in range(factors + 1)]
    exact[: factors + 1] = [
        choices[k] * chance**k * (1 - chance) ** (factors - k) for k in range(factors + 1)
    ]
    assert np.abs(by_fft - exact).max() <= fft_error(points, factors) / 10
