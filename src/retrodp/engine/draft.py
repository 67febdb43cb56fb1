"""The columns of a file, for a first plan: names and types, no values.

Parquet and Arrow files tell their types. In CSV and JSON Lines a type is the form that the cells
of the first rows have (digits, a decimal point, a date); what they say is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from retrodp.errors import SourceError
from retrodp.plan.draft import FileColumn, Kind
from retrodp.stream.sources import Format, Layout, read_file

SAMPLE_ROWS = 1_000

_TEXT_FORMS: Mapping[Kind, re.Pattern[str]] = {
    "boolean": re.compile(r"true|false", re.IGNORECASE),
    # A leading zero is part of a code, not of a number.
    "integer": re.compile(r"[+-]?(0|[1-9][0-9]{0,17})"),
    "number": re.compile(r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"),
    "date": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    "time": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}.*"),
}
_ARROW_TYPES: Sequence[tuple[Kind, Callable[[pa.DataType], bool]]] = (
    ("boolean", pa.types.is_boolean),
    ("integer", pa.types.is_integer),
    ("number", pa.types.is_floating),
    ("number", pa.types.is_decimal),
    ("date", pa.types.is_date),
    ("time", pa.types.is_timestamp),
)


def columns_of(path: Path, *, format_: Format | None = None) -> list[FileColumn]:
    """Names and types of the columns of a file.

    Raises:
        SourceError: The file cannot be read, or has no columns.
    """
    schema = _schema(path, format_)
    if schema is not None:
        found = [FileColumn(own.name, _kind_of_type(own.type)) for own in schema]
    else:
        every = _EveryColumn(required=(), optional=(), contents=())
        batch = next(iter(read_file(path, every, format_=format_)), None)
        names = every.present
        found = [
            FileColumn(name, _kind_of_cells(() if batch is None else batch.cells(name)))
            for name in names
        ]
    if not found:
        raise SourceError(f"{path} has no columns.", do="Name a file of updates.")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _EveryColumn(Layout):
    """Asks for whatever there is."""

    present: list[str] = field(default_factory=list)

    def wanted(self, present: Sequence[str], label: str) -> list[str]:
        """All columns; raises `SourceError` if one is there twice."""
        every = Layout(required=(), optional=tuple(present), contents=()).wanted(present, label)
        self.present.extend(every)
        return every


def _schema(path: Path, format_: Format | None) -> pa.Schema | None:
    """Types of a Parquet or Arrow file; None for a format without."""
    told = format_ or path.suffix.lower().removeprefix(".")
    if told not in {"parquet", "arrow"}:
        return None
    try:
        if told == "parquet":
            return pq.read_schema(path)
        with pa.memory_map(str(path)) as file:
            return pa.ipc.open_file(file).schema
    except (OSError, pa.ArrowException):
        raise SourceError(f"{path} cannot be read as {told}.", do="Check the path.") from None


def _kind_of_type(type_: pa.DataType) -> Kind:
    inner = type_.value_type if pa.types.is_dictionary(type_) else type_
    return next((kind for kind, holds in _ARROW_TYPES if holds(inner)), "text")


def _kind_of_cells(cells: Iterable[object]) -> Kind:
    """The narrowest type that all cells of the first rows have the form of."""
    sample = [cell for cell, _ in zip(cells, range(SAMPLE_ROWS), strict=False) if cell is not None]
    kinds = {_kind_of_cell(cell) for cell in sample}
    if kinds == {"integer", "number"}:
        return "number"
    if kinds == {"date", "time"}:
        return "time"
    return kinds.pop() if len(kinds) == 1 else "text"


def _kind_of_cell(cell: Any) -> Kind:
    match cell:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            forms = _TEXT_FORMS.items()
            return next((kind for kind, form in forms if form.fullmatch(cell)), "text")
        case _:
            return "text"
