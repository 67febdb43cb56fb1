from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrodp.noise.exact import DigitLaw, Exponent, exp_below
from retrodp.noise.tables import DigitTable
from tests.noise.slow_reference import Law, survival

LINEAR = [Fraction(1, 100), Fraction(3, 10), Fraction(1), Fraction(128)]
SQUARE = [Fraction(1, 100), Fraction(1), Fraction(61, 3), Fraction(128**2)]
LAWS: list[tuple[Law, DigitLaw]] = [
    *((("laplace", b), DigitLaw(Exponent(1 / b, Fraction(0)), folded=True)) for b in LINEAR),
    *((("gaussian", v), DigitLaw(Exponent(Fraction(0), 1 / (2 * v)), folded=True)) for v in SQUARE),
]


@settings(deadline=None)
@given(
    st.fractions(min_value=0, max_value=1200) | st.fractions(min_value=0, max_value=1),
    st.integers(min_value=1, max_value=2048),
)
def test_the_integer_exponential_is_within_two_units_below(exponent: Fraction, bits: int) -> None:
    bound = exp_below(exponent, bits)
    with mpmath.workprec(4000):
        value = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)
        true = mpmath.ldexp(value, bits)
        assert bound <= true < bound + 2


@pytest.mark.parametrize("bits", [1, 64, 2048])
@pytest.mark.parametrize(
    "exponent",
    [Fraction(1, 2**3000), Fraction(10**9 + 7, 2**2000), Fraction(255, 256), Fraction(257, 256)],
)
def test_the_integer_exponential_holds_at_extremes(exponent: Fraction, bits: int) -> None:
    with mpmath.workprec(9000):
        value = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)
        true = mpmath.ldexp(value, bits)
        assert exp_below(exponent, bits) <= true < exp_below(exponent, bits) + 2


def test_the_exponential_of_zero_is_one() -> None:
    assert exp_below(Fraction(0), 77) == 1 << 77


@pytest.mark.parametrize("bits", [64, 256])
@pytest.mark.parametrize(("law", "digits"), LAWS, ids=str)
def test_tails_bracket_the_survival_function(law: Law, digits: DigitLaw, bits: int) -> None:
    tails = digits.tails(bits)
    with mpmath.workprec(1300):
        total, error = mpmath.mpf(tails[0]), mpmath.mpf(2**48)
        places = [h for h in (1, 2, 3, 10, 100, 1000, len(tails) - 1) if h < len(tails)]
        inside = [
            tails[h] / (total + error) <= survival(law, h) <= (tails[h] + error) / total
            for h in places
        ]
    assert inside == [True] * len(places)
    assert places


@pytest.mark.parametrize(("law", "digits"), LAWS, ids=str)
def test_thresholds_are_the_floors_of_the_survival_function(law: Law, digits: DigitLaw) -> None:
    floors = digits.survivals()
    places = sorted({*range(min(len(floors), 40)), *range(0, len(floors), 97), len(floors) - 1})
    with mpmath.workprec(1300):
        expected = [int(mpmath.floor(mpmath.ldexp(survival(law, h + 1), 64))) for h in places]
    assert [floors[place] for place in places] == expected
    assert floors.index(0) == len(floors) - 1


@pytest.mark.parametrize(("law", "digits"), LAWS, ids=str)
def test_looking_up_a_word_counts_the_thresholds_above_it(law: Law, digits: DigitLaw) -> None:
    """At both ends of guide cells, and at and beside thresholds, where the word is a tie."""
    table = DigitTable.of(digits)
    one = np.uint64(1)
    ends = np.arange(1, len(table.guide), 23, dtype=np.uint64) << table.shift
    thresholds = table.thresholds[1::11]
    words = np.concatenate([ends, ends - one, thresholds, thresholds - one, thresholds + one])
    found, cells = np.empty(len(words), dtype=np.int32), np.empty(len(words), dtype=np.int64)
    ties = table.look_up(words, cells, found)
    floors = np.array(digits.survivals(), dtype=np.uint64)
    counted = (floors[None, :] > words[:, None]).sum(axis=1)
    tied = np.isin(words, floors)
    assert np.array_equal(np.flatnonzero(tied), ties)
    assert np.array_equal(found[~tied], counted[~tied])


@pytest.mark.parametrize(
    ("exponent", "bits"),
    [
        (Exponent(Fraction(1, 128), Fraction(0)), 0),
        (Exponent(Fraction(1, 129), Fraction(0)), 1),
        (Exponent(Fraction(1, 2**40), Fraction(0)), 33),
        (Exponent(Fraction(0), Fraction(1, 2 * 128**2)), 0),
        (Exponent(Fraction(0), Fraction(1, 2 * 128**2 + 1)), 1),
        (Exponent(Fraction(0), Fraction(1, 2**81)), 33),
        (Exponent(Fraction(10**9), Fraction(0)), 0),
    ],
)
def test_a_scale_is_at_most_128_cells(exponent: Exponent, bits: int) -> None:
    assert exponent.digit_bits() == bits


def test_an_exponent_increases_by_the_difference_of_its_values() -> None:
    exponent = Exponent(Fraction(1, 3), Fraction(2, 7))
    value = {x: x * exponent.linear + x * x * exponent.square for x in (10, 14)}
    assert exponent.increase(10, 4) == value[14] - value[10]
