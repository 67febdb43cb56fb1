from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrodp.errors import StoreCorruptError
from retrodp.plan.decimals import decimal_text
from retrodp.views.figures import (
    Grid,
    at_most,
    counted,
    grouped,
    natural,
    percent,
    plain,
    printable,
)

STEPS = st.builds(
    lambda number, digits: Fraction(number, 10**digits), st.integers(1, 10**6), st.integers(0, 12)
)
INT64 = st.integers(-(2**63), 2**63 - 1)


@given(INT64, STEPS)
def test_a_grid_writes_what_the_library_writes(steps: int, step: Fraction) -> None:
    assert Grid.of(step).text(steps) == decimal_text(steps, step)


@given(INT64, STEPS)
def test_a_number_is_written_exactly_and_without_exponent(steps: int, step: Fraction) -> None:
    text = Grid.of(step).text(steps)
    assert (Fraction(text), "e" in text.lower()) == (steps * step, False)


def test_a_step_that_is_no_decimal_is_refused() -> None:
    with pytest.raises(StoreCorruptError, match="1/3"):
        Grid.of(Fraction(1, 3))


@given(st.integers(0, 10**12).map(lambda number: f"{number:.6g}"))
def test_plain_keeps_the_value_and_drops_the_exponent(text: str) -> None:
    assert (Decimal(plain(text)), "e" in plain(text)) == (Decimal(text), False)


@pytest.mark.parametrize(
    ("number", "digits", "shown"),
    [
        ("1234567", 0, "1,234,567"),
        ("-1234.5", 2, "-1,234.50"),
        ("-0.05", 2, "-0.05"),
        ("999", 2, "999.00"),
        ("1.2e+06", 0, "1,200,000"),
    ],
)
def test_grouped_separates_thousands(number: str, digits: int, shown: str) -> None:
    assert grouped(number, digits) == shown


@given(st.fractions(min_value=0, max_value=10**20))
def test_a_reported_loss_is_never_smaller_than_the_exact_one(exact: Fraction) -> None:
    reported = Fraction(at_most(exact))
    assert exact <= reported <= exact * (1 + Fraction(1, 10**5))


@pytest.mark.parametrize(
    ("exact", "text"),
    [
        (Fraction(0), "0"),
        (Fraction(10), "10"),
        (Fraction(1, 10**9), "1e-9"),
        (Fraction(1, 3), "0.333334"),
        (Fraction(162053, 10**7), "0.0162053"),
    ],
)
def test_at_most_reads_well(exact: Fraction, text: str) -> None:
    assert at_most(exact) == text


def test_a_coverage_reads_as_per_cent() -> None:
    assert percent(Fraction(19, 20)) == "95%"


@given(st.text())
def test_a_label_cannot_control_the_screen(label: str) -> None:
    assert printable(label).isprintable()


@given(st.text().filter(str.isprintable))
def test_a_harmless_label_is_shown_as_it_is(label: str) -> None:
    assert printable(label) == label


def test_labels_with_numbers_are_read_in_order() -> None:
    labels = ["100", "10", "-5", "0.5", "2/3", '["DE",10]', '["DE",9]', "[10, 20)", "[5, 10)"]
    expected = ["-5", "0.5", "2/3", "10", "100", "[5, 10)", "[10, 20)", '["DE",9]', '["DE",10]']
    assert sorted(labels, key=natural) == expected


@pytest.mark.parametrize(
    ("number", "verb", "text"),
    [
        (0, "", "0 rows"),
        (1, "", "1 row"),
        (1, "wait", "1 row waits"),
        (1, "were", "1 row was"),
        (1200, "are", "1,200 rows are"),
    ],
)
def test_one_is_no_plural(number: int, verb: str, text: str) -> None:
    assert counted(number, "row", verb) == text
