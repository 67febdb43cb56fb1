"""A round closed column by column is the round closed row by row, down to the ledger's bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from retrodp.engine.close import Closing
from retrodp.engine.store import Store
from retrodp.store import chunks
from tests.properties.machine import CONTENTS
from tests.support.plans import plan
from tests.support.rows import Row, add, delete, ingest
from tests.support.stores import memory_directory, new_store, published
from tests.support.uniting import few

ROUNDS = 3
IDS = ["a", "b", "ab", "é", "e\u0301", "😀", "nul\0nul", "x" * 5000, '"', "7", "[x]", "\u2028"]


@st.composite
def rows(draw: st.DrawFn) -> Row:
    round_ = draw(st.integers(1, ROUNDS))
    return Row(
        op=draw(st.sampled_from(["add", "add", "add", "delete", "replace"])),
        id=draw(st.sampled_from(IDS)),
        round=round_,
        second=draw(st.integers(0, 2)),
        stamp=draw(st.none() | st.integers(1, round_)),
        contents=draw(CONTENTS),
    )


FORGETS = st.lists(st.tuples(st.integers(1, ROUNDS), st.sampled_from(["a", "é", "ann"])))


@contextmanager
def row_by_row() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Closing, "_apart", property(lambda _: False))
        yield


def lived(
    path: Path, batches: list[list[Row]], forgets: list[tuple[int, str]]
) -> tuple[object, list[str], bytes]:
    """Published bytes, what every close told the operator, and the ledger's file at the end."""
    told = []
    with new_store(path, plan("ids")) as store:
        for round_ in range(1, ROUNDS + 1):
            for batch in batches:
                ingest(store, [row for row in batch if row.round == round_])
            for when, whom in forgets:
                if when == round_:
                    _ = store.forget(persons=[whom]) if whom == "ann" else store.forget([whom])
            told.append(repr(store.close_round()))
        told.append(repr(sorted(store.ledger.waiting.rounds().items())))
        store.settle()
        store.ledger.compact()
    return published(path), told, (path / "ledger.sqlite").read_bytes()


@few(30)
@given(batches=st.lists(st.lists(rows(), max_size=8), max_size=4), forgets=FORGETS)
def test_any_rounds_leave_the_same_bytes_either_way(
    batches: list[list[Row]], forgets: list[tuple[int, str]]
) -> None:
    with memory_directory() as directory:
        quick = lived(directory / "one", batches, forgets)
        with row_by_row():
            plain = lived(directory / "two", batches, forgets)
    assert quick == plain


@few(15)
@given(rows_=st.lists(rows(), max_size=14), forgets=FORGETS, data=st.data())
def test_neither_batches_nor_their_order_leave_a_trace(
    rows_: list[Row], forgets: list[tuple[int, str]], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(rows_))
    twice = [
        *shuffled,
        *data.draw(st.lists(st.sampled_from(rows_), max_size=4) if rows_ else st.just([])),
    ]
    with memory_directory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "_ROWS", 4)
        one = lived(directory / "one", [rows_], forgets)
        two = lived(directory / "two", [[row] for row in twice], forgets)
    assert one == two


def test_a_life_that_begins_anew_with_the_same_record_runs_once(
    tmp_path: Path,
) -> None:
    first = add("a")
    again = [delete("a", 2, second=1), replace(first, round=2, second=2, stamp=1)]
    with new_store(tmp_path / "s", plan("ids")) as store:
        ingest(store, [first, add("b")])
        store.close_round()
        ingest(store, [*again, add("c", 2)])
        store.close_round()
        assert store.ledger.survivor_count() == 3
        assert [one.stamp for one in store.ledger.records_of_id("a")] == [1]


def test_a_row_that_came_too_late_leaves_no_value_beside_a_deletion(tmp_path: Path) -> None:
    secret = "told too late"
    with new_store(tmp_path / "s", plan("ids")) as store:
        store.close_round()
        late = add("late-id", 1, product=secret, who=secret)
        ingest(store, [late, delete("unknown-id", 2)])
        assert store.ledger.waiting.count() == 1
    found = [
        path.name for path in (tmp_path / "s").iterdir() if secret.encode() in path.read_bytes()
    ]
    assert found == []


@pytest.mark.parametrize("way", ["delete", "replace", "forget", "forget while it waits", "person"])
def test_no_file_has_a_byte_of_who_is_gone_after_the_close(tmp_path: Path, way: str) -> None:
    path = tmp_path / "s"
    hers = add("her-own-id", 1, product="her-own-product", who="her-own-name")
    others = [delete("nobody-there", 1), *(add(f"other-{n:04}", 1) for n in range(600))]
    with new_store(path, plan("ids", epsilon=1)) as store:
        ingest(store, [hers, *others])
        if way == "forget while it waits":
            store.forget(["her-own-id"])
        store.close_round()
        if way == "delete":
            ingest(store, [delete("her-own-id", 2)])
        elif way == "replace":
            ingest(store, [replace(add("her-own-id", 2), op="replace")])
        elif way == "forget":
            store.forget(["her-own-id"])
        elif way == "person":
            store.forget(persons=["her-own-name"])
        store.close_round()
        store.settle()
    needles = [b"her-own-product", b"her-own-name"] + [b"her-own-id"] * (way != "replace")
    left = _left(path, needles)
    assert left == []


def _left(path: Path, needles: list[bytes]) -> list[str]:
    files = [one for one in path.rglob("*") if one.is_file() and one.name != "releases.sqlite"]
    return [one.name for one in files for needle in needles if needle in one.read_bytes()]


def test_a_deletion_row_makes_the_rewrite_due_whatever_it_met(tmp_path: Path) -> None:
    due = []
    for name, row in {"met": delete("a", 2), "unknown": delete("z", 2), "none": None}.items():
        with new_store(tmp_path / name, plan("ids")) as store:
            ingest(store, [add("a")])
            store.close_round()
            store.settle()
            ingest(store, [add("b", 2), *([row] if row else [])])
            _erased(store)
            store.close_round()
            due.append(store.ledger.facts.erase_due)
    assert due == [True, True, False]


def _erased(store: Store) -> None:
    assert not store.ledger.facts.erase_due
