"""Conditions on one record, over canonical values: the meaning of a `where`.

Promise: a condition is decided by the record's own canonical values and the plan, exactly. Null
fulfils no comparison, `!=` included; `== null`, `!= null` and `in` decide null as they say.
Knows no text, no positions and no store.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

Comparator: TypeAlias = Literal["==", "!=", "<", "<=", ">", ">="]

BoolArray: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Compare:
    """A column against a canonical value."""

    column: str
    comparator: Comparator
    value: str | int | bool


@dataclass(frozen=True, slots=True)
class CompareColumns:
    """Two columns of one type; integers are multiplied by the factors before they compare."""

    left: str
    comparator: Comparator
    right: str
    left_factor: int = 1
    right_factor: int = 1


@dataclass(frozen=True, slots=True)
class OneOf:
    """A column's value is one of these, or null where `null` says so."""

    column: str
    values: frozenset[str | int | bool]
    null: bool = False


@dataclass(frozen=True, slots=True)
class Not:
    """The condition does not hold."""

    part: Condition


@dataclass(frozen=True, slots=True)
class Every:
    """All conditions hold."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """At least one condition holds."""

    parts: tuple[Condition, ...]


Condition: TypeAlias = Compare | CompareColumns | OneOf | Not | Every | Some

_OPERATORS: dict[Comparator, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def evaluate(
    condition: Condition, columns: Mapping[str, Sequence[object]], length: int
) -> BoolArray:
    """Which records fulfil a condition.

    Args:
        condition: What to decide.
        columns: Canonical values by column name, each of `length`.
        length: Records.

    Returns:
        Booleans, shape `(length,)`.
    """
    match condition:
        case Compare(column, comparator, value):
            holds = _OPERATORS[comparator]
            return _array(
                (each is not None and holds(each, value) for each in columns[column]), length
            )
        case CompareColumns(left, comparator, right):
            return _compare_columns(condition, columns[left], columns[right], length)
        case OneOf(column, values, null):
            members: frozenset[object] = values | {None} if null else values
            return _array((each in members for each in columns[column]), length)
        case Not(part):
            return ~evaluate(part, columns, length)
        case Every(parts):
            holds_all = np.ones(length, np.bool_)
            for part in parts:
                holds_all &= evaluate(part, columns, length)
            return holds_all
        case Some(parts):
            holds_any = np.zeros(length, np.bool_)
            for part in parts:
                holds_any |= evaluate(part, columns, length)
            return holds_any
        case _:
            assert_never(condition)


def columns_of(condition: Condition) -> tuple[str, ...]:
    """Names that a condition reads, in order of appearance, without repetition."""
    match condition:
        case Compare(column) | OneOf(column):
            return (column,)
        case CompareColumns(left, _, right):
            return tuple(dict.fromkeys((left, right)))
        case Not(part):
            return columns_of(part)
        case Every(parts) | Some(parts):
            return tuple(dict.fromkeys(name for part in parts for name in columns_of(part)))
        case _:
            assert_never(condition)


def _compare_columns(
    condition: CompareColumns, left: Sequence[Any], right: Sequence[Any], length: int
) -> BoolArray:
    holds = _OPERATORS[condition.comparator]
    by_left, by_right = condition.left_factor, condition.right_factor
    pairs = zip(left, right, strict=True)
    if by_left == by_right:
        return _array((a is not None and b is not None and holds(a, b) for a, b in pairs), length)
    return _array(
        (a is not None and b is not None and holds(a * by_left, b * by_right) for a, b in pairs),
        length,
    )


def _array(values: Any, length: int) -> BoolArray:
    return np.fromiter(values, np.bool_, length)
