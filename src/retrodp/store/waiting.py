"""Updates that wait in a ledger, and what must hold when they come and go.

Promise: a row of a closed round is never taken; whatever goes and could have been somebody's data
makes erasing due. How the rows are kept is the queue's (`chunks`, `queue`).
"""

from __future__ import annotations

from retrodp.errors import RoundClosedError, UsageError
from retrodp.store.chunks import ChunkQueue
from retrodp.store.database import Database
from retrodp.store.facts import Facts
from retrodp.store.queue import Queue
from retrodp.stream.queued import Updates
from retrodp.stream.update import Arrivals, QueuedUpdate


class Waiting:
    """The updates that wait for their round to close."""

    def __init__(self, database: Database, queue: Queue, facts: Facts) -> None:
        """See `Ledger.waiting`."""
        self._database = database
        self._queue = queue
        self._facts = facts

    def enqueue(self, arrivals: Arrivals) -> int:
        """Take accepted rows in.

        Returns:
            How many were not there yet; without ids, how many there were. For the operator only.

        Raises:
            RoundClosedError: A row belongs to a closed round; nothing was taken.
            CapacityError: A number does not fit 64 bits; nothing was taken.
        """
        if len(arrivals) and arrivals.span()[0] <= self._facts.round:
            raise RoundClosedError("A row belongs to a round that is closed; nothing was taken.")
        with self._database.joined():
            return self._queue.enqueue(arrivals)

    def of_round(self, round_: int) -> list[QueuedUpdate]:
        """Updates of a round, sorted by (space, id, at, rank, payload, stamp)."""
        return self._queue.waiting(round_)

    def columns(self, round_: int) -> Updates:
        """The same as columns; of a stream with ids."""
        if not isinstance(self._queue, ChunkQueue):
            raise UsageError("The records of this store have no ids.")
        return self._queue.updates(round_)

    def latest(self, round_: int) -> int | None:
        """Latest `at` among the updates that wait for a round; None if none does."""
        return self._queue.latest(round_)

    def count(self) -> int:
        """Updates that wait, of all rounds, multiplicities included. For the operator only."""
        return sum(self.rounds().values())

    def rounds(self) -> dict[int, int]:
        """Updates that wait, by round. For the operator only."""
        return self._queue.rounds()

    def remove_round(self, round_: int) -> None:
        """Remove the updates of a round; a deletion or replacement among them makes erasing due."""
        with self._database.joined():
            if self._queue.remove(round_):
                self._facts.note_erase(due=True)

    def drop_id(self, identifier: str, space: str | None = None) -> int:
        """Remove all waiting updates of an id, in one namespace or (None) in all."""
        with self._database.joined():
            self._facts.note_erase(due=True)
            return self._queue.drop_id(identifier, space)

    def drop_person(self, person: str) -> int:
        """Remove all waiting updates of a person."""
        with self._database.joined():
            self._facts.note_erase(due=True)
            return self._queue.drop_person(person)
