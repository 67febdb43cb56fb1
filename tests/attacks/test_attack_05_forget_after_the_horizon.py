"""Attack 5: an erasure that is asked for after the last round is never executed."""

from __future__ import annotations

from pathlib import Path

from retrodp.engine.store import Store
from tests.support.plans import HORIZON, counting
from tests.support.rows import add, ingest
from tests.support.stores import abandon, crashed, new_store, published, read_files


def ended(path: Path) -> Store:
    store = new_store(path, counting())
    ingest(store, [add("to-be-forgotten", 1), add("other", 1)])
    store.close_through(HORIZON)
    return store


def bytes_left(path: Path) -> bool:
    return any(b"to-be-forgotten" in content for content in read_files(path).values())


def test_a_forget_after_the_last_round_is_executed_at_once_without_a_release(ram: Path) -> None:
    with ended(ram / "store") as store:
        before = published(ram / "store")
        [receipt] = store.forget(["to-be-forgotten"])
        assert receipt.erased
        assert not bytes_left(ram / "store")
        assert store.ledger.survivor_count() == 1
        assert published(ram / "store") == before


def test_a_forget_that_a_kill_interrupted_is_executed_when_the_store_opens(ram: Path) -> None:
    store = ended(ram / "store")
    store.ledger.forgets.add("id", "to-be-forgotten")
    with crashed(store, ram / "again"):
        assert not bytes_left(ram / "again")


def test_twin_a_forget_that_waits_for_the_next_close_waits_for_ever(ram: Path) -> None:
    store = ended(ram / "store")
    store.ledger.forgets.add("id", "to-be-forgotten")  # and no round is left to carry it out
    abandon(store)
    assert bytes_left(ram / "store")
