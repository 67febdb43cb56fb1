"""Looking for plaintext in the bytes of every file of a store.

Promise: finds every place where a needle's bytes stand, whatever the file is (database, log,
journal, rejected rows, leftovers), without understanding it. Reads in chunks; holds no file whole.

What a scan of bytes can honestly say. A needle of 8 bytes or more that is not part of a longer
survivor does not occur by chance. A short one does: the two bytes "17" stand in any large file
thousands of times. So `scan` refuses needles under 4 bytes, and for ids there is `scan_ids`, which
looks for an id of any length inside the shape of the ledger's own rows: the header that SQLite
writes before a row tells the lengths of namespace and id, so a live, freed or half-overwritten
copy of a row is found and digits elsewhere are not. What lives is asked of the ledger itself
(`Ledger.mentions`), exactly and for any length.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from retrodp.errors import UsageError

LEAST_BYTES = 4
_CHUNK_BYTES = 1 << 23
_LEAST_TABLE_BITS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A needle that was found.

    Attributes:
        file: Where, relative to the store's directory.
        needle: Position of the needle among those asked for.
        count: Places in that file.
    """

    file: str
    needle: int
    count: int


def files_of(store: Path, key: Path | None = None) -> list[Path]:
    """Every regular file of a store, sorted; symbolic links are not followed.

    They are those in its directory, those beside it under its name (`DIR.key`, `DIR.mark`,
    `DIR.rejected.csv`), and a key file elsewhere with its leftovers.
    """
    store = store.absolute()
    found: set[Path] = set()
    for directory, _, names in os.walk(store):
        found.update(Path(directory, name) for name in names)
    found.update(_named_after(store))
    if key is not None:
        found.update([key.absolute(), *_named_after(key.absolute())])
    return sorted(path for path in found if path.is_file() and not path.is_symlink())


def scan(files: Iterable[Path], needles: Sequence[bytes], *, store: Path) -> list[Hit]:
    """Where needles stand in files.

    Args:
        files: As from `files_of`.
        needles: Byte strings of at least 4 bytes.
        store: Directory that file names are told relative to.

    Returns:
        One hit a file and needle, sorted; empty if nothing was found.

    Time: about 0.5 s for 200 MB, hardly more for many needles than for one.
    """
    if any(len(needle) < LEAST_BYTES for needle in needles):
        raise UsageError(
            f"A needle of fewer than {LEAST_BYTES} bytes stands in every file by chance.",
            do="Use scan_ids for short ids and Ledger.mentions for other short values.",
        )
    if not needles:
        return []
    index = _Index(needles)
    hits: list[Hit] = []
    for path in files:
        counts: Counter[bytes] = Counter()
        for start, window in _windows(path, index.longest - 1):
            index.count(window, start, counts)
        name = os.path.relpath(path, store)
        hits += [
            Hit(file=name, needle=number, count=counts[needle])
            for number, needle in enumerate(needles)
            if counts[needle]
        ]
    return hits


def scan_ids(files: Iterable[Path], ids: Sequence[tuple[str, str]], *, store: Path) -> list[Hit]:
    """Where rows of the ledger with these (namespace, id) stand, live or freed; for short ids.

    Looks for the shapes of the rows of survivors, of their index by name, and of waiting updates.
    Time: about 1 s for 200 MB and ids of one length.
    """
    groups: defaultdict[tuple[str, int], dict[bytes, int]] = defaultdict(dict)
    for number, (space, identifier) in enumerate(ids):
        text = identifier.encode()
        groups[space, len(text)][text] = number
    shapes = [_RowShape(space, texts) for (space, _), texts in groups.items()]
    longest = max((shape.longest for shape in shapes), default=1)
    hits: list[Hit] = []
    for path in files:
        counts: Counter[int] = Counter()
        for start, window in _windows(path, longest - 1):
            for shape in shapes:
                counts.update(shape.found(window, start))
        name = os.path.relpath(path, store)
        hits += [Hit(file=name, needle=number, count=counts[number]) for number in sorted(counts)]
    return hits


