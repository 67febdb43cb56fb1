"""Attack 20: `verify` with waiting deletions, or showing what differs, reuses noise on other data."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from retrodp.engine.states import made
from retrodp.engine.store import Store
from retrodp.engine.totals import recount
from retrodp.engine.verify import verify
from retrodp.mechanisms.answer import Answer
from tests.support.answers import values_of
from tests.support.plans import counting
from tests.support.rows import add, delete, ingest
from tests.support.stores import new_store, published
from tests.support.torn import unlinked


def store_with_nine(path: Path) -> Store:
    store = new_store(path, counting())
    ingest(store, [add(f"id{number}", 1) for number in range(9)])
    store.close_through(2)
    return store


def recomputed(store: Store) -> int:
    """What a comparison that shows its numbers would show."""
    totals = recount(store.releases, [], store.round, store.ledger.survivors())
    [answer] = made(
        store.releases, store.round, totals, store.key.tree, begun={}, states={}
    ).answers
    return values_of(answer)[0]


def test_waiting_deletions_and_forgets_change_no_verdict(ram: Path) -> None:
    with store_with_nine(ram / "store") as store:
        ingest(store, [delete("id1", 3), delete("id2", 3)])
        store.forget(["id3"])
        verified = verify(store)
    assert verified.document["releases_equal"] is True
    assert verified.document["differing_rows"] == {}
    assert verified.passed


def test_a_difference_is_told_by_row_and_no_recomputed_value_is_written(ram: Path) -> None:
    with store_with_nine(ram / "store"):
        pass
    unlinked(ram / "store" / "ledger.sqlite", ["id4", "id5"])
    with Store.open(ram / "store") as store:
        document = verify(store).document
        [noisy] = values_of(Answer.from_bytes(published(ram / "store")[2]["lines"]))
        other = recomputed(store)
    assert other == noisy - 2
    assert document["releases_equal"] is False
    assert document["differing_rows"] == {"lines": [1]}
    # Everything in the certificate that could be a number, hashes and public settings apart.
    named = {"differing_rows", "changed_rounds", "what_it_means", "releases_equal", "round"}
    told = json.dumps({name: document[name] for name in named})
    assert str(other) not in told.replace("[1]", "").replace('"round": 2', "")


def test_twin_a_comparison_that_applies_what_waits_publishes_an_exact_difference(ram: Path) -> None:
    with store_with_nine(ram / "store") as store:
        [noisy] = values_of(Answer.from_bytes(published(ram / "store")[2]["lines"]))
        connection = sqlite3.connect(":memory:")
        connection.close()
        gone = {"id1", "id2", "id3"}
        kept = [
            [record for record in batch if record.id not in gone]
            for batch in store.ledger.survivors()
        ]
        totals = recount(store.releases, [], store.round, kept)
        [answer] = made(
            store.releases, store.round, totals, store.key.tree, begun={}, states={}
        ).answers
    assert noisy - values_of(answer)[0] == len(gone)
