"""Where given values still occur in the ledger, row by row.

Promise: exact for values of any length. A scan of bytes cannot be: the digits "17" occur in any
large file by chance and inside longer values. The two complete one another: this looks at every
live row of every table, `scan` at every byte of every file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from retrodp.store import states
from retrodp.store.chunks import ChunkQueue
from retrodp.store.database import Database
from retrodp.store.packs import RecordTable
from retrodp.store.survivors import in_groups
from retrodp.stream.queued import Updates

_decode = msgspec.msgpack.Decoder(list[object]).decode
_encode = msgspec.msgpack.Encoder().encode
_BATCH = 20_000
_RECORDS = "records"  # what a certificate calls the survivors of a stream with ids
_Kind: TypeAlias = Literal["id", "person", "value"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A value that still occurs.

    Attributes:
        kind: What kind of value it is.
        index: Its position among the values of its kind that were asked for.
        table: Where it occurs.
        count: Rows of that table in which it occurs.
    """

    kind: _Kind
    index: int
    table: str
    count: int


def mentions(
    database: Database,
    *,
    ids: Sequence[str],
    persons: Sequence[str],
    values: Sequence[str],
) -> list[Mention]:
    """Occurrences of ids, persons and text values in live rows.

    Args:
        database: Of the ledger.
        ids: Looked for as ids of survivors, of waiting updates and of forgets.
        persons: Looked for as persons and namespaces in the same tables.
        values: Looked for as whole text columns of payloads, and in the coordinates of totals,
            bare or as a msgpack text. All of them, from six bytes on, anywhere in the states of
            releases that remember.

    Returns:
        Sorted by kind, index and table; empty if nothing is left. A person's or a value's text
        may belong to others too: what was forgotten is then told by the ids.
    """
    asked: dict[_Kind, Sequence[str]] = {"id": ids, "person": persons, "value": values}
    tables = {name for (name,) in database.rows("SELECT name FROM sqlite_master")}
    found = list(_in_rows(database, _FORGETS, asked))
    for index, value in enumerate(values):
        queries = {"totals": "instr(key, ?2) > 0 OR key = ?1"}
        found += _counted(database, queries, "value", index, value.encode(), _encode(value))
    if "names" in tables:
        found += _in_rows(database, _NAMES, asked)
        found += _in_columns("queue", ChunkQueue(database).all(), asked)
        found += _in_columns(_RECORDS, RecordTable(database).columns(), asked)
    else:
        found += _of_points(database, asked)
    if states.exists(database):
        for kind, texts in asked.items():
            queries = {states.TABLE: "instr(state, ?1) > 0 OR instr(begun, ?1) > 0"}
            for index, plain in states.sought(texts):
                found += _counted(database, queries, kind, index, plain)
    return _once(found)


_Queries: TypeAlias = Mapping[_Kind, dict[str, str]]
_FORGETS: _Queries = {
    "id": {"forgets": "kind = 'id' AND value = ?1"},
    "person": {"forgets": "(kind = 'person' AND value = ?1) OR (space = ?1 AND space > '')"},
}
# Spelled so that both halves use an index.
_NAMES: _Queries = {"id": {"names": "(space = '' AND id = ?1) OR (space > '' AND id = ?1)"}}
_POINTS: _Queries = {"person": {"queue": "person = ?1 OR (space = ?1 AND space > '')"}}


def _in_rows(
    database: Database, queries: _Queries, asked: Mapping[_Kind, Sequence[str]]
) -> Iterator[Mention]:
    for kind, of_kind in queries.items():
        for index, text in enumerate(asked[kind]):
            yield from _counted(database, of_kind, kind, index, text)


def _of_points(database: Database, asked: Mapping[_Kind, Sequence[str]]) -> Iterator[Mention]:
    """Occurrences in the survivors and the queue of a stream without ids."""
    yield from _in_rows(database, _POINTS, asked)
    rows_of = _rows_of_persons(database, asked["person"])
    for index, person in enumerate(asked["person"]):
        if rows_of[person]:
            yield Mention(kind="person", index=index, table="multiset", count=rows_of[person])
    keys = {"multiset": "stamp, payload", "queue": "round, at, rank, payload, stamp, person"}
    for table, key in keys.items():
        counts = _in_payloads(_payloads(database, table, key), asked["value"])
        for index, count in enumerate(counts):
            if count:
                yield Mention(kind="value", index=index, table=table, count=count)


def _once(found: Iterable[Mention]) -> list[Mention]:
    """In order; what stands in packs and in the index by name is told once."""
    told: dict[tuple[_Kind, int, str], int] = {}
    for one in found:
        place = (one.kind, one.index, _RECORDS if one.table == "names" else one.table)
        told[place] = max(told.get(place, 0), one.count)
    return [
        Mention(kind=kind, index=index, table=table, count=count)
        for (kind, index, table), count in sorted(told.items())
    ]


def _in_columns(
    table: str, parts: Iterable[Updates], asked: Mapping[_Kind, Sequence[str]]
) -> list[Mention]:
    """Occurrences in the columns of a stream with ids."""
    sought = {kind: frozenset(texts) for kind, texts in asked.items()}
    rows: dict[str, Counter[str]] = {kind: Counter() for kind in asked}
    for part in parts if any(sought.values()) else ():
        rows["id"].update(filter(sought["id"].__contains__, part.id))
        if sought["person"]:
            for person, space in zip(part.person.values(), part.spaces, strict=True):
                rows["person"].update({person, space or person} & sought["person"])
        for text in sought["value"]:
            rows["value"][text] += part.payload.rows_with(text)
    return [
        Mention(kind=kind, index=index, table=table, count=rows[kind][text])
        for kind, texts in asked.items()
        for index, text in enumerate(texts)
        if rows[kind][text]
    ]


def _rows_of_persons(database: Database, persons: Sequence[str]) -> Counter[str]:
    """Surviving points that name a person; one pass for a few hundred."""
    found: Counter[str] = Counter()
    for some, marks in in_groups(persons):
        named = f"SELECT person, count(*) FROM multiset WHERE person IN ({marks}) GROUP BY 1"  # noqa: S608
        found.update(dict(database.rows(named, some)))
    return found


def _counted(
    database: Database,
    queries: dict[str, str],
    kind: _Kind,
    index: int,
    *arguments: object,
) -> Iterator[Mention]:
    for table, where in queries.items():
        count = database.value(f"SELECT count(*) FROM {table} WHERE {where}", arguments)  # noqa: S608
        if count:
            yield Mention(kind=kind, index=index, table=table, count=count)


def _payloads(database: Database, table: str, key: str) -> Iterator[list[bytes]]:
    marks = ", ".join("?" for _ in key.split(","))
    columns = f"SELECT payload, {key} FROM {table}"  # noqa: S608
    rows = database.rows(f"{columns} ORDER BY {key} LIMIT ?", (_BATCH,))
    while rows:
        yield [row[0] for row in rows]
        after = f"{columns} WHERE ({key}) > ({marks}) ORDER BY {key} LIMIT ?"
        rows = database.rows(after, (*rows[-1][1:], _BATCH))


def _in_payloads(batches: Iterable[list[bytes]], values: Sequence[str]) -> list[int]:
    counts = [0] * len(values)
    if not values:
        return counts
    wanted = {value: [] for value in values}  # type: dict[str, list[int]]
    for index, value in enumerate(values):
        wanted[value].append(index)
    texts = wanted.keys()
    for batch in batches:
        for payload in batch:
            if not payload:
                continue
            for text in {item for item in _decode(payload) if isinstance(item, str)} & texts:
                for index in wanted[text]:
                    counts[index] += 1
    return counts
