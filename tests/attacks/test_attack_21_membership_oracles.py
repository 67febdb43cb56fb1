"""Attack 21: answers, rewrites and printed counts that tell whether an id is known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retrodp.engine.store import Store
from tests.support.plans import counting
from tests.support.rows import Row, add, delete, ingest
from tests.support.stores import new_store

KNOWN, UNKNOWN = "known", "nobody"


def with_one_record(path: Path) -> Store:
    store = new_store(path, counting())
    ingest(store, [add(KNOWN, 1)])
    store.close_round()
    store.settle()
    return store


def added(store: Store, id_: str) -> object:
    return ingest(store, [add(id_, 2)])


def deleted(store: Store, id_: str) -> object:
    return ingest(store, [delete(id_, 2)])


def replaced(store: Store, id_: str) -> object:
    return ingest(store, [Row(op="replace", id=id_, round=2)])


def deleted_by_call(store: Store, id_: str) -> object:
    return store.delete([id_])


def forgotten(store: Store, id_: str) -> object:
    [receipt] = store.forget([id_])
    document: dict[str, Any] = receipt.to_json()
    return {key: text for key, text in document.items() if key not in {"value", "salt", "hash"}}


def twice(store: Store, id_: str) -> object:
    return [deleted(store, id_), added(store, id_), added(store, id_)]


ACTS: list[Callable[[Store, str], object]] = [
    added,
    deleted,
    replaced,
    deleted_by_call,
    forgotten,
    twice,
]


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
def test_a_known_and_an_unknown_id_get_the_same_answer(
    ram: Path, act: Callable[[Store, str], object]
) -> None:
    told = []
    for id_ in (KNOWN, UNKNOWN):
        with with_one_record(ram / id_) as store:
            told.append(act(store, id_))
    assert told[0] == told[1]


@pytest.mark.parametrize("act", [deleted, replaced, forgotten], ids=lambda act: act.__name__)
def test_the_ledger_is_rewritten_whether_or_not_anything_was_there(
    ram: Path, act: Callable[[Store, str], object]
) -> None:
    due = []
    for id_ in (KNOWN, UNKNOWN):
        with with_one_record(ram / id_) as store:
            act(store, id_)
            store.close_round()
            due.append(store.ledger.facts.erase_due)
    assert due == [True, True]


def test_a_round_of_additions_alone_rewrites_nothing(ram: Path) -> None:
    due = []
    for id_ in (KNOWN, UNKNOWN):
        with with_one_record(ram / id_) as store:
            added(store, id_)
            store.close_round()
            due.append(store.ledger.facts.erase_due)
    assert due == [False, False]


def test_twin_a_count_of_matches_tells(ram: Path) -> None:
    """Why the number of rows that met a running life is for the operator alone."""
    ignored = []
    for id_ in (KNOWN, UNKNOWN):
        with with_one_record(ram / id_) as store:
            added(store, id_)
            store.close_round()
            ignored.append(store.ignored)
    assert ignored == [1, 0]
