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

from retrodp.store.database import Database, moves
from retrodp.store.packs import contradiction
from retrodp.stream.update import Changes, Record, made_record

Point = tuple[int, bytes]


_AT_ONCE = 500


class Survivors(Protocol):
    """What the ledger asks of a table of survivors."""

    def apply(self, changes: Changes) -> None:
        """Take out what ended, put in what begun; inside the caller's transaction."""

    def all(self, size: int) -> Iterator[list[Record]]:
        """All survivors in the order of their keys, in batches of at most `size`."""

    def agree(self) -> bool:
        """Whether the tables of survivors fit one another."""

    def count(self) -> int:
        """Number of survivors, copies included."""

    def shift(self, rounds: int) -> None:
        """Take `rounds` off every stamp."""

    def with_stamp(self, stamp: int) -> list[Record]:
        """Survivors of one stamp round."""

    def of_persons(self, persons: Collection[str]) -> list[Record]:
        """Survivors of some persons."""

    def of_id(self, identifier: str) -> list[Record]:
        """Survivors with this id, in any namespace."""


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
            raise contradiction()
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

    def agree(self) -> bool:
        """Yes: there is one table."""
        return True

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

    def shift(self, rounds: int) -> None:
        """Take `rounds` off every stamp."""
        for move in moves(rounds):
            self._database.execute("UPDATE multiset SET stamp = stamp + ?", (move,))

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
