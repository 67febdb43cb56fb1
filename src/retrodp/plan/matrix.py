"""The matrix of a `query`: which weight a record's public values have on which coordinate.

Promise: whatever comes out is a canonical table of the plan's own values and exact decimal weights,
in one order, so that the same matrix gives the same resolved plan whatever file it came from. A
matrix is public, like everything in a plan; records whose values it does not list weigh nothing.

It is read once, when the plan is read; from then on its rows are part of the plan.
"""

from __future__ import annotations

import csv
import hashlib
import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from retrodp.errors import PlanError
from retrodp.plan.columns import Canonical, Column
from retrodp.plan.decimals import decimal_text, is_decimal
from retrodp.plan.schema import did_you_mean, number, shown

COORDINATE, WEIGHT = "coordinate", "weight"
MOST_ROWS = 100_000
_LONGEST_NAME = 200

Cell: TypeAlias = str | int | bool
Rows: TypeAlias = tuple[tuple[Cell, ...], ...]
"""Header, then rows: the values of the columns, the coordinate's name, the weight as a decimal.

An empty text stands for null, as in a CSV file; no text that is empty can be named."""


def read_file(path: Path) -> list[list[object]]:
    """Header and rows of a CSV or Parquet file, as they stand.

    Raises:
        PlanError: If the file cannot be read.
    """
    try:
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            columns = [column.to_pylist() for column in table.columns]
            return [list(table.column_names), *map(list, zip(*columns, strict=True))]
        with path.open(encoding="utf-8-sig", newline="") as lines:
            return [list(row) for row in csv.reader(lines, strict=True) if row]
    except (OSError, UnicodeDecodeError, csv.Error, pa.ArrowException) as error:
        reason = error.strerror if isinstance(error, OSError) else type(error).__name__
        raise PlanError(
            f"The matrix {path} cannot be read: {reason}.",
            expected="a CSV file in UTF-8, or a Parquet file whose name ends in .parquet",
        ) from None


def canonical(raw: object, columns: Mapping[str, Column], path: str) -> Rows:
    """The matrix in its one form.

    Args:
        raw: A list of rows, the first of which is the header.
        columns: Of the plan.
        path: Dotted path of the plan's key.

    Raises:
        PlanError: A column is missing or unknown, a value is none that its column can have, a
            weight is no decimal, or a row is there twice.
    """
    table = _table(raw, path)
    header, rows = [*map(_text, table[0])], table[1:]
    named = _header(header, columns, path)
    order = [header.index(name) for name in (*named, COORDINATE, WEIGHT)]
    for line, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise PlanError(
                f"{path}, row {line} has {len(row)} cells.",
                expected=f"{len(header)}, as the header",
            )
    found: dict[tuple[Cell, ...], str] = {}
    for line, row in enumerate(rows, start=2):
        *cells, coordinate, weight = (row[place] for place in order)
        place = f"{path}, row {line}"
        values = [
            _value(columns[name], cell, place) for name, cell in zip(named, cells, strict=True)
        ]
        key = (*values, _coordinate(coordinate, place))
        if key in found:
            raise PlanError(
                f"{place} gives a weight that another row gives already.",
                expected="each coordinate at most once for the same values",
            )
        found[key] = _weight(weight, place)
    ordered = sorted(found.items(), key=lambda entry: json.dumps(entry[0]))
    return ((*named, COORDINATE, WEIGHT), *((*key, weight) for key, weight in ordered))


def digest(rows: Rows) -> str:
    """SHA-256 of the canonical rows, 64 hexadecimal digits."""
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def weights_of(
    rows: Rows, columns: Sequence[Column]
) -> dict[tuple[Canonical, ...], dict[str, Fraction]]:
    """Weight by coordinate, by canonical values of the columns that the header names."""
    found: dict[tuple[Canonical, ...], dict[str, Fraction]] = {}
    for *cells, coordinate, weight in rows[1:]:
        values = tuple(
            column.encode(cell, empty=None) for column, cell in zip(columns, cells, strict=True)
        )
        found.setdefault(values, {})[str(coordinate)] = Fraction(str(weight))
    return found


def _table(raw: object, path: str) -> list[list[object]]:
    sane = isinstance(raw, list | tuple) and all(isinstance(row, list | tuple) for row in raw)
    if not sane:
        raise PlanError(
            f"{path} is {shown(raw)}.",
            expected='a file beside the plan, or rows such as [["region", "coordinate", "weight"], '
            '["north", "x", 1]]',
        )
    assert isinstance(raw, list | tuple)
    if len(raw) < 2:
        raise PlanError(f"{path} has no rows.", expected="a header and at least one row")
    if len(raw) > MOST_ROWS:
        raise PlanError(f"{path} has {len(raw)} rows.", expected=f"at most {MOST_ROWS}")
    return [list(row) for row in raw]


