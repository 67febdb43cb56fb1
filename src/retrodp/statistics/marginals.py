"""Several marginal tables of the surviving records: one record falls into one cell of each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from retrodp.plan.columns import Canonical, Column
from retrodp.plan.expression import Expression
from retrodp.statistics.contract import Component, columns_read
from retrodp.statistics.counts import kept_counts
from retrodp.statistics.label import value_json
from retrodp.stream.batch import Batch

PUBLIC, OPEN = "public", "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marginal:
    """One table: the counts by the values of its columns; without columns the total.

    Attributes:
        columns: In the order of the cube.
    """

    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def open(self) -> bool:
        """Whether the data decide which cells there are."""
        return any(column.public_values is None for column in self.columns)

    @property
    def values(self) -> tuple[tuple[Canonical, ...], ...]:
        """Values of each column of a public marginal; null only where a record may have it."""
        return tuple(possible(column) for column in self.columns)

    def cells(self) -> Iterator[tuple[Canonical, ...]]:
        """All cells of a public marginal, the last column running fastest."""
        return product(*self.values)

    def key(self, cell: Sequence[object]) -> str:
        """Label of a cell: a JSON array of pairs of a column and its value.

        It names its columns, so that cells of different tables cannot share a label.
        """
        pairs = (
            f"[{json.dumps(column.name, ensure_ascii=False)},{value_json(value, column)}]"
            for column, value in zip(self.columns, cell, strict=True)
        )
        return f"[{','.join(pairs)}]"


def possible(column: Column) -> tuple[Canonical, ...]:
    """Public values that a record can have in a category or boolean column."""
    return column.public_values or ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cube:
    """Counts in the cells of several marginals.

    Attributes:
        by: All columns; every marginal names its own in this order.
        marginals: At least one.
        where: Condition on the records that count.
    """

    by: tuple[Column, ...]
    marginals: tuple[Marginal, ...]
    where: Expression | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that `encode` reads."""
        named = (name for marginal in self.marginals for name in marginal.names)
        return columns_read(named, self.where)

    @property
    def public(self) -> tuple[Marginal, ...]:
        """Marginals whose cells the plan decides."""
        return tuple(marginal for marginal in self.marginals if not marginal.open)

    @property
    def unlisted(self) -> tuple[Marginal, ...]:
        """Marginals whose cells the data decide."""
        return tuple(marginal for marginal in self.marginals if marginal.open)

    @property
    def components(self) -> tuple[Component, ...]:
        """Public and open cells; every marginal has an equal part of the budget."""
        both = bool(self.public and self.unlisted)
        return tuple(
            Component(
                name if both else "",
                1,
                Fraction(1),
                Fraction(len(marginals), len(self.marginals)),
                tuple(marginal.names for marginal in marginals),
                separate=True,
                open=name == OPEN,
            )
            for name, marginals in ((PUBLIC, self.public), (OPEN, self.unlisted))
            if marginals
        )

    def encode(self, batch: Batch) -> dict[bytes, int]:
        """Records per cell; see `coordinate`."""
        kept = kept_counts(self.where, batch)
        both = bool(self.public and self.unlisted)
        found: dict[bytes, int] = {}
        for marginal in self.marginals:
            if not marginal.columns:
                counts: Mapping[tuple[object, ...], int] = {(): sum(kept)}
            else:
                counts = _counted([batch.columns[name] for name in marginal.names], kept)
            component = (OPEN if marginal.open else PUBLIC) if both else ""
            for cell, count in counts.items():
                found[coordinate(component, marginal.key(cell))] = count
        return found


def coordinate(component: str, key: str) -> bytes:
    """Coordinate of a cell: its label, after the component and a line feed if there are two."""
    return f"{component}\n{key}".encode() if component else key.encode()


def _counted(
    columns: Sequence[Sequence[object]], kept: Sequence[int]
) -> dict[tuple[object, ...], int]:
    # 1 == True in Python, but the values of one column have one type, so tuples cannot mix them.
    counts: dict[tuple[object, ...], int] = {}
    for cell, count in zip(zip(*columns, strict=True), kept, strict=True):
        if count:
            counts[cell] = counts.get(cell, 0) + count
    return counts
