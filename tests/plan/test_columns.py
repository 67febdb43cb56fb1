# ruff: noqa: DTZ001  # a column's days have no zone
from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrodp.errors import DataError, PlanError
from retrodp.plan import columns as reasons
from retrodp.plan.columns import Column

MONEY = Column(
    name="money",
    type="number",
    from_="Money",
    min=Fraction(-5),
    max=Fraction(500),
    step=Fraction(1, 100),
    nullable=False,
)
WHOLE = Column(
    name="whole",
    type="integer",
    from_="whole",
    min=Fraction(0),
    max=Fraction(1000),
    step=Fraction(1),
    nullable=False,
)
TEXT = Column(name="text", type="text", from_="text")
KIND = Column(name="kind", type="category", from_="kind", values=("a", "é"), other=True)
CLOSED = Column(name="kind", type="category", from_="kind", values=("a", "é"))
FLAG = Column(name="flag", type="boolean", from_="flag")
DAY = Column(name="day", type="date", from_="day")

NULLS: list[object] = [None, ""]


def reason_of(column: Column, value: object) -> str | None:
    encoded = column.encode_many([value])
    return None if encoded.reasons is None else encoded.reasons[0]


@pytest.mark.parametrize(
    ("value", "steps"),
    [
        ("1.00", 100),
        ("1", 100),
        ("+1.", 100),
        (".5", 50),
        ("1e2", 10000),
        ("0.005", 1),  # ties go up
        ("-0.005", 0),
        ("-0.015", -1),
        ("0.00499999999999999999999999999", 0),
        (0.1 + 0.2, 30),
        (1.005, 101),  # the shortest decimal, not the binary number below it
        (-0.0, 0),
        ("-0", 0),
        (3, 300),
        (Decimal("2.675"), 268),
        (5e-324, 0),
        ("-1e-999999", 0),
        (np.float64(1.5), 150),
        (np.int64(2), 200),
    ],
)
def test_a_number_becomes_the_nearest_step(value: object, steps: int) -> None:
    assert MONEY.encode(value) == steps
    assert type(MONEY.encode(value)) is int


@pytest.mark.parametrize(
    ("value", "steps"),
    [
        ("500.001", 50000),
        (1e308, 50000),
        ("1e999999", 50000),
        (-5.001, -500),
        ("-1e999999", -500),
        (10**400, 50000),
        (2**63, 50000),
    ],
)
def test_a_number_outside_the_bounds_is_clamped_and_counted(value: object, steps: int) -> None:
    encoded = MONEY.encode_many([value, "1", value])
    assert encoded.values == [steps, 100, steps]
    assert encoded.clamped == 2
    assert encoded.clamped_rows == [True, False, True]
    assert encoded.reasons is None


def test_bounds_themselves_are_not_clamped() -> None:
    encoded = MONEY.encode_many(["500", -5, 500.0])
    assert (encoded.clamped, encoded.clamped_rows) == (0, None)


def test_a_plan_may_reject_what_is_out_of_bounds() -> None:
    strict = Column(
        name="x",
        type="number",
        from_="x",
        min=Fraction(0),
        max=Fraction(1),
        step=Fraction(1, 2),
        out_of_bounds="reject",
    )
    encoded = strict.encode_many(["0.7", "1.01", "-0.01", "1"])
    assert encoded.values == [1, None, None, 2]
    assert encoded.reasons == [None, reasons.OUT_OF_BOUNDS, reasons.OUT_OF_BOUNDS, None]
    assert encoded.clamped == 0


@pytest.mark.parametrize("column", [MONEY, WHOLE])
@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, "nan", "NaN", "-Infinity", "inf", Decimal("NaN")]
)
def test_nan_and_infinities_are_always_refused_in_numbers(column: Column, value: object) -> None:
    assert reason_of(column, value) == reasons.NOT_FINITE
    nullable = Column(
        name="x", type=column.type, from_="x", min=column.min, max=column.max, step=column.step
    )
    assert reason_of(nullable, value) == reasons.NOT_FINITE


