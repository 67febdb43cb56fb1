"""Texts that a database split over two of its pages, which a search of bytes does not see.

Promise: shows every text that is split once and whose two parts still stand where SQLite put them.
What does not fit beside a row's key goes on after the first four bytes of another page; that page's
number stands where the text breaks off or, where it breaks off with a page, first in that page.
Knows that much of SQLite's file format and no table. Source: sqlite.org/fileformat2.html, 1.6.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

_Pages: TypeAlias = npt.NDArray[np.uint8]
_Places: TypeAlias = npt.NDArray[np.intp]

_MAGIC = b"SQLite format 3\0"
_NUMBER = 4
"""Bytes of a page's number."""
_TREES = (2, 5, 10, 13)
"""First bytes of pages that hold rows; the first page of a file is one."""
_AT_ONCE = 1 << 22
"""Bytes that are looked at together."""


def joined_pages(path: Path, reach: int) -> Iterator[bytes]:
    """The two sides of each border, put together as they were: `2 * reach` bytes a border.

    Args:
        path: Of any file; one that is no database has no borders.
        reach: Bytes of each side, zeros where a page begins or ends before.
    """
    pages = _pages_of(path)
    if pages is None or not reach:
        return
    at_once = max(1, _AT_ONCE // pages.shape[1])
    for start in range(0, len(pages), at_once):
        some = np.asarray(pages[start : start + at_once])
        ends = np.zeros((len(some), reach + some.shape[1]), np.uint8)
        ends[:, reach:] = some  # so that every place has its bytes before it
        for page, place, number in (*_in_trees(some, start, len(pages)), _first(some, len(pages))):
            step = max(1, _AT_ONCE // (2 * reach))
            for one in range(0, len(page), step):
                few = slice(one, one + step)
                before = place[few, None] + np.arange(reach)
                left = ends[page[few, None], before]
                right = np.zeros_like(left)
                there = min(reach, pages.shape[1] - _NUMBER)
                right[:, :there] = pages[number[few] - 1, _NUMBER : _NUMBER + there]
                yield np.hstack((left, right)).tobytes()


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


def _first(some: _Pages, most: int) -> tuple[_Places, _Places, _Places]:
    """Pages that go on in the one whose number they begin with: row, end of the page, number."""
    numbers = _number(some[:, :_NUMBER])
    pages = np.flatnonzero((numbers > 1) & (numbers <= most))
    return pages, np.full(len(pages), some.shape[1]), numbers[pages]


def _in_trees(some: _Pages, start: int, most: int) -> Iterator[tuple[_Places, _Places, _Places]]:
    """Whatever may be the number of a page among rows: row, place, number."""
    trees = np.isin(some[:, 0], _TREES)
    trees[0] |= start == 0
    which = np.flatnonzero(trees)
    zeros = _NUMBER - (most.bit_length() + 7) // 8  # every number begins with them
    own = some[which]
    likely = np.ones((len(own), own.shape[1] - _NUMBER + 1), np.bool_)
    for place in range(zeros):
        likely &= own[:, place : place + likely.shape[1]] == 0
    rows, places = np.nonzero(likely)
    numbers = _number(own[rows[:, None], places[:, None] + np.arange(_NUMBER)])
    good = (numbers > 1) & (numbers <= most)
    yield which[rows[good]], places[good], numbers[good]


def _number(digits: _Pages) -> _Places:
    return np.ascontiguousarray(digits).view(">u4").ravel().astype(np.intp)
