"""The bytes of a revised answer: a line of JSON, and the values in as few bits as they need.

Promise: a function of the answer alone. No compressor of a library is used, whose next version might
choose other bytes; what is written is read back as it was, or refused.

A row of whole numbers is stored as they are or as differences from one to the next, whichever needs
fewer bits, each minus the least, in as many bits as the largest needs. Counts of a quiet bin take
the bits of their noise.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
Fields = dict[str, Any]

MAGIC = b"retrodp revised 1\n"
_DIFFERENCES = 0x80
_HEAD = 9  # bytes before the bits of a row: one of form and width, eight of the least
_BITS_AT_ONCE = 1 << 24


def packed_rows(rows: IntArray) -> bytes:
    """Rows of equal length, one after the other; shape (n, length)."""
    count, length = rows.shape
    if not rows.size:
        return b""
    plain = rows.view(np.uint64)
    steps = np.zeros_like(plain)
    steps[:, 1:] = plain[:, 1:] - plain[:, :-1]  # wraps, and wraps back
    if length > 1:
        steps[:, 0] = steps[:, 1]  # the first value is written as it is
    forms = [_offsets(plain), _offsets(steps)]
    widths = np.stack([form[2] for form in forms])
    chosen = (widths[1] < widths[0]).astype(np.int64)
    out: list[bytes] = [b""] * count
    for form in (0, 1):
        least, offsets, width = forms[form]
        for bits in np.unique(width[chosen == form]).tolist():
            which = np.flatnonzero((chosen == form) & (width == bits))
            batch = max(1, _BITS_AT_ONCE // max(1, bits * length))
            for start in range(0, len(which), batch):
                part = which[start : start + batch]
                body = _bits(offsets[part], bits)
                for row, packed in zip(part.tolist(), body, strict=True):
                    head = bytes([bits | _DIFFERENCES * form])
                    first = plain[row, :1].tobytes() if form else b""
                    out[row] = head + least[row].tobytes() + first + packed.tobytes()
    return b"".join(out)


def _offsets(rows: NDArray[np.uint64]) -> tuple[Any, Any, Any]:
    """Least of each row as a signed number, what lies above it, and the bits that needs."""
    least = rows.view(np.int64).min(axis=1).astype("<i8")
    offsets = rows - least.view(np.uint64)[:, None]
    most = offsets.max(axis=1)
    widths = np.array([int(one).bit_length() for one in most.tolist()], dtype=np.int64)
    return least, offsets, widths


def _bits(offsets: NDArray[np.uint64], width: int) -> NDArray[np.uint8]:
    """Lowest bit first; shape (rows, bytes)."""
    rows, length = offsets.shape
    places = np.arange(width, dtype=np.uint64)
    flags = (offsets[:, :, None] >> places & np.uint64(1)).astype(np.uint8)
    return np.packbits(flags.reshape(rows, length * width), axis=1, bitorder="little")


def unpacked_rows(data: memoryview, count: int, length: int) -> tuple[IntArray, memoryview]:
    """`count` rows that `packed_rows` wrote, and what follows them.

    Raises:
        ValueError: The data are too short.
    """
    rows = np.empty((count, length), dtype=np.int64)
    for row in rows if length else rows[:0]:
        form, width = data[0] & _DIFFERENCES, data[0] & ~_DIFFERENCES
        least = np.frombuffer(data[1:_HEAD], dtype="<u8")[0]
        data = data[_HEAD:]
        if form:
            first, data = np.frombuffer(data[:8], dtype="<u8")[0], data[8:]
        size = (length * width + 7) // 8
        if len(data) < size:
            raise ValueError("too short")
        flags = np.unpackbits(
            np.frombuffer(data[:size], dtype=np.uint8), count=length * width, bitorder="little"
        ).reshape(length, width)
        places = np.arange(width, dtype=np.uint64)
        values = (flags.astype(np.uint64) << places).sum(axis=1, dtype=np.uint64) + least
        if form:
            values[0] = first
            values = values.cumsum(dtype=np.uint64)
        row[:] = values.view(np.int64)
        data = data[size:]
    return rows, data


def packed(fields: Mapping[str, Any], spreads: Sequence[Sequence[Any]]) -> bytes:
    """Bytes of a revised answer.

    Args:
        fields: JSON-able ones, and `keys`, `stamps`, `values` parallel, sorted by key, then stamp.
        spreads: Of the stamps that the round publishes, oldest first.
    """
    keys, stamps = fields["keys"], fields["stamps"]
    runs = [(label, sum(1 for _ in group)) for label, group in groupby(keys or [""] * len(stamps))]
    count = len(spreads)
    dense = all(size == count for _, size in runs)
    head = {name: value for name, value in fields.items() if name not in {"stamps", "values"}}
    head |= {
        "dense": dense,
        "keys": None if keys is None else [label for label, _ in runs],
        "spreads": [[sum(1 for _ in same), *one] for one, same in groupby(spreads)],
    }
    text = json.dumps(head, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    values = np.array(fields["values"], dtype=np.int64)
    if dense:
        body = packed_rows(values.reshape(len(runs), count))
    else:
        sizes = np.array([size for _, size in runs], dtype=np.int64)
        columns = (sizes, np.array(stamps, dtype=np.int64), values)
        body = b"".join(packed_rows(column[None, :]) for column in columns)
    return MAGIC + text.encode() + b"\n" + body


def unpacked(data: bytes) -> Fields:
    """The fields that `packed` wrote, with `keys`, `stamps`, `values` parallel and `spreads`.

    Raises:
        ValueError: This is no such answer.
    """
    if not data.startswith(MAGIC):
        raise ValueError("another format")
    text, _, body = data[len(MAGIC) :].partition(b"\n")
    head: Fields = json.loads(text)
    head["spreads"] = tuple(_unrolled(head["spreads"]))
    labels: list[str] = [""] if head["keys"] is None else head["keys"]
    count, first = len(head["spreads"]), head["round"] - len(head["spreads"]) + 1
    rest = memoryview(body)
    if head.pop("dense"):
        rows, rest = unpacked_rows(rest, len(labels), count)
        stamps = tuple(range(first, first + count)) * len(labels)
        sizes = [count] * len(labels)
        values = rows.reshape(-1)
    else:
        found, rest = unpacked_rows(rest, 1, len(labels))
        sizes = found[0].tolist()
        listed, rest = unpacked_rows(rest, 1, sum(sizes))
        drawn, rest = unpacked_rows(rest, 1, sum(sizes))
        stamps, values = tuple(listed[0].tolist()), drawn[0]
    if len(rest):
        raise ValueError("too long")
    scalar = head["keys"] is None
    keys = [label for label, size in zip(labels, sizes, strict=True) for _ in range(size)]
    return head | {
        "keys": None if scalar else tuple(keys),
        "stamps": stamps,
        "values": tuple(values.tolist()),
    }


def _unrolled(runs: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    for many, *one in runs:
        for _ in range(many):
            yield tuple(one)
