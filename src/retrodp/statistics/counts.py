"""Counts and sums, whole or by bin: the linear statistics of one coordinate a record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from retrodp.plan.columns import Column
from retrodp.plan.expression import Expression
from retrodp.statistics.contract import Component
from retrodp.statistics.label import BinLabels
from retrodp.stream.batch import Batch

SCALAR = b""
_MOST_BINS = 1 << 62
"""Of products of distinct values that one number still tells apart."""


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
        return columns_of(self.by, self.where)

    @property
    def components(self) -> tuple[Component, ...]:
        """One record counts once."""
        return (Component("", 1, Fraction(1), Fraction(1), (names_of(self.by),)),)

    def encode(self, batch: Batch) -> dict[bytes, int]:
        """Records per coordinate; a coordinate is a label, or empty without `by`."""
        if self.where is None and self.by is not None:
            found = _counted(self.by, batch)
            if found is not None:
                return found
        return summed(self.by, batch, kept_counts(self.where, batch))


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
        return tuple(dict.fromkeys((self.of.name, *columns_of(self.by, self.where))))

    @property
    def components(self) -> tuple[Component, ...]:
        """One record adds at most the bound farther from zero."""
        step, (least, greatest) = self.of.grid
        amount = max(abs(least), abs(greatest))
        return (Component("", amount, step, Fraction(1), (names_of(self.by),)),)

    def encode(self, batch: Batch) -> dict[bytes, int]:
        """Sum in steps per coordinate; a coordinate is a label, or empty without `by`."""
        counts = kept_counts(self.where, batch)
        values = batch.columns[self.of.name]
        weights = [
            value * count if isinstance(value, int) else 0
            for value, count in zip(values, counts, strict=True)
        ]
        return summed(self.by, batch, weights)


def names_of(by: BinLabels | None) -> tuple[str, ...]:
    """Columns that make the bins; none for a single number."""
    return () if by is None else tuple(column.name for column in by.columns)


def columns_of(by: BinLabels | None, where: Expression | None) -> tuple[str, ...]:
    """Columns that bins and condition read."""
    return tuple(dict.fromkeys((*names_of(by), *(() if where is None else where.columns))))


def kept_counts(where: Expression | None, batch: Batch) -> list[int]:
    """Multiplicity of each record, 0 where the condition does not hold; Python ints cannot wrap."""
    counts: list[int] = batch.counts.tolist()
    if where is None:
        return counts
    kept = where.evaluate(batch.columns, batch.length).tolist()
    return [count if keep else 0 for count, keep in zip(counts, kept, strict=True)]


def _counted(by: BinLabels, batch: Batch) -> dict[bytes, int] | None:
    """Records per bin, counted by distinct values; None where those are not at hand."""
    columns = [batch.coded[one.name] for one in by.columns if one.name in batch.coded]
    if len(columns) < len(by.columns) or not (batch.counts == 1).all():
        return None
    codes, size = columns[0].codes, len(columns[0].distinct)
    for column in columns[1:]:
        codes, size = codes * len(column.distinct) + column.codes, size * len(column.distinct)
        if size >= _MOST_BINS:
            return None
    values: list[list[object]] = []
    if len(columns) == 1:
        used = columns[0].used()
        values, numbers = [used.distinct], used.counts()
    else:
        bins, numbers = np.unique(codes, return_counts=True)
        for column in reversed(columns):
            bins, places = np.divmod(bins, len(column.distinct))
            values.insert(0, [column.distinct[place] for place in places.tolist()])
    labels = by.coordinates(values)
    return dict(zip(labels, numbers.tolist(), strict=True))


def summed(by: BinLabels | None, batch: Batch, weights: Sequence[int]) -> dict[bytes, int]:
    """Sum of the weights on each bin that the batch's records fall into, zero weights left out."""
    if by is None:
        return {SCALAR: sum(weights)}
    columns: Sequence[Sequence[object]] = [batch.columns[column.name] for column in by.columns]
    # 1 == True in Python, but the values of one column have one type, so tuples cannot mix them.
    sums: Counter[tuple[object, ...]] = Counter()
    if weights.count(1) == len(weights):
        sums.update(zip(*columns, strict=True))
    else:
        for values, weight in zip(zip(*columns, strict=True), weights, strict=True):
            if weight:
                sums[values] += weight
    return {by.text(values).encode(): total for values, total in sums.items()}
