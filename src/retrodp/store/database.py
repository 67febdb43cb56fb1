"""One SQLite connection: explicit transactions, and errors that say what to do.

Promise: a transaction is written whole or not at all, and no error carries a stored value. Knows
no table and no statistic; both the ledger and the published releases stand on it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from retrodp.errors import (
    CapacityError,
    DataError,
    DiskFullError,
    GuardError,
    RetrodpError,
    StoreCorruptError,
    StoreLockedError,
    UsageError,
)

T = TypeVar("T")

_CORRUPT = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_MOST_VALUES = 640  # in one statement; every build of SQLite takes 999
_WRITES = (
    sqlite3.SQLITE_IOERR_WRITE,
    sqlite3.SQLITE_IOERR_FSYNC,
    sqlite3.SQLITE_IOERR_TRUNCATE,
)


class Database:
    """A SQLite file in the hands of one process.

    Args:
        target: Path, or a `file:` URI.
        name: What the file is called in messages.
        pragmas: Statements run on every new connection, in order.
    """

    def __init__(self, target: str, *, name: str, pragmas: Sequence[str] = ()) -> None:
        self._target = target
        self._name = name
        self._pragmas = tuple(pragmas)
        self._pid = os.getpid()
        self._connection = self._connect()

    def __repr__(self) -> str:
        return f"Database({self._name!r})"

    def _connect(self) -> sqlite3.Connection:
        with self.translated():
            connection = sqlite3.connect(
                self._target,
                isolation_level=None,
                uri=self._target.startswith("file:"),
                cached_statements=256,
            )
            try:
                for pragma in self._pragmas:
                    connection.execute(pragma).fetchall()
            except BaseException:
                connection.close()
                raise
            return connection

    def close(self) -> None:
        """Let go of the file; the object is of no use until `reopen`."""
        self._connection.close()

    def reopen(self) -> None:
        """Connect again, for instance to a file that was put in place of the old one."""
        self._connection = self._connect()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing: an exception, and likewise a crash, leaves everything as it was."""
        if self._connection.in_transaction:
            raise UsageError("A transaction of this store is open already.")
        if os.getpid() != self._pid:
            raise UsageError(
                "This store was opened before the process forked.",
                do="Open the store in the process that uses it.",
            )
        with self.translated():
            self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            with self.translated():
                self._connection.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        # SQLite has rolled back already after some errors, a full disk among them.
        if self._connection.in_transaction:
            with self.translated():
                self._connection.execute("ROLLBACK")

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Part of the open transaction, or a transaction of its own."""
        if self._connection.in_transaction:
            yield
        else:
            with self.transaction():
                yield

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._connection.in_transaction

    def execute(self, sql: str, values: Sequence[object] = ()) -> int:
        """Run a statement; returns the number of rows it changed."""
        with self.translated():
            return self._connection.execute(sql, values).rowcount

    def many(self, sql: str, rows: Iterable[Sequence[object]]) -> int:
        """Run a statement for each row; returns the number of rows changed together."""
        with self.translated():
            return max(self._connection.executemany(sql, rows).rowcount, 0)

    def inserted(self, table: str, rows: Sequence[Sequence[object]], *, rest: str = "") -> int:
        """Insert rows, many a statement, which takes a quarter less time than one by one.

        Args:
            table: Name of the table.
            rows: Values of all its columns, in their order.
            rest: What the statement goes on with, such as `ON CONFLICT DO NOTHING`.

        Returns:
            The number of rows inserted or, on a conflict, changed.
        """
        if not rows:
            return 0
        width = len(rows[0])
        at_once = max(1, _MOST_VALUES // width)
        one = f"({', '.join('?' * width)})"
        left = len(rows) % at_once
        whole = len(rows) - left

        def sql(count: int) -> str:
            return f"INSERT INTO {table} VALUES {', '.join([one] * count)} {rest}"  # noqa: S608

        groups = (
            list(chain.from_iterable(rows[start : start + at_once]))
            for start in range(0, whole, at_once)
        )
        done = self.many(sql(at_once), groups) if whole else 0
        if left:
            done += self.execute(sql(left), list(chain.from_iterable(rows[whole:])))
        return done

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query; nothing stays open."""
        with self.translated():
            return self._connection.execute(sql, values).fetchall()

    def made(
        self, make: Callable[[Iterable[Any]], T], sql: str, values: Sequence[object] = ()
    ) -> list[T]:
        """All rows of a query, each turned into something; the bare rows are not kept."""
        with self.translated():
            return list(map(make, self._connection.execute(sql, values)))

    def value(self, sql: str, values: Sequence[object] = ()) -> Any:
        """First column of the first row, or None if there is no row."""
        with self.translated():
            row = self._connection.execute(sql, values).fetchone()
        return None if row is None else row[0]

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Errors of SQLite as errors of this package; none carries a stored value."""
        try:
            yield
        except sqlite3.Error as error:
            raise _translated(error, self._name) from error
        except OverflowError:
            raise _too_large(self._name) from None
        except UnicodeEncodeError:
            # Its message quotes the text.
            raise DataError("A text is not valid Unicode and cannot be stored.") from None


def _too_large(name: str) -> GuardError:
    return CapacityError(
        f"A number for {name} does not fit 64 bits; nothing was changed.",
        expected="counts and sums, in steps, between -2^63 and 2^63 - 1",
        do="Use a coarser step, or correct the rows with huge counts.",
    )


def _translated(error: sqlite3.Error, name: str) -> RetrodpError:
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return UsageError(f"{name} is closed, or in use by another thread.")
    kind = code & 0xFF
    found: RetrodpError = StoreCorruptError(
        f"{name} cannot be used ({error.sqlite_errorname}).",
        do="See that the store's directory exists and that you may read and write it.",
    )
    if kind == sqlite3.SQLITE_FULL or code in _WRITES:
        found = disk_full(name)
    elif kind in _CORRUPT:
        found = StoreCorruptError(
            f"{name} is damaged or is not a file of a store.",
            do="Restore the store from a back-up with `retrodp restore`.",
        )
    elif kind in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        found = StoreLockedError(
            f"{name} is in use by another process.", do="Wait for it to end and try again."
        )
    elif code == sqlite3.SQLITE_CONSTRAINT_CHECK:
        found = _too_large(name)
    elif kind == sqlite3.SQLITE_CONSTRAINT:
        found = StoreCorruptError(f"{name} contradicts what is to be written; nothing was changed.")
    elif code == sqlite3.SQLITE_READONLY_ROLLBACK:
        found = StoreCorruptError(
            f"{name} waits for the repair of an interrupted write, which a reader cannot do.",
            do="Run `retrodp status` on the store once; it completes what was interrupted.",
        )
    return found


def disk_full(name: str) -> DiskFullError:
    """What to say when a file could not be written for lack of room."""
    return DiskFullError(
        f"{name} could not be written: the disk, a quota or a file size limit is full.",
        do="Nothing was half-written. Make room and run the command again.",
    )


def moves(rounds: int) -> tuple[int, int]:
    """What to add to a key of many rows, first the one and then the other, to take `rounds` off it.

    The first leads beyond every round, so a row on its way never meets the key of one that has not
    moved.
    """
    far = 1 << 40
    return far, -far - rounds


def check_head(database: Database, *, application: int, schema: int, name: str) -> None:
    """The file is one of ours, in the format of this version."""
    if database.value("PRAGMA application_id") != application:
        raise StoreCorruptError(
            f"{name} is not a file of a store, or its creation was interrupted.",
            do="Name another directory, or remove this one and create the store again.",
        )
    found = database.value("PRAGMA user_version")
    if found != schema:
        raise StoreCorruptError(
            f"{name} has format {found}.",
            expected=f"format {schema}",
            do="Use the version of retrodp that wrote it.",
        )


def create_file(path: Path, mode: int) -> None:
    """Make an empty file that was not there, with this mode whatever the umask lets through."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, mode)
    except FileExistsError:
        raise UsageError(
            f"{path} exists already.", do="Name a directory that does not exist yet."
        ) from None
    os.close(descriptor)
