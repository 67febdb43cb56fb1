"""Columns of many rows by their distinct values, and payloads that are packed when asked for.

Promise: both read like the list of their cells or of their rows' msgpack bytes; whoever needs only
the distinct values, or no bytes at all, never makes an object a row. Knows no plan and no meaning
of a column.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, overload

import msgspec
import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]

_pack = msgspec.msgpack.Encoder().encode
_decode_rows = msgspec.msgpack.Decoder(list[list[Any]]).decode
_NO_COLUMNS = b"\x90"
"""A msgpack array of no columns."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CodedColumn(Sequence[Any]):
    """Cells of one column; reads like their list.

    Attributes:
        distinct: Values, none of them twice; some may be used by no row.
        codes: Position in `distinct` of each row's value.
    """

    distinct: list[Any]
    codes: npt.NDArray[np.intp]

    @classmethod
    def of(cls, cells: Sequence[Any]) -> CodedColumn:
        """The column of these cells, distinct values in the order of their first rows."""
        if isinstance(cells, CodedColumn):
            return cells
        keys: Sequence[Any] = cells
        mixed = len(set(map(type, cells)) - {type(None)}) > 1
        if mixed:  # 1 and True are equal, but not the same
            keys = [(type(cell), cell) for cell in cells]
        position = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        codes = np.fromiter(map(position.__getitem__, keys), np.intp, len(keys))
        distinct: list[Any] = list(position)
        return cls([cell for _, cell in distinct] if mixed else distinct, codes)

    @classmethod
    def coded(cls, values: list[Any], codes: npt.NDArray[np.intp]) -> CodedColumn:
        """The column of values of one type by their places, where some values may be equal."""
        if len(set(values)) == len(values):
            return cls(values, codes)
        once = cls.of(values)
        return cls(once.distinct, once.codes[codes])

    @classmethod
    def constant(cls, value: object, length: int) -> CodedColumn:
        """The same value in every row."""
        return cls([value], np.zeros(length, np.intp))

    def values(self) -> list[Any]:
        """The cells as a list."""
        objects = np.empty(len(self.distinct), object)
        objects[:] = self.distinct
        found: list[Any] = objects[self.codes].tolist()
        return found

    def mapped(self, change: Callable[[Any], Any]) -> CodedColumn:
        """The column with every value changed."""
        return self.coded([change(value) for value in self.distinct], self.codes)

    def where(self, told: Callable[[Any], bool]) -> Flags:
        """In which rows something holds of the value."""
        flags: Flags = np.array([told(value) for value in self.distinct], np.bool_)[self.codes]
        return flags

    def take(self, rows: npt.NDArray[Any]) -> CodedColumn:
        """Some rows, by number or by flag; the distinct values stay."""
        return CodedColumn(self.distinct, self.codes[rows])

    def used(self) -> CodedColumn:
        """The same cells without values that no row has."""
        seen = np.zeros(len(self.distinct), np.bool_)
        seen[self.codes] = True
        if seen.all():
            return self
        places = np.cumsum(seen) - 1
        kept = [self.distinct[place] for place in np.flatnonzero(seen).tolist()]
        return CodedColumn(kept, places[self.codes])

    def counts(self) -> Ints:
        """Rows of each distinct value."""
        return np.bincount(self.codes, minlength=len(self.distinct))

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> CodedColumn: ...
    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            return CodedColumn(self.distinct, self.codes[at])
        return self.distinct[self.codes[at]]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self.values() == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"CodedColumn({len(self)} rows)"


