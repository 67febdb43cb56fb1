"""The surviving records: one table for streams with ids, one for stamped points with copies.

Promise: holds the survivors and nothing of how they came about; two histories that unite leave
equal rows. Both classes offer the same methods. Whoever changes survivors must name exactly what
is there: a difference that does not fit is a contradiction, and nothing is changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from operator import itemgetter
from typing import Protocol

from retrodp.errors import StoreCorruptError
from retrodp.store.database import Database
from retrodp.stream.update import Changes, Record, made_record

Point = tuple[int, bytes]

_AT_ONCE = 500
_by_stamp = itemgetter(2)
_row = itemgetter(2, 0, 1, 3, 4)


class Survivors(Protocol):
    """What the ledger asks of a table of survivors."""

    def apply(self, changes: Changes) -> None:
        """Take out what ended, put in what begun; inside the caller's transaction."""

    def all(self, size: int) -> Iterator[list[Record]]:
        """All survivors in the order of their keys, in batches of at most `size`."""

    def count(self) -> int:
        """Number of survivors, copies included."""

    def with_stamp(self, stamp: int) -> list[Record]:
        """Survivors of one stamp round."""

    def of_persons(self, persons: Collection[str]) -> list[Record]:
        """Survivors of some persons."""

    def of_id(self, identifier: str) -> list[Record]:
        """Survivors with this id, in any namespace."""


class RecordTable:
    """Survivors of a stream with ids: at most one a namespace and id."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def apply(self, changes: Changes) -> None:
        """Take out what ended, put in what begun; inside the caller's transaction."""
        ended = sorted(changes.ended, key=_by_stamp)
        begun = sorted(changes.begun, key=_by_stamp)  # near the order of the key
        gone = self._database.many(
            "DELETE FROM records WHERE space = ? AND id = ? AND stamp = ? AND person IS ? "
            "AND payload = ?",
            (record[:5] for record in ended),
        )
        come = self._database.inserted("records", list(map(_row, begun)))
        if (gone, come) != (len(ended), len(begun)):
            raise _contradiction()

    def all(self, size: int) -> Iterator[list[Record]]:
        """All survivors by stamp, namespace and id, in batches of at most `size`."""
        batch = self._select("ORDER BY stamp, space, id LIMIT ?", size)
        while batch:
            yield batch
            last = batch[-1]
            after = "WHERE (stamp, space, id) > (?, ?, ?) ORDER BY stamp, space, id LIMIT ?"
            batch = self._select(after, last.stamp, last.space, last.id, size)

    def count(self) -> int:
        """Number of survivors."""
        return int(self._database.value("SELECT count(*) FROM records"))

    def with_stamp(self, stamp: int) -> list[Record]:
        """Survivors of one stamp round."""
        return self._select("WHERE stamp = ? ORDER BY space, id", stamp)

    def of_persons(self, persons: Collection[str]) -> list[Record]:
        """Survivors of some persons."""
        found: list[Record] = []
        for some, marks in in_groups(persons):
            found += self._select(f"WHERE person IN ({marks}) ORDER BY stamp, space, id", *some)
        return found

    def of_id(self, identifier: str) -> list[Record]:
        """Survivors with this id, in any namespace."""
        # Two queries: the partial index on id serves only plans that have namespaces.
        bare = self._select("WHERE space = '' AND id = ?", identifier)
        return bare + self._select("WHERE space > '' AND id = ? ORDER BY space", identifier)

    def running(self, round_: int) -> dict[tuple[str, str], Record]:
        """Running life of every id that the updates waiting for a round name."""
        found = self._select(
            "AS r JOIN (SELECT DISTINCT space AS s, id AS i FROM queue WHERE round = ?) "
            "ON r.space = s AND r.id = i",
            round_,
        )
        return {(record.space, record.id): record for record in found}

    def _select(self, rest: str, *values: object) -> list[Record]:
        sql = f"SELECT space, id, stamp, person, payload, 1 FROM records {rest}"  # noqa: S608
        return self._database.made(made_record, sql, values)


class PointTable:
    """Survivors of a stream without ids: stamped points and how many copies of each."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def apply(self, changes: Changes) -> None:
        """Take out what ended, put in what begun; inside the caller's transaction."""
        ended = _copies(changes.ended)
        gone = self._database.many(
            "DELETE FROM multiset WHERE stamp = ? AND payload = ? AND n = ?",
            ((*point, copies) for point, copies in ended),
        )
        fewer = self._database.many(
            "UPDATE multiset SET n = n - ?3 WHERE stamp = ?1 AND payload = ?2 AND n > ?3",
            ((*point, copies) for point, copies in ended),
        )
        if gone + fewer != len(ended):
            raise _contradiction()
        begun = sorted(changes.begun, key=itemgetter(2, 4))
        self._database.inserted(
            "multiset",
            [(record.stamp, record.payload, record.person, record.count) for record in begun],
            rest="ON CONFLICT DO UPDATE SET n = n + excluded.n",
        )

    def all(self, size: int) -> Iterator[list[Record]]:
        """All survivors by stamp and payload, in batches of at most `size`."""
        batch = self._select("ORDER BY stamp, payload LIMIT ?", size)
        while batch:
            yield batch
            last = batch[-1]
            after = "WHERE (stamp, payload) > (?, ?) ORDER BY stamp, payload LIMIT ?"
            batch = self._select(after, last.stamp, last.payload, size)

    def count(self) -> int:
        """Number of survivors, copies included."""
        return int(self._database.value("SELECT coalesce(sum(n), 0) FROM multiset"))

    def with_stamp(self, stamp: int) -> list[Record]:
        """Survivors of one stamp round."""
        return self._select("WHERE stamp = ? ORDER BY payload", stamp)

    def of_persons(self, persons: Collection[str]) -> list[Record]:
        """Survivors of some persons."""
        found: list[Record] = []
        for some, marks in in_groups(persons):
            found += self._select(f"WHERE person IN ({marks}) ORDER BY stamp, payload", *some)
        return found

    def of_id(self, identifier: str) -> list[Record]:
        """None: the points of this stream have no ids."""
        del identifier
        return []

    def running(self, round_: int) -> dict[Point, Record]:
        """Surviving point of every (stamp, payload) that the updates waiting for a round name."""
        found = self._select(
            "JOIN (SELECT DISTINCT stamp AS s, payload AS p FROM queue WHERE round = ?) "
            "ON stamp = s AND payload = p",
            round_,
        )
        return {(record.stamp, record.payload): record for record in found}

    def _select(self, rest: str, *values: object) -> list[Record]:
        sql = f"SELECT '', '', stamp, person, payload, n FROM multiset {rest}"  # noqa: S608
        return self._database.made(made_record, sql, values)


def in_groups(texts: Collection[str]) -> Iterator[tuple[list[str], str]]:
    """Some texts at a time, and as many question marks for a statement."""
    ordered = sorted(set(texts))
    for start in range(0, len(ordered), _AT_ONCE):
        some = ordered[start : start + _AT_ONCE]
        yield some, ", ".join("?" * len(some))


def _copies(records: list[Record]) -> list[tuple[Point, int]]:
    copies: Counter[Point] = Counter()
    for record in records:
        copies[record.stamp, record.payload] += record.count
    return sorted(copies.items())


def _contradiction() -> StoreCorruptError:
    return StoreCorruptError(
        "What was to end in this round is not what survives in the ledger; nothing was changed.",
        do="Run `retrodp verify` on the store.",
    )
