"""The ledger's file as a function of its contents: history independence on disk.

Promise: after `compact` two ledgers with equal contents are equal files, byte for byte (under one
version of SQLite), however their rows came in: tables and indexes are built anew in the order of
their keys, no page is free, and the header counts no rewrite of the past. Crash-safe as
`erase.rewrite`, which it goes through: the old file or the new one is whole.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from retrodp.store import erase, states
from retrodp.store.database import Database

_SCHEMA_COOKIE = 1


def compact(database: Database, path: Path) -> None:
    """Put the one file that these contents have in place of the ledger's, and zeros over the old.

    Args:
        database: Of the ledger; no transaction open.
        path: Of its file.
    """
    if states.exists(database) and not database.value("SELECT count(*) FROM states"):
        # Made when the first state is kept, so an empty one tells of an epoch that kept some.
        database.execute("DROP TABLE states")
    erase.rewrite(database, path, finish=_forget_rewrites)


def _forget_rewrites(fresh: Path) -> None:
    """Set the counter that every rewrite raises, so that none can be counted afterwards."""
    connection = sqlite3.connect(fresh, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = MEMORY").fetchall()
        connection.execute(f"PRAGMA schema_version = {_SCHEMA_COOKIE}")
    finally:
        connection.close()
