from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrodp.errors import PlanError
from retrodp.plan import Column, Expression

COLUMNS = (
    Column(name="place", type="text", from_="place"),
    Column(name="town", type="text", from_="town"),
    Column(name="kind", type="category", from_="kind", values=("a", "b"), other=True),
    Column(
        name="money",
        type="number",
        from_="money",
        min=Fraction(0),
        max=Fraction(10),
        step=Fraction(1, 100),
    ),
    Column(
        name="weight",
        type="number",
        from_="weight",
        min=Fraction(0),
        max=Fraction(10),
        step=Fraction(1, 4),
    ),
    Column(
        name="items",
        type="integer",
        from_="items",
        min=Fraction(0),
        max=Fraction(10),
        step=Fraction(1),
    ),
    Column(name="gift", type="boolean", from_="gift"),
    Column(name="day", type="date", from_="day"),
    Column(name="two words", type="text", from_="two words"),
    Column(name="in", type="text", from_="in"),
)
RECORDS: dict[str, list[object]] = {
    "place": ["Rome", "Oslo", None, "", "\u00e9"],
    "town": ["Rome", "Bonn", None, "x", None],
    "kind": ["a", "b", "other", None, "a"],
    "money": [0, 1, 250, 1000, None],
    "weight": [0, 1, 10, 40, None],
    "items": [0, 1, 2, None, 10],
    "gift": [True, False, None, True, False],
    "day": ["2010-12-01", "2011-01-01", None, "2011-06-30", "2010-12-02"],
    "two words": ["x", "y", "x", None, "y"],
    "in": ["x", "y", "x", None, "y"],
}


def holds(text: str) -> list[int]:
    """Positions of the records that fulfil the expression."""
    result = Expression.parse(text, COLUMNS).evaluate(RECORDS, 5)
    assert result.dtype == np.bool_
    assert result.shape == (5,)
    return [int(position) for position in np.flatnonzero(result)]


@pytest.mark.parametrize(
    ("text", "records"),
    [
        ("place == 'Rome'", [0]),
        ('"Rome" == place', [0]),
        ("place != 'Rome'", [1, 3, 4]),  # null fulfils no comparison
        ("not place == 'Rome'", [1, 2, 3, 4]),
        ("place == null", [2]),
        ("null != place", [0, 1, 3, 4]),
        ("place in ['Rome', 'Oslo']", [0, 1]),
        ("place in ['Rome', null]", [0, 2]),
        ("place not in ['Rome']", [1, 2, 3, 4]),
        ("place not in ['Rome', null]", [1, 3, 4]),
        ("place == ''", [3]),
        ("place == 'e\u0301'", [4]),  # literals are NFC like the data
        ("place < 'P'", [1, 3]),
        ("place == town", [0]),
        ("place != town", [1, 3]),
        ("kind == 'other'", [2]),
        ("kind in ['a', null]", [0, 3, 4]),
        ("money > 0.01", [2, 3]),
        ("money >= 0.01", [1, 2, 3]),
        ("money > 0.005", [1, 2, 3]),
        ("money < 2.505", [0, 1, 2]),
        ("money <= 2.499", [0, 1]),
        ("money == 2.5", [2]),
        ("money == 2.505", []),
        ("money != 2.505", [0, 1, 2, 3]),
        ("money in [0.01, 2.505, 10]", [1, 3]),
        ("2.5 < money", [3]),
        ("money == weight", [0, 2, 3]),
        ("money < weight", [1]),
        ("items < weight", [2]),
        ("items == 1.0", [1]),
        ("items > -1e-3", [0, 1, 2, 4]),
        ("gift", [0, 3]),
        ("not gift", [1, 2, 4]),
        ("gift == false", [1, 4]),
        ("gift in [true, null]", [0, 2, 3]),
        ("day < '2011-01-01'", [0, 4]),
        ("day >= '2011-01-01'", [1, 3]),
        ("`two words` == 'x' and `in` == 'x'", [0, 2]),
        ("gift or items == 1 and kind == 'b'", [0, 1, 3]),
        ("(gift or items == 1) and kind == 'b'", [1]),
        ("not gift and not (kind == 'a')", [1, 2]),
        ("not not gift", [0, 3]),
        ("place == 'it\\'s' or\n\tplace == \"\\\"\" or gift", [0, 3]),
    ],
)
def test_an_expression_means_what_it_says(text: str, records: list[int]) -> None:
    assert holds(text) == records


