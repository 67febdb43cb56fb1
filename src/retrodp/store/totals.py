"""Exact totals of each release: 64-bit integers by coordinate, zeros left out.

Promise: a function of the survivors. A coordinate whose total returned to zero leaves no row, so
the table does not remember who was once there. The totals are exact data: nobody but the engine
may see them.
"""

from __future__ import annotations

from collections.abc import Mapping

from retrodp.store.database import Database


def read(database: Database, release: str) -> dict[bytes, int]:
    """Non-zero totals of a release."""
    return dict(
        database.rows("SELECT key, value FROM totals WHERE release = ? ORDER BY key", (release,))
    )


def add(database: Database, release: str, delta: Mapping[bytes, int]) -> None:
    """Add to the totals of a release; inside the caller's transaction.

    Raises:
        CapacityError: A total would leave the 64-bit integers.
    """
    changes = sorted((key, value) for key, value in delta.items() if value)
    database.many(
        "INSERT INTO totals VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET value = value + excluded.value",
        ((release, key, value) for key, value in changes),
    )
    database.many(
        "DELETE FROM totals WHERE release = ? AND key = ? AND value = 0",
        ((release, key) for key, _ in changes),
    )


def replace(database: Database, release: str, totals: Mapping[bytes, int]) -> None:
    """Put these totals in the place of all totals of a release; inside the caller's transaction."""
    database.execute("DELETE FROM totals WHERE release = ?", (release,))
    database.many(
        "INSERT INTO totals VALUES (?, ?, ?)",
        ((release, key, value) for key, value in sorted(totals.items()) if value),
    )


def releases(database: Database) -> list[str]:
    """Names of the releases that have totals."""
    return [name for (name,) in database.rows("SELECT DISTINCT release FROM totals ORDER BY 1")]
