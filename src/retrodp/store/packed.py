"""Columns of updates as bytes, as the ledger keeps them: one msgpack array.

Promise: what is decoded equals what was encoded; texts stand in the bytes as they are, and a value
that no row has stands nowhere. Knows no table.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from retrodp.stream.coded import CodedColumn, Ints, Payloads, spread
from retrodp.stream.queued import Updates

_Coded: TypeAlias = tuple[list[Any], bytes]
_Numbers: TypeAlias = int | bytes


class _Packed(msgspec.Struct, array_like=True):
    """Columns of `Updates`; whole numbers that are all equal as one."""

    space: list[str] | None
    id: list[str]
    at: _Numbers
    rank: _Numbers
    op: _Numbers
    stamp: _Numbers
    person: _Coded
    columns: list[_Coded]
    written: bytes | None
    opaque: bool


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Packed).decode
_WIDTHS = ((1 << 8, "u1"), (1 << 16, "<u2"), (1 << 32, "<u4"))


def encoded(updates: Updates) -> bytes:
    """The bytes of these columns.

    Raises:
        UnicodeEncodeError: A text is not valid Unicode.
    """
    payload = updates.payload
    return _encode(
        _Packed(
            space=updates.space,
            id=updates.id,
            at=_numbers(updates.at),
            rank=_numbers(updates.rank),
            op=_numbers(updates.op),
            stamp=_numbers(updates.stamp),
            person=_coded(updates.person),
            columns=[_coded(column) for column in _written(payload)],
            written=None if payload.written is None else payload.written.tobytes(),
            opaque=payload.opaque,
        )
    )


def decoded(content: bytes) -> Updates:
    """The columns that stand in the bytes."""
    packed = _decode(content)
    length = len(packed.id)
    written = None if packed.written is None else np.frombuffer(packed.written, np.bool_)
    columns = [
        _column(column, length if written is None else int(np.count_nonzero(written)))
        for column in packed.columns
    ]
    if written is not None:
        columns = [spread(column, written) for column in columns]
    return Updates(
        space=packed.space,
        id=packed.id,
        at=_ints(packed.at, length),
        rank=_ints(packed.rank, length),
        op=_ints(packed.op, length),
        stamp=_ints(packed.stamp, length),
        person=_column(packed.person, length),
        payload=Payloads(tuple(columns), written, length, packed.opaque),
    )


def _written(payload: Payloads) -> tuple[CodedColumn, ...]:
    """The columns of the rows that write something: elsewhere may be a value of another row."""
    if payload.written is None:
        return payload.columns
    return tuple(column.take(payload.written) for column in payload.columns)


def _numbers(numbers: Ints) -> _Numbers:
    if len(numbers) and (numbers == numbers[0]).all():
        return int(numbers[0])
    return numbers.astype("<i8").tobytes()


def _ints(numbers: _Numbers, length: int) -> Ints:
    if isinstance(numbers, int):
        return np.full(length, numbers, np.int64)
    return np.frombuffer(numbers, "<i8").astype(np.int64)


def _coded(column: CodedColumn) -> _Coded:
    used = column.used()
    return _coded_as(used.distinct, used.codes)


def _coded_as(distinct: list[Any], codes: npt.NDArray[np.intp]) -> _Coded:
    if len(distinct) <= 1:
        return distinct, b""
    width = next(width for most, width in _WIDTHS if len(distinct) <= most)
    return distinct, codes.astype(width).tobytes()


def _column(coded: _Coded, length: int) -> CodedColumn:
    distinct, codes = coded
    if len(distinct) <= 1:
        return CodedColumn(distinct, np.zeros(length, np.intp))
    width = next(width for most, width in _WIDTHS if len(distinct) <= most)
    return CodedColumn(distinct, np.frombuffer(codes, width).astype(np.intp))


class _PackedLives(msgspec.Struct, array_like=True):
    """Columns of survivors of one stamp; distinct values in the order of their first rows."""

    space: list[str] | None
    id: list[str]
    person: _Coded
    columns: list[_Coded]
    opaque: bool


_decode_lives = msgspec.msgpack.Decoder(_PackedLives).decode


def encoded_lives(lives: Updates) -> bytes:
    """The bytes of survivors of one stamp, a function of their rows alone.

    Args:
        lives: The additions that would write them, in order.

    Raises:
        UnicodeEncodeError: A text is not valid Unicode.
    """
    payload = Payloads.of(lives.payload.packed()) if lives.payload.opaque else lives.payload
    return _encode(
        _PackedLives(
            space=lives.space if any(lives.spaces) else None,
            id=lives.id,
            person=_in_order(lives.person),
            columns=[_in_order(column) for column in payload.columns],
            opaque=payload.opaque,
        )
    )


def decoded_lives(content: bytes, stamp: int) -> Updates:
    """The survivors of a stamp that stand in the bytes, as additions that would write them."""
    packed = _decode_lives(content)
    length = len(packed.id)
    zeros = np.zeros(length, np.int64)
    return Updates(
        space=packed.space,
        id=packed.id,
        at=zeros,
        rank=zeros,
        op=zeros,
        stamp=np.full(length, stamp, np.int64),
        person=_column(packed.person, length),
        payload=Payloads(
            tuple(_column(column, length) for column in packed.columns),
            None,
            length,
            packed.opaque,
        ),
    )


def _in_order(column: CodedColumn) -> _Coded:
    """As `_coded`, with the distinct values in the order of their first rows."""
    if len(column.distinct) <= 1:
        return column.distinct if len(column) else [], b""
    rows = np.arange(len(column))
    first = np.empty(len(column.distinct), np.intp)
    first[column.codes[::-1]] = rows[::-1]  # of equal places the last is kept
    firsts = first[column.codes]
    fresh = firsts == rows
    distinct = [column.distinct[code] for code in column.codes[fresh].tolist()]
    return _coded_as(distinct, (np.cumsum(fresh) - 1)[firsts])
