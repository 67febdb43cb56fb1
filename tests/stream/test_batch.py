"""Records as columns."""

from __future__ import annotations

import pytest

from retrodp.stream.batch import Batch
from retrodp.stream.update import Record
from tests.stream.rows import payload

RECORDS = [
    Record("", "a", 1, "p", payload("p", 12, True)),
    Record("", "b", 2, None, payload(None, -(2**53), None), 3),
]


def test_columns_hold_the_canonical_values_in_order() -> None:
    batch = Batch.of_records(RECORDS, ["who", "amount", "ok"])
    assert {name: batch.columns[name] for name in batch.columns} == {
        "who": ["p", None],
        "amount": [12, -(2**53)],
        "ok": [True, None],
    }
    assert batch.length == 2
    assert batch.counts.tolist() == [1, 3]


def test_no_records_are_empty_columns() -> None:
    batch = Batch.of_records([], ["who"])
    assert batch.columns["who"] == []
    assert batch.counts.shape == (0,)


def test_an_unknown_column_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        Batch.of_records(RECORDS, ["who", "amount", "ok"]).columns["nobody"]


def test_more_records_than_a_short_header_counts() -> None:
    records = [Record("", str(number), 1, None, payload(number)) for number in range(70_000)]
    assert Batch.of_records(records, ["value"]).columns["value"] == list(range(70_000))


def test_a_batch_says_nothing_about_ids() -> None:
    assert "secret-id" not in repr(
        Batch.of_records([Record("", "secret-id", 1, None, payload())], [])
    )
