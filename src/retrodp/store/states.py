"""States of releases that remember, beside what their last round saw begin.

Promise: of each release the states after the last two rounds are kept, so that the last round can
be computed again, and nothing older; what a round saw begin is kept until the next close, as long
as a forgotten record itself. The bytes are exact data: nobody but the engine may see them.

The table is made when the first state is written: most stores have none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from retrodp.store.database import Database

TABLE = "states"
LEAST_SOUGHT = 6
"""Bytes from which a value is looked for in states; a shorter one stands in hashes by chance."""

_CREATE = """CREATE TABLE IF NOT EXISTS states(
    release TEXT NOT NULL, round INTEGER NOT NULL, state BLOB NOT NULL, begun BLOB NOT NULL,
    PRIMARY KEY (release, round)
) WITHOUT ROWID"""
_decode = msgspec.msgpack.Decoder(list[tuple[bytes, int]]).decode


class Kept(NamedTuple):
    """What is kept of one round of one release.

    Attributes:
        state: After the round.
        begun: What the round saw begin, for a release that watches; else empty.
    """

    state: bytes
    begun: Mapping[bytes, int]


class States:
    """The states of all releases of a ledger."""

    def __init__(self, database: Database) -> None:
        """See `Ledger.states`."""
        self._database = database

    def read(self, release: str, round_: int) -> Kept | None:
        """What is kept of a round; None if nothing is."""
        if not self._there:
            return None
        sql = "SELECT state, begun FROM states WHERE release = ? AND round = ?"
        rows = self._database.rows(sql, (release, round_))
        return Kept(bytes(rows[0][0]), dict(_decode(rows[0][1]))) if rows else None

    def keep(self, round_: int, kept: Mapping[str, Kept]) -> None:
        """Keep the states after a round, and of the round before its states alone."""
        if not kept:
            return
        with self._database.joined():
            self._database.execute(_CREATE)
            self._database.execute("DELETE FROM states WHERE round < ?", (round_ - 1,))
            self._database.execute("UPDATE states SET begun = ?", (_encoded({}),))
            self._database.many(
                "INSERT INTO states VALUES (?, ?, ?, ?)",
                (
                    (release, round_, own.state, _encoded(own.begun))
                    for release, own in sorted(kept.items())
                ),
            )

    def purge(self) -> None:
        """Take out every state."""
        if self._there:
            self._database.execute("DELETE FROM states")

    @property
    def _there(self) -> bool:
        return exists(self._database)


def exists(database: Database) -> bool:
    """Whether a state was ever kept."""
    sql = "SELECT count(*) FROM sqlite_master WHERE name = 'states'"
    return bool(database.value(sql))


def sought(values: Sequence[str]) -> list[tuple[int, bytes]]:
    """Positions and bytes of the values that are long enough to be looked for in states."""
    coded = [(index, value.encode()) for index, value in enumerate(values)]
    return [(index, plain) for index, plain in coded if len(plain) >= LEAST_SOUGHT]


def _encoded(begun: Mapping[bytes, int]) -> bytes:
    return msgspec.msgpack.encode(sorted(begun.items()))
