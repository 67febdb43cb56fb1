"""Typed columns: what a cell of a file or frame becomes, or why its row is refused.

Promise: a canonical value is a function of the plan and of the cell alone, so that CSV, Parquet
and frames with the same contents give the same records. Canonical values are:

- text, category: NFC text; a category outside `values` is "other" where the plan says so;
- integer, number: whole steps of the column's grid, within its bounds, ties rounded up;
- boolean: True or False; date: "2010-12-01"; null of every type: None.

A reason for refusing a cell is one of the fixed texts below and quotes no value.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, NamedTuple, TypeAlias, assert_never

import numpy as np

from retrodp.errors import DataError, PlanError

ColumnType: TypeAlias = Literal["text", "category", "integer", "number", "boolean", "date"]
Canonical: TypeAlias = str | int | bool | None

OTHER = "other"
"""Label of the category values that the plan does not list."""

MISSING = "missing"
NOT_TEXT = "not text"
NOT_PLANNED = "not one of the planned values"
NOT_A_NUMBER = "not a number"
NOT_FINITE = "not a finite number"
NOT_WHOLE = "not a whole number"
OUT_OF_BOUNDS = "out of bounds"
NOT_A_BOOLEAN = "not true, false, 1 or 0"
NOT_A_DATE = "not an ISO 8601 date"

_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,6})?")
_PLAIN_DECIMAL = re.compile(r"([+-]?[0-9]{1,30})(?:\.([0-9]{0,30}))?")
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})([Tt ]00:00(:00(\.0+)?)?)?")
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_MISSING_MARKERS = {"NAType", "NaTType"}
_LONGEST_NUMBER = 1_000
"""Characters and powers of ten; what is longer is no measurement and would only cost time."""


class Cell(NamedTuple):
    """One encoded cell: its canonical value, or the reason for refusing its row."""

    value: Canonical
    reason: str | None = None
    clamped: bool = False


@dataclass(frozen=True, slots=True)
class Encoded:
    """A column of canonical values.

    Attributes:
        values: Canonical values; None where null or refused.
        reasons: Per row the reason for refusing it, else None; None if no row is refused.
        clamped: How many values were moved to a bound. For the operator only.
        clamped_rows: Per row whether its value was; None if none was.
    """

    values: list[Canonical]
    reasons: list[str | None] | None
    clamped: int
    clamped_rows: list[bool] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the plan; public. Bounds are multiples of the step.

    Attributes:
        name: In the plan, its expressions and releases.
        type: What its cells are.
        from_: Name in the file or frame.
        min: Least value (integer, number).
        max: Greatest value (integer, number).
        step: Distance of the grid (integer, number); an exact decimal.
        values: Labels of a category, NFC, in the plan's order.
        other: Whether a category takes values outside `values`, as "other".
        nullable: Whether null is taken.
        out_of_bounds: What happens to a number outside the bounds.
    """

    name: str
    type: ColumnType
    from_: str
    min: Fraction | None = None
    max: Fraction | None = None
    step: Fraction | None = None
    values: tuple[str, ...] = ()
    other: bool = False
    nullable: bool = True
    out_of_bounds: Literal["clamp", "reject"] = "clamp"

    @property
    def public_values(self) -> tuple[str | bool | None, ...] | None:
        """All canonical values of a category or boolean; None for other types.

        Null is the last of them where the column takes it, and else none of them.
        """
        match self.type:
            case "category":
                listed: tuple[str | bool, ...] = (
                    (*self.values, OTHER) if self.other else self.values
                )
            case "boolean":
                listed = (False, True)
            case "text" | "integer" | "number" | "date":
                return None
            case _:
                assert_never(self.type)
        return (*listed, None) if self.nullable else listed

    @property
    def grid(self) -> tuple[Fraction, tuple[int, int]]:
        """Step, and least and greatest value in steps, of an integer or number column."""
        if self.step is None or self.min is None or self.max is None:
            raise PlanError(f"columns.{self.name} has no bounds.", expected="min, max and step")
        return self.step, (int(self.min / self.step), int(self.max / self.step))

    def encode(self, value: object, *, empty: str | None = None) -> Canonical:
        """Canonical value of one cell.

        Args:
            value: A text of a CSV file, or a value of a frame or JSON document.
            empty: What an empty text stands for: null in CSV, the empty text where the source
                tells the two apart.

        Raises:
            DataError: The cell is refused; the error quotes no value.
        """
        cell = _encoder(self)(empty if isinstance(value, str) and not value else value)
        if cell.reason is not None:
            raise DataError(f"Column {self.name}: {cell.reason}.")
        return cell.value

    def encode_many(self, values: Sequence[object], *, empty: str | None = None) -> Encoded:
        """Canonical values of a batch, as `encode` gives them one by one.

        Time: linear; a value that occurs often in the batch is encoded once. Keeps nothing.
        """
        types = set(map(type, values)) - {type(None)}
        if len(types) > 1 or not types <= _REPEATED:
            # Equal values of different types (1, True) would share an entry of the table.
            encode = _encoder(self)
            texts: dict[str, Cell] = {}
            return _gathered([_looked_up(value, encode, texts, empty) for value in values])
        if self.type == "text" and self.nullable and types <= {str}:
            plain = _plain_texts(values, empty)
            if plain is not None:
                return Encoded(plain, None, 0)
        encode = _encoder(self)
        # NaN is unequal to itself, but found again as the same object.
        table = {value: encode(empty if value == "" else value) for value in set(values)}
        return _tabulated(values, table)


