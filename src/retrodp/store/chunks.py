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
        with self._database.translated():
            updates = Updates.of_arrivals(arrivals)
            rounds = np.asarray(arrivals.round, np.int64)
        new = 0
        for round_ in np.unique(rounds).tolist():
            rows = _of_round(updates, np.flatnonzero(rounds == round_))
            with self._database.translated():
                rows = self._without_waiting(round_, rows.in_order())
                self._put(round_, rows)
            new += len(rows)
        return new

    def updates(self, round_: int) -> Updates:
        """All that waits for a round, in the order in which it applies."""
        parts = [decoded(content) for _, content in self._contents("WHERE round = ?", round_)]
        return joined_updates(parts) if parts else no_updates()

    def waiting(self, round_: int) -> list[QueuedUpdate]:
        """The same as single updates."""
        return self.updates(round_).queued()

    def latest(self, round_: int) -> int | None:
        """Latest `at` among the updates that wait for a round; None if none does."""
        found = self._database.value("SELECT max(latest) FROM queue WHERE round = ?", (round_,))
        return None if found is None else int(found)

    def rounds(self) -> dict[int, int]:
        """Updates that wait, by round."""
        return dict(self._database.rows("SELECT round, sum(n) FROM queue GROUP BY round"))

    def remove(self, round_: int) -> bool:
        """Remove a round; tells whether it held a deletion or a replacement, effective or not."""
        ends = self._database.value("SELECT max(ends) FROM queue WHERE round = ?", (round_,))
        self._database.execute("DELETE FROM queue WHERE round = ?", (round_,))
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

    def shift(self, rounds: int, far: int) -> None:
        """Take `rounds` off every round, and off every stamp that a row names."""
        for (round_, chunk), content in list(self._contents("")):
            rows = decoded(content)
            stamp = np.where(rows.op == Op.DELETE, 0, rows.stamp - rounds)
            self._database.execute(
                "UPDATE queue SET round = ?, content = ? WHERE round = ? AND chunk = ?",
                (round_ + far, encoded(_stamped(rows, stamp)), round_, chunk),
            )
        self._database.execute("UPDATE queue SET round = round - ?", (far + rounds,))
        self._seen.clear()

    def unite(self) -> None:
        """Keep each round in the one way that follows from its rows."""
        for round_ in self.rounds():
            # From plain rows: the codes of columns tell in which order values came.
            rows = self.waiting(round_)
            self._database.execute("DELETE FROM queue WHERE round = ?", (round_,))
            self._put(round_, Updates.of_rows(rows))

    def all(self) -> Iterator[Updates]:
        """All that waits, of all rounds."""
        for _, content in self._contents(""):
            yield decoded(content)

    def _contents(self, where: str, *values: object) -> Iterator[tuple[tuple[int, int], bytes]]:
        sql = f"SELECT round, chunk FROM queue {where} ORDER BY round, chunk"  # noqa: S608
        for key in self._database.rows(sql, values):
            one = "SELECT content FROM queue WHERE round = ? AND chunk = ?"
            yield (key[0], key[1]), self._database.value(one, key)

    def _put(self, round_: int, rows: Updates) -> None:
        chunk = self._last_chunk(round_)
        for start in range(0, len(rows), _ROWS):
            some = rows.between(start, start + _ROWS)
            chunk += 1
            self._database.execute(
                "INSERT INTO queue VALUES (?, ?, ?, ?, ?, ?)", (round_, chunk, *_row(some))
            )
            if round_ in self._seen:
                self._seen[round_].add(_hashes(some), chunk)

    def _last_chunk(self, round_: int) -> int:
        found = self._database.value("SELECT max(chunk) FROM queue WHERE round = ?", (round_,))
        return int(found or 0)

    def _without_waiting(self, round_: int, rows: Updates) -> Updates:
        """The rows that do not wait for the round yet."""
        if not self._last_chunk(round_):
            self._seen.pop(round_, None)
            return rows
        if round_ not in self._seen:
            self._seen[round_] = seen = _Seen()
            for (_, chunk), content in self._of(round_):
                seen.add(_hashes(decoded(content)), chunk)
        hashes = _hashes(rows)
        maybe, chunks = self._seen[round_].look_up(hashes)
        if not chunks:
            return rows
        wanted = set(hashes[maybe].tolist())
        waiting: set[object] = set()
        for chunk in chunks:
            where = "WHERE round = ? AND chunk = ?"
            for _, content in self._contents(where, round_, chunk):
                waiting.update(_those(decoded(content), wanted).keys())
        places = np.flatnonzero(maybe)
        there = np.array([key in waiting for key in rows.take(places).keys()], np.bool_)  # noqa: SIM118
        return rows.take(np.setdiff1d(np.arange(len(rows)), places[there]))

    def _of(self, round_: int) -> Iterator[tuple[tuple[int, int], bytes]]:
        return self._contents("WHERE round = ?", round_)

    def _drop(self, text: str, flagged: Callable[[Updates], list[bool]]) -> int:
        dropped = 0
        with self._database.translated():
            plain = text.encode()
        for (round_, chunk), content in list(self._contents("")):
            if plain not in content:
                continue
            rows = decoded(content)
            gone = np.array(flagged(rows), np.bool_)
            if not gone.any():
                continue
            dropped += int(gone.sum())
            here = "WHERE round = ? AND chunk = ?"
            if gone.all():
                self._database.execute(f"DELETE FROM queue {here}", (round_, chunk))  # noqa: S608
            else:
                self._database.execute(
                    f"UPDATE queue SET n = ?, latest = ?, ends = ?, content = ? {here}",  # noqa: S608
                    (*_row(rows.take(np.flatnonzero(~gone))), round_, chunk),
                )
        return dropped


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
