from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest

from retrodp.errors import PlanError
from retrodp.noise.laplace import DiscreteLaplace
from retrodp.noise.prf import BlockPRF, Coordinates

PRF = BlockPRF(bytes(range(32)))
SCALES = [Fraction(1, 100), Fraction(3, 10), Fraction(1), Fraction(13, 2), Fraction(10**4)]


@pytest.mark.parametrize("scale", [*SCALES, Fraction(2**40), Fraction(1, 2000)])
def test_the_variance_is_that_of_the_law(scale: Fraction) -> None:
    """var = 1 / (2 sinh^2(1 / (2 b))), in 200 bits."""
    with mpmath.workprec(200):
        rate = mpmath.mpf(scale.denominator) / scale.numerator
        expected = 1 / (2 * mpmath.sinh(rate / 2) ** 2)
        found = DiscreteLaplace(scale=scale).variance_exactish
        assert abs(found - expected) <= 1e-12 * expected + mpmath.mpf(10) ** -300


@pytest.mark.parametrize("scale", [Fraction(1, 10**7), Fraction(1, 10**400)])
def test_a_vanishing_scale_gives_zeros(scale: Fraction) -> None:
    law = DiscreteLaplace(scale=scale)
    assert law.variance_exactish == 0.0
    assert not law.draw(PRF, Coordinates.of_indices(1000)).any()


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(2**40) + 1])
def test_a_scale_out_of_range_is_refused(scale: Fraction) -> None:
    with pytest.raises(PlanError, match="scale must be"):
        DiscreteLaplace(scale=scale)


@pytest.mark.parametrize("scale", [float("nan"), float("inf"), "nan", True, None])
def test_a_scale_that_is_no_number_is_refused(scale: Fraction) -> None:
    with pytest.raises(PlanError, match="scale must be"):
        DiscreteLaplace(scale=scale)


def test_equal_scales_draw_equally_however_they_are_written() -> None:
    where = Coordinates.of_indices(100)
    whole: list[int] = DiscreteLaplace(scale=Fraction(26, 4)).draw(PRF, where).tolist()
    assert DiscreteLaplace(scale=Fraction("6.5")).draw(PRF, where).tolist() == whole


def test_the_largest_scale_fits_64_bits_with_room_to_add() -> None:
    assert DiscreteLaplace(scale=Fraction(2**40)).max_magnitude < 2**50


@pytest.mark.parametrize(
    ("scale", "draws"),
    [
        (Fraction(1), [0, -2, 1, 2, 0, -1, 1, 0]),
        (Fraction(13, 2), [-1, -14, 7, 11, 3, -10, 6, 0]),
        (Fraction(10**4), [-1920, -22056, 11259, 16464, 3867, -14808, 8471, -410]),
        (
            Fraction(2**40),
            [
                -223369542517,
                -2425046425615,
                1236668246459,
                1800709939322,
                422727689459,
                -1629425987875,
                937879711468,
                -44718317322,
            ],
        ),
    ],
)
def test_the_draws_of_a_fixed_key_never_change(scale: Fraction, draws: list[int]) -> None:
    """Golden. A change would silently change every published number: new noise format only."""
    law = DiscreteLaplace(scale=scale)
    labels = [b"bread", b"butter", b""]
    found = [
        *law.draw(PRF, Coordinates.of_indices(5)).tolist(),
        *law.draw(PRF, Coordinates.of_labels(labels, bytes(32))).tolist(),
    ]
    assert found == draws
