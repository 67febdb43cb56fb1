"""Texts that a database split over two of its pages, which a search of bytes does not see.

Promise: exact for texts of 8 bytes to 400 whose two parts still stand where SQLite put them: what
does not fit beside a row's key goes on after the first four bytes of another page, whose number
stands where the text breaks off, or first in the page that it breaks off with. Knows that much of
SQLite's file format and no table. Source: sqlite.org/fileformat2.html, section 1.6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

_MAGIC = b"SQLite format 3\0"
_NUMBER = 4
"""Bytes of a page's number."""
_SHORT = 3
"""Second parts up to this length are too short to be looked up by a word of four bytes."""

Find: TypeAlias = Callable[[Sequence[bytes]], Iterator[tuple[bytes, int]]]
"""Where byte strings of at least 4 bytes stand in the file."""
_Pages: TypeAlias = npt.NDArray[np.uint8]


def split_counts(path: Path, needles: Sequence[bytes], find: Find) -> Counter[bytes]:
    """How often each needle stands in the file in two parts; never, if it is no database.

    Args:
        path: Of any file.
        needles: Byte strings, none of them twice.
        find: Searches the same file.
    """
    pages = _pages_of(path)
    wanted = [needle for needle in needles if len(needle) > 1]
    if pages is None or not wanted:
        return Counter()
    counts: Counter[bytes] = Counter()
    seconds = _seconds(pages, wanted)
    for needle, length, second in seconds:
        numbered = np.flatnonzero(_words(pages, 0, ">u4") == second + 1)
        counts[needle] += sum(_ends_with(pages[one], needle[:length]) for one in numbered.tolist())
    for needle, length in _ends(pages, wanted):
        counts[needle] += _gone_on(pages, needle, length)
    counts.update(_beside_keys(pages, wanted, seconds, find))
    return counts


def _pages_of(path: Path) -> _Pages | None:
    with path.open("rb") as file:
        head = file.read(100)
    if not head.startswith(_MAGIC):
        return None
    size = int.from_bytes(head[16:18], "big")
    size = 1 << 16 if size == 1 else size
    number = path.stat().st_size // size
    if size < 512 or number < 2:
        return None
    return np.memmap(path, np.uint8, "r", shape=(number, size))


def _words(pages: _Pages, start: int, kind: str) -> npt.NDArray[np.uint32]:
    """Four bytes of every page."""
    return np.ascontiguousarray(pages[:, start : start + 4]).view(kind).ravel()


def _in_needles(
    needles: Sequence[bytes], words: npt.NDArray[np.uint32]
) -> Iterator[tuple[bytes, int]]:
    """Needles and places in them where one of the words stands."""
    ends = np.cumsum([len(needle) for needle in needles])
    text = np.frombuffer(b"".join(needles), np.uint8)
    if len(text) < 4:
        return
    own = np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(text, 4)).view("<u4")
    for place in np.flatnonzero(np.isin(own.ravel(), words)).tolist():
        number = int(np.searchsorted(ends, place, side="right"))
        offset = place - int(ends[number] - len(needles[number]))
        if offset + 4 <= len(needles[number]):
            yield needles[number], offset


def _seconds(pages: _Pages, needles: Sequence[bytes]) -> list[tuple[bytes, int, int]]:
    """Second parts of four bytes or more: needle, length of its first part, page from 0."""
    words = _words(pages, _NUMBER, "<u4")
    found = []
    for needle, offset in _in_needles(needles, words):
        if offset:
            word = np.uint32(int.from_bytes(needle[offset : offset + 4], "little"))
            found += [
                (needle, offset, page)
                for page in np.flatnonzero(words == word).tolist()
                if _begins_with(pages[page], needle[offset:])
            ]
    return found


def _ends(pages: _Pages, needles: Sequence[bytes]) -> Iterator[tuple[bytes, int]]:
    """First parts at the ends of pages, of needles of which little is left: length of the part."""
    words = _words(pages, pages.shape[1] - 4, "<u4")
    for needle, offset in _in_needles(needles, words):
        if 0 < len(needle) - offset - 4 <= _SHORT:
            yield needle, offset + 4


def _gone_on(pages: _Pages, needle: bytes, length: int) -> int:
    """Pages that end with the first part and name the page that begins with the second."""
    word = np.uint32(int.from_bytes(needle[length - 4 : length], "little"))
    numbers = _words(pages, 0, ">u4")
    return sum(
        _ends_with(pages[page], needle[:length])
        and _goes_on(pages, int(numbers[page]), needle[length:])
        for page in np.flatnonzero(_words(pages, pages.shape[1] - 4, "<u4") == word).tolist()
    )


def _beside_keys(
    pages: _Pages, needles: Sequence[bytes], seconds: Sequence[tuple[bytes, int, int]], find: Find
) -> Counter[bytes]:
    """Needles whose first part stands beside a row's key, before the number of the other page."""
    size = pages.shape[1]
    sought: dict[bytes, set[tuple[bytes, int]]] = {}
    for needle, length, page in seconds:
        number = (page + 1).to_bytes(_NUMBER, "big")
        sought.setdefault(needle[:length] + number, set()).add((needle, length))
    zeros = bytes(_NUMBER - (len(pages).bit_length() + 7) // 8)  # every number begins with them
    for needle in needles:
        for left in range(1, min(_SHORT, len(needle) - 1) + 1):
            length = len(needle) - left
            if length + len(zeros) >= 4:
                sought.setdefault(needle[:length] + zeros, set()).add((needle, length))
    counts: Counter[bytes] = Counter()
    for pattern, place in find(list(sought)):
        for needle, length in sought[pattern]:
            page, offset = divmod(place, size)
            after = pages[page][offset + length : offset + length + _NUMBER].tobytes()
            if len(after) == _NUMBER:
                number = int.from_bytes(after, "big")
                counts[needle] += _goes_on(pages, number, needle[length:])
    return counts


def _goes_on(pages: _Pages, number: int, part: bytes) -> bool:
    return 1 < number <= len(pages) and _begins_with(pages[number - 1], part)


def _begins_with(page: _Pages, part: bytes) -> bool:
    return page[_NUMBER : _NUMBER + len(part)].tobytes() == part


def _ends_with(page: _Pages, part: bytes) -> bool:
    return page[len(page) - len(part) :].tobytes() == part
