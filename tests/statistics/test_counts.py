"""Counts and sums are linear maps of the surviving records."""

from __future__ import annotations

from fractions import Fraction

import hypothesis.strategies as st
import msgspec
from hypothesis import given

from retrodp.plan.columns import Column
from retrodp.plan.expression import Expression
from retrodp.statistics.contract import Statistic
from retrodp.statistics.counts import Count, Sum
from retrodp.statistics.label import BinLabels
from retrodp.statistics.means import CentredMean
from retrodp.stream.batch import Batch
from retrodp.stream.update import Record

PRODUCT = Column(name="product", type="text", from_="product")
GIFT = Column(name="gift", type="boolean", from_="gift")
AMOUNT = Column(
    name="amount",
    type="number",
    from_="amount",
    min=Fraction(-5),
    max=Fraction(20),
    step=Fraction(1, 2),
)
COLUMNS = (PRODUCT, GIFT, AMOUNT)
NAMES = [column.name for column in COLUMNS]
WHERE = Expression.parse("amount > 1 and gift", COLUMNS)
BY = BinLabels(columns=(PRODUCT,))
STATISTICS: list[Statistic] = [
    Count(),
    Count(where=WHERE),
    Count(by=BY),
    Count(by=BinLabels(columns=(PRODUCT, GIFT)), where=WHERE),
    Sum(of=AMOUNT),
    Sum(of=AMOUNT, by=BY, where=WHERE),
    CentredMean(of=AMOUNT),
    CentredMean(of=AMOUNT, by=BY),
]

Values = tuple[str | None, bool | None, int | None]
VALUES = st.tuples(
    st.sampled_from(["tea", "ink", "", "[", None]),
    st.sampled_from([True, False, None]),
    st.sampled_from([-10, 0, 3, 40, None]),
)
RECORDS = st.lists(st.tuples(VALUES, st.integers(1, 3)), max_size=8)


def batch(records: list[tuple[Values, int]]) -> Batch:
    made = [
        Record("", "", 1, None, msgspec.msgpack.encode(values), count) for values, count in records
    ]
    return Batch.of_records(made, NAMES)


def nonzero(totals: dict[bytes, int]) -> dict[bytes, int]:
    return {label: total for label, total in totals.items() if total}


def added(*parts: dict[bytes, int]) -> dict[bytes, int]:
    labels = {label for part in parts for label in part}
    return nonzero({label: sum(part.get(label, 0) for part in parts) for label in labels})


@given(RECORDS, RECORDS)
def test_the_encoding_of_two_batches_is_the_sum_of_theirs(
    one: list[tuple[Values, int]], two: list[tuple[Values, int]]
) -> None:
    for statistic in STATISTICS:
        whole = nonzero(statistic.encode(batch(one + two)))
        assert whole == added(statistic.encode(batch(one)), statistic.encode(batch(two)))


@given(RECORDS)
def test_copies_count_as_often_as_they_are_there(records: list[tuple[Values, int]]) -> None:
    single = [(values, 1) for values, count in records for _ in range(count)]
    for statistic in STATISTICS:
        assert nonzero(statistic.encode(batch(records))) == nonzero(statistic.encode(batch(single)))


@given(RECORDS)
def test_the_order_of_records_is_irrelevant(records: list[tuple[Values, int]]) -> None:
    for statistic in STATISTICS:
        backwards = statistic.encode(batch(records[::-1]))
        assert nonzero(statistic.encode(batch(records))) == nonzero(backwards)


@given(VALUES)
def test_a_record_moves_each_component_by_at_most_its_amount(values: Values) -> None:
    for statistic in STATISTICS:
        moved = nonzero(statistic.encode(batch([(values, 1)])))
        allowed = sum(component.amount for component in statistic.components)
        assert len(moved) <= len(statistic.components)
        assert sum(map(abs, moved.values())) <= allowed
        assert max(map(abs, moved.values()), default=0) <= max(
            component.amount for component in statistic.components
        )


def test_sums_are_taken_in_steps_and_null_adds_nothing() -> None:
    records: list[tuple[Values, int]] = [(("tea", True, 3), 2), (("tea", True, None), 5)]
    assert Sum(of=AMOUNT).encode(batch(records)) == {b"": 6}
    assert Sum(of=AMOUNT, by=BY).encode(batch(records)) == {b"tea": 6}


def test_the_amount_of_a_sum_is_the_bound_farther_from_zero() -> None:
    [component] = Sum(of=AMOUNT).components
    assert (component.amount, component.step) == (40, Fraction(1, 2))


def test_the_amount_of_a_centred_sum_is_half_the_range() -> None:
    total, count = CentredMean(of=AMOUNT).components
    assert (total.amount, count.amount) == (25, 1)


def test_totals_beyond_64_bits_do_not_wrap() -> None:
    records: list[tuple[Values, int]] = [(("tea", True, 40), 2**62)] * 4
    assert Count().encode(batch(records)) == {b"": 2**64}
    assert Sum(of=AMOUNT).encode(batch(records)) == {b"": 40 * 2**64}


def test_a_condition_leaves_out_what_it_does_not_know() -> None:
    records: list[tuple[Values, int]] = [(("tea", None, 40), 1), (("tea", True, None), 1)]
    assert nonzero(Count(where=WHERE).encode(batch(records))) == {}


def test_a_statistic_says_which_columns_it_reads() -> None:
    assert set(Sum(of=AMOUNT, by=BY, where=WHERE).columns) == set(NAMES)
    assert Count().columns == ()
