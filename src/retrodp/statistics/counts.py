"""Counts and sums, whole or by bin: the linear statistics of one coordinate a record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from retrodp.plan.columns import Column
from retrodp.plan.expression import Expression
from retrodp.statistics.label import BinLabels
from retrodp.stream.batch import Batch

SCALAR = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Number of surviving records for which `where` holds, per bin of `by` if it is given.

    Source: KKMNS theorem 3.2 with F the row of ones (or one unit row a bin).
    """

    by: BinLabels | None = None
    where: Expression | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that `encode` reads."""
        return _columns(self.by, self.where)

    @property
    def step(self) -> Fraction:
        """A count moves by whole records."""
        return Fraction(1)

    @property
    def amount(self) -> int:
        """One record counts once."""
        return 1

    def encode(self, batch: Batch) -> dict[bytes, int]:
        """Records per coordinate; a coordinate is a label, or empty without `by`."""
        return _summed(self.by, batch, _kept_counts(self.where, batch))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """Sum of a bounded column over the surviving records for which `where` holds.

    Values were clamped to the column's public bounds and put on its grid when they arrived; null
    adds 0. The sum is taken in steps of the column.
    """

    of: Column
    by: BinLabels | None = None
    where: Expression | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that `encode` reads."""
        return tuple(dict.fromkeys((self.of.name, *_columns(self.by, self.where))))

    @property
    def step(self) -> Fraction:
        """The column's own step."""
        assert self.of.step is not None
        return self.of.step

    @property
    def amount(self) -> int:
        """The bound farther from zero, in steps."""
        assert self.of.min is not None
        assert self.of.max is not None
        return int(max(abs(self.of.min), abs(self.of.max)) / self.step)

    def encode(self, batch: Batch) -> dict[bytes, int]:
        """Sum in steps per coordinate; a coordinate is a label, or empty without `by`."""
        counts = _kept_counts(self.where, batch)
        values = batch.columns[self.of.name]
        weights = [
            value * count if isinstance(value, int) else 0
            for value, count in zip(values, counts, strict=True)
        ]
        return _summed(self.by, batch, weights)


def _columns(by: BinLabels | None, where: Expression | None) -> tuple[str, ...]:
    names = () if by is None else tuple(column.name for column in by.columns)
    return tuple(dict.fromkeys((*names, *(() if where is None else where.columns))))


def _kept_counts(where: Expression | None, batch: Batch) -> list[int]:
    """Multiplicity of each record, 0 where the condition does not hold; Python ints cannot wrap."""
    counts: list[int] = batch.counts.tolist()
    if where is None:
        return counts
    kept = where.evaluate(batch.columns, batch.length)
    return [count if keep else 0 for count, keep in zip(counts, kept, strict=True)]


def _summed(by: BinLabels | None, batch: Batch, weights: Sequence[int]) -> dict[bytes, int]:
    if by is None:
        return {SCALAR: sum(weights)}
    columns: Sequence[Sequence[object]] = [batch.columns[column.name] for column in by.columns]
    # 1 == True in Python, but the values of one column have one type, so tuples cannot mix them.
    sums: dict[tuple[object, ...], int] = {}
    for values, weight in zip(zip(*columns, strict=True), weights, strict=True):
        if weight:
            sums[values] = sums.get(values, 0) + weight
    return {by.text(values).encode(): total for values, total in sums.items()}
