"""The published releases: one row a round and release, appended once and never changed.

Promise: what was published stays, byte for byte; the file itself refuses updates, deletions and a
second version of a round. `ReleasesReader` needs no right to write and works while a round is
being published. Holds nothing exact, and imports nothing that does.

Journal: a rollback journal. A reader of a write-ahead log would need to write to a shared index.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from retrodp.errors import StoreBehindError, StoreCorruptError
from retrodp.store import schema_sql
from retrodp.store.database import Database, check_head, create_file

_NAME = "The file of published releases"
_PRAGMAS = (
    "PRAGMA busy_timeout = 30000",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA synchronous = EXTRA",
    "PRAGMA temp_store = MEMORY",
    # Spilling would lock readers out from then on and not only for the moment of the commit.
    "PRAGMA cache_spill = OFF",
    "PRAGMA trusted_schema = OFF",
)


def digest_of_round(round_: int, answers: Mapping[str, bytes]) -> str:
    """SHA-256, in hex, of a round's answers.

    Over a fixed prefix, round and number of answers, then name and bytes of each, sorted by UTF-8
    name; numbers take eight bytes, and every name and answer follows its length.
    """
    hashed = hashlib.sha256(b"retrodp release 1\n")
    hashed.update(round_.to_bytes(8, "big") + len(answers).to_bytes(8, "big"))
    for name, answer in sorted((name.encode(), answer) for name, answer in answers.items()):
        hashed.update(len(name).to_bytes(8, "big") + name)
        hashed.update(len(answer).to_bytes(8, "big"))
        hashed.update(answer)
    return hashed.hexdigest()


class Releases:
    """The writing half; only the engine holds one.

    Rounds are numbered on from epoch to epoch in the file, and from 1 in every epoch here.
    """

    def __init__(self, path: Path, *, before: int = 0) -> None:
        """Open existing releases; completes what a crash interrupted.

        Args:
            path: Of the file.
            before: Rounds of earlier epochs.

        Raises:
            StoreCorruptError: Missing, damaged, or not a file of published releases.
        """
        self._database = _opened(path, str(path), _PRAGMAS)
        self.before = before

    @classmethod
    def create(cls, path: Path, *, store_id: str, test: bool = False) -> Releases:
        """Make the releases of a new store; `test` marks them for every view to say so."""
        create_file(path, 0o644)
        database = Database(str(path), name=_NAME, pragmas=_PRAGMAS)
        facts = {"store_id": store_id, "test": str(int(test))}
        with database.transaction():
            for statement in schema_sql.statements(schema_sql.RELEASES):
                database.execute(statement)
            database.many("INSERT INTO meta VALUES (?, ?)", sorted(facts.items()))
            for trigger in schema_sql.APPEND_ONLY:
                database.execute(trigger)
            database.execute(f"PRAGMA user_version = {schema_sql.RELEASES_FORMAT}")
            database.execute(f"PRAGMA application_id = {schema_sql.RELEASES_APPLICATION}")
        database.close()
        return cls(path)

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    @property
    def last_round(self) -> int:
        """Last published round of the epoch; 0 before its first, less if earlier ones lack."""
        return _last_round(self._database) - self.before

    def digest(self, round_: int) -> str | None:
        """Digest of a published round; None if it is not published."""
        return _digest(self._database, self.before + round_)

    def digest_of(self, round_: int, answers: Mapping[str, bytes]) -> str:
        """The digest that a round will have."""
        return digest_of_round(self.before + round_, answers)

    def publish(self, round_: int, answers: Mapping[str, bytes]) -> str:
        """Append a round; again with the same bytes does nothing. Returns its digest.

        Raises:
            StoreCorruptError: The round was published with other bytes.
            StoreBehindError: The round is not the one after the last.
            DiskFullError: No room; nothing was published.
        """
        digest, number = self.digest_of(round_, answers), self.before + round_
        with self._database.transaction():
            if self.digest(round_) is not None:
                if _answers(self._database, number) != dict(answers):
                    raise StoreCorruptError(
                        f"Round {round_} was published already, with other contents.",
                        do="Run `retrodp verify`; do not publish from a copy of a store.",
                    )
                return digest
            last = self.last_round
            if round_ != last + 1:
                raise StoreBehindError(
                    f"Round {round_} cannot be published now.", expected=f"round {last + 1}"
                )
            self._database.many(
                "INSERT INTO releases VALUES (?, ?, ?)",
                ((number, name, answer) for name, answer in sorted(answers.items())),
            )
            self._database.execute("INSERT INTO rounds VALUES (?, ?)", (number, digest))
        return digest


class ReleasesReader:
    """The reading half, for views, reports and services; a context manager."""

    def __init__(self, path: Path) -> None:
        """Open published releases without the right to write.

        Raises:
            StoreCorruptError: Missing, damaged, or not a file of published releases.
        """
        pragmas = ("PRAGMA busy_timeout = 30000", "PRAGMA trusted_schema = OFF")
        self._database = _opened(path, f"{path.absolute().as_uri()}?mode=ro", pragmas)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    @property
    def store_id(self) -> str:
        """Random name of the store."""
        return str(self._database.value("SELECT value FROM meta WHERE key = 'store_id'"))

    @property
    def test(self) -> bool:
        """Whether the store was made for tests, under a fixed key."""
        return bool(self._database.value("SELECT value <> '0' FROM meta WHERE key = 'test'"))

    @property
    def last_round(self) -> int:
        """Last published round; 0 before the first."""
        return _last_round(self._database)

    def rounds(self) -> list[int]:
        """Published rounds in order."""
        return [round_ for (round_,) in self._database.rows("SELECT round FROM rounds ORDER BY 1")]

    def digest(self, round_: int) -> str | None:
        """Digest of a round as it was noted when it was published; None if it is not published."""
        return _digest(self._database, round_)

    def answers(self, round_: int) -> dict[str, bytes]:
        """Answer of each release of a round, sorted by release; empty if it is not published."""
        return _answers(self._database, round_)

    def answer(self, round_: int, release: str) -> bytes | None:
        """One answer; None if there is none."""
        sql = "SELECT answer FROM releases WHERE round = ? AND release = ?"
        found = self._database.value(sql, (round_, release))
        return None if found is None else bytes(found)

    def series(self, release: str) -> Iterator[tuple[int, bytes]]:
        """Round and answer of a release over all rounds that were published when it began."""
        for round_ in self.rounds():
            answer = self.answer(round_, release)
            if answer is not None:
                yield round_, answer

    def changed_rounds(self) -> list[int]:
        """Rounds whose answers no longer have the digest they were published with; should be none.

        Time: reads everything.
        """
        return [
            round_
            for round_ in self.rounds()
            if digest_of_round(round_, self.answers(round_)) != self.digest(round_)
        ]


def _opened(path: Path, target: str, pragmas: tuple[str, ...]) -> Database:
    if not path.is_file():
        raise StoreCorruptError(
            f"{path} is missing.", do="Name the directory of a store, or restore it."
        )
    database = Database(target, name=_NAME, pragmas=pragmas)
    try:
        check_head(
            database,
            application=schema_sql.RELEASES_APPLICATION,
            schema=schema_sql.RELEASES_FORMAT,
            name=_NAME,
        )
    except BaseException:
        database.close()
        raise
    return database


def _last_round(database: Database) -> int:
    return int(database.value("SELECT coalesce(max(round), 0) FROM rounds"))


def _digest(database: Database, round_: int) -> str | None:
    found = database.value("SELECT sha256 FROM rounds WHERE round = ?", (round_,))
    return None if found is None else str(found)


def _answers(database: Database, round_: int) -> dict[str, bytes]:
    sql = "SELECT release, answer FROM releases WHERE round = ? ORDER BY release"
    # Whoever tampers may leave a text; it must read as changed bytes and not break the comparison.
    return {
        name: answer.encode() if isinstance(answer, str) else bytes(answer)
        for name, answer in database.rows(sql, (round_,))
    }
