"""Intervals of means and covariances hold everything that their parts allow; matrices are repaired."""

from __future__ import annotations

from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from retrodp.postprocess.covariance import (
    Gram,
    Interval,
    covariance_interval,
    mean_interval,
    nearest_psd,
    quotient,
)

NUMBERS = st.fractions(min_value=-20, max_value=20, max_denominator=9)


@st.composite
def intervals(draw: st.DrawFn, least: int = -20) -> tuple[Interval, Fraction]:
    """An interval and a number of it."""
    ends = sorted(
        draw(st.lists(NUMBERS.map(lambda x: max(x, Fraction(least))), min_size=2, max_size=2))
    )
    share = draw(st.fractions(min_value=0, max_value=1, max_denominator=5))
    return Interval(*ends), ends[0] + share * (ends[1] - ends[0])


@settings(max_examples=40)
@given(intervals(), intervals(least=1))
def test_a_quotient_lies_in_the_quotient_of_intervals(
    total: tuple[Interval, Fraction], count: tuple[Interval, Fraction]
) -> None:
    found = quotient(total[0], count[0])
    assert found is not None
    assert found.low <= total[1] / count[1] <= found.high


@settings(max_examples=40)
@given(intervals(), NUMBERS)
def test_a_count_that_may_be_below_one_tells_nothing(
    total: tuple[Interval, Fraction], low: Fraction
) -> None:
    if low < 1:
        count = Interval(low, low + 30)
        assert quotient(total[0], count) is None
        assert mean_interval(count, total[0], Fraction(7)) == Interval(Fraction(-7), Fraction(7))


@settings(max_examples=40)
@given(intervals(), intervals(), intervals())
def test_a_covariance_lies_in_its_interval(
    product: tuple[Interval, Fraction],
    one: tuple[Interval, Fraction],
    two: tuple[Interval, Fraction],
) -> None:
    bound = Fraction(500)
    found = covariance_interval(product[0], one[0], two[0], square=False, bound=bound)
    assert found.low <= product[1] - one[1] * two[1] <= found.high


@settings(max_examples=40)
@given(intervals(), intervals())
def test_a_variance_lies_in_its_interval_and_is_not_negative(
    product: tuple[Interval, Fraction], mean: tuple[Interval, Fraction]
) -> None:
    found = covariance_interval(product[0], mean[0], mean[0], square=True, bound=Fraction(500))
    true = product[1] - mean[1] ** 2
    assert 0 <= found.low <= found.high
    assert found.low <= max(true, Fraction(0)) <= found.high


MADE = Gram.of(
    {
        ("count",): 4.0,
        ("sum", "x"): 4.0,
        ("sum", "y"): 12.0,
        ("product", "x", "x"): 8.0,
        ("product", "x", "y"): 20.0,
        ("product", "y", "y"): 54.0,
        ("mean", "x"): 1.0,
    }
)


def test_a_gram_is_arranged_by_its_labels() -> None:
    assert MADE.names == ("x", "y")
    assert MADE.products.tolist() == [[8, 20], [20, 54]]
    assert np.allclose(MADE.covariance(), np.array([[1.0, 2.0], [2.0, 4.5]]))


def test_a_regression_is_that_of_the_normal_equations() -> None:
    intercept, slopes = MADE.ridge("y", ["x"], penalty=0.0)
    assert slopes == pytest.approx({"x": 2.0})
    assert intercept == pytest.approx(1.0)
    _, smaller = MADE.ridge("y", ["x"], penalty=4.0)
    assert smaller == pytest.approx({"x": 1.0})


def test_a_penalty_that_is_too_small_is_refused() -> None:
    broken = MADE._replace(products=np.array([[0.0, 20.0], [20.0, 54.0]]))
    with pytest.raises(ValueError, match="penalty"):
        broken.ridge("y", ["x"], penalty=0.0)
    assert broken.ridge("y", ["x"], penalty=1.0)[1]["x"] == pytest.approx(8.0)


@settings(max_examples=40)
@given(st.lists(st.integers(-9, 9), min_size=6, max_size=6))
def test_the_nearest_matrix_is_positive_semidefinite_and_leaves_good_ones(
    entries: list[int],
) -> None:
    matrix = np.zeros((3, 3))
    matrix[np.triu_indices(3)] = entries
    matrix = matrix + matrix.T
    found = nearest_psd(matrix)
    assert float(np.linalg.eigvalsh(found)[0]) > -1e-9
    square = matrix @ matrix
    assert np.allclose(nearest_psd(square), square)
    # No nearer one by the optimality condition: what was taken off is negative and orthogonal.
    rest = matrix - found
    assert float(np.linalg.eigvalsh(rest)[-1]) < 1e-9
    assert abs(float((rest * found).sum())) < 1e-6
