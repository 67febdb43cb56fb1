"""Which records are live, and their values: the statistic of the sampling compiler.

A coordinate is one record's identity and values, its total how many copies survive. So "the live
records" is a linear statistic like any other: expiry, deletion and forgetting are its differences,
and there is no second list of records anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import msgspec

from retrodp.plan.columns import Column
from retrodp.plan.expression import Expression
from retrodp.statistics.contract import Component
from retrodp.statistics.counts import columns_of, kept_counts
from retrodp.stream.batch import Batch

_encode = msgspec.msgpack.Encoder().encode

LIVE = "live"  # name of the component that the gate counts by


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRecords:
    """Surviving records with the values that a mechanism is run on.

    A record with a null in a number column is not counted, as for sums.

    Attributes:
        of: Columns whose values are shown, in this order.
        where: Condition on the records that count; None: all.
        gate: Part of the release's budget that a noisy number of live records takes; None: no gate.
    """

    of: tuple[Column, ...]
    where: Expression | None = None
    gate: Fraction | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that `encode` reads."""
        read = [column.name for column in self.of]
        return tuple(dict.fromkeys([*read, *columns_of(None, self.where)]))

    @property
    def components(self) -> tuple[Component, ...]:
        """The number of live records, if a gate asks for it; the sample is charged elsewhere."""
        if self.gate is None:
            return ()
        return (Component(LIVE, 1, Fraction(1), self.gate),)

    def encode(self, batch: Batch) -> dict[bytes, int]:
        """Copies of each record, by its canonical bytes.

        A point without an id is (stamp, values); a record is (namespace, id, stamp, values).
        """
        columns = [batch.columns[column.name] for column in self.of]
        numbers = [place for place, column in enumerate(self.of) if column.step is not None]
        totals: dict[bytes, int] = {}
        for place, count in enumerate(kept_counts(self.where, batch)):
            values = [column[place] for column in columns]
            if not count or any(values[number] is None for number in numbers):
                continue
            space, id_, stamp = batch.identity(place)
            label = _encode([space, id_, stamp, values] if id_ else [stamp, values])
            totals[label] = totals.get(label, 0) + count
        return totals
