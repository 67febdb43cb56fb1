"""Updates that wait for their round to close, in a stream with ids: whole columns in few rows.

Promise: a set of what was accepted; a row delivered twice is kept once, whichever batches bring
it, and no two chunks hold the same row. After `unite` neither the order nor the batches leave a
trace. What waits is data like the survivors and is erased like them.

A row a chunk, not a row an update: a round is read and removed in one piece, and whoever forgets
rewrites the chunks that name the forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from retrodp.store.database import Database
from retrodp.store.packed import decoded, encoded
from retrodp.stream.queued import Updates, joined_updates, no_updates
from retrodp.stream.update import Arrivals, Op, QueuedUpdate

_ROWS = 50_000
"""Of a chunk, at most."""
_ROUND = 32
"""Bits of a chunk's number, below those of its round, in its place in the table."""

_HERE = "WHERE place > ? AND place < ?"
_DELETE = "DELETE FROM queue WHERE place > ? AND place < ?"
_WORD = np.uint64(0x9E3779B97F4A7C15)


class ChunkQueue:
    """The waiting updates of a ledger whose records have ids."""

    def __init__(self, database: Database) -> None:
        """See the module."""
        self._database = database
        # By round, so that one that comes in many batches is not read for each of them. It only
        # says where to look, and may name more than there is; a restart begins without.
        self._seen: dict[int, _Seen] = {}

    def enqueue(self, arrivals: Arrivals) -> int:
        """Take accepted rows in; returns how many were not waiting yet."""
        if not len(arrivals):
            return 0
        with self._database.translated():
            updates = Updates.of_arrivals(arrivals)
            rounds = np.asarray(arrivals.round, np.int64)
        new = 0
        first, last = arrivals.span()
        for round_ in [first] if first == last else np.unique(rounds).tolist():
            rows = _of_round(updates, np.flatnonzero(rounds == round_))
            with self._database.translated():
                rows = self._without_waiting(round_, rows.in_order())
                self._put(round_, rows)
            new += len(rows)
        return new

    def updates(self, round_: int) -> Updates:
        """All that waits for a round, in the order in which it applies."""
        parts = [decoded(content) for _, content in self._contents(_HERE, *_of(round_))]
        return joined_updates(parts) if parts else no_updates()

    def waiting(self, round_: int) -> list[QueuedUpdate]:
        """The same as single updates."""
        return self.updates(round_).queued()

    def latest(self, round_: int) -> int | None:
        """Latest `at` among the updates that wait for a round; None if none does."""
        found = self._database.value(
            "SELECT max(latest) FROM queue WHERE place > ? AND place < ?", _of(round_)
        )
        return None if found is None else int(found)

    def rounds(self) -> dict[int, int]:
        """Updates that wait, by round."""
        sql = "SELECT place >> ?, sum(n) FROM queue GROUP BY 1 ORDER BY 1"
        return dict(self._database.rows(sql, (_ROUND,)))

    def remove(self, round_: int) -> bool:
        """Remove a round; tells whether it held a deletion or a replacement, effective or not."""
        ends = self._database.value(
            "SELECT max(ends) FROM queue WHERE place > ? AND place < ?", _of(round_)
        )
        self._database.execute(_DELETE, _of(round_))
        self._seen.pop(round_, None)
        return bool(ends)

    def drop_id(self, identifier: str, space: str | None) -> int:
        """Remove every waiting update of an id, in one namespace or (None) in all."""
        return self._drop(
            identifier,
            lambda rows: [
                name == identifier and space in {None, own}
                for name, own in zip(rows.id, rows.spaces, strict=True)
            ],
        )

    def drop_person(self, person: str) -> int:
        """Remove every waiting update of a person, also those that name her as namespace."""
        return self._drop(
            person,
            lambda rows: [
                person == who or (own != "" and own == person)
                for who, own in zip(rows.person.values(), rows.spaces, strict=True)
            ],
        )

    def shift(self, rounds: int) -> None:
        """Take `rounds` off every round, and off every stamp that a row names."""
        # From the first on, so each comes to a place that none of the others has.
        for place, content in self._contents(""):
            rows = decoded(content)
            stamp = np.where(rows.op == Op.DELETE, 0, rows.stamp - rounds)
            self._database.execute(
                "UPDATE queue SET place = ?, content = ? WHERE place = ?",
                (place - (rounds << _ROUND), encoded(_stamped(rows, stamp)), place),
            )
        self._seen.clear()

    def unite(self) -> None:
        """Keep each round in the one way that follows from its rows."""
        for round_ in self.rounds():
            # From plain rows: the codes of columns tell in which order values came.
            rows = self.waiting(round_)
            self._database.execute(_DELETE, _of(round_))
            self._put(round_, Updates.of_rows(rows))

    def all(self) -> Iterator[Updates]:
        """All that waits, of all rounds."""
        for _, content in self._contents(""):
            yield decoded(content)

    def _contents(self, where: str, *values: object) -> Iterator[tuple[int, bytes]]:
        """Places and contents, one in memory at a time."""
        sql = f"SELECT place FROM queue {where} ORDER BY place"  # noqa: S608
        for (place,) in self._database.rows(sql, values):
            one = "SELECT content FROM queue WHERE place = ?"
            yield place, self._database.value(one, (place,))

    def _put(self, round_: int, rows: Updates) -> None:
        place = self._last(round_) or round_ << _ROUND
        for start in range(0, len(rows), _ROWS):
            some = rows.between(start, start + _ROWS)
            place += 1
            self._database.execute("INSERT INTO queue VALUES (?, ?, ?, ?, ?)", (place, *_row(some)))
            if round_ in self._seen:
                self._seen[round_].add(_hashes(some), place)

    def _last(self, round_: int) -> int | None:
        """Place of the last chunk of a round."""
        found = self._database.value(
            "SELECT max(place) FROM queue WHERE place > ? AND place < ?", _of(round_)
        )
        return None if found is None else int(found)

    def _without_waiting(self, round_: int, rows: Updates) -> Updates:
        """The rows that do not wait for the round yet."""
        if self._last(round_) is None:
            return rows
        if round_ not in self._seen:
            self._seen[round_] = seen = _Seen()
            for place, content in self._contents(_HERE, *_of(round_)):
                seen.add(_hashes(decoded(content)), place)
        hashes = _hashes(rows)
        maybe, chunks = self._seen[round_].look_up(hashes)
        if not chunks:
            return rows
        wanted = set(hashes[maybe].tolist())
        waiting: set[object] = set()
        for chunk in chunks:
            for _, content in self._contents("WHERE place = ?", chunk):
                waiting.update(_those(decoded(content), wanted).keys())
        places = np.flatnonzero(maybe)
        there = np.array([key in waiting for key in rows.take(places).keys()], np.bool_)  # noqa: SIM118
        return rows.take(np.setdiff1d(np.arange(len(rows)), places[there]))

    def _drop(self, text: str, flagged: Callable[[Updates], list[bool]]) -> int:
        dropped = 0
        with self._database.translated():
            plain = text.encode()
        for place, content in self._contents(""):
            if plain not in content:
                continue
            rows = decoded(content)
            gone = np.array(flagged(rows), np.bool_)
            if not gone.any():
                continue
            dropped += int(gone.sum())
            if gone.all():
                self._database.execute("DELETE FROM queue WHERE place = ?", (place,))
            else:
                self._database.execute(
                    "UPDATE queue SET n = ?, latest = ?, ends = ?, content = ? WHERE place = ?",
                    (*_row(rows.take(np.flatnonzero(~gone))), place),
                )
        return dropped