@pytest.mark.parametrize(
    "value",
    ["1,000", "1_000", "٣", " 1", "0x10", "1/3", "--1", "e5", "one", True, False, b"1", [1], {}],
)
def test_what_is_not_a_decimal_is_refused(value: object) -> None:
    assert reason_of(MONEY, value) == reasons.NOT_A_NUMBER


def test_a_number_of_absurd_length_is_refused() -> None:
    assert reason_of(MONEY, "1" * 100_000) == reasons.NOT_A_NUMBER


@pytest.mark.parametrize(("value", "whole"), [("12", 12), (12.0, 12), ("1.2e1", 12), (12, 12)])
def test_an_integer_is_what_has_no_fraction(value: object, whole: int) -> None:
    assert WHOLE.encode(value) == whole


@pytest.mark.parametrize("value", ["12.5", 0.1, "1e-999999", 5000.5])
def test_a_fraction_is_no_integer(value: object) -> None:
    assert reason_of(WHOLE, value) == reasons.NOT_WHOLE


@pytest.mark.parametrize("value", NULLS, ids=repr)
@pytest.mark.parametrize("column", [TEXT, KIND, CLOSED, FLAG, DAY], ids=lambda c: c.type)
def test_null_is_a_value_of_its_own_outside_numbers(column: Column, value: object) -> None:
    assert column.encode(value) is None


@pytest.mark.parametrize("column", [TEXT, KIND, FLAG, DAY], ids=lambda c: c.type)
def test_a_frames_missing_marker_is_null(column: Column) -> None:
    encoded = column.encode_many([math.nan, None, float("nan")])
    assert (encoded.values, encoded.reasons) == ([None, None, None], None)


@pytest.mark.parametrize("value", NULLS, ids=repr)
def test_a_null_number_is_refused_unless_the_plan_takes_it(value: object) -> None:
    assert reason_of(MONEY, value) == reasons.MISSING
    nullable = Column(
        name="x", type="number", from_="x", min=Fraction(0), max=Fraction(1), step=Fraction(1)
    )
    assert nullable.encode(value) is None


def test_a_source_that_tells_empty_text_from_null_may_say_so() -> None:
    assert TEXT.encode("", empty="") == ""
    assert TEXT.encode_many(["", None, "é"], empty="").values == ["", None, "é"]
    assert TEXT.encode_many(["", None, "x"], empty="").values == ["", None, "x"]
    assert TEXT.encode_many(["", None, 3], empty="").values == ["", None, "3"]
    assert reason_of(MONEY, "") == reasons.MISSING
    assert MONEY.encode_many([""], empty="").reasons == [reasons.NOT_A_NUMBER]


def test_text_is_nfc() -> None:
    assert TEXT.encode("e\u0301") == "\u00e9"
    assert TEXT.encode_many(["e\u0301", "\u00e9", "a"]).values == ["\u00e9", "\u00e9", "a"]
    assert KIND.encode("e\u0301") == "\u00e9"


def test_keys_of_a_frame_become_text_and_stay_apart() -> None:
    values = TEXT.encode_many([True, 1, 1.0, "1", -0.0, 0.0]).values
    assert values == ["true", "1", "1.0", "1", "0.0", "0.0"]


@pytest.mark.parametrize("value", ["\ud800", b"x", [1], dt.date(2020, 1, 1)])
def test_what_is_no_text_is_refused(value: object) -> None:
    assert reason_of(TEXT, value) == reasons.NOT_TEXT


def test_an_unplanned_category_is_other_or_refused() -> None:
    assert KIND.encode_many(["a", "z", 7]).values == ["a", "other", "other"]
    assert CLOSED.encode_many(["a", "z"]).reasons == [None, reasons.NOT_PLANNED]


@pytest.mark.parametrize(
    ("value", "truth"),
    [
        *((value, True) for value in ("true", "True", "1", 1, 1.0, True)),
        *((value, False) for value in ("false", "FALSE", "0", 0, False)),
    ],
)
def test_booleans_are_true_false_one_and_zero(value: object, truth: object) -> None:
    assert FLAG.encode(value) is truth


