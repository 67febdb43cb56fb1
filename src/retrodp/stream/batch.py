"""Records as columns, for the statistics.

Promise: a batch shows the canonical values (grid steps, labels, null) of the records it was made
from, in their order; who they are only to the one statistic that asks, and nothing about persons
or where they came from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from retrodp.stream.coded import CodedColumn, unpacked
from retrodp.stream.queued import Updates
from retrodp.stream.update import Record

Identity: TypeAlias = tuple[str, str, int]


def _nobody(place: int) -> Identity:
    raise IndexError(place)


@dataclass(frozen=True, slots=True)
class Batch:
    """Columns of some records.

    Attributes:
        length: Records.
        columns: Canonical values by column name, each a list of `length`.
        counts: Copies of each record, int64, shape `(length,)`; all 1 with ids.
        stamps: Round that each record belongs to, likewise; None where nothing asks for it.
        identity: (namespace, id, stamp) of the record at a place, for the statistic of live records
            alone; the id is "" in a stream without ids.
        coded: The same columns by their distinct values, where they are at hand.
    """

    length: int
    columns: Mapping[str, list[object]]
    counts: npt.NDArray[np.int64]
    stamps: npt.NDArray[np.int64] | None = None
    identity: Callable[[int], Identity] = _nobody
    coded: Mapping[str, CodedColumn] = field(default_factory=dict)

    @classmethod
    def of_records(cls, records: Sequence[Record], names: Sequence[str]) -> Batch:
        """The batch of these records; a column is decoded when it is first asked for.

        Args:
            records: Survivors, or what a round ended or begun.
            names: All columns of the plan in plan order, as the payloads hold them.
        """
        counts = np.fromiter((record.count for record in records), np.int64, len(records))
        stamps = np.fromiter((record.stamp for record in records), np.int64, len(records))
        payloads = [record.payload for record in records]

        def identity(place: int) -> Identity:
            record = records[place]
            return record.space, record.id, record.stamp

        return cls(len(records), _DecodedLater(payloads, names), counts, stamps, identity)

    @classmethod
    def of_updates(cls, updates: Updates, names: Sequence[str]) -> Batch:
        """The batch of the records that additions write; equal to that of the records.

        Args:
            updates: Each writes one record.
            names: As for `of_records`.
        """
        payload = updates.payload
        if payload.opaque or len(payload.columns) != len(names):
            return cls.of_records(updates.records(), names)
        columns = dict(zip(names, payload.columns, strict=True))
        ones = np.ones(len(updates), np.int64)

        def identity(place: int) -> Identity:
            space = "" if updates.space is None else updates.space[place]
            return space, updates.id[place], int(updates.stamp[place])

        return cls(len(updates), _Coded(columns), ones, updates.stamp, identity, columns)


class _Coded(Mapping[str, list[object]]):
    """Coded columns as lists, each made when it is first asked for."""

    def __init__(self, columns: Mapping[str, CodedColumn]) -> None:
        self._coded = columns
        self._columns: dict[str, list[object]] = {}

    def __getitem__(self, name: str) -> list[object]:
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = self._coded[name].values()
        return column

    def __iter__(self) -> Iterator[str]:
        return iter(self._coded)

    def __len__(self) -> int:
        return len(self._coded)


class _DecodedLater(Mapping[str, list[object]]):
    """Columns of msgpack rows, split on first use."""

    def __init__(self, payloads: list[bytes], names: Sequence[str]) -> None:
        self._payloads = payloads
        self._names = tuple(names)
        self._columns: dict[str, list[object]] = {}

    def __getitem__(self, name: str) -> list[object]:
        column = self._columns.get(name)
        if column is None:
            self._columns = self._decoded()
            column = self._columns[name]
        return column

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def _decoded(self) -> dict[str, list[object]]:
        rows = unpacked(self._payloads)
        columns: list[list[object]] = (
            list(map(list, zip(*rows, strict=True))) if rows else [[] for _ in self._names]
        )
        return dict(zip(self._names, columns, strict=True))