class _Index:
    """Needles, found by one word of four bytes each; a table of bits says where to look closer."""

    def __init__(self, needles: Sequence[bytes]) -> None:
        self.longest = max(map(len, needles))
        # word -> (offset of the word in the needle, length) -> needles
        self._needles: dict[int, dict[tuple[int, int], set[bytes]]] = {}
        # Sixteen places a needle: one word in sixteen, at most, is looked at closer in vain.
        bits = max(_LEAST_TABLE_BITS, (16 * len(needles)).bit_length())
        self._drop = np.uint32(32 - min(bits, 30))
        self._table = np.zeros(1 << min(bits, 30), bool)
        for needle in needles:
            offset = _telling_offset(needle)
            word = int.from_bytes(needle[offset : offset + 4], "little")
            shapes = self._needles.setdefault(word, {})
            shapes.setdefault((offset, len(needle)), set()).add(needle)
        words = np.fromiter(self._needles, np.uint32, len(self._needles))
        self._table[self._hashed(words)] = True

    def count(self, window: bytes, start: int, counts: Counter[bytes]) -> None:
        """Count the needles that end after the first `start` bytes of the window."""
        for shift in range(4):
            length = (len(window) - shift) // 4
            if length <= 0:
                continue
            words = np.frombuffer(window, "<u4", length, shift)
            places = np.flatnonzero(self._table[self._hashed(words)])
            for place, word in zip(places.tolist(), words[places].tolist(), strict=True):
                for (offset, size), wanted in self._needles.get(word, {}).items():
                    begin = 4 * place + shift - offset
                    if begin >= 0 and begin + size > start:
                        text = window[begin : begin + size]
                        if text in wanted:
                            counts[text] += 1

    def _hashed(self, words: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
        return (words * np.uint32(2654435761)) >> self._drop


def _telling_offset(needle: bytes) -> int:
    """Start of the four bytes with most different values; the last such, for ids share heads."""
    offsets = range(len(needle) - 3)
    return max(offsets, key=lambda offset: (len(set(needle[offset : offset + 4])), offset))


def _windows(path: Path, overlap: int) -> Iterator[tuple[int, bytes]]:
    """Chunks of a file, each after the last `overlap` bytes before it, and how many those are."""
    tail = b""
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_CHUNK_BYTES):
            window = tail + chunk
            yield len(tail), window
            tail = window[-overlap:] if overlap else b""


def _named_after(path: Path) -> Iterator[Path]:
    if path.parent.is_dir():
        yield from (one for one in path.parent.iterdir() if one.name.startswith(path.name + "."))


class _RowShape:
    """Rows of the ledger that hold a namespace and one of several ids of one length.

    A row is the length of its header, the serial type of each column, then the columns. The types
    of namespace and id stand side by side: first in the index of `records` by name, second and
    third in `records` (after the stamp) and in `queue` (after the round).
    """

    def __init__(self, space: str, texts: Mapping[bytes, int]) -> None:
        self._texts = texts
        self._space = space.encode()
        self._size = len(next(iter(texts)))
        self._lengths = _text_type(len(self._space)) + _text_type(self._size)
        self._tails = np.array(sorted(map(_tail, texts)), np.uint64)
        # Two bytes before the types, at most 17 of other columns before the id.
        self.longest = 2 + len(self._lengths) + _MOST_BEFORE + len(self._space) + self._size

    def found(self, window: bytes, start: int) -> Iterator[int]:
        """Numbers of the ids found in rows that end after the first `start` bytes."""
        raw = np.frombuffer(window, np.uint8)
        types = self._types(raw)
        one, two = raw[types - 1].astype(np.int64), raw[types - 2].astype(np.int64)
        one -= len(self._lengths) - 2
        column = _COLUMN_BYTES[raw[types - 1]]
        two -= len(self._lengths) - 2
        gaps = (
            np.where(one == 4, 1, -1),  # the index by name
            np.where((two >= 6) & (two <= 9) & (column >= 0), two - 4 + column, -1),  # records
            np.where((two >= 11) & (two <= 14) & (column >= 0), two - 4 + column, -1),  # queue
        )
        ends = np.concatenate([types[gap >= 0] + gap[gap >= 0] for gap in gaps])
        ends += len(self._lengths) + len(self._space) + self._size
        ends = ends[(ends <= len(raw)) & (ends > start)]
        for end in ends[np.isin(_tails(raw, ends, self._size), self._tails)].tolist():
            begin = end - self._size
            number = self._texts.get(window[begin:end])
            if number is not None and window.endswith(self._space, 0, begin):
                yield number

    def _types(self, raw: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
        """Where the types of namespace and id stand, from the third byte on."""
        first, second, *rest = self._lengths
        places = np.flatnonzero((raw[2:-1] == first) & (raw[3:] == second)) + 2
        for offset, byte in enumerate(rest, 2):
            places = places[places + offset < len(raw)]
            places = places[raw[places + offset] == byte]
        return places


_MOST_BEFORE = 80
_COLUMN_BYTES = np.full(256, -1, np.int64)
"""Bytes of a column by its serial type: integers, and texts shorter than 58 bytes."""
_COLUMN_BYTES[[0, 1, 2, 3, 4, 5, 6, 8, 9]] = [0, 1, 2, 3, 4, 6, 8, 0, 0]
_COLUMN_BYTES[13:128:2] = np.arange(58)


def _tail(text: bytes) -> int:
    return int.from_bytes(text[-8:], "big")


def _tails(
    raw: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64], size: int
) -> npt.NDArray[np.uint64]:
    """Up to eight bytes before each end as one number."""
    numbers = np.zeros(len(ends), np.uint64)
    for back in range(min(size, 8), 0, -1):
        numbers = numbers << np.uint64(8) | raw[ends - back]
    return numbers


def _text_type(size: int) -> bytes:
    """Serial type of a text of so many bytes, as SQLite's varint."""
    value = 2 * size + 13
    low = [value & 0x7F]
    while value := value >> 7:
        low.append(value & 0x7F | 0x80)
    return bytes(reversed(low))
