"""The plan's `[columns]` table as frozen columns and names of the reserved fields."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from retrodp.errors import PlanError
from retrodp.plan.columns import OTHER, Column, ColumnType
from retrodp.plan.decimals import decimal_text
from retrodp.plan.schema import (
    ColumnTable,
    ReservedTable,
    as_table,
    number,
    read_table,
    shown,
)
from retrodp.plan.settings import StreamPlan

RESERVED = ("id", "op", "at", "time", "n")
"""Fields of an update; a file may call them otherwise, and no column has their names."""

LARGEST_STEPS = 2**53
"""Farthest bound from zero, in steps."""

_OWN_KEYS: Mapping[ColumnType, frozenset[str]] = {
    "text": frozenset(),
    "category": frozenset({"values", "other"}),
    "integer": frozenset({"min", "max", "step"}),
    "number": frozenset({"min", "max", "step"}),
    "boolean": frozenset(),
    "date": frozenset(),
}


def read_columns(raw: object, stream: StreamPlan) -> tuple[tuple[Column, ...], Mapping[str, str]]:
    """Check `[columns]`.

    Returns:
        The columns in the order of the file, and the name in the file of each reserved field.
    """
    tables = {} if raw is None else as_table(raw, "columns")
    reserved = {name: name for name in RESERVED}
    columns: list[Column] = []
    for name, table in tables.items():
        if name in RESERVED:
            reserved[name] = _read_reserved(name, table)
        else:
            columns.append(_read_column(name, table, stream))
    found = {column.name: column for column in columns}
    _check_person(stream, found)
    for name in stream.max_per_bin.by if stream.max_per_bin else ():
        if name not in found:
            raise _no_column("stream.max_per_bin.by", name, found)
    if len(set(reserved.values())) < len(reserved):
        raise PlanError(
            "Two of the reserved fields id, op, at, time, n come from one column of the file.",
            expected="a name of its own for each",
        )
    return tuple(columns), reserved


def _read_reserved(name: str, raw: object) -> str:
    path = f"columns.{name}"
    if not isinstance(raw, Mapping) or "type" in raw:
        raise PlanError(
            f"{path} is {shown(raw)}, but {name} is a reserved field of every update.",
            expected='only its name in the file, { from = "..." }',
            do=f'For a column of data called {name}, choose another name with from = "{name}".',
        )
    return read_table(ReservedTable, raw, path).from_


def _read_column(name: str, raw: object, stream: StreamPlan) -> Column:
    path = f"columns.{name}"
    if not name or name != unicodedata.normalize("NFC", name) or not name.isprintable():
        raise PlanError(
            f"{path!r} is no name for a column.", expected="printable NFC text that is not empty"
        )
    if "`" in name:
        raise PlanError(f"{path} has a ` in its name.", expected="a name without `")
    table = read_table(ColumnTable, {"type": raw} if isinstance(raw, str) else raw, path)
    bounds = _bounds(table, path)
    values = _values(table, path)
    nullable = table.nullable
    if nullable is None:
        # Null is a bin of its own, but adds to no sum and names no person.
        names_person = stream.person_unit and stream.person == name
        nullable = not names_person and table.type not in {"integer", "number"}
    return Column(
        name=name,
        type=table.type,
        from_=table.from_ or name,
        min=bounds[0],
        max=bounds[1],
        step=bounds[2],
        values=values,
        other=table.other,
        nullable=nullable,
        out_of_bounds=stream.out_of_bounds,
    )


def _bounds(
    table: ColumnTable, path: str
) -> tuple[Fraction, Fraction, Fraction] | tuple[None, None, None]:
    given: dict[str, Any] = {"min": table.min, "max": table.max, "step": table.step}
    own = _OWN_KEYS[table.type]
    for key, value in given.items():
        if value is not None and key not in own:
            raise _not_of_type(f"{path}.{key}", table.type)
    if "min" not in own:
        return None, None, None
    if table.type == "integer" and table.step is None:
        given["step"] = 1
    for key, value in given.items():
        if value is None:
            raise PlanError(
                f"{path}.{key} is missing.",
                expected=f'{{ type = "{table.type}", min = ..., max = ..., step = ... }}',
                do="Bounds are public and decide the noise; never look them up in the data.",
            )
    least, greatest, step = (number(value, f"{path}.{key}") for key, value in given.items())
    _check_grid(least, greatest, step, path)
    if table.type == "integer" and step.denominator != 1:
        raise PlanError(f"{path}.step is {shown(table.step)}.", expected="a whole number")
    return least, greatest, step


def _check_grid(least: Fraction, greatest: Fraction, step: Fraction, path: str) -> None:
    if not step > 0:
        raise PlanError(f"{path}.step is {_plain(step)}.", expected="above 0")
    if not _is_decimal(step):
        raise PlanError(
            f"{path}.step is {_plain(step)}.", expected="an exact decimal, such as 0.01"
        )
    if not least < greatest:
        raise PlanError(
            f"{path}.min is {_plain(least)}, max is {_plain(greatest)}.", expected="min below max"
        )
    for key, bound in (("min", least), ("max", greatest)):
        if (bound / step).denominator != 1:
            below = math.floor(bound / step) * step
            raise PlanError(
                f"{path}.{key} is {_plain(bound)}, no multiple of the step {_plain(step)}.",
                expected=f"such as {_plain(below)} or {_plain(below + step)}",
            )
        if abs(bound / step) > LARGEST_STEPS:
            raise PlanError(
                f"{path}.{key} lies too many steps from zero.",
                expected="at most 2^53 steps",
                do="Choose a coarser step or a nearer bound.",
            )


def _values(table: ColumnTable, path: str) -> tuple[str, ...]:
    if table.type != "category":
        if table.values is not None or table.other:
            key = "values" if table.values is not None else "other"
            raise _not_of_type(f"{path}.{key}", table.type)
        return ()
    if table.values is None:
        raise PlanError(
            f"{path}.values is missing.",
            expected='a list of texts, such as ["Germany", "France"]',
            do='For a column whose values are not public use type = "text".',
        )
    values = tuple(unicodedata.normalize("NFC", value) for value in table.values)
    if len(set(values)) < len(values):
        raise PlanError(f"{path}.values names a value twice.", expected="each value once")
    if table.other and OTHER in values:
        raise PlanError(
            f'{path}.values holds "{OTHER}", which other = true uses for the rest.',
            do="Leave it out of values, or leave out other = true.",
        )
    return values


def _check_person(stream: StreamPlan, columns: Mapping[str, Column]) -> None:
    if stream.person is None:
        return
    if stream.person not in columns:
        raise _no_column("stream.person", stream.person, columns)
    if columns[stream.person].type != "text":
        raise PlanError(
            f"stream.person names {stream.person!r}, a column of type"
            f" {columns[stream.person].type}.",
            expected="a column of type text",
        )


def _no_column(path: str, name: str, columns: Mapping[str, Column]) -> PlanError:
    return PlanError(
        f"{path} names {name!r}, which is no column of the plan.",
        expected=f"one of {', '.join(columns)}" if columns else "a column of [columns]",
    )


def _not_of_type(path: str, type_: ColumnType) -> PlanError:
    own = ", ".join(sorted({"type", "nullable", "from", *_OWN_KEYS[type_]}))
    return PlanError(f'{path} is no key of a column of type "{type_}".', expected=f"one of {own}")


def _is_decimal(value: Fraction) -> bool:
    """Whether a power of ten makes it whole."""
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1


def _plain(value: Fraction) -> str:
    return decimal_text(1, value) if _is_decimal(value) else str(value)
