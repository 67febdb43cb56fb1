"""Records as columns, for the statistics.

Promise: a batch shows the canonical values (grid steps, labels, null) of the records it was made
from, in their order, and nothing about ids, persons or where they came from.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

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
    """

    length: int
    columns: Mapping[str, list[object]]
    counts: npt.NDArray[np.int64]

    @classmethod
    def of_records(cls, records: Sequence[Record], names: Sequence[str]) -> Batch:
        """The batch of these records; a column is decoded when it is first asked for.

        Args:
            records: Survivors, or what a round ended or begun.
            names: All columns of the plan in plan order, as the payloads hold them.
        """
        counts = np.fromiter((record.count for record in records), np.int64, len(records))
        payloads = [record.payload for record in records]
        return cls(len(records), _DecodedLater(payloads, names), counts)


class _DecodedLater(Mapping[str, list[object]]):
    """Columns of msgpack rows, split on first use."""

    def __init__(self, payloads: list[bytes], names: Sequence[str]) -> None:
        self._payloads = payloads
        self._position = {name: position for position, name in enumerate(names)}
        self._rows: list[list[object]] | None = None
        self._columns: dict[str, list[object]] = {}

    def __getitem__(self, name: str) -> list[object]:
        column = self._columns.get(name)
        if column is None:
            position = self._position[name]
            column = self._columns[name] = [row[position] for row in self._decoded()]
        return column

    def __iter__(self) -> Iterator[str]:
        return iter(self._position)

    def __len__(self) -> int:
        return len(self._position)

    def _decoded(self) -> list[list[object]]:
        if self._rows is None:
            # One array32 header makes the payloads one document: one decoder call for all rows.
            header = b"\xdd" + struct.pack(">I", len(self._payloads))
            self._rows = _decode_rows(header + b"".join(self._payloads))
        return self._rows
