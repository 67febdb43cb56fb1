"""What waits is a set, in whatever batches it comes."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrodp.store import chunks
from retrodp.store.ledger import Ledger
from retrodp.stream.update import Op, QueuedUpdate
from tests.store.rows import arrivals, new_ledger, update
from tests.support.stores import memory_directory
from tests.support.uniting import few

ROWS = st.builds(
    update,
    st.sampled_from(["a", "b", "7", "ü"]),
    at=st.integers(-1, 1),
    op=st.sampled_from(list(Op)),
    stamp=st.integers(1, 2),
    person=st.sampled_from([None, "", "ann"]),
    space=st.sampled_from(["", "ann", "bob"]),
    value=st.sampled_from(["tea", "mug"]),
)
BATCHES = st.lists(st.tuples(st.integers(1, 2), st.lists(ROWS, max_size=10)), max_size=6)


def file_of(ledger: Ledger) -> bytes:
    ledger.compact()
    ledger.close()
    return ledger._path.read_bytes()


@few(40)
@given(batches=BATCHES, reopened=st.booleans())
def test_the_set_and_the_numbers_told_are_those_of_a_set(
    batches: list[tuple[int, list[QueuedUpdate]]], *, reopened: bool
) -> None:
    waiting: dict[int, set[QueuedUpdate]] = {1: set(), 2: set()}
    with memory_directory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "_ROWS", 3)
        ledger = new_ledger(directory / "one")
        for round_, rows in batches:
            new = set(rows) - waiting[round_]
            assert ledger.waiting.enqueue(arrivals(round_, rows)) == len(new)
            waiting[round_] |= new
            if reopened:
                ledger.close()
                ledger = Ledger.open(directory / "one" / "ledger.sqlite")
        counts = {round_: len(rows) for round_, rows in waiting.items() if rows}
        assert ledger.waiting.rounds() == counts
        for round_, rows_of in waiting.items():
            assert set(ledger.waiting.of_round(round_)) == rows_of
            assert len(ledger.waiting.of_round(round_)) == len(rows_of)
            latest = max((row.at for row in rows_of), default=None)
            assert ledger.waiting.latest(round_) == latest
        straight = new_ledger(directory / "two")
        for round_, rows_of in waiting.items():
            straight.waiting.enqueue(arrivals(round_, sorted(rows_of, key=repr)))
        assert file_of(ledger) == file_of(straight)


@few(25)
@given(batches=BATCHES)
def test_who_is_dropped_leaves_no_row_and_the_others_stay(
    batches: list[tuple[int, list[QueuedUpdate]]],
) -> None:
    with memory_directory() as directory:
        ledger = new_ledger(directory)
        for round_, rows in batches:
            ledger.waiting.enqueue(arrivals(round_, rows))
        before = {round_: ledger.waiting.of_round(round_) for round_ in (1, 2)}
        hers = [row for rows in before.values() for row in rows if "ann" in {row.person, row.space}]
        assert ledger.waiting.drop_person("ann") == len(hers)
        left = {
            round_: [row for row in rows if row not in hers and row.id != "7"]
            for round_, rows in before.items()
        }
        ledger.waiting.drop_id("7")
        assert {round_: ledger.waiting.of_round(round_) for round_ in (1, 2)} == left
        assert ledger.mentions(ids=["7"], persons=["ann"]) == []


def test_a_round_in_many_batches_is_told_apart_after_a_failed_one(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ledger.waiting.enqueue(arrivals(1, [update("a")]))
    with contextlib.suppress(ZeroDivisionError), ledger.transaction():
        ledger.waiting.enqueue(arrivals(1, [update("b")]))
        raise ZeroDivisionError
    assert ledger.waiting.count() == 1
    assert ledger.waiting.enqueue(arrivals(1, [update("a"), update("b"), update("c")])) == 2
    assert [row.id for row in ledger.waiting.of_round(1)] == ["a", "b", "c"]
