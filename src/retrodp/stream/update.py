"""What arrives and what survives, as plain rows.

Promise: one shape for updates on their way to the ledger and for the records it keeps, whatever
file, frame or library call they came from. Knows no file format, no calendar, no store and no
statistic. The rows are data: they are never published, printed or logged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = Sequence[int] | npt.NDArray[np.int64]


class Op(IntEnum):
    """What an update does to the life of its id."""

    ADD = 0
    DELETE = 1
    REPLACE = 2


class QueuedUpdate(NamedTuple):
    """One accepted update that waits for its round to close.

    A named tuple because a round may hold 10^6 of them and they come straight from the ledger's
    rows. Sorting the first six fields is the order in which the updates of an id apply.

    Attributes:
        space: Namespace of the id: the person under a person unit, else "".
        id: The record's id, NFC text; "" in a stream without ids.
        at: When the update arrived, microseconds since 1970 UTC.
        rank: Order among the updates of one id at equal `at`, as the plan's `same_time` says.
        payload: msgpack array of the plan's columns in plan order; empty for a deletion by id.
        stamp: Stamp round; 0 for a deletion by id.
        op: What the update does, an `Op` value.
        person: Value of the plan's person column, if there is one.
        count: Multiplicity; 1 with ids.
    """

    space: str
    id: str
    at: int
    rank: int
    payload: bytes
    stamp: int
    op: int
    person: str | None
    count: int = 1  # type: ignore[assignment]  # hides tuple.count


class Record(NamedTuple):
    """A running life of an id, or `count` copies of a surviving stamped point without ids.

    Attributes:
        space: Namespace of the id: the person under a person unit, else "".
        id: The record's id; "" in a stream without ids.
        stamp: The round the record belongs to.
        person: Value of the plan's person column, if there is one.
        payload: msgpack array of the plan's columns in plan order.
        count: Multiplicity; 1 with ids.
    """

    space: str
    id: str
    stamp: int
    person: str | None
    payload: bytes
    count: int = 1  # type: ignore[assignment]  # hides tuple.count


made_update: Callable[[Iterable[object]], QueuedUpdate] = partial(tuple.__new__, QueuedUpdate)
"""A waiting update from its fields in order; quicker than naming them where there are many."""

made_record: Callable[[Iterable[object]], Record] = partial(tuple.__new__, Record)
"""A record from its fields in order, all of them."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Net difference of the survivors made by one round.

    Attributes:
        ended: What no longer survives (without ids: `count` copies less).
        begun: What survives from now on (without ids: `count` copies more).
        ignored: Additions that met a running life. For the operator only.
        same_time: Updates at the same instant as the one before of the same id, so that the
            plan's `same_time` decided their order. For the operator only.
        again: Lives that begin although nothing changes: each has the very record of the life that
            ran when the round opened and ended in it. For whoever counts lives and not survivors.
    """

    ended: list[Record]
    begun: list[Record]
    ignored: int
    same_time: int = 0
    again: list[Record] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Arrivals:
    """Accepted rows of one batch: parallel columns, in any order.

    Attributes:
        round: Round of `at`.
        at: When the update arrived, microseconds since 1970 UTC.
        rank: Order at equal (space, id, at).
        op: `Op` values.
        space: Namespace of the id.
        id: NFC text; "" in a stream without ids.
        stamp: Stamp round of additions and replacements (without ids of deletions too), else 0.
        person: Value of the plan's person column, None where there is none.
        payload: msgpack array of the plan's columns; b"" for deletions by id.
        count: Multiplicity; 1 with ids.
    """

    round: Numbers
    at: Numbers
    rank: Numbers
    op: Numbers
    space: Sequence[str]
    id: Sequence[str]
    stamp: Numbers
    person: Sequence[str | None]
    payload: Sequence[bytes]
    count: Sequence[int]

    def __len__(self) -> int:
        return len(self.at)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Arrivals):
            return NotImplemented
        same_rounds = list(_listed(self.round)) == list(_listed(other.round))
        return same_rounds and list(self.queued()) == list(other.queued())

    __hash__ = None  # type: ignore[assignment]

    def span(self) -> tuple[int, int]:
        """First and last round that rows arrive in; of no rows (0, 0)."""
        rounds = np.asarray(self.round)
        return (int(rounds.min()), int(rounds.max())) if len(rounds) else (0, 0)

    def queued(self) -> Iterator[QueuedUpdate]:
        """The rows as single updates, in the order given."""
        return map(
            QueuedUpdate,
            self.space,
            self.id,
            _listed(self.at),
            _listed(self.rank),
            self.payload,
            _listed(self.stamp),
            _listed(self.op),
            self.person,
            self.count,
        )


def _listed(numbers: Numbers) -> Sequence[int]:
    return numbers.tolist() if isinstance(numbers, np.ndarray) else numbers