@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        ("", 1, "a column or a literal"),
        ("place", 6, "boolean column"),
        ("plase == 'x'", 1, "Did you mean 'place'"),
        ("gift and nobody", 10, "no column 'nobody'"),
        ("place = 'x'", 7, "Write =="),
        ("gift && gift", 6, "Write and"),
        ("gift || gift", 6, "Write or"),
        ("!gift", 1, "Write not"),
        ("place == 'x", 10, "not closed"),
        ("place == ", 10, "a column or a literal"),
        ("(gift", 6, ")"),
        ("gift)", 5, "the condition has ended"),
        ("gift gift", 6, "and, or"),
        ("0 < items < 5", 11, "do not chain"),
        ("1 == 1", 3, "a column on one side"),
        ("true", 5, "boolean column"),
        ("place == 3", 10, "a text in quotes"),
        ("money == 'x'", 10, "a number"),
        ("gift == 1", 9, "true or false"),
        ("day == '2011-1-1'", 8, "2010-12-01"),
        ("day == '20110101'", 8, "2010-12-01"),
        ("kind == 'c'", 9, "a, b, other"),
        ("kind < 'a'", 6, "no order"),
        ("gift > false", 6, "no order"),
        ("place < null", 7, "== null or != null"),
        ("place == gift", 7, "place is text and gift is boolean"),
        ("place in 'x'", 10, "["),
        ("place in []", 7, "empty"),
        ("place in ['x' 'y']", 15, ","),
        ("place in [town]", 11, "literals only"),
        ("'x' in [place]", 1, "a column before in"),
        ("place not 'x'", 11, "in"),
        ("items == 1.2.3", 10, "no word"),
        ("items == 1e9999", 10, "no word"),
        ("__import__('os')", 1, "no column"),
        ("place.upper() == 'X'", 6, "no word"),
        ("items + 1 == 2", 7, "no word"),
        ("not " * 200 + "gift", 201, "nested"),
        ("(" * 200 + "gift", 51, "nested"),
    ],
)
def test_an_error_points_at_the_character(text: str, at: int, says: str) -> None:
    with pytest.raises(PlanError) as caught:
        Expression.parse(text, COLUMNS, key="release.x.where")
    message = str(caught.value)
    assert message.startswith(f"release.x.where, character {at} (")
    assert says in message


def test_an_endless_expression_is_refused() -> None:
    with pytest.raises(PlanError, match="at most"):
        Expression.parse(" or ".join(["gift"] * 5000), COLUMNS)


def test_an_expression_says_which_columns_it_reads() -> None:
    parsed = Expression.parse("gift and (money > 1 or money < weight) or not gift", COLUMNS)
    assert parsed.columns == ("gift", "money", "weight")


def test_only_the_named_columns_are_needed() -> None:
    parsed = Expression.parse("gift", COLUMNS)
    assert parsed.evaluate({"gift": [True]}, 1).tolist() == [True]


def test_no_records_fulfil_nothing() -> None:
    parsed = Expression.parse("gift or money > 1", COLUMNS)
    assert parsed.evaluate({"gift": [], "money": []}, 0).shape == (0,)


Meaning = Callable[[dict[str, Any]], bool]

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
STEPS = {"money": Fraction(1, 100), "weight": Fraction(1, 4), "items": Fraction(1)}


def amount(record: dict[str, Any], name: str) -> Fraction | None:
    return None if record[name] is None else record[name] * STEPS[name]


def compared(left: Any, sign: str, right: Any) -> bool:
    return left is not None and right is not None and OPERATORS[sign](left, right)


NAMES = st.sampled_from(sorted(STEPS))
SIGNS = st.sampled_from(sorted(OPERATORS))
NUMBERS = st.integers(-2000, 12000).map(lambda thousandths: Fraction(thousandths, 1000))


@st.composite
def with_literal(draw: st.DrawFn) -> tuple[str, Meaning]:
    name, sign, number = draw(NAMES), draw(SIGNS), draw(NUMBERS)
    return (
        f"{name} {sign} {float(number)}",
        lambda record: compared(amount(record, name), sign, number),
    )


@st.composite
def with_column(draw: st.DrawFn) -> tuple[str, Meaning]:
    left, sign, right = draw(NAMES), draw(SIGNS), draw(NAMES)
    return (
        f"{left} {sign} {right}",
        lambda record: compared(amount(record, left), sign, amount(record, right)),
    )


@st.composite
def with_list(draw: st.DrawFn) -> tuple[str, Meaning]:
    name, numbers = draw(NAMES), draw(st.lists(NUMBERS, min_size=1, max_size=3))
    null = draw(st.booleans())
    listed = [str(float(number)) for number in numbers] + ["null"] * null
    members = {*numbers, None} if null else set(numbers)
    return f"{name} in [{', '.join(listed)}]", lambda record: amount(record, name) in members


def together(
    parts: st.SearchStrategy[tuple[str, Meaning]],
) -> st.SearchStrategy[tuple[str, Meaning]]:
    def both(pair: tuple[tuple[str, Meaning], tuple[str, Meaning]]) -> tuple[str, Meaning]:
        (left, a), (right, b) = pair
        return f"({left}) and ({right})", lambda record: a(record) and b(record)

    def either(pair: tuple[tuple[str, Meaning], tuple[str, Meaning]]) -> tuple[str, Meaning]:
        (left, a), (right, b) = pair
        return f"({left}) or ({right})", lambda record: a(record) or b(record)

    def negated(part: tuple[str, Meaning]) -> tuple[str, Meaning]:
        text, meaning = part
        return f"not ({text})", lambda record: not meaning(record)

    pairs = st.tuples(parts, parts)
    return pairs.map(both) | pairs.map(either) | parts.map(negated)


EXPRESSIONS = st.recursive(with_literal() | with_column() | with_list(), together, max_leaves=6)
AMOUNTS = st.none() | st.integers(0, 1000)


@settings(deadline=None)
@given(
    expression=EXPRESSIONS,
    records=st.lists(
        st.fixed_dictionaries(
            {
                "money": AMOUNTS,
                "weight": st.none() | st.integers(0, 40),
                "items": st.none() | st.integers(0, 10),
            }
        ),
        max_size=8,
    ),
)
def test_numbers_compare_as_fractions_do(
    expression: tuple[str, Meaning], records: list[dict[str, Any]]
) -> None:
    text, meaning = expression
    columns = {name: [record[name] for record in records] for name in STEPS}
    found = Expression.parse(text, COLUMNS).evaluate(columns, len(records))
    assert found.tolist() == [meaning(record) for record in records]
