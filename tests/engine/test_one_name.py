"""Names as a caller gives them: a text is one name, and what is no name is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retrodp.engine.store import Store
from retrodp.errors import UsageError
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


@pytest.mark.parametrize("given", [5, None, 2.5, b"ab"], ids=repr)
@pytest.mark.parametrize(
    ("name", "take"),
    [
        ("ids", lambda store, given: store.delete(given)),
        ("ids", lambda store, given: store.forget(given)),
        ("persons", lambda store, given: store.forget(persons=given)),
    ],
    ids=["delete", "forget", "forget a person"],
)
def test_what_is_no_name_is_refused_and_said_how_to_write(
    name: str, take: Callable[[Store, Any], object], given: Any, ram: Path
) -> None:
    with new_store(ram / "s", counting()) as store:
        with pytest.raises(UsageError, match=f"^{name} cannot be of type {type(given).__name__}"):
            take(store, given)
        assert store.ledger.waiting.count() == 0
        assert store.ledger.forgets.waiting() == []


def test_texts_mixed_with_numbers_are_refused_without_saying_them(ram: Path) -> None:
    with new_store(ram / "s", counting()) as store:
        with pytest.raises(UsageError, match="ids mixes texts with int") as refused:
            store.delete(["secret", 417])  # type: ignore[list-item]
        assert store.ledger.waiting.count() == 0
    assert "secret" not in str(refused.value)
    assert "417" not in str(refused.value)


def test_ids_that_are_all_whole_numbers_are_taken_as_a_frame_would_take_them(ram: Path) -> None:
    with new_store(ram / "s", counting()) as store:
        ingest(store, [add("5"), add("6")])
        store.delete([5])  # type: ignore[list-item]
        store.close_round()
        left = {record.id for batch in store.ledger.survivors() for record in batch}
    assert left == {"6"}