def _header(header: Sequence[str], columns: Mapping[str, Column], path: str) -> list[str]:
    for name in (COORDINATE, WEIGHT):
        if header.count(name) != 1:
            raise PlanError(
                f"{path} has {header.count(name) or 'no'} columns {name}.",
                expected=f"columns of the plan, then {COORDINATE} and {WEIGHT}, each once",
            )
    named = [name for name in header if name not in {COORDINATE, WEIGHT}]
    if not named or len(set(named)) < len(named):
        raise PlanError(
            f"{path} names {'no column' if not named else 'a column twice'}.",
            expected="at least one column of the plan, each once",
        )
    for name in named:
        if name not in columns:
            raise PlanError(
                f"{path} has a column {name!r}, which is no column of the plan.",
                expected=f"one of {', '.join(columns)}",
                do=did_you_mean(name, columns),
            )
        if columns[name].type == "number":
            raise PlanError(
                f"{path} has a column {name!r}, which is of type number.",
                expected="columns of single values: category, boolean, text, date, integer",
                do="For arithmetic on numbers write linear = { ... }.",
            )
    return sorted(named, key=[*columns].index)


def _value(column: Column, cell: object, place: str) -> Cell:
    """A value as a plan writes it; what a record could never have is refused, not clamped."""
    given = None if cell == "" else _text(cell) if isinstance(cell, str) else cell
    encoded = column.encode_many([given])
    value, reason = encoded.values[0], (encoded.reasons or [None])[0]
    if column.type == "integer" and isinstance(value, int):
        value *= int(column.step or 1)
        if encoded.clamped or (reason is None and str(value) != str(given).strip()):
            reason = "no value of the column's grid"
    listed = column.type != "category" or given in (column.public_values or ())
    if reason is None and not listed:
        reason = "not one of the planned values"
    if reason is not None:
        raise PlanError(
            f"{place}: {shown(cell)} in the column {column.name} is {reason}.",
            expected=f"a value that {column.name} can have, or an empty cell for null",
        )
    return "" if value is None else value


def _text(cell: object) -> str:
    return unicodedata.normalize("NFC", cell) if isinstance(cell, str) else str(cell)


def _coordinate(cell: object, place: str) -> str:
    name = _text(cell)
    if (
        not isinstance(cell, str | int)
        or isinstance(cell, bool)
        or not name.isprintable()
        or not name
    ):
        raise PlanError(f"{place}: {shown(cell)} names no coordinate.", expected="a printable text")
    if len(name) > _LONGEST_NAME:
        raise PlanError(
            f"{place}: the coordinate's name has {len(name)} characters.",
            expected=f"at most {_LONGEST_NAME}",
        )
    return name


def _weight(cell: object, place: str) -> str:
    weight = number(_exact(cell), f"{place}, {WEIGHT}")
    if not is_decimal(weight):
        raise PlanError(
            f"{place}: the weight is {weight}.",
            expected="an exact decimal, such as 0.25",
            do="Round it; weights decide the grid of the published numbers.",
        )
    return decimal_text(1, weight) if weight else "0"


def _exact(cell: object) -> object:
    """A number as a plan may hold it; texts of CSV files are decimals."""
    if isinstance(cell, str):
        return cell.strip()
    return Decimal(repr(cell)) if isinstance(cell, float) else cell


def coordinates_of(rows: Rows) -> tuple[str, ...]:
    """Names of all coordinates, sorted by their UTF-8 bytes."""
    return tuple(sorted({str(row[-2]) for row in rows[1:]}, key=str.encode))


def named_columns(rows: Rows) -> tuple[str, ...]:
    """Columns of the plan that the matrix reads."""
    return tuple(map(str, rows[0][:-2]))


def inlined(tables: Mapping[str, Any], directory: Path | None) -> tuple[dict[str, Any], bool]:
    """Plan tables with the rows of every matrix file in the place of its name.

    Args:
        tables: As TOML gave them.
        directory: Of the plan; None for a plan that is no file, which can name no other.

    Returns:
        The tables, and whether any file was read.
    """
    releases = tables.get("release")
    named = [
        name
        for name, table in (releases.items() if isinstance(releases, Mapping) else ())
        if isinstance(table, Mapping) and isinstance(table.get("matrix"), str)
    ]
    if not named:
        return dict(tables), False
    if directory is None:
        raise PlanError(
            f"release.{named[0]}.matrix names a file, but this plan is none.",
            expected="its rows",
            do="Load the plan from a file; the matrix lies beside it.",
        )
    assert isinstance(releases, Mapping)
    filled = {
        name: _filled(table, directory) if name in named else table
        for name, table in releases.items()
    }
    return {**tables, "release": filled}, True


def _filled(table: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    return {**table, "matrix": _plain(read_file(directory / table["matrix"]))}


def _plain(rows: Iterable[Sequence[object]]) -> list[list[object]]:
    """Rows in what TOML can hold."""
    return [["" if cell is None else cell for cell in row] for row in rows]
