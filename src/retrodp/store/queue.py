"""Updates that wait for their round to close.

Promise: a set (with ids, see `chunks`) or a multiset (without) of what was accepted; a row that is
delivered twice with ids is kept once. What waits is data like the survivors and is erased like
them.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Protocol

import numpy as np

from retrodp.store.database import Database, moves
from retrodp.stream.update import Arrivals, Op, QueuedUpdate, made_update

NO_VALUE = b""
"""Stands for a missing person or namespace inside a key; no text equals it."""

_SUMMED = "ON CONFLICT DO UPDATE SET n = n + excluded.n"


class Queue(Protocol):
    """What the ledger asks of the updates that wait."""

    def enqueue(self, arrivals: Arrivals) -> int:
        """Take accepted rows in; returns how many were new (with ids) or taken (without)."""

    def waiting(self, round_: int) -> list[QueuedUpdate]:
        """Updates of a round, sorted by their first six fields."""

    def latest(self, round_: int) -> int | None:
        """Latest `at` among the updates that wait for a round; None if none does."""

    def rounds(self) -> dict[int, int]:
        """Updates that wait, by round, multiplicities included."""

    def remove(self, round_: int) -> bool:
        """Remove a round; tells whether it held a deletion or a replacement, effective or not."""

    def drop_id(self, identifier: str, space: str | None) -> int:
        """Remove every waiting update of an id, in one namespace or (None) in all."""

    def drop_person(self, person: str) -> int:
        """Remove every waiting update of a person, also those that name her as namespace."""

    def shift(self, rounds: int) -> None:
        """Take `rounds` off every round and named stamp."""

    def unite(self) -> None:
        """Keep what waits in the one way that follows from it."""


class PointQueue:
    """The waiting updates of a stream without ids: a row each, with how often it came."""

    def __init__(self, database: Database) -> None:
        """See `Queue`."""
        self._database = database

    def enqueue(self, arrivals: Arrivals) -> int:
        """Take accepted rows in; returns how many were taken."""
        rows = list(
            zip(
                np.asarray(arrivals.round).tolist(),
                arrivals.space,
                arrivals.id,
                np.asarray(arrivals.at).tolist(),
                np.asarray(arrivals.rank).tolist(),
                arrivals.payload,
                np.asarray(arrivals.stamp).tolist(),
                [NO_VALUE if person is None else person for person in arrivals.person],
                np.asarray(arrivals.op).tolist(),
                arrivals.count,
                strict=True,
            )
        )
        rows.sort(key=itemgetter(0))  # neighbours in the table meet the same pages
        return self._database.inserted("queue", rows, rest=_SUMMED)

    def waiting(self, round_: int) -> list[QueuedUpdate]:
        """Updates of a round, sorted by their first six fields."""
        return self._database.made(
            made_update,
            "SELECT space, id, at, rank, payload, stamp, op, nullif(person, x''), n FROM queue "
            "WHERE round = ? ORDER BY space, id, at, rank, payload, stamp, person",
            (round_,),
        )

    def latest(self, round_: int) -> int | None:
        """Latest `at` among the updates that wait for a round; None if none does."""
        found = self._database.value("SELECT max(at) FROM queue WHERE round = ?", (round_,))
        return None if found is None else int(found)

    def rounds(self) -> dict[int, int]:
        """Updates that wait, by round, multiplicities included."""
        return dict(self._database.rows("SELECT round, sum(n) FROM queue GROUP BY round"))

    def remove(self, round_: int) -> bool:
        """Remove a round; tells whether it held a deletion, effective or not."""
        sql = "SELECT EXISTS (SELECT 1 FROM queue WHERE round = ? AND op <> ?)"
        ends = self._database.value(sql, (round_, int(Op.ADD)))
        self._database.execute("DELETE FROM queue WHERE round = ?", (round_,))
        return bool(ends)

    def drop_id(self, identifier: str, space: str | None) -> int:
        """Remove every waiting update of an id: there is none."""
        sql = "DELETE FROM queue WHERE id = ?1 AND (?2 IS NULL OR space = ?2)"
        return self._database.execute(sql, (identifier, space))

    def drop_person(self, person: str) -> int:
        """Remove every waiting update of a person."""
        return self._database.execute(
            "DELETE FROM queue WHERE person = ?1 OR (space = ?1 AND space > '')", (person,)
        )

    def shift(self, rounds: int) -> None:
        """Take `rounds` off every round and stamp."""
        for move in moves(rounds):
            self._database.execute(
                "UPDATE queue SET round = round + ?1, stamp = stamp + ?1", (move,)
            )

    def unite(self) -> None:
        """Rows in the order of their keys are that already."""
