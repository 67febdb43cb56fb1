"""Updates and forgets that wait for their round to close.

Promise: a set (with ids) or a multiset (without) of what was accepted; neither the order nor the
batches it came in leave a trace, and a row delivered twice with ids is kept once. What waits is
data like the survivors and is erased like them.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import Literal

from retrodp.store.database import Database
from retrodp.stream.update import Arrivals, Op, QueuedUpdate, made_update

NO_VALUE = b""
"""Stands for a missing person or namespace inside a key; no text equals it."""

_ONCE = "ON CONFLICT DO NOTHING"
_SUMMED = "ON CONFLICT DO UPDATE SET n = n + excluded.n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """A request that belongs to the open round and is applied last in it.

    Attributes:
        kind: Whether `value` is an id or a person.
        value: The id or the person.
        space: Namespace of the id; None for every namespace.
    """

    kind: Literal["id", "person"]
    value: str
    space: str | None = None


def enqueue(database: Database, arrivals: Arrivals, *, ids: bool) -> int:
    """Take accepted rows in; returns how many were new (with ids) or taken (without)."""
    rows = list(
        zip(
            arrivals.round,
            arrivals.space,
            arrivals.id,
            arrivals.at,
            arrivals.rank,
            arrivals.payload,
            arrivals.stamp,
            [NO_VALUE if person is None else person for person in arrivals.person],
            arrivals.op,
            arrivals.count,
            strict=True,
        )
    )
    # In the order of the primary key, as far as it matters: neighbours meet the same pages. The
    # least significant first, since a pass over plain texts or integers is a quick one.
    for place in (2, 1, 0):
        rows.sort(key=itemgetter(place))
    return database.inserted("queue", rows, rest=_ONCE if ids else _SUMMED)


def waiting(database: Database, round_: int) -> list[QueuedUpdate]:
    """Updates of a round, sorted by their first six fields."""
    return database.made(
        made_update,
        "SELECT space, id, at, rank, payload, stamp, op, nullif(person, x''), n FROM queue "
        "WHERE round = ? ORDER BY space, id, at, rank, payload, stamp, person",
        (round_,),
    )


def ends_something(database: Database, round_: int) -> bool:
    """Whether the round holds a deletion or a replacement, effective or not."""
    sql = "SELECT EXISTS (SELECT 1 FROM queue WHERE round = ? AND op <> ?)"
    return bool(database.value(sql, (round_, int(Op.ADD))))


def drop_id(database: Database, identifier: str, space: str | None) -> int:
    """Remove every waiting update of an id, in one namespace or (None) in all."""
    if space is None:
        return database.execute("DELETE FROM queue WHERE id = ?", (identifier,))
    return database.execute("DELETE FROM queue WHERE space = ? AND id = ?", (space, identifier))


def drop_person(database: Database, person: str) -> int:
    """Remove every waiting update of a person, also those that name her as namespace."""
    return database.execute(
        "DELETE FROM queue WHERE person = ?1 OR (space = ?1 AND space > '')", (person,)
    )


def add_forget(database: Database, forget: Forget) -> None:
    """Note a forget; noting it again changes nothing."""
    space = NO_VALUE if forget.space is None else forget.space
    database.execute(
        "INSERT INTO forgets VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (forget.kind, space, forget.value),
    )


def forgets(database: Database) -> list[Forget]:
    """Forgets that wait for the open round to close, in an order of their own."""
    rows = database.rows(
        "SELECT kind, value, nullif(space, x'') FROM forgets ORDER BY kind, space, value"
    )
    return [Forget(kind=kind, value=value, space=space) for kind, value, space in rows]
