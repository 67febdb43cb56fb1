"""Counts over ordered cells: linear, exact, and of the values that count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from retrodp.plan.columns import Column
from retrodp.plan.expression import Expression
from retrodp.statistics.label import BinLabels
from retrodp.statistics.ordered import (
    Cells,
    EdgeCells,
    GridCells,
    OrderedCounts,
    RangeCounts,
    cells_by_group,
    coordinate,
    joined,
)
from retrodp.stream.batch import Batch

FEW = settings(max_examples=40, deadline=None)
AMOUNT = Column(
    name="amount",
    type="number",
    from_="amount",
    min=Fraction(-5),
    max=Fraction(20),
    step=Fraction(1, 2),
)
COUNTRY = Column(name="country", type="category", from_="country", values=("DE", "FR"))
GRID = GridCells(least=-10, greatest=40)
EDGES = EdgeCells(edges=(-10, 0, 3, 40))
BY = BinLabels(columns=(COUNTRY,))
ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(-10, 40),
        st.sampled_from(["DE", "FR", None]),
        st.integers(1, 5),
    ),
    max_size=30,
)
Rows = Sequence[tuple[int | None, str | None, int]]


def batch(rows: Rows) -> Batch:
    columns: dict[str, list[object]] = {
        "amount": [value for value, _, _ in rows],
        "country": [country for _, country, _ in rows],
    }
    return Batch(len(rows), columns, np.array([count for _, _, count in rows], dtype=np.int64))


def counts(cells: Cells = GRID, *, by: BinLabels | None = None, where: str = "") -> OrderedCounts:
    condition = Expression.parse(where, (AMOUNT, COUNTRY), key="where") if where else None
    return OrderedCounts(of=AMOUNT, cells=cells, moved=7, by=by, where=condition)


def plainly(rows: Rows) -> Counter[bytes]:
    found: Counter[bytes] = Counter()
    for value, _, copies in rows:
        if value is not None:
            found[b"%d" % (value + 10)] += copies
    return found


@FEW
@given(ROWS)
def test_every_value_counts_in_its_cell_and_null_in_none(rows: Rows) -> None:
    assert counts().encode(batch(rows)) == plainly(rows)


@FEW
@given(ROWS)
def test_groups_have_cells_of_their_own(rows: Rows) -> None:
    found = counts(by=BY).encode(batch(rows))
    for country, label in (("DE", b"DE"), ("FR", b"FR"), (None, b"[null]")):
        own = plainly([row for row in rows if row[1] == country])
        assert cells_by_group(found).get(label, {}) == {int(cell): own[cell] for cell in own}


@FEW
@given(ROWS)
def test_a_condition_leaves_out_records(rows: Rows) -> None:
    kept = [row for row in rows if row[0] is not None and row[0] > 2 and row[1] == "DE"]
    found = counts(where="amount > 1 and country == 'DE'").encode(batch(rows))
    assert found == plainly(kept)


@FEW
@given(ROWS, ROWS)
def test_the_encoding_is_linear(one: Rows, two: Rows) -> None:
    added = Counter(counts(by=BY).encode(batch(one)))
    added.update(counts(by=BY).encode(batch(two)))
    assert counts(by=BY).encode(batch([*one, *two])) == added


@pytest.mark.parametrize(
    ("value", "cell"), [(-10, 0), (-1, 0), (0, 1), (2, 1), (3, 2), (39, 2), (40, None)]
)
def test_a_cell_begins_at_its_edge_and_ends_before_the_next(value: int, cell: int | None) -> None:
    expected = {} if cell is None else {b"%d" % cell: 1}
    assert counts(EDGES).encode(batch([(value, "DE", 1)])) == expected


def test_a_value_below_the_first_edge_is_not_counted() -> None:
    cells = EdgeCells(edges=(0, 5))
    assert counts(cells).encode(batch([(-1, "DE", 1), (0, "DE", 1), (5, "DE", 1)])) == {b"0": 1}


def test_ranges_are_counted_under_the_labels_that_are_published() -> None:
    rows: Rows = [(-10, "DE", 2), (1, "DE", 1), (1, "FR", 1), (None, "FR", 1), (40, "FR", 1)]
    plain = RangeCounts(counts=counts(EDGES), labels=("a", "b", "c"))
    assert plain.encode(batch(rows)) == {b"a": 2, b"b": 2}
    grouped = RangeCounts(counts=counts(EDGES, by=BY), labels=("a", "b", "c"))
    assert grouped.encode(batch(rows)) == {b'["DE","a"]': 2, b'["DE","b"]': 1, b'["FR","b"]': 1}


@pytest.mark.parametrize("copies", [2**31 + 1, 2**62, 2**63 - 1])
def test_copies_do_not_wrap(copies: int) -> None:
    found = counts().encode(batch([(0, "DE", copies), (0, "FR", copies), (1, "FR", copies)]))
    assert found == {b"10": 2 * copies, b"11": copies}


def test_a_component_has_an_entry_for_every_coordinate_that_a_record_moves() -> None:
    (plain,) = counts().components
    (grouped,) = counts(by=BY).components
    assert plain.partitions == ((),) * 7
    assert grouped.partitions == (("country",),) * 7
    assert plain.amount == plain.step == plain.share == 1


def test_columns_are_those_that_are_read() -> None:
    statistic = counts(by=BY, where="amount > 1")
    assert statistic.columns == ("amount", "country")


@pytest.mark.parametrize(
    ("group", "last", "label"),
    [
        ("DE", "0.5", '["DE",0.5]'),
        ("[null]", "0.5", "[null,0.5]"),
        ('["DE",true]', "10", '["DE",true,10]'),
        ('quote"', "1/3", '["quote\\"","1/3"]'),
        ("DE", "[0, 5)", '["DE","[0, 5)"]'),
        ("DE", "-2.5", '["DE",-2.5]'),
    ],
)
def test_labels_of_groups_and_values_are_json_arrays(group: str, last: str, label: str) -> None:
    assert joined(group, last) == label


def test_no_two_groups_and_values_share_a_label() -> None:
    groups = ["DE", "[null]", '["DE",0.5]', "DE,0.5", '"DE"', "1", "[1]"]
    pairs = [(group, last) for group in groups for last in ("0.5", "5", "0.5,5", '"')]
    assert len({joined(group, last) for group, last in pairs}) == len(pairs)


def test_a_label_with_a_line_feed_names_one_group() -> None:
    assert cells_by_group({coordinate(3, b"two\nlines"): 1}) == {b"two\nlines": {3: 1}}
    assert cells_by_group({}) == {b"": {}}
