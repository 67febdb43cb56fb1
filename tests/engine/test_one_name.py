"""One id given as a text is one id, not its letters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from retrodp.engine.store import Store
from tests.support.plans import counting
from tests.support.rows import add, ingest
from tests.support.stores import new_store


@pytest.mark.parametrize(
    "take",
    [lambda store: store.delete("ab"), lambda store: store.forget("ab")],
    ids=["delete", "forget"],
)
def test_a_text_is_one_id(take: Callable[[Store], object], ram: Path) -> None:
    with new_store(ram / "s", counting()) as store:
        ingest(store, [add("a"), add("b"), add("ab")])
        take(store)
        store.close_round()
        left = {record.id for batch in store.ledger.survivors() for record in batch}
    assert left == {"a", "b"}


def test_a_text_is_one_person(ram: Path) -> None:
    with new_store(ram / "s", counting()) as store:
        ingest(store, [add("1", who="a"), add("2", who="ab")])
        (receipt,) = store.forget(persons="ab")
        store.close_round()
        left = {record.id for batch in store.ledger.survivors() for record in batch}
    assert receipt.forgotten.kind == "person"
    assert left == {"1"}
