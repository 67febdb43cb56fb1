"""Exact totals of each release: 64-bit integers by coordinate, zeros left out.

Promise: a function of the survivors. A coordinate whose total returned to zero leaves no row, so
the table does not remember who was once there. The totals are exact data: nobody but the engine
may see them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from retrodp.store.database import Database


def read(database: Database, release: str) -> dict[bytes, int]:
    """Non-zero totals of a release."""
    return dict(
        database.rows("SELECT key, value FROM totals WHERE release = ? ORDER BY key", (release,))
    )


def add(
    database: Database,
    release: str,
    delta: Mapping[bytes, int],
    *,
    gone: Collection[bytes] | None = None,
) -> None:
    """Add to the totals of a release; inside the caller's transaction.

    Args:
        database: Of the ledger.
        release: Name.
        delta: What to add.
        gone: The coordinates whose total becomes 0, if the caller knows them.

    Raises:
        CapacityError: A total would leave the 64-bit integers.
    """
    changes = [(release, key, value) for key, value in sorted(delta.items()) if value]
    database.inserted(
        "totals", changes, rest="ON CONFLICT DO UPDATE SET value = value + excluded.value"
    )
    maybe_gone = [key for _, key, _ in changes] if gone is None else sorted(gone)
    database.many(
        "DELETE FROM totals WHERE release = ? AND key = ? AND value = 0",
        ((release, key) for key in maybe_gone),
    )


def put(database: Database, release: str, values: Mapping[bytes, int]) -> None:
    """Set some totals of a release; inside the caller's transaction.

    Raises:
        CapacityError: A total is outside the 64-bit integers.
    """
    rows = [(release, key, value) for key, value in sorted(values.items()) if value]
    database.inserted("totals", rows, rest="ON CONFLICT DO UPDATE SET value = excluded.value")
    database.many(
        "DELETE FROM totals WHERE release = ? AND key = ?",
        ((release, key) for key, value in sorted(values.items()) if not value),
    )


def replace(database: Database, release: str, totals: Mapping[bytes, int]) -> None:
    """Put these totals in the place of all totals of a release; inside the caller's transaction."""
    database.execute("DELETE FROM totals WHERE release = ?", (release,))
    values = dict(totals.items())
    rows = [(release, key, values[key]) for key in sorted(values) if values[key]]
    database.inserted("totals", rows)


def releases(database: Database) -> list[str]:
    """Names of the releases that have totals."""
    return [name for (name,) in database.rows("SELECT DISTINCT release FROM totals ORDER BY 1")]
