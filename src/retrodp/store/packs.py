"""The survivors of a stream with ids: whole columns in packs, and a small index by name.

Promise: at most one life a namespace and id; the rows of both tables are a function of the
survivors alone: a pack holds the lives of one stamp between two cuts, and the cuts follow from the
names (see `cuts`). Whoever changes survivors must name exactly what is there.

A row a pack, not a row a life: a round appends its lives, a window reads those that leave it and a
recount reads all, column by column. What it costs: to end a life rewrites its pack.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby

import msgspec
import numpy as np

from retrodp.errors import StoreCorruptError
from retrodp.store.cuts import cuts
from retrodp.store.database import Database, moves
from retrodp.store.packed import decoded_lives, encoded_lives, thinned
from retrodp.stream.queued import Updates, joined_updates, no_updates
from retrodp.stream.update import Changes, Record

_Name = tuple[str, str]
_encode_json = msgspec.json.Encoder().encode
_NUL = "\\u0000"  # as JSON; at it SQLite would end the text
_FEW = 16
_MOST = 200_000
_PACKS = 64  # that are rewritten together
_CONTENT = "SELECT content FROM packs WHERE stamp = ? AND space = ? AND id = ?"
_REPLACED = "ON CONFLICT DO UPDATE SET n = excluded.n, content = excluded.content"


class RecordTable:
    """Survivors of a stream with ids: at most one a namespace and id."""

    def __init__(self, database: Database) -> None:
        """See the module."""
        self._database = database

    def apply(self, changes: Changes) -> None:
        """Take out what ended, put in what begun; inside the caller's transaction."""
        gone = self._database.many(
            "DELETE FROM names WHERE space = ? AND id = ? AND stamp = ?",
            ((record.space, record.id, record.stamp) for record in changes.ended),
        )
        if gone != len(changes.ended):
            raise contradiction()
        ended = _by_stamp(changes.ended)
        begun = {
            stamp: Updates.of_records(records).in_order()
            for stamp, records in _by_stamp(changes.begun).items()
        }
        come = sum(self._name(lives) for lives in begun.values())
        if come != len(changes.begun):
            raise contradiction()
        for stamp in sorted(ended.keys() | begun.keys()):
            self._change(stamp, ended.get(stamp, ()), begun.get(stamp) or no_updates())

    def begin_all(self, additions: Updates) -> Updates:
        """Put in what these additions write, each of a name of its own, unless a life runs.

        Returns:
            The additions that begin a life.
        """
        parts = _of_stamps(additions)
        come = sum(self._name(lives) for lives in parts.values())
        if come < len(additions):
            # Rare but in a redelivery. What was named just now is in no pack yet.
            names = additions.names_of_all()
            running = self.running(names)
            free = np.array([name not in running for name in names], np.bool_)
            if come != np.count_nonzero(free):
                raise contradiction()
            additions = additions.take(np.flatnonzero(free))
            parts = _of_stamps(additions)
        for stamp, lives in parts.items():
            self._change(stamp, (), lives)
        return additions

    def all(self, size: int) -> Iterator[list[Record]]:
        """All survivors by stamp, namespace and id, in batches of at most `size`."""
        batch: list[Record] = []
        for lives in self.columns():
            batch += lives.records()
            while len(batch) >= size:
                yield batch[:size]
                batch = batch[size:]
        if batch:
            yield batch

    def columns(self, holding: Sequence[bytes] = ()) -> Iterator[Updates]:
        """All survivors in the same order, as the additions that would write them.

        Args:
            holding: Leave out packs that have none of these bytes, if there are any.
        """
        key = (-(1 << 63), "", "")
        some = " OR ".join(["instr(content, ?)"] * len(holding)) or "TRUE"
        where = f"WHERE (stamp, space, id) > (?, ?, ?) AND ({some}) ORDER BY stamp, space, id"
        sql = f"SELECT stamp, space, id, content FROM packs {where} LIMIT 1"  # noqa: S608
        while rows := self._database.rows(sql, (*key, *holding)):
            ((*key, content),) = rows  # type: ignore[assignment]
            yield decoded_lives(content, key[0])

    def agree(self) -> bool:
        """Whether as many lives stand in the packs as in the index by name."""
        return self.count() == int(self._database.value("SELECT count(*) FROM names"))

    def count(self) -> int:
        """Number of survivors."""
        return int(self._database.value("SELECT coalesce(sum(n), 0) FROM packs"))

    def with_stamp(self, stamp: int) -> list[Record]:
        """Survivors of one stamp round."""
        return self.columns_with_stamp(stamp).records()

    def columns_with_stamp(self, stamp: int) -> Updates:
        """The same as the additions that would write them."""
        sql = "SELECT content FROM packs WHERE stamp = ? ORDER BY space, id"
        packs = [decoded_lives(one, stamp) for (one,) in self._database.rows(sql, (stamp,))]
        return joined_updates(packs) if packs else no_updates()

    def of_persons(self, persons: Collection[str]) -> list[Record]:
        """Survivors of some persons."""
        wanted = set(persons)
        found: list[Record] = []
        # A pack that names somebody has her text as it stands in an array of texts.
        texts = [msgspec.msgpack.encode(person) for person in sorted(wanted)]
        for lives in self.columns(texts if len(texts) < _FEW else ()) if wanted else ():
            rows = lives.person.where(wanted.__contains__)
            if rows.any():
                found += lives.take(np.flatnonzero(rows)).records()
        return found

    def of_id(self, identifier: str) -> list[Record]:
        """Survivors with this id, in any namespace."""
        # Two queries: the partial index on id serves only plans that have namespaces.
        sql = "SELECT space, id FROM names WHERE space = '' AND id = ?"
        names = self._database.rows(sql, (identifier,))
        sql = "SELECT space, id FROM names WHERE space > '' AND id = ? ORDER BY space"
        names += self._database.rows(sql, (identifier,))
        found = self.running(names)
        return [found[name] for name in names]

    def running(self, names: Collection[_Name]) -> dict[_Name, Record]:
        """Running life of each of these (space, id) that has one."""
        stamps: defaultdict[int, list[_Name]] = defaultdict(list)
        by_space: defaultdict[str, set[str]] = defaultdict(set)
        for space, identifier in names:
            by_space[space].add(identifier)
        for space, ids in by_space.items():
            for identifier, stamp in self._stamps(space, sorted(ids)):
                stamps[stamp].append((space, identifier))
        found: dict[_Name, Record] = {}
        for stamp, wanted in stamps.items():
            for lives, here in self._packs_of(stamp, sorted(wanted)):
                place = dict(zip(lives.names_of_all(), range(len(lives)), strict=True))
                rows = [place[name] for name in here if name in place]
                some = lives.take(np.array(rows, np.intp))
                found.update(zip(some.names_of_all(), some.records(), strict=True))
        return found

    def shift(self, rounds: int) -> None:
        """Take `rounds` off every stamp."""
        for move in moves(rounds):
            self._database.execute("UPDATE packs SET stamp = stamp + ?", (move,))
        self._database.execute("UPDATE names SET stamp = stamp - ?", (rounds,))

    def _stamps(self, space: str, ids: Sequence[str]) -> list[tuple[str, int]]:
        """Ids among these that have a life, with its stamp."""
        if len(ids) > _MOST:
            parts = [ids[start : start + _MOST] for start in range(0, len(ids), _MOST)]
            return [row for part in parts for row in self._stamps(space, part)]
        listed = _encode_json(ids).decode()
        if len(ids) < _FEW or _NUL in listed:
            sql = "SELECT id, stamp FROM names WHERE space = ? AND id = ?"
            return [row for one in ids for row in self._database.rows(sql, (space, one))]
        # The texts first: whatever SQLite guesses, they are what is to be gone through.
        sql = (
            "SELECT own.id, own.stamp FROM json_each(?) AS given CROSS JOIN names AS own "
            "ON own.space = ? AND own.id = given.value"
        )
        return self._database.rows(sql, (listed, space))

    def _name(self, lives: Updates) -> int:
        """Enter lives of one stamp, in order, into the index; how many were not there."""
        if not len(lives):
            return 0
        if len(lives) > _MOST:  # SQLite takes no text of a gigabyte
            edges = range(0, len(lives), _MOST)
            return sum(self._name(lives.between(start, start + _MOST)) for start in edges)
        stamp, rest = int(lives.stamp[0]), "ON CONFLICT DO NOTHING"
        listed = _encode_json(lives.id).decode() if lives.space is None else _NUL
        if len(lives) < _FEW or _NUL in listed:
            rows = list(zip(lives.spaces, lives.id, [stamp] * len(lives), strict=True))
            return self._database.inserted("names", rows, rest=rest)
        # One text in place of a row of values each: half the time.
        sql = f"INSERT INTO names SELECT '', value, ? FROM json_each(?) WHERE TRUE {rest}"  # noqa: S608
        return self._database.execute(sql, (stamp, listed))

    def _firsts(self, stamp: int) -> list[_Name]:
        sql = "SELECT space, id FROM packs WHERE stamp = ? ORDER BY space, id"
        return self._database.rows(sql, (stamp,))

    def _packs_of(
        self, stamp: int, names: Sequence[_Name]
    ) -> Iterator[tuple[Updates, list[_Name]]]:
        """The packs of a stamp in which lives of these sorted names are, each with its names."""
        firsts = self._firsts(stamp)
        for place, here in groupby(names, key=lambda name: bisect_right(firsts, name) - 1):
            if place >= 0:
                yield self._read(stamp, firsts[place]), list(here)

    def _read(self, stamp: int, first: _Name) -> Updates:
        return decoded_lives(self._database.value(_CONTENT, (stamp, *first)), stamp)

    def _change(self, stamp: int, ended: Sequence[Record], begun: Updates) -> None:
        """Take lives of a stamp out of their packs and put others in."""
        firsts = self._firsts(stamp)
        if not firsts:
            if ended:
                raise contradiction()
            self._write(stamp, begun)
            return
        gone: defaultdict[int, list[Record]] = defaultdict(list)
        for record in ended:
            gone[_place(firsts, (record.space, record.id))].append(record)
        come: defaultdict[int, list[int]] = defaultdict(list)
        for row, name in enumerate(begun.names_of_all()):
            come[_place(firsts, name)].append(row)
        for place in set(gone) - set(come):
            if self._thin(stamp, firsts[place], gone[place]):
                del gone[place]
        for places in _together(firsts, gone, gone.keys() | come.keys()):
            packs = [self._read(stamp, firsts[place]) for place in places]
            lives = _without(
                joined_updates(packs), [one for place in places for one in gone[place]]
            )
            rows = [row for place in places for row in come[place]]
            if rows:
                lives = joined_updates([lives, begun.take(np.array(rows, np.intp))])
            left = self._write(stamp, lives)
            self._database.many(
                "DELETE FROM packs WHERE stamp = ? AND space = ? AND id = ?",
                [(stamp, *firsts[place]) for place in places if firsts[place] not in left],
            )

    def _thin(self, stamp: int, first: _Name, ended: Sequence[Record]) -> bool:
        """Leave lives out of a pack that goes on as it is; tells whether that was all there is."""
        if any((one.space, one.id) == first for one in ended):
            return False
        key = (stamp, *first)
        content = thinned(self._database.value(_CONTENT, key), ended)
        if content is None:
            return False
        sql = "UPDATE packs SET n = n - ?, content = ? WHERE stamp = ? AND space = ? AND id = ?"
        self._database.execute(sql, (len(ended), content, *key))
        return True

    def _write(self, stamp: int, lives: Updates) -> set[_Name]:
        """Write whole packs of lives in order, the first of which begins one; returns their names.

        Lives between two of the packs may be missing: each that follows a gap is cut off anyway.
        """
        if not len(lives):
            return set()
        begins = list(dict.fromkeys([0, *np.flatnonzero(cuts(lives.id, lives.space)).tolist()]))
        spaces, ids = lives.spaces, lives.id
        rows = [
            (stamp, spaces[start], ids[start], end - start, content)
            for start, end, content in zip(
                begins, [*begins[1:], len(lives)], encoded_lives(lives, begins), strict=True
            )
        ]
        self._database.inserted("packs", rows, rest=_REPLACED)
        return {(space, identifier) for _, space, identifier, _, _ in rows}