def joined(columns: Sequence[CodedColumn]) -> CodedColumn:
    """The cells of columns one below the other."""
    if len(columns) == 1:
        return columns[0]
    parts, start = [], 0
    for column in columns:
        parts.append(column.codes + start)
        start += len(column.distinct)
    everything = CodedColumn.of([value for column in columns for value in column.distinct])
    return CodedColumn(everything.distinct, everything.codes[np.concatenate(parts)])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Payloads(Sequence[bytes]):
    """msgpack arrays of the plan's columns, one a row; reads like the list of their bytes.

    Attributes:
        columns: Of the rows, a meaningless cell where nothing is written; or else one column of
            payloads as they came, for rows that are no arrays of one width.
        written: Rows that are not empty; None if all of them are.
        opaque: Whether `columns` holds payloads as they came.
    """

    columns: tuple[CodedColumn, ...]
    written: Flags | None
    length: int
    opaque: bool = False

    @classmethod
    def of(cls, payloads: Sequence[bytes]) -> Payloads:
        """Columns of payloads: a function of the payloads alone."""
        if isinstance(payloads, Payloads):
            return payloads
        flags = np.fromiter(map(bool, payloads), np.bool_, len(payloads))
        written = None if flags.all() else flags
        rows = _arrays([payload for payload in payloads if payload])
        if rows is None:
            return cls((CodedColumn.of(payloads),), None, len(payloads), opaque=True)
        columns = tuple(CodedColumn.of(cells) for cells in zip(*rows, strict=True))
        if written is not None:
            columns = tuple(spread(column, written) for column in columns)
        return cls(columns, written, len(payloads))

    def packed(self) -> list[bytes]:
        """The bytes of every row."""
        if self.opaque:
            return self.columns[0].values()
        if not self.columns:
            rows = [_NO_COLUMNS] * self.length
        else:
            rows = list(map(_pack, zip(*(column.values() for column in self.columns), strict=True)))
        if self.written is None:
            return rows
        return [
            row if there else b"" for row, there in zip(rows, self.written.tolist(), strict=True)
        ]

    def rows_with(self, text: str) -> int:
        """How many rows have a cell that is this text."""
        if self.opaque:
            return sum(text in row for row in _decoded(self.columns[0].values()))
        found = np.zeros(self.length, np.bool_)
        for column in self.columns:
            if text in column.distinct:
                found |= column.codes == column.distinct.index(text)
        return int(np.count_nonzero(found if self.written is None else found & self.written))

    def take(self, rows: npt.NDArray[Any]) -> Payloads:
        """Some rows, by number or by flag."""
        written = None if self.written is None else self.written[rows]
        length = int(np.count_nonzero(rows)) if rows.dtype == np.bool_ else len(rows)
        columns = tuple(column.take(rows) for column in self.columns)
        return Payloads(columns, written, length, self.opaque)

    def between(self, start: int, end: int) -> Payloads:
        """Rows that stand one after the other."""
        written = None if self.written is None else self.written[start:end]
        columns = tuple(column[start:end] for column in self.columns)
        return Payloads(columns, written, len(range(self.length)[start:end]), self.opaque)

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, at: int) -> bytes: ...
    @overload
    def __getitem__(self, at: slice) -> Payloads: ...
    def __getitem__(self, at: int | slice) -> bytes | Payloads:
        if isinstance(at, slice):
            return self.take(np.arange(self.length)[at])
        return self.take(np.array([range(self.length)[at]])).packed()[0]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.packed())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self.packed() == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Payloads({len(self)} rows)"


def spread(column: CodedColumn, rows: Flags) -> CodedColumn:
    """The column's cells in the flagged rows of a longer one, a meaningless one elsewhere."""
    codes = np.zeros(len(rows), np.intp)
    codes[rows] = column.codes
    return CodedColumn(column.distinct or [None], codes)


def joined_payloads(parts: Sequence[Payloads]) -> Payloads:
    """The payloads of parts one below the other."""
    if len(parts) == 1:
        return parts[0]
    if any(part.opaque for part in parts) or len({len(part.columns) for part in parts}) > 1:
        return Payloads.of([payload for part in parts for payload in part.packed()])
    written = None
    if any(part.written is not None for part in parts):
        flags = [
            np.ones(len(part), np.bool_) if part.written is None else part.written for part in parts
        ]
        written = np.concatenate(flags)
    columns = tuple(
        joined(column) for column in zip(*(part.columns for part in parts), strict=True)
    )
    return Payloads(columns, written, sum(map(len, parts)))


def unpacked(payloads: Sequence[bytes]) -> list[list[Any]]:
    """The rows that payloads hold."""
    # One array32 header makes the payloads one document: one decoder call for all rows.
    rows: list[list[Any]] = _decode_rows(
        b"\xdd" + struct.pack(">I", len(payloads)) + b"".join(payloads)
    )
    return rows


def _decoded(payloads: list[bytes]) -> list[list[Any]]:
    return unpacked([payload for payload in payloads if payload])


def _arrays(payloads: list[bytes]) -> list[list[Any]] | None:
    """The rows, if packing their cells again gives the same bytes and one width; else None."""
    try:
        rows = unpacked(payloads)
        if len(set(map(len, rows))) <= 1 and list(map(_pack, rows)) == payloads:
            hash(tuple(cell for row in rows for cell in row))
            return rows
    except (msgspec.MsgspecError, TypeError, UnicodeError):
        pass
    return None
