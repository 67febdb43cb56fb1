"""Memory of deleted ids: what it ignores, and that one raw update still moves two windows at most."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import pytest

from retrodp.stream.lives import apply_round
from retrodp.stream.update import Op, QueuedUpdate, Record

ID = ("", "x")
Row = tuple[int, Op, bytes]  # round, op, payload


def update(at: int, op: Op, payload: bytes = b"a") -> QueuedUpdate:
    rank = {Op.DELETE: 0, Op.REPLACE: 1, Op.ADD: 2}[op]
    deletes = op == Op.DELETE
    return QueuedUpdate(*ID, at, rank, b"" if deletes else payload, 0 if deletes else at, op, None)


def trajectory(rows: Sequence[Row], *, rounds: int, memory: int) -> list[Record | None]:
    """The record of the id after each round, by the rules of a close."""
    running: dict[tuple[str, str], Record] = {}
    until = 0
    states: list[Record | None] = []
    for round_ in range(1, rounds + 1):
        updates = [update(round_, op, payload) for at, op, payload in rows if at == round_]
        remembered = {ID} if round_ <= until else set()
        changes = apply_round(running, updates, remembered=remembered)
        for record in changes.ended:
            del running[record.space, record.id]
        for record in changes.begun:
            running[record.space, record.id] = record
        if any(one.op == Op.DELETE for one in updates):
            until = round_ + memory
        states.append(running.get(ID))
    return states


def windows(one: list[Record | None], other: list[Record | None]) -> int:
    """Number of windows in which a record is in one world and not in the other."""
    records = {record for record in one + other if record is not None}
    count = 0
    for record in records:
        differs = [(a == record) != (b == record) for a, b in zip(one, other, strict=True)]
        count += sum(now and not before for before, now in itertools.pairwise([False, *differs]))
    return count


def streams(rounds: int) -> Iterator[list[Row]]:
    """All streams of one id with at most one update a round."""
    kinds = [None, (Op.ADD, b"a"), (Op.DELETE, b""), (Op.REPLACE, b"b")]
    for chosen in itertools.product(kinds, repeat=rounds):
        yield [(at, *kind) for at, kind in enumerate(chosen, start=1) if kind is not None]


@pytest.mark.parametrize("memory", [1, 2, 5])
def test_one_raw_update_moves_two_windows_at_most(memory: int) -> None:
    rounds, worst = 5, 0
    for rows in streams(rounds):
        before = trajectory(rows, rounds=rounds, memory=memory)
        taken = {at for at, _, _ in rows}
        for at in set(range(1, rounds + 1)) - taken:
            for op in Op:
                inserted = [*rows, (at, op, b"c")]
                after = trajectory(inserted, rounds=rounds, memory=memory)
                worst = max(worst, windows(before, after))
    assert worst == 2


def test_a_redelivered_addition_does_not_revive_a_deleted_id() -> None:
    rows = [(1, Op.ADD, b"a"), (2, Op.DELETE, b""), (3, Op.ADD, b"a")]
    assert trajectory(rows, rounds=3, memory=1)[-1] is None


def test_twin_without_memory_it_does() -> None:
    rows = [(1, Op.ADD, b"a"), (2, Op.DELETE, b""), (3, Op.ADD, b"a")]
    assert trajectory(rows, rounds=3, memory=0)[-1] is not None


def test_memory_ends() -> None:
    rows = [(1, Op.ADD, b"a"), (2, Op.DELETE, b""), (4, Op.ADD, b"a")]
    assert trajectory(rows, rounds=4, memory=1)[-1] is not None


def test_an_ineffective_deletion_starts_the_memory_too() -> None:
    rows = [(1, Op.DELETE, b""), (2, Op.ADD, b"a")]
    assert trajectory(rows, rounds=2, memory=1)[-1] is None


def test_a_replacement_is_not_ignored() -> None:
    rows = [(1, Op.ADD, b"a"), (2, Op.DELETE, b""), (3, Op.REPLACE, b"b")]
    assert trajectory(rows, rounds=3, memory=1)[-1] is not None
