"""Expressions of a query: exact values inside bounds that follow from the plan alone."""

from __future__ import annotations

from fractions import Fraction

import hypothesis.strategies as st
import pytest
from hypothesis import given

from retrodp.errors import PlanError
from retrodp.plan.arithmetic import Arithmetic
from retrodp.plan.columns import Column
from retrodp.plan.decimals import common_step

X = Column(
    name="x", type="number", from_="x", min=Fraction(-2), max=Fraction(3), step=Fraction(1, 2)
)
Y = Column(
    name="odd name",
    type="integer",
    from_="y",
    min=Fraction(-5),
    max=Fraction(10),
    step=Fraction(5),
    nullable=True,
)
WORD = Column(name="word", type="text", from_="word")
GIFT = Column(name="gift", type="boolean", from_="gift")
COLUMNS = (X, Y, WORD, GIFT)


def parsed(text: str) -> Arithmetic:
    return Arithmetic.parse(text, COLUMNS, key="linear.a")


@pytest.mark.parametrize(
    ("text", "step", "least", "greatest"),
    [
        ("x", "1/2", -4, 6),
        ("2 * x", 1, -4, 6),
        ("-x", "1/2", -6, 4),
        ("x + 0.25", "1/4", -7, 13),
        ("`odd name`", 5, -1, 2),
        ("x * `odd name`", "5/2", -8, 12),
        ("x - `odd name`", "1/2", -24, 16),
        ("x * x", "1/4", -24, 36),
        ("(x + 1) * 3 - 0.5", "1/2", -7, 23),
        ("[gift]", 1, 0, 1),
        ("x * [word == 'a]b' and gift]", "1/2", -4, 6),
        ("3 * -[x >= 1]", 3, -1, 0),
        ("- - x", "1/2", -4, 6),
        ("1e2 * [word in ['p', \"q]\", null]]", 100, 0, 1),
    ],
)
def test_grid_and_bounds_follow_by_interval_arithmetic(
    text: str, step: str | int, least: int, greatest: int
) -> None:
    assert tuple(parsed(text).range) == (Fraction(step), least, greatest)


RECORDS = st.lists(
    st.tuples(
        st.integers(-4, 6),
        st.sampled_from([-1, 0, 2, None]),
        st.sampled_from(["a", "b", None]),
        st.sampled_from([True, False, None]),
    ),
    max_size=6,
)


def columns_of(rows: list[tuple[object, ...]]) -> dict[str, list[object]]:
    return {column.name: [row[place] for row in rows] for place, column in enumerate(COLUMNS)}


@given(RECORDS)
def test_values_are_those_of_a_straightforward_calculation(rows: list[tuple[object, ...]]) -> None:
    found = parsed("(2 * x - `odd name`) * 0.1 + 3 * [gift and word != 'a'] - 1")
    step = found.range.step
    wanted = []
    for x, y, word, gift in rows:
        if y is None:
            wanted.append(Fraction(0))
            continue
        assert isinstance(x, int)
        assert isinstance(y, int)
        value = (2 * Fraction(x, 2) - 5 * y) * Fraction(1, 10) - 1
        wanted.append(value + (3 if gift and word not in {"a", None} else 0))
    assert [value * step for value in found.evaluate(columns_of(rows), len(rows))] == wanted
    assert all(
        found.range.least <= value / step <= found.range.greatest for value in wanted if value
    )


def test_null_in_a_number_makes_the_value_0_and_in_a_condition_does_not() -> None:
    rows: list[tuple[object, ...]] = [(2, None, None, True)]
    assert parsed("x + `odd name`").evaluate(columns_of(rows), 1) == [0]
    assert parsed("x + 0 * [word == null]").evaluate(columns_of(rows), 1) == [2]
    assert parsed("[word == null]").evaluate(columns_of(rows), 1) == [1]


def test_no_value_leaves_the_bounds_even_if_a_record_does() -> None:
    """Privacy rests on the bounds; a record that should not be there must not break them."""
    found = parsed("2 * x")
    assert found.evaluate({"x": [10**6, -(10**6)]}, 2) == [6, -4]


def test_numbers_beyond_64_bits_on_the_way_do_not_wrap() -> None:
    wide = Column(
        name="w", type="integer", from_="w", min=Fraction(0), max=Fraction(2**40), step=Fraction(1)
    )
    found = Arithmetic.parse("w * w * w * 0 + w * 4096", (wide,), key="k")
    assert found.evaluate({"w": [2**40, 5]}, 2) == [2**52, 20480]
    with pytest.raises(PlanError, match=r"at most 2\^53"):
        Arithmetic.parse("w * w", (wide,), key="k")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "incomplete"),
        ("x +", "at the end"),
        ("x y", "the number has ended"),
        ("x / 2", "Multiply by a decimal"),
        ("x > 1", "in brackets"),
        ("(x", r"\) is missing"),
        ("[gift", "not closed"),
        ("[x]", "only a boolean column"),
        ("word", "is text, not a number"),
        ("gift", r"for a condition, \[gift == ...\]"),
        ("z", "there is no column 'z'"),
        ("word * 2", "is text"),
        ("0 * x", "is 0 for every record"),
        ("x @ x", "no word of the language"),
        ("(" * 60 + "x" + ")" * 60, "nested"),
        ("x " * 6000, "12000 characters"),
        ("1e99 * x * 1e99", "between 1e-30 and 1e30"),
    ],
)
def test_what_is_no_number_is_refused_at_its_character(text: str, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        parsed(text)


@given(
    st.lists(
        st.fractions(min_value=-10, max_value=10, max_denominator=100), min_size=1, max_size=5
    ).filter(any)
)
def test_the_common_step_is_the_coarsest_grid_that_holds_all(numbers: list[Fraction]) -> None:
    step = common_step(numbers)
    multiples = [number / step for number in numbers]
    assert [one.denominator for one in multiples] == [1] * len(numbers)
    assert Fraction(1) == common_step(multiples)