def _looked_up(
    value: object, encode: Callable[[object], Cell], texts: dict[str, Cell], empty: str | None
) -> Cell:
    if type(value) is not str:
        return encode(value)
    cell = texts.get(value)
    if cell is None:
        cell = texts[value] = encode(value or empty)
    return cell


_REPEATED: set[type] = {str, int, float, bool, Decimal}


def _gathered(cells: Sequence[Cell]) -> Encoded:
    reasons = [cell.reason for cell in cells]
    return _encoded([cell.value for cell in cells], reasons, [cell.clamped for cell in cells])


def _tabulated(values: Sequence[object], table: Mapping[object, Cell]) -> Encoded:
    canonical = {value: cell.value for value, cell in table.items()}
    reasons = {value: cell.reason for value, cell in table.items() if cell.reason is not None}
    clamped = {value for value, cell in table.items() if cell.clamped}
    return _encoded(
        [canonical[value] for value in values],
        [reasons.get(value) for value in values] if reasons else [],
        [value in clamped for value in values] if clamped else [],
    )


def _encoded(values: list[Canonical], reasons: list[str | None], clamped: list[bool]) -> Encoded:
    return Encoded(
        values, reasons if any(reasons) else None, sum(clamped), clamped if any(clamped) else None
    )


def _plain_texts(values: Sequence[Any], empty: str | None) -> list[Canonical] | None:
    """The values, if all are ASCII or null: ASCII is NFC as it stands."""
    if not "".join(filter(None, values)).isascii():
        return None
    return [value or (None if value is None else empty) for value in values]


def _encoder(column: Column) -> Callable[[object], Cell]:
    """The rule of a column for one cell; null and missing markers are decided here."""
    encode = _typed_encoder(column)
    null = Cell(None) if column.nullable else Cell(None, MISSING)
    nan_is_null = column.type not in {"integer", "number"}

    def cell(value: object) -> Cell:
        if type(value) is str:
            return encode(value)
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or type(value).__name__ in _MISSING_MARKERS:
            return null
        if nan_is_null and isinstance(value, float) and math.isnan(value):
            return null
        return encode(value)

    return cell


def _typed_encoder(column: Column) -> Callable[[object], Cell]:
    match column.type:
        case "text":
            return _text
        case "category":
            return _category_encoder(column)
        case "integer" | "number":
            return _grid_encoder(column)
        case "boolean":
            return _boolean
        case "date":
            return _date
        case _:
            assert_never(column.type)


