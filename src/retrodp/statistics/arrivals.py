"""Points as they arrive, one by one: what a clustering watches that keeps no points.

Nothing is totalled: what survives plays no part, only what begins in a round. A point is shown with
canonical bytes of the record that it is, so that its coin can be its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrodp.plan.columns import Column
from retrodp.plan.expression import Expression
from retrodp.statistics.contract import Component, columns_read
from retrodp.statistics.counts import kept_counts
from retrodp.stream.batch import Batch

Ints = NDArray[np.int64]

_PLACE_BYTES = 8


class Arrived(NamedTuple):
    """Points of one round in an order that is no order of arrival.

    Attributes:
        points: In steps of each column, shape (n, columns).
        identities: Bytes of each, no two alike: of the record and the number of the copy.
    """

    points: Ints
    identities: list[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivingPoints:
    """Points of the records that begin.

    Records in which a column of `of` is null are left out.

    Attributes:
        of: Columns of the points.
        parts: What one arrival moves in the counters that are kept of the points.
        where: Condition on the records that count.
    """

    of: tuple[Column, ...]
    parts: tuple[Component, ...] = ()
    where: Expression | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the points."""
        return tuple(column.name for column in self.of)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that `arrivals` reads."""
        return columns_read(self.names, self.where)

    @property
    def components(self) -> tuple[Component, ...]:
        """See `parts`."""
        return self.parts

    def encode(self, batch: Batch) -> dict[bytes, int]:
        """Nothing: no total of what survives is asked for."""
        del batch
        return {}

    def arrivals(self, batch: Batch, identities: Sequence[bytes]) -> dict[bytes, int]:
        """Copies of each record that counts, by its place and its identity; see `arrived`."""
        counts = np.array(kept_counts(self.where, batch), dtype=np.int64)
        kept = counts != 0
        places = np.zeros((batch.length, len(self.of)), dtype=">i8")
        for axis, column in enumerate(self.of):
            values = batch.columns[column.name]
            if column.nullable:
                kept &= np.array([value is not None for value in values], dtype=bool)
                values = [0 if value is None else value for value in values]
            places[:, axis] = np.array(values, dtype=np.int64).reshape(-1)
        found: dict[bytes, int] = {}
        for row in np.flatnonzero(kept).tolist():
            label = places[row].tobytes() + identities[row]
            found[label] = found.get(label, 0) + int(counts[row])
        return found

    def arrived(self, begun: Mapping[bytes, int]) -> Arrived:
        """The points that `arrivals` shows, copies one by one."""
        split = _PLACE_BYTES * len(self.of)
        labels = [(label, copy) for label, count in sorted(begun.items()) for copy in range(count)]
        joined = b"".join(label[:split] for label, _ in labels)
        points = np.frombuffer(joined, dtype=">i8").astype(np.int64).reshape(-1, len(self.of))
        return Arrived(
            points, [label[split:] + copy.to_bytes(_PLACE_BYTES, "big") for label, copy in labels]
        )
