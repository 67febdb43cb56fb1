"""What a mean is made of: a centred sum and a count, whole or by bin."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from retrodp.plan.columns import Column
from retrodp.plan.expression import Expression
from retrodp.statistics.contract import Component
from retrodp.statistics.counts import columns_of, kept_counts, names_of, summed
from retrodp.statistics.label import BinLabels
from retrodp.stream.batch import Batch

SUM, COUNT = "sum", "count"


@dataclass(frozen=True, slots=True, kw_only=True)
class CentredMean:
    """Sum of (value - centre) and number of the surviving non-null values.

    The centre is the middle of the public bounds, so a record moves the sum by half the range at
    most, where an uncentred sum would move by the bound farther from zero.
    """

    of: Column
    by: BinLabels | None = None
    where: Expression | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that `encode` reads."""
        return tuple(dict.fromkeys((self.of.name, *columns_of(self.by, self.where))))

    @property
    def centre(self) -> int:
        """Middle of the bounds, in steps; public."""
        _, (least, greatest) = self.of.grid
        return (least + greatest) // 2

    @property
    def components(self) -> tuple[Component, ...]:
        """The sum moves by at most half the range, the count by one; equal shares."""
        step, (least, greatest) = self.of.grid
        amount = max(greatest - self.centre, self.centre - least)
        half, partitions = Fraction(1, 2), (names_of(self.by),)
        return (
            Component(SUM, amount, step, half, partitions),
            Component(COUNT, 1, Fraction(1), half, partitions),
        )

    def encode(self, batch: Batch) -> dict[bytes, int]:
        """Both components; a coordinate is the component's name, a line feed, and the label."""
        values = batch.columns[self.of.name]
        kept = kept_counts(self.where, batch)
        pairs = list(zip(values, kept, strict=True))
        sums = [
            (value - self.centre) * count if isinstance(value, int) else 0 for value, count in pairs
        ]
        counts = [count if isinstance(value, int) else 0 for value, count in pairs]
        parts = ((SUM, summed(self.by, batch, sums)), (COUNT, summed(self.by, batch, counts)))
        return {
            coordinate(name, label): total for name, part in parts for label, total in part.items()
        }


def coordinate(component: str, label: bytes) -> bytes:
    """Coordinate of a bin in a component."""
    return component.encode() + b"\n" + label
