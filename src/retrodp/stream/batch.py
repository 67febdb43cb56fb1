"""Records as columns, for the statistics.

Promise: a batch shows the canonical values (grid steps, labels, null) of the records it was made
from, in their order; who they are only to the one statistic that asks, and nothing about persons
or where they came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import overload

import numpy as np
import numpy.typing as npt

from retrodp.stream.coded import CodedColumn, unpacked
from retrodp.stream.queued import Updates
from retrodp.stream.update import Record


@dataclass(frozen=True, slots=True)
class Batch:
    """Columns of some records.

    Attributes:
        length: Records.
        columns: Canonical values by column name, each a list of `length`.
        counts: Copies of each record, int64, shape `(length,)`; all 1 with ids.
        stamps: Round that each record belongs to, likewise; None where nothing asks for it.
        identities: (namespace, id, stamp) of each record, for the statistic of live records alone;
            the id is "" in a stream without ids.
        coded: The same columns by their distinct values, where they are at hand.
    """

    length: int
    columns: Mapping[str, list[object]]
    counts: npt.NDArray[np.int64]
    stamps: npt.NDArray[np.int64] | None = None
    identities: Sequence[tuple[str, str, int]] = ()
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
        return cls(
            len(records), _DecodedLater(payloads, names), counts, stamps, _Identities(records)
        )

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
        identities = _Named(updates)
        ones = np.ones(len(updates), np.int64)
        return cls(len(updates), _Coded(columns), ones, updates.stamp, identities, columns)


class _Identities(Sequence[tuple[str, str, int]]):
    """Who the records are, read off when it is asked for."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records

    @overload
    def __getitem__(self, place: int) -> tuple[str, str, int]: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[tuple[str, str, int]]: ...
    def __getitem__(
        self, place: int | slice
    ) -> tuple[str, str, int] | Sequence[tuple[str, str, int]]:
        if isinstance(place, slice):
            return _Identities(self._records[place])
        record = self._records[place]
        return record.space, record.id, record.stamp

    def __len__(self) -> int:
        return len(self._records)


class _Named(Sequence[tuple[str, str, int]]):
    """Who the records are that additions write, made when it is asked for."""

    def __init__(self, updates: Updates) -> None:
        self._updates = updates

    @overload
    def __getitem__(self, place: int) -> tuple[str, str, int]: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[tuple[str, str, int]]: ...
    def __getitem__(
        self, place: int | slice
    ) -> tuple[str, str, int] | Sequence[tuple[str, str, int]]:
        updates = self._updates
        if isinstance(place, slice):
            return _Named(updates.take(np.arange(len(updates))[place]))
        space = "" if updates.space is None else updates.space[place]
        return space, updates.id[place], int(updates.stamp[place])

    def __iter__(self) -> Iterator[tuple[str, str, int]]:
        updates = self._updates
        return zip(updates.spaces, updates.id, updates.stamp.tolist(), strict=True)

    def __len__(self) -> int:
        return len(self._updates)


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
