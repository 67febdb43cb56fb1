"""Attack 9: two persons share an id; equal (id, at) decided by the order of a file."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import msgspec

from tests.support.plans import plan
from tests.support.rows import Row, add, delete, ingest
from tests.support.stores import memory_directory, new_store, published

# Three contents for one id at one instant, and a replacement among them.
TIED = [
    add("x", 1, product="tea", amount=3.0),
    add("x", 1, product="ink", amount=9.0),
    add("x", 1, product=None, amount=-1.0),
]


def bytes_of(rows: Sequence[Row], *, one_by_one: bool) -> object:
    with memory_directory() as directory:
        with new_store(directory / "store", plan()) as store:
            for batch in [[row] for row in rows] if one_by_one else [rows]:
                ingest(store, batch)
            store.close_through(2)
        return published(directory / "store")


def test_ties_do_not_depend_on_the_order_or_batches_of_delivery() -> None:
    outcomes = [
        bytes_of(order, one_by_one=one_by_one)
        for order in permutations(TIED)
        for one_by_one in (True, False)
    ]
    assert all(outcome == outcomes[0] for outcome in outcomes)
    assert len(outcomes) == 12


def test_a_tie_goes_to_the_smallest_canonical_encoding(ram: Path) -> None:
    with new_store(ram / "store", plan()) as store:
        ingest(store, TIED)
        store.close_round()
        [[kept]] = store.ledger.survivors()
    smallest = min(msgspec.msgpack.encode(row.contents.canonical) for row in TIED)
    assert kept.payload == smallest


def test_under_a_person_unit_an_id_belongs_to_its_person(ram: Path) -> None:
    rows = [add("x", 1, who="ann"), add("x", 1, who="bob"), delete("x", 2, who="ann")]
    with new_store(ram / "store", plan("persons")) as store:
        ingest(store, rows)
        store.close_through(2)
        left = [(one.space, one.id) for batch in store.ledger.survivors() for one in batch]
    assert left == [("bob", "x")]


def test_twin_ids_without_a_namespace_let_one_person_delete_anothers_record(ram: Path) -> None:
    rows = [add("x", 1, who="ann"), add("x", 1, who="bob"), delete("x", 2, who="bob")]
    with new_store(ram / "store", plan("ids")) as store:
        ingest(store, rows)
        store.close_round()
        [[kept]] = store.ledger.survivors()
        store.close_round()
        assert store.ledger.survivor_count() == 0
    assert kept.person == "ann"


def test_twin_the_last_row_of_a_file_wins_differently_in_each_order() -> None:
    winners = {order[-1].contents.product for order in permutations(TIED)}
    assert len(winners) == 3