@pytest.mark.parametrize("value", ["yes", 2, "t", -1, 0.5, [True], math.inf])
def test_nothing_else_is_boolean(value: object) -> None:
    assert reason_of(FLAG, value) == reasons.NOT_A_BOOLEAN


@pytest.mark.parametrize(
    "value",
    ["2024-02-29", dt.date(2024, 2, 29), dt.datetime(2024, 2, 29), "2024-02-29 00:00:00"],
)
def test_a_date_is_its_iso_text(value: object) -> None:
    assert DAY.encode(value) == "2024-02-29"


@pytest.mark.parametrize(
    "value",
    [
        "2023-02-29",
        "29.2.2024",
        "20240229",
        "2024-02-29T08:00",
        20240229,
        dt.datetime(2024, 2, 29, 8),
    ],
)
def test_what_is_no_date_is_refused(value: object) -> None:
    assert reason_of(DAY, value) == reasons.NOT_A_DATE


def test_public_values_come_from_the_plan_alone() -> None:
    assert KIND.public_values == ("a", "é", "other", None)
    assert CLOSED.public_values == ("a", "é", None)
    assert FLAG.public_values == (False, True, None)
    assert TEXT.public_values is None
    assert replace(KIND, nullable=False).public_values == ("a", "é", "other")
    assert replace(FLAG, nullable=False).public_values == (False, True)


def test_a_refusal_quotes_no_value() -> None:
    with pytest.raises(DataError) as caught:
        MONEY.encode("secret")
    assert "secret" not in str(caught.value)
    assert "money" in str(caught.value)


def test_equal_values_of_different_types_are_not_mixed_up() -> None:
    encoded = MONEY.encode_many([1, True, 1.0, "1"])
    assert encoded.values == [100, None, 100, 100]
    assert encoded.reasons == [None, reasons.NOT_A_NUMBER, None, None]


def test_a_column_without_bounds_has_no_grid() -> None:
    with pytest.raises(PlanError, match="no bounds"):
        assert TEXT.grid


@settings(deadline=None)
@given(
    value=st.one_of(
        st.decimals(allow_nan=False, allow_infinity=False, min_value=-600, max_value=600),
        st.floats(allow_nan=False, allow_infinity=False),
        st.integers(),
    )
)
def test_the_nearest_step_agrees_with_fractions(value: Any) -> None:
    exact = Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
    inside = min(max(exact, Fraction(-5)), Fraction(500))
    expected = math.floor(inside * 100 + Fraction(1, 2))
    encoded = MONEY.encode_many([value])
    assert encoded.values == [expected]
    assert encoded.clamped == (inside != exact)
    assert MONEY.encode(str(value)) == expected


ANYTHING = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(), st.text(max_size=3), st.dates()
)


@settings(deadline=None)
@given(values=st.lists(ANYTHING, max_size=12))
@pytest.mark.parametrize(
    "column", [MONEY, WHOLE, TEXT, KIND, CLOSED, FLAG, DAY], ids=lambda c: c.type
)
def test_a_batch_is_encoded_as_its_cells_are(column: Column, values: list[object]) -> None:
    batch = column.encode_many(values)
    single = [column.encode_many([value]) for value in values]
    assert batch.values == [one.values[0] for one in single]
    assert [type(value) for value in batch.values] == [type(one.values[0]) for one in single]
    found = [None if one.reasons is None else one.reasons[0] for one in single]
    assert (batch.reasons or [None] * len(values)) == found
    assert batch.clamped == sum(one.clamped for one in single)


@settings(deadline=None)
@given(text=st.text())
def test_canonical_values_are_fixed_points(text: str) -> None:
    encoded = TEXT.encode_many([text])
    if encoded.reasons is None:
        assert TEXT.encode(encoded.values[0]) == encoded.values[0]
