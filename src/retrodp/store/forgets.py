"""Requests to forget, from when they are made until the open round carries them out.

Promise: a set; a request is data like the record that it names, and is erased like it, whether or
not it matched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from retrodp.store.database import Database
from retrodp.store.facts import Facts
from retrodp.store.queue import NO_VALUE


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


class Forgets:
    """The requests that wait in a ledger."""

    def __init__(self, database: Database, facts: Facts) -> None:
        """See `Ledger.forgets`."""
        self._database = database
        self._facts = facts

    def add(self, kind: Literal["id", "person"], value: str, space: str | None = None) -> None:
        """Note a request for the open round; noting it again changes nothing."""
        row = (kind, NO_VALUE if space is None else space, value)
        with self._database.joined():
            self._database.execute(
                "INSERT INTO forgets VALUES (?, ?, ?) ON CONFLICT DO NOTHING", row
            )

    def waiting(self) -> list[Forget]:
        """All requests, in an order of their own."""
        rows = self._database.rows(
            "SELECT kind, value, nullif(space, x'') FROM forgets ORDER BY kind, space, value"
        )
        return [Forget(kind=kind, value=value, space=space) for kind, value, space in rows]

    def clear(self) -> None:
        """Remove all requests, which makes erasing due if there were any, matched or not."""
        with self._database.joined():
            if self._database.execute("DELETE FROM forgets"):
                self._facts.note_erase(due=True)
