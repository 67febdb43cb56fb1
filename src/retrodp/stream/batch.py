"""Records as columns, for the statistics.

Promise: a batch shows the canonical values (grid steps, labels, null) of the records it was made
from, in their order; who they are only to the one statistic that asks, and nothing about persons
or where they came from.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

import msgspec
import numpy as np
import numpy.typing as npt

from retrodp.stream.update import Record

_decode_rows = msgspec.msgpack.Decoder(list[list[object]]).decode


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
    """

    length: int
    columns: Mapping[str, list[object]]
    counts: npt.NDArray[np.int64]
    stamps: npt.NDArray[np.int64] | None = None
    identities: Sequence[tuple[str, str, int]] = ()

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
        # One array32 header makes the payloads one document: one decoder call for all rows.
        header = b"\xdd" + struct.pack(">I", len(self._payloads))
        rows = _decode_rows(header + b"".join(self._payloads))
        columns: list[list[object]] = (
            list(map(list, zip(*rows, strict=True))) if rows else [[] for _ in self._names]
        )
        return dict(zip(self._names, columns, strict=True))
