"""Updates that wait, as columns: sets of rows in the order in which they apply.

Promise: `Updates` with the same rows are taken for the same set, whatever the columns' codes are.
A row becomes a Python object only where somebody asks for it. Knows no store and no plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from operator import lt
from typing import Any

import numpy as np
import numpy.typing as npt

from retrodp.stream.coded import CodedColumn, Ints, Payloads, joined, joined_payloads
from retrodp.stream.update import Arrivals, Op, QueuedUpdate, Record, made_update

_Key = tuple[object, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Updates:
    """Updates of a stream with ids, of one round or of many; parallel columns.

    Attributes:
        space: Namespaces; None if all are "".
        id: NFC text.
        at: Microseconds since 1970 UTC, int64, as `rank`, `op` and `stamp`: see `Arrivals`.
        rank: Order at equal (space, id, at).
        op: `Op` values.
        stamp: Stamp round, 0 for a deletion.
        person: Values of the plan's person column.
        payload: Contents.
    """

    space: list[str] | None
    id: list[str]
    at: Ints
    rank: Ints
    op: Ints
    stamp: Ints
    person: CodedColumn
    payload: Payloads

    @classmethod
    def of_arrivals(cls, arrivals: Arrivals) -> Updates:
        """The rows of a batch, in its order.

        Raises:
            OverflowError: A number does not fit 64 bits.
        """
        return cls(
            space=list(arrivals.space) if _any(arrivals.space) else None,
            id=list(arrivals.id),
            at=np.asarray(arrivals.at, np.int64),
            rank=np.asarray(arrivals.rank, np.int64),
            op=np.asarray(arrivals.op, np.int64),
            stamp=np.asarray(arrivals.stamp, np.int64),
            person=CodedColumn.of(arrivals.person),
            payload=Payloads.of(arrivals.payload),
        )

    @classmethod
    def of_rows(cls, rows: Sequence[QueuedUpdate]) -> Updates:
        """These updates, in their order."""
        return cls(
            space=[row.space for row in rows] if any(row.space for row in rows) else None,
            id=[row.id for row in rows],
            at=np.array([row.at for row in rows], np.int64),
            rank=np.array([row.rank for row in rows], np.int64),
            op=np.array([row.op for row in rows], np.int64),
            stamp=np.array([row.stamp for row in rows], np.int64),
            person=CodedColumn.of([row.person for row in rows]),
            payload=Payloads.of([row.payload for row in rows]),
        )

    @classmethod
    def of_records(cls, records: Sequence[Record]) -> Updates:
        """The additions that would write these records, in their order."""
        zeros = np.zeros(len(records), np.int64)
        return cls(
            space=[one.space for one in records] if any(one.space for one in records) else None,
            id=[one.id for one in records],
            at=zeros,
            rank=zeros,
            op=zeros,
            stamp=np.array([one.stamp for one in records], np.int64),
            person=CodedColumn.of([one.person for one in records]),
            payload=Payloads.of([one.payload for one in records]),
        )

    def __len__(self) -> int:
        return len(self.id)

    @property
    def spaces(self) -> list[str]:
        """Namespaces, one a row."""
        return [""] * len(self) if self.space is None else self.space

    def names(self) -> Sequence[Any]:
        """What tells lives apart, sorted as (namespace, id) is: ids alone where that is enough."""
        return self.id if self.space is None else list(zip(self.space, self.id, strict=True))

    def names_of_all(self) -> list[tuple[str, str]]:
        """(Namespace, id) of every row."""
        return list(zip(self.spaces, self.id, strict=True))

    def queued(self) -> list[QueuedUpdate]:
        """The rows as single updates."""
        columns = (
            *(self.spaces, self.id, self.at.tolist(), self.rank.tolist(), self.payload.packed()),
            *(self.stamp.tolist(), self.op.tolist(), self.person.values(), [1] * len(self)),
        )
        return list(map(made_update, zip(*columns, strict=True)))

    def records(self) -> list[Record]:
        """What the rows write, if all of them write something."""
        columns = (
            *(self.spaces, self.id, self.stamp.tolist(), self.person.values()),
            self.payload.packed(),
        )
        return list(map(Record, *columns))

    def take(self, rows: npt.NDArray[Any]) -> Updates:
        """Some rows, by number, in that order."""
        places = rows.tolist()
        return Updates(
            space=None if self.space is None else [self.space[place] for place in places],
            id=[self.id[place] for place in places],
            at=self.at[rows],
            rank=self.rank[rows],
            op=self.op[rows],
            stamp=self.stamp[rows],
            person=self.person.take(rows),
            payload=self.payload.take(rows),
        )

    def between(self, start: int, end: int) -> Updates:
        """Rows that stand one after the other."""
        some = slice(start, end)
        return Updates(
            space=None if self.space is None else self.space[some],
            id=self.id[some],
            at=self.at[some],
            rank=self.rank[some],
            op=self.op[some],
            stamp=self.stamp[some],
            person=self.person[some],
            payload=self.payload.between(start, end),
        )

    def in_order(self) -> Updates:
        """The rows as a set, in the order in which they apply: each once, ids ascending."""
        names = self.names()
        if all(map(lt, names, islice(names, 1, None))):
            return self
        if len(set(names)) == len(self):
            return self.take(np.array(sorted(range(len(self)), key=names.__getitem__)))
        keys = self.keys()
        order = sorted(range(len(self)), key=keys.__getitem__)
        once = [
            place
            for before, place in zip([None, *order], order, strict=False)
            if before is None or keys[before] != keys[place]
        ]
        return self.take(np.array(once, np.intp))

    def keys(self) -> list[_Key]:
        """What tells the rows apart, in the order in which they apply."""
        persons = [(person is None, person or "") for person in self.person.values()]
        columns = (
            *(self.spaces, self.id, self.at.tolist(), self.rank.tolist(), self.payload.packed()),
            *(self.stamp.tolist(), persons, self.op.tolist()),
        )
        return list(zip(*columns, strict=True))

    def alone(self) -> npt.NDArray[np.bool_]:
        """Which rows are an addition and the only row of their name; for rows in order."""
        flags: npt.NDArray[np.bool_] = self.op == Op.ADD
        names = self.names()
        if all(map(lt, names, islice(names, 1, None))):
            return flags
        same = np.fromiter(
            map(_same, names, islice(names, 1, None)), np.bool_, max(len(names) - 1, 0)
        )
        flags[1:] &= ~same
        flags[:-1] &= ~same
        return flags


def _any(texts: Sequence[str]) -> bool:
    """Whether one of the texts is not empty."""
    return any(texts.used().distinct if isinstance(texts, CodedColumn) else texts)


def _same(one: object, other: object) -> bool:
    return one == other


def joined_updates(parts: Sequence[Updates]) -> Updates:
    """The rows of all parts as one set in order."""
    if len(parts) == 1:
        return parts[0].in_order()
    spaces = None
    if any(part.space is not None for part in parts):
        spaces = [space for part in parts for space in part.spaces]
    return Updates(
        space=spaces,
        id=[name for part in parts for name in part.id],
        at=np.concatenate([part.at for part in parts]),
        rank=np.concatenate([part.rank for part in parts]),
        op=np.concatenate([part.op for part in parts]),
        stamp=np.concatenate([part.stamp for part in parts]),
        person=joined([part.person for part in parts]),
        payload=joined_payloads([part.payload for part in parts]),
    ).in_order()


def no_updates() -> Updates:
    """None at all."""
    return Updates.of_rows([])
