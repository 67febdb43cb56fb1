"""What intake remembers beside the data: deleted ids, where a plan asks for it, and taken sources.

Promise: keyed hashes and digests only, each with the round after which it goes. Neither ever
reaches a release other than by deciding which rows are taken in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from retrodp.store.database import Database


def remember(database: Database, hashes: Iterable[bytes], until: int) -> None:
    """Note hashes of deleted ids until a round is closed; a later deletion prolongs it."""
    database.many(
        "INSERT INTO remembered VALUES (?, ?) "
        "ON CONFLICT DO UPDATE SET until = max(until, excluded.until)",
        ((hash_, until) for hash_ in sorted(set(hashes))),
    )


def remembered(database: Database, hashes: Collection[bytes]) -> set[bytes]:
    """Those of the hashes that are still remembered."""
    if database.value("SELECT EXISTS (SELECT 1 FROM remembered)") == 0:
        return set()
    sql = "SELECT 1 FROM remembered WHERE hash = ?"
    return {hash_ for hash_ in hashes if database.value(sql, (hash_,)) is not None}


def take_source(database: Database, digest: str, until: int) -> None:
    """Note a source whose rows wait until a round is closed."""
    database.execute("INSERT INTO sources VALUES (?, ?)", (digest, until))


def is_taken(database: Database, digest: str) -> bool:
    """Whether a source with this digest was taken and still has rows that wait."""
    return database.value("SELECT 1 FROM sources WHERE digest = ?", (digest,)) is not None


def drop_past(database: Database, round_: int) -> bool:
    """Let go of what was remembered until a round that is closed; tells whether there was any."""
    gone = database.execute("DELETE FROM remembered WHERE until <= ?", (round_,))
    gone += database.execute("DELETE FROM sources WHERE until <= ?", (round_,))
    return gone > 0
