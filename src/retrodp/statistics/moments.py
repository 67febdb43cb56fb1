"""Count, sums, squares and products of vectors that are clipped to a public Euclidean norm.

From them follow means, covariances, ridge regressions and principal components. The geometry is
that of the plan's columns in their own units, on one common grid; it never depends on the data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement

from retrodp.plan.columns import Column
from retrodp.plan.decimals import common_step
from retrodp.plan.expression import Expression
from retrodp.privacy.norms import Norms
from retrodp.statistics.clip import clipped_l2
from retrodp.statistics.contract import Component, columns_read
from retrodp.statistics.counts import kept_counts
from retrodp.stream.batch import Batch

COUNT, SUMS, PRODUCTS = "count", "sum", "product"

LARGEST_PRODUCT = 10**8
"""Most that a record adds to a product, in the steps that products are counted in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Sums of 1, x and x x' over surviving records in which no column of x is null.

    Where squared steps are very fine, products are counted in coarser ones: every record's product
    is rounded toward zero, so that no norm grows.

    Attributes:
        of: Columns of x.
        norm: Bound on |x|, a multiple of `step`, in units of the columns.
        where: Condition on the records that count.
    """

    of: tuple[Column, ...]
    norm: Fraction
    where: Expression | None = None

    @property
    def step(self) -> Fraction:
        """The grid that holds every column."""
        return common_step(column.grid[0] for column in self.of)

    @property
    def grain(self) -> int:
        """Squared steps in a step of the products: a power of ten, 1 where that is exact enough."""
        found = 1
        while max(self.bounds) ** 2 > LARGEST_PRODUCT * found:
            found *= 10
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of x."""
        return tuple(column.name for column in self.of)

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Places of the two columns of every product, squares included."""
        return tuple(combinations_with_replacement(range(len(self.of)), 2))

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that `encode` reads."""
        return columns_read(self.names, self.where)

    @property
    def bounds(self) -> tuple[int, ...]:
        """Most that each coordinate of a clipped x is from zero, in steps."""
        norm = int(self.norm / self.step)
        return tuple(min(norm, bound) for bound in self._column_bounds())

    def _column_bounds(self) -> Iterator[int]:
        for column in self.of:
            step, (least, greatest) = column.grid
            yield max(abs(least), abs(greatest)) * int(step / self.step)

    @property
    def components(self) -> tuple[Component, ...]:
        """Count, sums and products, with equal parts of the budget.

        Equal parts of the budget give equal errors relative to the largest mean of each: 1, the
        norm and its square. The norms are the exact maxima over real x within norm and bounds.
        """
        third, many = Fraction(1, 3), len(self.of)
        squares = [bound * bound for bound in self.bounds]
        sums = _norms_of_sums(squares, self._square)
        products = _norms_of_products(squares, self._square)
        grain = self.grain
        return (
            Component(COUNT, 1, Fraction(1), third, separate=True),
            Component(
                *(SUMS, max(self.bounds), self.step, third, ((),) * many),
                norms=sums,
                separate=True,
            ),
            Component(
                *(PRODUCTS, max(squares) // grain, self.step**2 * grain, third),
                ((),) * len(self.pairs),
                norms=Norms(products.l1 // grain, products.l2_squared // grain**2),
                separate=True,
            ),
        )

    @property
    def _square(self) -> int:
        return int(self.norm / self.step) ** 2

    def encode(self, batch: Batch) -> dict[bytes, int]:
        """All sums, in the steps of their components; see `coordinate`."""
        kept = kept_counts(self.where, batch)
        factors = [int(column.grid[0] / self.step) for column in self.of]
        norm, pairs, grain = self.norm / self.step, self.pairs, self.grain
        rows = zip(*(batch.columns[name] for name in self.names), strict=True)
        count, sums, products = 0, [0] * len(self.of), [0] * len(pairs)
        for row, copies in zip(rows, kept, strict=True):
            if not copies or None in row:
                continue
            x = clipped_l2(
                [value * factor for value, factor in zip(_whole(row), factors, strict=True)], norm
            )
            count += copies
            for place, value in enumerate(x):
                sums[place] += value * copies
            for place, (one, two) in enumerate(pairs):
                products[place] += _toward_zero(x[one] * x[two], grain) * copies
        found = {coordinate(COUNT): count}
        found |= {
            coordinate(SUMS, name): total for name, total in zip(self.names, sums, strict=True)
        }
        found |= {
            coordinate(PRODUCTS, self.names[one], self.names[two]): total
            for (one, two), total in zip(pairs, products, strict=True)
        }
        return found


def coordinate(component: str, *names: str) -> bytes:
    """Coordinate of a sum: the component, a line feed, and the label that is published."""
    return f"{component}\n{label(component, *names)}".encode()


def label(what: str, *names: str) -> str:
    """Label of a number: a JSON array of what it is and the columns that it is of."""
    return json.dumps([what, *names], ensure_ascii=False, separators=(",", ":"))


def _toward_zero(product: int, grain: int) -> int:
    return product // grain if product >= 0 else -(-product // grain)


def _whole(row: Sequence[object]) -> Iterator[int]:
    for value in row:
        assert isinstance(value, int)
        yield value


def _norms_of_sums(squares: Sequence[int], most: int) -> Norms:
    """Norms of whole x with |x|^2 at most `most` and each squared coordinate within `squares`."""
    l2_squared = min(sum(squares), most)
    # Cauchy and Schwarz; and no coordinate exceeds its bound.
    l1 = min(math.isqrt(len(squares) * most), sum(map(math.isqrt, squares)))
    return Norms(l1, l2_squared)


def _norms_of_products(squares: Sequence[int], most: int) -> Norms:
    """Norms of the vector of x_i x_j, i <= j, for the same x.

    With y the squared coordinates, the squared norm is (|y|_1^2 + |y|_2^2) / 2: convex in y, and by
    majorisation largest where the largest coordinates are filled one after the other. The sum of
    absolute values is (|x|_1^2 + |x|_2^2) / 2.
    """
    left, filled = most, []
    for square in sorted(squares, reverse=True):
        filled.append(min(square, left))
        left -= filled[-1]
    l2_squared = (sum(filled) ** 2 + sum(y * y for y in filled)) // 2
    sums = _norms_of_sums(squares, most)
    return Norms((sums.l1**2 + sums.l2_squared) // 2, l2_squared)
