from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest

from retrodp.errors import PlanError
from retrodp.noise.gaussian import DiscreteGaussian
from retrodp.noise.prf import BlockPRF, Coordinates

PRF = BlockPRF(bytes(range(32)))


@pytest.mark.parametrize(
    "variance",
    [
        *(Fraction(1, d) for d in (1000, 100, 4, 2, 1)),
        *(Fraction(n, 4) for n in (5, 13, 15, 16, 17)),
        Fraction(20),
        Fraction(2**80),
    ],
)
def test_the_variance_is_that_of_the_law(variance: Fraction) -> None:
    """Sums in 200 bits; beyond 100 the continuous value differs by less than 10**-800."""
    with mpmath.workprec(200):
        expected = mpmath.mpf(variance.numerator) / variance.denominator
        if variance <= 100:
            weights = {k: mpmath.exp(-k * k / (2 * expected)) for k in range(-200, 201)}
            expected = sum(k * k * w for k, w in weights.items()) / sum(weights.values())
        found = DiscreteGaussian(variance=variance).variance_exactish
        assert abs(found - expected) <= 1e-14 * expected


@pytest.mark.parametrize("variance", [Fraction(1, 10**7), Fraction(1, 10**400)])
def test_a_vanishing_variance_gives_zeros(variance: Fraction) -> None:
    law = DiscreteGaussian(variance=variance)
    assert law.variance_exactish == 0.0
    assert not law.draw(PRF, Coordinates.of_indices(1000)).any()


@pytest.mark.parametrize("variance", [Fraction(0), Fraction(-1), Fraction(2**80) + 1])
def test_a_variance_out_of_range_is_refused(variance: Fraction) -> None:
    with pytest.raises(PlanError, match="variance must be"):
        DiscreteGaussian(variance=variance)


@pytest.mark.parametrize("variance", [float("nan"), float("inf"), "nan", True, None])
def test_a_variance_that_is_no_number_is_refused(variance: Fraction) -> None:
    with pytest.raises(PlanError, match="variance must be"):
        DiscreteGaussian(variance=variance)


def test_the_largest_variance_fits_64_bits_with_room_to_add() -> None:
    assert DiscreteGaussian(variance=Fraction(2**80)).max_magnitude < 2**46


@pytest.mark.parametrize(
    ("variance", "draws"),
    [
        (Fraction(1, 4), [0, -1, 0, 1, 0, 0, 0, 0]),
        (Fraction(20), [-1, -7, 4, 6, 2, -5, 4, 0]),
        (Fraction(10**9), [-7168, -50512, 31223, 41121, 13110, -38320, 25134, -1844]),
        (
            Fraction(2**80),
            [
                -257729280885,
                -1755031527439,
                1090639358395,
                1431342751866,
                457087427827,
                -1328778277155,
                877750169324,
                -61898186506,
            ],
        ),
    ],
)
def test_the_draws_of_a_fixed_key_never_change(variance: Fraction, draws: list[int]) -> None:
    """Golden. A change would silently change every published number: new noise format only."""
    law = DiscreteGaussian(variance=variance)
    labels = [b"bread", b"butter", b""]
    found = [
        *law.draw(PRF, Coordinates.of_indices(5)).tolist(),
        *law.draw(PRF, Coordinates.of_labels(labels, bytes(32))).tolist(),
    ]
    assert found == draws
