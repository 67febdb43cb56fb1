"""Arrivals for the tests of the store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from retrodp.store.ledger import Ledger
from retrodp.stream import lives, multiset
from retrodp.stream.update import Arrivals, Op, QueuedUpdate

pack = msgspec.msgpack.encode


def update(
    identifier: str,
    *,
    at: int = 10,
    op: Op = Op.ADD,
    stamp: int = 1,
    person: str | None = None,
    space: str = "",
    value: str = "tea",
    count: int = 1,
) -> QueuedUpdate:
    by_id_gone = op == Op.DELETE and identifier != ""
    return QueuedUpdate(
        space=space,
        id=identifier,
        at=at,
        rank={Op.DELETE: 0, Op.REPLACE: 1, Op.ADD: 2}[op],
        payload=b"" if by_id_gone else pack([value, person]),
        stamp=0 if by_id_gone else stamp,
        op=int(op),
        person=person,
        count=count,
    )


def arrivals(round_: int, updates: Sequence[QueuedUpdate]) -> Arrivals:
    return Arrivals(
        round=[round_] * len(updates),
        at=[one.at for one in updates],
        rank=[one.rank for one in updates],
        op=[one.op for one in updates],
        space=[one.space for one in updates],
        id=[one.id for one in updates],
        stamp=[one.stamp for one in updates],
        person=[one.person for one in updates],
        payload=[one.payload for one in updates],
        count=[one.count for one in updates],
    )


def new_ledger(directory: Path, *, ids: bool = True) -> Ledger:
    directory.mkdir(parents=True, exist_ok=True)
    return Ledger.create(
        directory / "ledger.sqlite", store_id="5e", fingerprint="f1", ids=ids, test=True
    )


def close_round(ledger: Ledger) -> None:
    """What the engine does to the ledger when a round closes; totals count payloads."""
    round_ = ledger.facts.round + 1
    with ledger.transaction():
        waiting = ledger.waiting.of_round(round_)
        if ledger.facts.ids:
            changes = lives.apply_round(ledger.running_for_round(round_), waiting)
        else:
            changes = multiset.apply_round(ledger.running_points(round_), waiting)
        delta: dict[bytes, int] = {}
        for sign, records in ((1, changes.begun), (-1, changes.ended)):
            for record in records:
                delta[record.payload] = delta.get(record.payload, 0) + sign * record.count
        ledger.apply_changes(changes)
        ledger.add_totals("by_payload", delta)
        ledger.waiting.remove_round(round_)
        ledger.facts.advance(round_)


def run(ledger: Ledger, *rounds: Sequence[QueuedUpdate]) -> None:
    """Take in and close these rounds."""
    for updates in rounds:
        ledger.waiting.enqueue(arrivals(ledger.facts.round + 1, updates))
        close_round(ledger)


def contents(ledger: Ledger) -> object:
    """Survivors and totals."""
    survivors = [record for batch in ledger.survivors(3) for record in batch]
    return survivors, ledger.read_totals("by_payload")
