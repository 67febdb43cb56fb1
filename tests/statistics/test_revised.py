"""Counts and sums by stamp: linear, one coordinate a record, read back at once."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from retrodp.statistics.counts import Count
from retrodp.statistics.label import BinLabels
from retrodp.statistics.revised import ByStamp, labelled, places, seven_bits
from retrodp.stream.batch import Batch
from tests.support.plans import plan

COLUMN = plan().column("country")
PUBLIC = ByStamp(inner=Count(by=BinLabels(columns=(COLUMN,))), bins=("DE", "FR", "[null]", "other"))
OPEN = replace(PUBLIC, bins=None)
WHOLE = ByStamp(inner=Count(), bins=())

ROWS = st.lists(
    st.tuples(st.integers(1, 2**20), st.sampled_from(["DE", "FR", "other"]), st.integers(1, 3))
)


def batch(rows: list[tuple[int, str, int]]) -> Batch:
    stamps, values, counts = zip(*rows, strict=True) if rows else ((), (), ())
    return Batch(
        len(rows),
        {"country": list(values)},
        np.array(counts, dtype=np.int64),
        np.array(stamps, dtype=np.int64),
    )


@given(ROWS, ROWS)
def test_a_batch_counts_as_its_parts_do(
    one: list[tuple[int, str, int]], two: list[tuple[int, str, int]]
) -> None:
    for statistic in (PUBLIC, OPEN, WHOLE):
        parts = [statistic.encode(batch(rows)) for rows in (one, two)]
        together = statistic.encode(batch([*one, *two]))
        assert {label: sum(part.get(label, 0) for part in parts) for label in together} == together
        assert set(parts[0]) | set(parts[1]) == set(together)


@given(ROWS)
def test_coordinates_are_read_back(rows: list[tuple[int, str, int]]) -> None:
    expected: dict[tuple[int, str], int] = {}
    for stamp, country, count in rows:
        expected[stamp, country] = expected.get((stamp, country), 0) + count
    found = PUBLIC.encode(batch(rows))
    assert PUBLIC.bins is not None
    assert {
        (stamp, PUBLIC.bins[place]): total
        for stamp, place, total in zip(*(c.tolist() for c in places(found)), strict=True)
    } == expected
    assert {labelled(label): total for label, total in OPEN.encode(batch(rows)).items()} == {
        (stamp, country.encode()): total for (stamp, country), total in expected.items()
    }
    assert all(label.decode() for label in found)  # readable wherever labels are


@given(st.integers(0, 2**28 - 1))
def test_seven_bits_keep_a_number_and_its_order(number: int) -> None:
    coded = seven_bits(number)
    assert max(coded) < 128
    assert labelled(coded + b"x") == (number, b"x")
    assert (seven_bits(max(number - 1, 0)) <= coded) is True


def test_a_record_moves_one_coordinate_and_costs_what_it_costs_without_stamps() -> None:
    assert len(PUBLIC.encode(batch([(3, "DE", 1)]))) == 1
    assert PUBLIC.components == PUBLIC.inner.components


def test_stamps_before_round_one_count_where_stamps_add_up() -> None:
    """Only a store that continues another has such records."""
    old = batch([(-4, "DE", 1), (2, "DE", 1)])
    assert WHOLE.encode(old) == {seven_bits(2) + seven_bits(0): 1}
    assert replace(WHOLE, oldest=1).encode(old) == {
        seven_bits(1) + seven_bits(0): 1,
        seven_bits(2) + seven_bits(0): 1,
    }
