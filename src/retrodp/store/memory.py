"""What intake remembers beside the data: deleted ids, where a plan asks for it, and taken sources.

Promise: keyed hashes and digests only, each with the round after which it goes. Neither ever
reaches a release other than by deciding which rows are taken in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from retrodp.store.database import Database
from retrodp.store.facts import Facts


class Memory:
    """The memory of a ledger's intake."""

    def __init__(self, database: Database, facts: Facts) -> None:
        """See `Ledger.memory`."""
        self._database = database
        self._facts = facts

    def remember(self, hashes: Iterable[bytes], until: int) -> None:
        """Note keyed hashes of deleted ids until a round is closed; a later one prolongs it."""
        with self._database.joined():
            self._database.many(
                "INSERT INTO remembered VALUES (?, ?) "
                "ON CONFLICT DO UPDATE SET until = max(until, excluded.until)",
                ((hash_, until) for hash_ in sorted(set(hashes))),
            )

    def remembered(self, hashes: Collection[bytes]) -> set[bytes]:
        """Those of the hashes that are still remembered."""
        if self._database.value("SELECT EXISTS (SELECT 1 FROM remembered)") == 0:
            return set()
        sql = "SELECT 1 FROM remembered WHERE hash = ?"
        return {hash_ for hash_ in hashes if self._database.value(sql, (hash_,)) is not None}

    def take_source(self, digest: str, until: int) -> None:
        """Note a source whose rows wait until a round is closed."""
        with self._database.joined():
            self._database.execute("INSERT INTO sources VALUES (?, ?)", (digest, until))

    def is_taken(self, digest: str) -> bool:
        """Whether a source with this digest was taken and still has rows that wait."""
        sql = "SELECT 1 FROM sources WHERE digest = ?"
        return self._database.value(sql, (digest,)) is not None

    def drop_past(self, round_: int) -> None:
        """Let go of what was remembered until a round that is closed now; erasing becomes due."""
        with self._database.joined():
            gone = self._database.execute("DELETE FROM remembered WHERE until <= ?", (round_,))
            gone += self._database.execute("DELETE FROM sources WHERE until <= ?", (round_,))
            if gone:
                self._facts.note_erase(due=True)
