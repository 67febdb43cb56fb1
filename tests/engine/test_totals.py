"""Totals kept by differences are those of a recount, also where windows and deletions meet."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrodp.engine.totals import add_into, recount
from tests.support.model import Lives, totals
from tests.support.plans import HORIZON, plan
from tests.support.rows import Row, add, delete, ingest
from tests.support.stores import new_store


def test_a_coordinate_that_returns_to_zero_leaves() -> None:
    kept = {b"a": 2, b"b": -1}
    add_into(kept, {b"a": -2, b"b": 1, b"c": 0, b"d": 5})
    assert kept == {b"d": 5}
    add_into(kept, {b"d": 5, b"e": 1}, -1)
    assert kept == {b"e": -1}


WINDOW_EDGES = {
    "expires": [add("a", 1)],
    "deleted in the round in which it expires": [add("a", 1), delete("a", 3)],
    "deleted in the round before": [add("a", 1), delete("a", 2)],
    "deleted after it expired": [add("a", 1), delete("a", 5)],
    "stamped in the past, still live": [Row(id="a", round=2, stamp=1)],
    "stamped in the past, expired on arrival": [Row(id="a", round=4, stamp=1)],
    "expired on arrival and deleted": [Row(id="a", round=4, stamp=1), delete("a", 5)],
    "replaced in the round in which it expires": [
        add("a", 1),
        Row(op="replace", id="a", round=3),
    ],
    "replaced by an older stamp": [add("a", 3), Row(op="replace", id="a", round=4, stamp=1)],
    "replaced by itself": [add("a", 1), Row(op="replace", id="a", round=3, stamp=1)],
    "added and deleted in one round": [
        add("a", 2),
        Row(op="delete", id="a", round=2, second=1),
    ],
}


@pytest.mark.parametrize("name", WINDOW_EDGES)
def test_windows_expire_once_whatever_else_happens(ram: Path, name: str) -> None:
    rows = WINDOW_EDGES[name] + [add("other", 2)]
    model = Lives()
    held, recounted, expected = [], [], []
    with new_store(ram / "store", plan()) as store:
        ingest(store, rows)
        for row in rows:
            model.take(row, first_open=1)
        names = [column.name for column in store.plan.columns]
        for round_ in range(1, HORIZON + 1):
            store.close_round()
            model.close(round_)
            expected.append(totals(model.survivors().items(), round_))
            held.append({one.name: store.ledger.read_totals(one.name) for one in store.releases})
            again = recount(store.releases, names, round_, store.ledger.survivors())
            recounted.append(
                {one: {at: n for at, n in sums.items() if n} for one, sums in again.items()}
            )
    assert held == expected
    assert recounted == expected


def test_forgetting_in_the_round_of_expiry_takes_off_once(ram: Path) -> None:
    with new_store(ram / "store", plan()) as store:
        ingest(store, [add("a", 1), add("b", 1), add("b2", 3)])
        store.close_through(2)
        store.forget(["a"])
        store.close_round()  # the round in which stamps of round 1 leave the window of two days
        assert store.ledger.read_totals("recent") == {b"": 1}
        assert store.ledger.read_totals("lines") == {b"": 2}


def test_a_record_that_arrives_and_is_forgotten_in_one_round_never_counts(ram: Path) -> None:
    with new_store(ram / "store", plan()) as store:
        store.forget(["a"])
        ingest(store, [add("a", 1)])
        store.close_round()
        assert store.ledger.read_totals("lines") == {}
        assert store.ledger.survivor_count() == 0
