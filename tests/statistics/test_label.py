"""Labels of bins: what is printed is what the noise is keyed by, so no two bins share one."""

from __future__ import annotations

import json
from fractions import Fraction

import hypothesis.strategies as st
import pytest
from hypothesis import given

from retrodp.plan.columns import Column
from retrodp.statistics.label import BinLabels

TEXT = Column(name="text", type="text", from_="text")
FLAG = Column(name="flag", type="boolean", from_="flag")
WHOLE = Column(
    name="whole", type="integer", from_="whole", min=Fraction(0), max=Fraction(9), step=Fraction(1)
)
NUMBER = Column(
    name="number",
    type="number",
    from_="number",
    min=Fraction(-1),
    max=Fraction(9),
    step=Fraction(1, 4),
)


def label(column: Column, value: object) -> str:
    return BinLabels(columns=(column,)).text([value])


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        (TEXT, "tea", "tea"),
        (TEXT, "null", "null"),
        (TEXT, None, "[null]"),
        (TEXT, "", '[""]'),
        (TEXT, "[x]", '["[x]"]'),
        (TEXT, 'say "hi"', 'say "hi"'),
        (TEXT, "größe", "größe"),
        (TEXT, "a,b\nc", "a,b\nc"),
        (FLAG, True, "[true]"),
        (FLAG, None, "[null]"),
        (WHOLE, 1, "[1]"),
        (NUMBER, 4, "[1.0]"),
        (NUMBER, -1, "[-0.25]"),
        (NUMBER, 0, "[0.0]"),
    ],
)
def test_a_label_is_bare_text_or_a_json_array(column: Column, value: object, text: str) -> None:
    assert label(column, value) == text


def test_true_one_and_one_point_zero_are_three_bins() -> None:
    assert len({label(FLAG, True), label(WHOLE, 1), label(NUMBER, 4), label(TEXT, "1")}) == 4


def test_several_columns_are_an_array_in_their_order() -> None:
    labels = BinLabels(columns=(TEXT, FLAG, NUMBER))
    assert labels.text(["a", None, 5]) == '["a",null,1.25]'


TEXTS = st.none() | st.text(max_size=4) | st.sampled_from(['["a"]', "[null]", '["', "null", '""'])


@given(st.lists(TEXTS | st.sampled_from(["a\n[b", "\n[", "["]), max_size=6))
def test_labels_of_many_bins_are_those_of_each(values: list[str | None]) -> None:
    expected = [label(TEXT, value).encode() for value in values]
    assert BinLabels(columns=(TEXT,)).coordinates([values]) == expected


@given(st.tuples(TEXTS, TEXTS), st.tuples(TEXTS, TEXTS))
def test_two_different_bins_never_share_a_label(
    one: tuple[str | None, str | None], two: tuple[str | None, str | None]
) -> None:
    pair = BinLabels(columns=(TEXT, TEXT))
    assert (pair.text(one) == pair.text(two)) == (one == two)
    assert (label(TEXT, one[0]) == label(TEXT, two[0])) == (one[0] == two[0])


@given(TEXTS)
def test_a_label_that_begins_with_a_bracket_is_json(value: str | None) -> None:
    text = label(TEXT, value)
    assert (json.loads(text) if text.startswith("[") else [text]) == [value]
