"""Columns of raw cells, read into values: ops, ids, times, multiplicities and the plan's columns.

Promise: a cell that cannot be read gives a fixed reason that quotes nothing, never an exception.
Each distinct cell of a batch is read once. Knows no rules between the fields of a row.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar
from unicodedata import normalize

import numpy as np
import numpy.typing as npt

from retrodp.plan.columns import Canonical, Column
from retrodp.stream.cells import ArrowCells, Instants
from retrodp.stream.clock import Clock
from retrodp.stream.coded import CodedColumn
from retrodp.stream.update import Op

Flags: TypeAlias = npt.NDArray[np.bool_]
Ints: TypeAlias = npt.NDArray[np.int64]

MISSING = "missing"
UNKNOWN_OP = "not add, delete or replace"
NOT_AN_ID = "not text or a whole number"
NOT_A_COUNT = "not a whole number from 1 to 2^40"

_MOST_COPIES = 2**40
_DIGITS = re.compile(r"[0-9]{1,13}")
_OPS: Mapping[object, Op] = {None: Op.ADD, **{op.name.lower(): op for op in Op}}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Read(Generic[T]):
    """A column that was read.

    Attributes:
        values: One per row; meaningless where refused.
        reasons: Why a row is refused, by position; empty if none is.
    """

    values: T
    reasons: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Times:
    """Instants of a column; all arrays have one entry per row.

    Attributes:
        micros: Microseconds since 1970 UTC, int64; 0 where null or refused.
        null: No time was given.
        date_only: Only a date was given.
        ambiguous: A local time that happened twice; the first was taken.
        nonexistent: A local time that never happened; it was shifted forward.
    """

    micros: Ints
    null: Flags
    date_only: Flags
    ambiguous: Flags
    nonexistent: Flags


@dataclass(frozen=True, slots=True)
class Values:
    """Canonical values of one of the plan's columns.

    Attributes:
        cells: Canonical values, one per row.
        clamped: Which values were moved to a bound, shape `(rows,)`.
    """

    cells: CodedColumn
    clamped: Flags


class _Coded:
    """The distinct cells of a column and which row has which."""

    def __init__(self, cells: Sequence[object]) -> None:
        if isinstance(cells, ArrowCells):  # an Arrow column has one type
            self.distinct, self.codes, self._once = cells.coded()
            return
        column = CodedColumn.of(cells)
        self.distinct, self.codes, self._once = column.distinct, column.codes, False

    def column(self, of_distinct: list[Any]) -> CodedColumn:
        """One value per row, by the distinct ones."""
        if self._once and of_distinct == self.distinct:
            return CodedColumn(of_distinct, self.codes)
        return CodedColumn.coded(of_distinct, self.codes)

    def spread(self, of_distinct: list[Any]) -> list[Any]:
        """One value per row."""
        return CodedColumn(of_distinct, self.codes).values()

    def flags(self, of_distinct: Sequence[bool]) -> Flags:
        """One flag per row."""
        return np.asarray(of_distinct, np.bool_)[self.codes]

    def reasons(self, of_distinct: Sequence[str | None] | None) -> dict[int, str]:
        """Refused rows by position."""
        if of_distinct is None or not any(of_distinct):
            return {}
        refused = np.flatnonzero(self.flags([reason is not None for reason in of_distinct]))
        codes = self.codes[refused].tolist()
        return {
            row: str(of_distinct[code]) for row, code in zip(refused.tolist(), codes, strict=True)
        }


def read_ops(cells: Sequence[object]) -> Read[Ints]:
    """`Op` values; null is an addition."""
    coded = _Coded(cells)
    ops = [_OPS.get(cell) for cell in coded.distinct]
    values = np.array([op or 0 for op in ops], np.int64)[coded.codes]
    return Read(values, coded.reasons([UNKNOWN_OP if op is None else None for op in ops]))


def read_ids(given: Sequence[object]) -> Read[list[str]]:
    """Ids as NFC text; a whole number stands for its digits."""
    cells: list[Any] = given.plain if isinstance(given, ArrowCells) else list(given)
    if _are_ascii(given) and all(cells):
        return Read(cells, {})  # ASCII is its own normal form
    ids: list[str] = []
    reasons: dict[int, str] = {}
    for row, cell in enumerate(cells):
        if _is_missing(cell) or cell == "":
            reasons[row] = MISSING
        elif not isinstance(cell, str | int) or isinstance(cell, bool) or not _is_text(str(cell)):
            reasons[row] = NOT_AN_ID
        ids.append("" if row in reasons else normalize("NFC", str(cell)))
    return Read(ids, reasons)


def read_counts(cells: Sequence[object]) -> Read[list[int]]:
    """Multiplicities; null is 1."""
    coded = _Coded(cells)
    counts = [_count(cell) for cell in coded.distinct]
    reasons = coded.reasons([NOT_A_COUNT if count is None else None for count in counts])
    return Read(coded.spread([count or 1 for count in counts]), reasons)


def read_times(cells: Sequence[object], clock: Clock) -> Read[Times]:
    """Instants, as the clock reads them; null is no time and not refused."""
    instants = cells.instants() if isinstance(cells, ArrowCells) else None
    if instants is not None:
        return Read(_times_of(instants, clock), {})
    coded = _Coded(cells)
    distinct = [None if _is_missing(cell) else cell for cell in coded.distinct]
    moments = clock.parse_many(distinct)
    nothing = [False] * len(distinct)
    times = Times(
        np.array([micros or 0 for micros in moments.micros], np.int64)[coded.codes],
        coded.flags([micros is None for micros in moments.micros]),
        coded.flags(moments.date_only or nothing),
        coded.flags(moments.ambiguous_rows or nothing),
        coded.flags(moments.nonexistent_rows or nothing),
    )
    return Read(times, coded.reasons(moments.reasons))


def _times_of(instants: Instants, clock: Clock) -> Times:
    nowhere = np.zeros(len(instants.micros), np.bool_)
    if not instants.local:
        return Times(instants.micros, instants.null, nowhere, nowhere, nowhere)
    read = clock.instants_of_local(instants.micros)
    given = ~instants.null
    return Times(
        np.where(given, read.micros, 0),
        instants.null,
        nowhere,
        read.ambiguous & given,
        read.nonexistent & given,
    )


def read_column(cells: Sequence[object], column: Column) -> Read[Values]:
    """Canonical values of a column of the plan."""
    coded = _Coded(cells)
    encoded = column.encode_many(coded.distinct)
    clamped = np.zeros(len(coded.codes), np.bool_)
    if encoded.clamped:
        clamped = coded.flags(_clamped(coded.distinct, encoded.values, column.encode_many))
    values = Values(coded.column(encoded.values), clamped)
    return Read(values, coded.reasons(encoded.reasons))


def _clamped(
    cells: list[object],
    values: list[Canonical],
    encode_many: Callable[[list[object]], Any],
) -> list[bool]:
    """Which cells were clamped: those that reach an extreme value and say so when read alone."""
    numbers = [value for value in values if isinstance(value, int)]
    extremes = {min(numbers), max(numbers)}
    return [
        value in extremes and encode_many([cell]).clamped > 0
        for cell, value in zip(cells, values, strict=True)
    ]


def _is_missing(cell: object) -> bool:
    """Whether a cell is null or a frame's missing marker."""
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def _are_ascii(cells: Sequence[object]) -> bool:
    """Whether all cells are texts of ASCII characters."""
    if isinstance(cells, ArrowCells):
        return cells.are_ascii()
    texts: Sequence[Any] = cells
    return set(map(type, texts)) == {str} and "".join(texts).isascii()


def _is_text(text: str) -> bool:
    """Whether a text can be stored: half of a surrogate pair is no character."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _count(cell: object) -> int | None:
    if _is_missing(cell):
        return 1
    if isinstance(cell, str) and _DIGITS.fullmatch(cell):
        cell = int(cell)
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    if isinstance(cell, bool) or not isinstance(cell, int):
        return None
    return cell if 1 <= cell <= _MOST_COPIES else None
