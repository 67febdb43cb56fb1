"""Terms of the `linear` language: what they mean, between which bounds, and their values.

Promise: grids and bounds follow from the plan alone, by exact interval arithmetic, and a value is a whole
number of steps. Knows no text of a plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NamedTuple, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from retrodp.plan.decimals import common_step
from retrodp.plan.expression import Expression

_SAFE = 2**62  # of any partial result, so that 64 bits hold it

Numbers: TypeAlias = npt.NDArray[Any]


class Range(NamedTuple):
    """Values that an expression can have: whole steps between two ends.

    Attributes:
        step: Size of a step.
        least: Least value, in steps.
        greatest: Greatest value, in steps.
    """

    step: Fraction
    least: int
    greatest: int

    @property
    def amount(self) -> int:
        """Farthest from zero, in steps."""
        return max(abs(self.least), abs(self.greatest))

    def on(self, step: Fraction) -> Range:
        """The same on a grid that holds it."""
        factor = int(self.step / step)
        return Range(step, self.least * factor, self.greatest * factor)


@dataclass(frozen=True, slots=True)
class Constant:
    """A number of the plan."""

    value: Fraction


@dataclass(frozen=True, slots=True)
class Value:
    """A column's value."""

    column: str
    range: Range


@dataclass(frozen=True, slots=True)
class Indicator:
    """1 where a condition holds, else 0."""

    condition: Expression


@dataclass(frozen=True, slots=True)
class Sum:
    """Parts added up, each with its sign."""

    parts: tuple[tuple[Literal[1, -1], Node], ...]


@dataclass(frozen=True, slots=True)
class Product:
    """Parts multiplied."""

    parts: tuple[Node, ...]


Node: TypeAlias = Constant | Value | Indicator | Sum | Product


def range_of(node: Node) -> Range:
    """Grid and bounds of a node by interval arithmetic, exact."""
    match node:
        case Constant(value):
            step = abs(value) or Fraction(1)
            steps = int(value / step)
            return Range(step, steps, steps)
        case Value():
            return node.range
        case Indicator():
            return Range(Fraction(1), 0, 1)
        case Sum(parts):
            ranges = [range_of(part) for _, part in parts]
            step = common_step(one.step for one in ranges)
            signed = [
                (one.least, one.greatest) if sign > 0 else (-one.greatest, -one.least)
                for (sign, _), one in zip(parts, (one.on(step) for one in ranges), strict=True)
            ]
            return Range(step, sum(low for low, _ in signed), sum(high for _, high in signed))
        case Product(parts):
            found = Range(Fraction(1), 1, 1)
            for one in map(range_of, parts):
                ends = [a * b for a in found[1:] for b in one[1:]]
                found = Range(found.step * one.step, min(ends), max(ends))
            return found
        case _:
            assert_never(node)


def largest(node: Node) -> int:
    """Bound on every number that evaluation meets, in steps."""
    own = range_of(node)
    match node:
        case Constant() | Value() | Indicator():
            return own.amount
        case Sum(parts):
            steps = [range_of(part).on(own.step).amount for _, part in parts]
            return max(sum(steps), *(largest(part) for _, part in parts))
        case Product(parts):
            amounts = [max(1, range_of(part).amount) for part in parts]
            product = 1
            for amount in amounts:
                product *= amount
            return max(product, *(largest(part) for part in parts))
        case _:
            assert_never(node)


def _evaluated(
    node: Node, columns: Mapping[str, Sequence[object]], length: int, kind: Any
) -> Numbers:
    match node:
        case Constant():
            return np.full(length, range_of(node).least, dtype=kind)
        case Value(name):
            return np.array([value or 0 for value in columns[name]], dtype=kind)
        case Indicator(condition):
            return condition.evaluate(columns, length).astype(kind)
        case Sum(parts):
            step = range_of(node).step
            total = np.zeros(length, dtype=kind)
            for sign, part in parts:
                factor = sign * int(range_of(part).step / step)
                total = total + _evaluated(part, columns, length, kind) * factor
            return total
        case Product(parts):
            product = np.ones(length, dtype=kind)
            for part in parts:
                product = product * _evaluated(part, columns, length, kind)
            return product
        case _:
            assert_never(node)


def evaluated(node: Node, columns: Mapping[str, Sequence[object]], length: int) -> Numbers:
    """The value of each record, in steps of the node's range; null counts as 0."""
    kind = np.int64 if largest(node) < _SAFE else object
    return _evaluated(node, columns, length, kind)


def leaves(node: Node) -> Iterator[Constant | Value | Indicator]:
    """What a node is made of, in order of appearance."""
    match node:
        case Constant() | Value() | Indicator():
            yield node
        case Sum(parts):
            for _, part in parts:
                yield from leaves(part)
        case Product(parts):
            for part in parts:
                yield from leaves(part)
        case _:
            assert_never(node)


def columns_of(node: Node) -> Iterator[str]:
    """Every column that a node reads."""
    for leaf in leaves(node):
        match leaf:
            case Constant():
                pass
            case Value(name):
                yield name
            case Indicator(condition):
                yield from condition.columns
            case _:
                assert_never(leaf)


def added_by(node: Node) -> Iterator[str]:
    """Columns whose numbers a node adds or multiplies."""
    return (leaf.column for leaf in leaves(node) if isinstance(leaf, Value))