def _of(round_: int) -> tuple[int, int]:
    """Between which places the chunks of a round are."""
    return round_ << _ROUND, (round_ + 1) << _ROUND


def _of_round(updates: Updates, places: npt.NDArray[np.intp]) -> Updates:
    start, end = int(places[0]), int(places[-1]) + 1
    if end - start == len(places):  # mostly a source comes round by round
        return updates.between(start, end)
    return updates.take(places)


def _row(rows: Updates) -> tuple[int, int, int, bytes]:
    return len(rows), int(rows.at.max()), int((rows.op != Op.ADD).any()), encoded(rows)


def _stamped(rows: Updates, stamp: npt.NDArray[np.int64]) -> Updates:
    return Updates(
        space=rows.space,
        id=rows.id,
        at=rows.at,
        rank=rows.rank,
        op=rows.op,
        stamp=stamp,
        person=rows.person,
        payload=rows.payload,
    )


def _hashes(rows: Updates) -> npt.NDArray[np.uint64]:
    ids = np.fromiter(map(hash, rows.id), np.int64, len(rows)).view(np.uint64)
    return ids * _WORD + rows.at.view(np.uint64)


def _those(rows: Updates, hashes: set[int]) -> Updates:
    own = _hashes(rows).tolist()
    return rows.take(np.array([n for n, one in enumerate(own) if one in hashes], np.intp))


class _Seen:
    """In which chunks rows with given hashes may wait."""

    def __init__(self) -> None:
        # Sorted hashes, each with its chunk; few arrays, each far shorter than the one before.
        self._parts: list[tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]] = []

    def add(self, hashes: npt.NDArray[np.uint64], chunk: int) -> None:
        chunks = np.full(len(hashes), chunk, np.int64)
        while self._parts and len(self._parts[-1][0]) <= 2 * len(hashes):
            more, theirs = self._parts.pop()
            hashes, chunks = np.concatenate((more, hashes)), np.concatenate((theirs, chunks))
        order = np.argsort(hashes, kind="stable")
        self._parts.append((hashes[order], chunks[order]))

    def look_up(self, hashes: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.bool_], list[int]]:
        """Which of the hashes are there, and in which chunks they may be."""
        maybe = np.zeros(len(hashes), np.bool_)
        chunks: set[int] = set()
        for own, theirs in self._parts:
            here = own[np.minimum(np.searchsorted(own, hashes), len(own) - 1)] == hashes
            if here.any():
                maybe |= here
                chunks.update(theirs[np.isin(own, hashes[here])].tolist())
        return maybe, sorted(chunks)
