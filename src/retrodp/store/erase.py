"""Physical erasure: what was deleted is in no file afterwards.

Promise, file level, everywhere: after `rewrite` the file holds live rows only. SQLite's own
`secure_delete` is not enough: copies made when pages were split stay in the gaps of b-tree pages.
Promise, block level, only where the file system overwrites in place: the bytes of the file before,
and of the write-ahead log, are overwritten with zeros. Copy-on-write file systems, the remapping
of solid-state disks, snapshots and back-ups are out of reach.

`VACUUM INTO` and a rename rather than `VACUUM`: it needs no copy in memory or in a temporary
directory, and it leaves the old file in our hands to be overwritten. A crash on the way leaves the
old or the new file whole; what is left of the other is removed by `remove_leftovers`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from retrodp.errors import DiskFullError, StoreLockedError
from retrodp.store.database import Database, create_file, disk_full

_CHUNK = bytes(1 << 20)
_HEADER = 32


def overwrite(descriptor: int) -> None:
    """Write zeros over all bytes of an open file, its first ones durably before the rest."""
    size = os.fstat(descriptor).st_size
    os.lseek(descriptor, 0, os.SEEK_SET)
    # A write-ahead log without its header is no log; half a log with one would be replayed.
    _write_zeros(descriptor, min(size, _HEADER))
    os.fsync(descriptor)
    _write_zeros(descriptor, max(size - _HEADER, 0))
    os.fsync(descriptor)


def shred(path: Path) -> None:
    """Overwrite a file with zeros, remove it, and make the removal durable."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return
    try:
        overwrite(descriptor)
    finally:
        os.close(descriptor)
    path.unlink()
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def drain_log(database: Database, path: Path) -> None:
    """Move the write-ahead log into the file, overwrite it with zeros and cut it to nothing.

    Args:
        database: In write-ahead mode, no transaction open, no other user.
        path: Of the database; the log is beside it.
    """
    _checkpoint(database, "FULL")
    log = path.with_name(path.name + "-wal")
    if log.exists():
        descriptor = os.open(log, os.O_WRONLY | os.O_CLOEXEC)
        try:
            overwrite(descriptor)
        finally:
            os.close(descriptor)
    _checkpoint(database, "TRUNCATE")


def rewrite(
    database: Database, path: Path, *, finish: Callable[[Path], None] = lambda _: None
) -> None:
    """Put a fresh copy of the live rows in place of the file, and zeros over the old bytes.

    Needs as much room as the live rows take; without it `DiskFullError`, and nothing has changed.
    Time: one read and two writes of the file.

    Args:
        database: Of the file; no transaction open.
        path: Of the file.
        finish: Called with the fresh copy before it takes the file's place.
    """
    fresh = _fresh_copy(database, path, finish)
    database.close()
    old = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        fresh.replace(path)
        sync_directory(path.parent)
        overwrite(old)
    finally:
        os.close(old)
        database.reopen()


@contextmanager
def live_rows_alone(database: Database, path: Path) -> Iterator[Path]:
    """A file with the live rows and nothing else, for comparison; gone afterwards.

    Meanwhile the write-ahead log is empty, so that the database's own file is all there is of it.
    """
    fresh = _fresh_copy(database, path)
    try:
        yield fresh
    finally:
        remove_leftovers(path)


def _fresh_copy(
    database: Database, path: Path, finish: Callable[[Path], None] = lambda _: None
) -> Path:
    drain_log(database, path)
    remove_leftovers(path)
    fresh = _leftover(path)
    create_file(fresh, 0o600)
    try:
        database.rows("VACUUM INTO ?", (str(fresh),))
        with database.translated():
            finish(fresh)
        _sync_file(fresh)
    except BaseException:
        remove_leftovers(path)
        raise
    return fresh


def remove_leftovers(path: Path) -> None:
    """Remove what an interrupted `rewrite` of this file left behind."""
    fresh = _leftover(path)
    shred(fresh)
    shred(fresh.with_name(fresh.name + "-journal"))


def _leftover(path: Path) -> Path:
    return path.with_name(path.name + ".fresh")


def _checkpoint(database: Database, mode: str) -> None:
    # The rows must be fetched: the statement does its work while they are.
    [(busy, *_)] = database.rows(f"PRAGMA wal_checkpoint({mode})")
    if busy:
        raise StoreLockedError("The ledger is in use by another process.")


def _sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_zeros(descriptor: int, size: int) -> None:
    while size > 0:
        size -= os.write(descriptor, memoryview(_CHUNK)[:size])


def named(error: OSError, name: str) -> OSError | DiskFullError:
    """The same error, or one that says what to do if there was no room for the named file."""
    full = error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
    return disk_full(name) if full else error
