"""Where given values still occur in the ledger, row by row.

Promise: exact for values of any length. A scan of bytes cannot be: the digits "17" occur in any
large file by chance and inside longer values. The two complete one another: this looks at every
live row of every table, `scan` at every byte of every file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from retrodp.store import states
from retrodp.store.database import Database
from retrodp.store.survivors import in_groups

_decode = msgspec.msgpack.Decoder(list[object]).decode
_encode = msgspec.msgpack.Encoder().encode
_BATCH = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A value that still occurs.

    Attributes:
        kind: What kind of value it is.
        index: Its position among the values of its kind that were asked for.
        table: Where it occurs.
        count: Rows of that table in which it occurs.
    """

    kind: Literal["id", "person", "value"]
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
    tables = {name for (name,) in database.rows("SELECT name FROM sqlite_master")}
    survivors = "records" if "records" in tables else "multiset"
    found: list[Mention] = []
    for index, identifier in enumerate(ids):
        queries = {"queue": "id = ?1", "forgets": "kind = 'id' AND value = ?1"}
        if survivors == "records":
            # Spelled so that both halves use an index.
            queries["records"] = "(space = '' AND id = ?1) OR (space > '' AND id = ?1)"
        found += _counted(database, queries, "id", index, identifier)
    rows_of = _rows_of_persons(database, survivors, persons)
    for index, person in enumerate(persons):
        queries = {
            "queue": "person = ?1 OR (space = ?1 AND space > '')",
            "forgets": "(kind = 'person' AND value = ?1) OR (space = ?1 AND space > '')",
        }
        found += _counted(database, queries, "person", index, person)
        if rows_of[person]:
            found.append(
                Mention(kind="person", index=index, table=survivors, count=rows_of[person])
            )
    for index, value in enumerate(values):
        queries = {"totals": "instr(key, ?2) > 0 OR key = ?1"}
        plain = value.encode()
        found += _counted(database, queries, "value", index, plain, _encode(value))
    for table, key in (
        ("queue", "round, space, id, at, rank, payload, stamp, person"),
        (survivors, "stamp, space, id" if survivors == "records" else "stamp, payload"),
    ):
        counts = _in_payloads(_payloads(database, table, key), values)
        found += [
            Mention(kind="value", index=index, table=table, count=count)
            for index, count in enumerate(counts)
            if count
        ]
    if states.exists(database):
        kinds: dict[Literal["id", "person", "value"], Sequence[str]] = {
            "id": ids,
            "person": persons,
            "value": values,
        }
        for kind, texts in kinds.items():
            queries = {states.TABLE: "instr(state, ?1) > 0 OR instr(begun, ?1) > 0"}
            for index, plain in states.sought(texts):
                found += _counted(database, queries, kind, index, plain)
    return sorted(found, key=lambda mention: (mention.kind, mention.index, mention.table))


def _rows_of_persons(database: Database, table: str, persons: Sequence[str]) -> Counter[str]:
    """Survivors that name a person, as person or as namespace; one pass for a few hundred."""
    found: Counter[str] = Counter()
    for some, marks in in_groups(persons):
        named = f"SELECT person, count(*) FROM {table} WHERE person IN ({marks}) GROUP BY 1"  # noqa: S608
        found.update(dict(database.rows(named, some)))
        if table == "records":
            spaces = (
                f"SELECT space, count(*) FROM records WHERE space > '' AND space IN ({marks}) "  # noqa: S608
                "AND person IS NOT space GROUP BY 1"
            )
            found.update(dict(database.rows(spaces, some)))
    return found


def _counted(
    database: Database,
    queries: dict[str, str],
    kind: Literal["id", "person", "value"],
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