def contradiction() -> StoreCorruptError:
    """What is to be said when a difference does not fit what is there."""
    return StoreCorruptError(
        "What was to end in this round is not what survives in the ledger; nothing was changed.",
        do="Run `retrodp verify` on the store.",
    )


def _of_stamps(lives: Updates) -> dict[int, Updates]:
    stamps = np.unique(lives.stamp).tolist()
    if len(stamps) == 1:
        return {stamps[0]: lives}
    return {stamp: lives.take(np.flatnonzero(lives.stamp == stamp)) for stamp in stamps}


def _by_stamp(records: Iterable[Record]) -> dict[int, list[Record]]:
    found: defaultdict[int, list[Record]] = defaultdict(list)
    for record in records:
        found[record.stamp].append(record)
    return found


def _place(firsts: Sequence[_Name], name: _Name) -> int:
    """The pack between whose ends a name lies; what comes before all belongs to the first."""
    return max(bisect_right(firsts, name) - 1, 0)


def _together(
    firsts: Sequence[_Name], gone: dict[int, list[Record]], places: Iterable[int]
) -> Iterator[list[int]]:
    """Packs to be rewritten together; one that loses its first life goes on in the one before."""
    wanted = set(places)
    for place, ended in gone.items():
        if place > 0 and any((one.space, one.id) == firsts[place] for one in ended):
            wanted.add(place - 1)  # if it loses something, `gone` has it too
    some: list[int] = []
    for place in sorted(wanted):
        if len(some) >= _PACKS and some[-1] < place - 1:
            yield some
            some = []
        some.append(place)
    if some:
        yield some


def _without(lives: Updates, gone: Sequence[Record]) -> Updates:
    if not gone:
        return lives
    place = dict(zip(lives.names_of_all(), range(len(lives)), strict=True))
    rows = [place.get((record.space, record.id), -1) for record in gone]
    if -1 in rows or lives.take(np.array(rows, np.intp)).records() != [
        record._replace(count=1) for record in gone
    ]:
        raise contradiction()
    left = np.ones(len(lives), np.bool_)
    left[rows] = False
    return lives.take(np.flatnonzero(left))
