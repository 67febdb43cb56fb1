"""Live records as a linear statistic: who they are, what they say, and nothing else."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import pytest

from retrodp.plan.plan import Plan
from retrodp.statistics.live import LiveRecords
from retrodp.stream.batch import Batch
from retrodp.stream.update import Record
from tests.support.plans import plan

PLAN: Plan = plan()
NAMES = [column.name for column in PLAN.columns]


def record(
    id_: str, amount: int | None, *, stamp: int = 1, space: str = "", count: int = 1
) -> Record:
    payload = msgspec.msgpack.encode(["ann", "tea", "DE", amount, False])
    return Record(space, id_, stamp, "ann", payload, count)


def live(*of: str, gate: Fraction | None = None) -> LiveRecords:
    return LiveRecords(of=tuple(map(PLAN.column, of)), gate=gate)


def encoded(statistic: LiveRecords, *records: Record) -> dict[tuple[object, ...], int]:
    totals = statistic.encode(Batch.of_records(records, NAMES))
    return {
        tuple(
            tuple(one) if isinstance(one, list) else one for one in msgspec.msgpack.decode(label)
        ): n
        for label, n in totals.items()
    }


def test_a_record_is_its_namespace_id_stamp_and_values() -> None:
    found = encoded(live("amount"), record("a", 3), record("b", 3, stamp=2, space="p"))
    assert found == {("", "a", 1, (3,)): 1, ("p", "b", 2, (3,)): 1}


def test_a_point_is_its_stamp_and_values_and_copies_add_up() -> None:
    found = encoded(live("amount", "country"), record("", 3, count=2), record("", 3), record("", 4))
    assert found == {(1, (3, "DE")): 3, (1, (4, "DE")): 1}


def test_a_null_number_is_not_counted_and_a_null_text_is() -> None:
    assert encoded(live("amount"), record("a", None)) == {}
    assert encoded(live("product"), record("a", None)) == {("", "a", 1, ("tea",)): 1}


def test_different_records_never_share_a_coordinate() -> None:
    """A point whose values look like an id, an id that looks like another's namespace."""
    records = [record("a", 1, space="b"), record("b", 1, space="a"), record("", 1), record("ab", 1)]
    assert len(encoded(live("amount"), *records)) == 4


@pytest.mark.parametrize(("gate", "components"), [(None, 0), (Fraction(1, 5), 1)])
def test_only_a_gate_takes_noise(gate: Fraction | None, components: int) -> None:
    found = live("amount", gate=gate).components
    assert len(found) == components
    assert all(one.amount == 1 and one.share == gate for one in found)
