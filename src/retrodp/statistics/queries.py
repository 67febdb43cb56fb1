"""Weighted sums of surviving records: F h(Data) for a public matrix F (KKMNS theorem 3.2).

A record adds its column of F. The noise is charged by the largest norm of a column: the sum of
absolute weights for Laplace noise, the sum of squared weights for Gaussian noise. Both are of the
encoded, whole weights, so that no rounding stands between what is charged and what is added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, TypeAlias

from retrodp.plan.arithmetic import Arithmetic
from retrodp.plan.columns import Canonical, Column
from retrodp.plan.decimals import common_step
from retrodp.plan.expression import Expression
from retrodp.privacy.norms import Norms
from retrodp.statistics.clip import clipped_l1, clipped_l2
from retrodp.statistics.contract import Component, columns_read
from retrodp.statistics.counts import kept_counts
from retrodp.stream.batch import Batch

Weights: TypeAlias = Mapping[tuple[Canonical, ...], Mapping[str, Fraction]]
NormKind: TypeAlias = Literal["l1", "l2"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixQuery:
    """F given by weights on named coordinates, by values of public columns.

    Attributes:
        by: Columns whose values choose the column of F.
        weights: Weight by coordinate, by canonical values; values that are not there weigh nothing.
        where: Condition on the records that count.
    """

    by: tuple[Column, ...]
    weights: Weights
    where: Expression | None = None
    step: Fraction = field(init=False)
    _encoded: Mapping[tuple[object, ...], tuple[tuple[bytes, int], ...]] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        step = common_step(weight for row in self.weights.values() for weight in row.values())
        encoded = {
            values: tuple(
                (name.encode(), int(weight / step)) for name, weight in row.items() if weight
            )
            for values, row in self.weights.items()
        }
        object.__setattr__(self, "step", step)
        object.__setattr__(self, "_encoded", encoded)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that `encode` reads."""
        return columns_read((column.name for column in self.by), self.where)

    @property
    def components(self) -> tuple[Component, ...]:
        """One component over all coordinates, charged by the norms of the columns of F."""
        columns = [[abs(weight) for _, weight in row] for row in self._encoded.values()]
        norms = Norms(
            max(sum(column) for column in columns),
            max(sum(weight * weight for weight in column) for column in columns),
        )
        amount = max(max(column, default=0) for column in columns)
        touched = max(map(len, columns))
        return (
            Component(
                *("", amount, self.step, Fraction(1), ((),) * touched),
                norms=norms,
                separate=True,
            ),
        )

    def encode(self, batch: Batch) -> dict[bytes, int]:
        """F times the batch's histogram, in steps, by coordinate."""
        sums: dict[bytes, int] = {}
        columns = [batch.columns[column.name] for column in self.by]
        counts: dict[tuple[object, ...], int] = {}
        kept = kept_counts(self.where, batch)
        for values, count in zip(zip(*columns, strict=True), kept, strict=True):
            if count:
                counts[values] = counts.get(values, 0) + count
        for values, count in counts.items():
            for name, weight in self._encoded.get(values, ()):
                sums[name] = sums.get(name, 0) + weight * count
        return sums


@dataclass(frozen=True, slots=True, kw_only=True)
class ArithmeticQuery:
    """Sums of expressions, each with bounds, noise and an equal part of the budget of its own.

    An expression of wide bounds then drowns none of narrow ones.

    Attributes:
        expressions: By name, sorted.
        where: Condition on the records that count.
    """

    expressions: tuple[tuple[str, Arithmetic], ...]
    where: Expression | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that `encode` reads."""
        return _columns(self.expressions, self.where)

    @property
    def components(self) -> tuple[Component, ...]:
        """One a name: a record adds at most the bound farther from zero."""
        share = Fraction(1, len(self.expressions))
        return tuple(
            Component(
                *(name if self._several else "", one.range.amount, one.range.step, share),
                separate=True,
            )
            for name, one in self.expressions
        )

    @property
    def _several(self) -> bool:
        return len(self.expressions) > 1

    def encode(self, batch: Batch) -> dict[bytes, int]:
        """Sum in steps by coordinate: the name and a line feed."""
        kept = kept_counts(self.where, batch)
        return {
            coordinate(name, several=self._several): sum(
                value * count
                for value, count in zip(
                    one.evaluate(batch.columns, batch.length), kept, strict=True
                )
            )
            for name, one in self.expressions
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedQuery:
    """Sums of a vector of expressions that is clipped to a public norm and charged by it.

    Attributes:
        expressions: By name, sorted.
        norm: In units of the expressions.
        kind: Which norm: "l2" for Gaussian noise, "l1" for Laplace noise.
        where: Condition on the records that count.
    """

    expressions: tuple[tuple[str, Arithmetic], ...]
    norm: Fraction
    kind: NormKind
    where: Expression | None = None

    @property
    def step(self) -> Fraction:
        """The grid that holds every expression."""
        return common_step(one.range.step for _, one in self.expressions)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that `encode` reads."""
        return _columns(self.expressions, self.where)

    @property
    def components(self) -> tuple[Component, ...]:
        """One component over all coordinates; bounds that are tighter than the norm count too."""
        step = self.step
        amounts = [one.range.on(step).amount for _, one in self.expressions]
        norm = self.norm / step
        squares = sum(amount * amount for amount in amounts)
        if self.kind == "l2":
            squares = min(squares, int(norm * norm))
            # Whole numbers: a sum of absolute values is at most that of their squares.
            total = min(sum(amounts), squares)
        else:
            total = min(sum(amounts), int(norm))
            squares = min(squares, total * total)
        amount = min(max(amounts), int(norm))
        return (
            Component(
                *("", amount, step, Fraction(1), ((),) * len(amounts)),
                norms=Norms(total, squares),
                separate=True,
            ),
        )

    def encode(self, batch: Batch) -> dict[bytes, int]:
        """Sum of the clipped vectors in steps, by name."""
        step = self.step
        factors = [int(one.range.step / step) for _, one in self.expressions]
        values = [one.evaluate(batch.columns, batch.length) for _, one in self.expressions]
        norm = self.norm / step
        clip = clipped_l2 if self.kind == "l2" else clipped_l1
        sums = [0] * len(values)
        for vector, count in zip(
            zip(*values, strict=True), kept_counts(self.where, batch), strict=True
        ):
            if count:
                scaled = [value * factor for value, factor in zip(vector, factors, strict=True)]
                for place, value in enumerate(clip(scaled, norm)):
                    sums[place] += value * count
        return {
            name.encode(): total for (name, _), total in zip(self.expressions, sums, strict=True)
        }


def coordinate(name: str, *, several: bool) -> bytes:
    """Coordinate of an expression that is a component of its own, if there are several."""
    return name.encode() + b"\n" if several else name.encode()


def _columns(
    expressions: Sequence[tuple[str, Arithmetic]], where: Expression | None
) -> tuple[str, ...]:
    read = [name for _, one in expressions for name in one.columns]
    return columns_read(read, where)
