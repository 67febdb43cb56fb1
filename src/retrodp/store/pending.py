"""The release of the last closed round, from its close until it is published.

Promise: at most one is kept. It is committed with the round that it belongs to, so that whoever
stopped before it was published publishes these bytes and no others.
"""

from __future__ import annotations

from retrodp.store.database import Database


class Pending:
    """The release that waits in a ledger."""

    def __init__(self, database: Database) -> None:
        """See `Ledger.pending`."""
        self._database = database

    def keep(self, round_: int, content: bytes) -> None:
        """Keep the release of a round, in the place of any other."""
        with self._database.joined():
            self.clear()
            self._database.execute("INSERT INTO pending VALUES (?, ?)", (round_, content))

    def read(self) -> tuple[int, bytes] | None:
        """Round and release that wait to be published, if any."""
        rows = self._database.rows("SELECT round, content FROM pending")
        return (rows[0][0], rows[0][1]) if rows else None

    def clear(self) -> None:
        """Remove the release that was published."""
        with self._database.joined():
            self._database.execute("DELETE FROM pending")