def _text(value: object) -> Cell:
    match value:
        case str():
            text = value
        case bool():
            text = "true" if value else "false"
        case int():
            text = repr(value)
        case float():
            text = repr(value + 0.0)  # -0.0 becomes 0.0
        case _:
            return Cell(None, NOT_TEXT)
    if text.isascii():
        return Cell(text)
    if any("\ud800" <= character <= "\udfff" for character in text):
        return Cell(None, NOT_TEXT)  # half a character, which no file can hold
    return Cell(unicodedata.normalize("NFC", text))


def _category_encoder(column: Column) -> Callable[[object], Cell]:
    planned = frozenset(column.values)
    outside = Cell(OTHER) if column.other else Cell(None, NOT_PLANNED)

    def category(value: object) -> Cell:
        cell = _text(value)
        return cell if cell.reason is not None or cell.value in planned else outside

    return category


def _boolean(value: object) -> Cell:
    match value:
        case bool():
            return Cell(value)
        case str() if value.lower() in _BOOLEANS:
            return Cell(_BOOLEANS[value.lower()])
        case int() | float() if value in {0, 1}:
            return Cell(bool(value))
        case _:
            return Cell(None, NOT_A_BOOLEAN)


def _date(value: object) -> Cell:
    match value:
        case dt.datetime():
            if value.timetz() != dt.time():
                return Cell(None, NOT_A_DATE)
            return Cell(value.date().isoformat())
        case dt.date():
            return Cell(value.isoformat())
        case str():
            form = _DATE.fullmatch(value)
            try:
                return Cell(None, NOT_A_DATE) if form is None else Cell(_day(form[1]))
            except ValueError:
                return Cell(None, NOT_A_DATE)
        case _:
            return Cell(None, NOT_A_DATE)


def _day(text: str) -> str:
    return dt.date.fromisoformat(text).isoformat()


def _grid_encoder(column: Column) -> Callable[[object], Cell]:
    step, (least, greatest) = column.grid
    up, down = step.denominator, step.numerator
    whole = column.type == "integer"
    reject = column.out_of_bounds == "reject"
    below = Cell(None, OUT_OF_BOUNDS) if reject else Cell(least, clamped=True)
    above = Cell(None, OUT_OF_BOUNDS) if reject else Cell(greatest, clamped=True)

    def grid(value: object) -> Cell:
        ratio = _ratio(value)
        if isinstance(ratio, str):
            return Cell(None, ratio)
        numerator, denominator = ratio
        if whole and numerator % denominator:
            return Cell(None, NOT_WHOLE)
        # value / step = over / under; floor(value / step + 1/2) is the nearest step, ties up.
        over, under = numerator * up, denominator * down
        if over < least * under:
            return below
        if over > greatest * under:
            return above
        return Cell((2 * over + under) // (2 * under))

    return grid


def _ratio(value: object) -> tuple[int, int] | str:
    """The exact number as a ratio (not reduced), or why it is none.

    A float stands for its shortest decimal.
    """
    match value:
        case str():
            return _ratio_of_text(value)
        case float():
            return _ratio_of_text(repr(value))
        case bool():
            return NOT_A_NUMBER
        case int():
            return value, 1
        case Decimal():
            return _ratio_of_decimal(value)
        case _:
            return NOT_A_NUMBER


def _ratio_of_text(text: str) -> tuple[int, int] | str:
    plain = _PLAIN_DECIMAL.fullmatch(text)
    if plain is not None:
        whole, digits = plain.groups("")
        return int(whole + digits), 10 ** len(digits)
    if len(text) > _LONGEST_NUMBER or _DECIMAL.fullmatch(text) is None:
        return NOT_FINITE if _NOT_FINITE.fullmatch(text) else NOT_A_NUMBER
    return _ratio_of_decimal(Decimal(text))


def _ratio_of_decimal(number: Decimal) -> tuple[int, int] | str:
    if not number.is_finite():
        return NOT_FINITE
    power = number.adjusted() if number else 0
    if abs(power) > _LONGEST_NUMBER:
        # On the same side of every bound and grid point as the number itself.
        nearer = _LONGEST_NUMBER if power > 0 else -_LONGEST_NUMBER
        number = Decimal((number.is_signed(), (1,), nearer))
    return number.as_integer_ratio()
