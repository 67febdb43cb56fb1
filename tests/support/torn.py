"""A ledger whose records are changed behind its back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from retrodp.store.database import Database
from retrodp.store.packs import RecordTable
from retrodp.stream.update import Changes

_ELSEWHERE = 1 << 40


def unlinked(path: Path, ids: Sequence[str]) -> None:
    """Take records of a stream with ids out of a ledger's file; their bytes stay in it."""
    database = Database(str(path), name="The ledger", pragmas=["PRAGMA secure_delete = OFF"])
    table = RecordTable(database)
    ended = [record for name in ids for record in table.of_id(name)]
    with database.transaction():
        table.apply(Changes(ended=ended, begun=[], ignored=0))
    # Their pack was written anew where it stood, and over them; so once more, alone.
    moved = [record._replace(stamp=_ELSEWHERE) for record in ended]
    with database.transaction():
        table.apply(Changes(ended=[], begun=moved, ignored=0))
    with database.transaction():
        for table_name in ("packs", "names"):
            database.execute(f"DELETE FROM {table_name} WHERE stamp = ?", (_ELSEWHERE,))
    database.close()
