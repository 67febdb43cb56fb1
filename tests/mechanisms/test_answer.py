"""Answers: canonical bytes, exact decimals, frames."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import hypothesis.strategies as st
import pytest
from hypothesis import given

from retrodp.errors import StoreCorruptError
from retrodp.mechanisms.answer import COLUMNS, Answer, Bounds

ANSWER = Answer(
    release="by_product",
    round=3,
    keys=("ink", "tea"),
    values=(-7, 2**62),
    step=Fraction(1, 100),
    stddev="1.25",
    half=5,
    half_all=9,
    level=Fraction(19, 20),
    threshold=4,
)
SCALAR = replace(ANSWER, keys=None, values=(12,), threshold=None)


def test_the_bytes_are_canonical_json_without_floats() -> None:
    assert SCALAR.to_bytes() == (
        b'{"each":null,"format":1,"half":5,"half_all":9,"keys":null,"level":"19/20",'
        b'"release":"by_product","round":3,"stddev":"1.25","step":"1/100","threshold":null,'
        b'"values":[12]}'
    )


BOUNDS = st.builds(Bounds, st.just("1.5"), *(st.integers(-(2**63), 2**63 - 1) for _ in range(4)))


@given(
    st.lists(
        st.tuples(st.text(), st.none() | st.integers(-(2**63), 2**63 - 1), BOUNDS), max_size=4
    ),
    st.booleans(),
)
def test_any_answer_survives_its_bytes(
    rows: list[tuple[str, int | None, Bounds]],
    each: bool,  # noqa: FBT001  drawn
) -> None:
    answer = replace(
        ANSWER,
        keys=tuple(key for key, _, _ in rows),
        values=tuple(value for _, value, _ in rows),
        each=tuple(bounds for _, _, bounds in rows) if each else None,
    )
    assert Answer.from_bytes(answer.to_bytes()) == answer


@pytest.mark.parametrize("damage", [b"", b"{}", b"[]", b"\xff", ANSWER.to_bytes()[:-1], b"null"])
def test_what_is_no_answer_is_refused(damage: bytes) -> None:
    with pytest.raises(StoreCorruptError):
        Answer.from_bytes(damage)


def test_another_format_is_refused_by_its_number() -> None:
    other = ANSWER.to_bytes().replace(b'"format":1', b'"format":2')
    with pytest.raises(StoreCorruptError, match="format 2"):
        Answer.from_bytes(other)


def test_rows_are_exact_decimals_of_the_step() -> None:
    first, second = ANSWER.rows()
    assert first == ("ink", "-0.07", "1.25", "-0.12", "-0.02", "-0.16", "0.02")
    assert second[1] == "46116860184273879.04"


def test_a_scalar_has_a_value_and_a_histogram_has_rows() -> None:
    assert SCALAR.value == Fraction(12, 100)
    with pytest.raises(TypeError, match="one value a key"):
        _ = ANSWER.value


def test_frames_hold_the_rows() -> None:
    table = ANSWER.to_arrow()
    assert tuple(table.column_names) == COLUMNS
    assert table.column("key").to_pylist() == ["ink", "tea"]
    assert table.column("value").to_pylist()[0] == pytest.approx(-0.07)
    assert list(ANSWER.to_pandas().columns) == list(COLUMNS)
    assert ANSWER.to_polars().height == 2


def test_an_answer_without_bins_has_columns_and_no_rows() -> None:
    empty = replace(ANSWER, keys=(), values=())
    assert len(empty) == 0
    assert empty.to_arrow().num_rows == 0
    assert tuple(empty.to_arrow().column_names) == COLUMNS


def test_what_is_absent_from_a_sparse_answer_has_a_bound() -> None:
    assert ANSWER.to_json()["absent_below"] == "0.04"
    assert "absent_below" not in SCALAR.to_json()
