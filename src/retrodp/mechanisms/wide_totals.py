"""Totals of an open domain in arrays: a round may move as many of a hundred thousand bins.

Promise: reads like the dictionary of the same totals, in an order that means nothing; a coordinate
whose total returned to zero leaves, so no label is remembered. A round costs a search for the
coordinates that it moves, and a copy of arrays where coordinates come or go.

Coordinates are told apart by two words of a keyed pseudo-random function of theirs, under a key
that this process drew: 128 bits, of which the noise of an open domain sees 96 (`noise.labels`), so
that of a million coordinates two are confused with probability 2^-88. A dictionary would look at
every label for itself, each somewhere else in memory, and take twice as long.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, Sequence, ValuesView

import numpy as np
import numpy.typing as npt

from retrodp.noise.key import KEY_BYTES, system_bytes
from retrodp.noise.labels import label_words

_Places = npt.NDArray[np.intp]
_Words = npt.NDArray[np.uint64]


class WideTotals(Mapping[bytes, int]):
    """Totals by coordinate, in 64 bits, none of them zero.

    Made for many coordinates at once: one alone takes 60 microseconds to look up, so make a
    dictionary of `items()` and not of the mapping.
    """

    def __init__(self, totals: Mapping[bytes, int]) -> None:
        """Take these totals, zeros left out.

        Raises:
            OverflowError: A total is outside the 64-bit integers.
        """
        self._key = system_bytes(KEY_BYTES)
        self._labels: list[bytes] = []
        self._numbers = np.empty(0, np.int64)
        self._words: _Words = np.empty((0, 2), "<u8")
        # First words in order, and the place of each.
        self._sorted: _Words = np.empty(0, "<u8")
        self._places: _Places = np.empty(0, np.intp)
        self.add(totals)

    def __len__(self) -> int:
        return len(self._labels)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._labels)

    def __getitem__(self, label: bytes) -> int:
        (place,) = self._find(self._words_of([label])).tolist()
        if place < 0:
            raise KeyError(label)
        return int(self._numbers[place])

    def __repr__(self) -> str:
        return f"WideTotals({len(self)} coordinates)"

    def items(self) -> ItemsView[bytes, int]:
        """Coordinates with their totals."""
        return dict(zip(self._labels, self._numbers.tolist(), strict=True)).items()

    def values(self) -> ValuesView[int]:
        """The totals."""
        return dict(self.items()).values()

    @property
    def labels(self) -> Sequence[bytes]:
        """The coordinates; not to be changed."""
        return self._labels

    @property
    def numbers(self) -> npt.NDArray[np.int64]:
        """Their totals; not to be changed."""
        return self._numbers

    def among(self, labels: Sequence[bytes]) -> list[int]:
        """The totals of some coordinates, 0 where there is none."""
        places = self._find(self._words_of(labels))
        found: list[int] = np.where(places < 0, 0, self._padded[places]).tolist()
        return found

    def add(self, difference: Mapping[bytes, int]) -> None:
        """Add to the totals.

        Raises:
            OverflowError: A total left the 64-bit integers; what was added is to be thrown away.
        """
        labels = list(difference)
        amounts = np.fromiter(difference.values(), np.int64, len(labels))
        words = self._words_of(labels)
        places = self._find(words)
        there = np.flatnonzero(places >= 0)
        mine, more = places[there], amounts[there]
        before = self._numbers[mine]
        after = before + more
        if ((before ^ after) & (more ^ after) < 0).any():
            raise OverflowError
        self._numbers[mine] = after
        self._enter(labels, words, amounts, np.flatnonzero((places < 0) & (amounts != 0)))
        if not after.all():
            self._leave(mine[after == 0])

    @property
    def _padded(self) -> npt.NDArray[np.int64]:
        return self._numbers if len(self._numbers) else np.zeros(1, np.int64)

    def _words_of(self, labels: Sequence[bytes]) -> _Words:
        return label_words(labels, self._key)

    def _find(self, words: _Words) -> _Places:
        """The place of each coordinate, -1 where there is none."""
        found = np.full(len(words), -1, np.intp)
        if not len(self._sorted):
            return found
        order = np.argsort(words[:, 0])  # the search meets the same memory again
        first = words[order, 0]
        at = np.searchsorted(self._sorted, first)
        left = np.flatnonzero(at < len(self._sorted))
        while len(left):  # once, unless two coordinates have the same first word
            left = left[self._sorted[at[left]] == first[left]]
            places = self._places[at[left]]
            same = self._words[places, 1] == words[order[left], 1]
            found[order[left[same]]] = places[same]
            left = left[~same]
            at[left] += 1
            left = left[at[left] < len(self._sorted)]
        return found

    def _enter(
        self, labels: list[bytes], words: _Words, amounts: npt.NDArray[np.int64], rows: _Places
    ) -> None:
        if not len(rows):
            return
        start = len(self._labels)
        self._labels += [labels[row] for row in rows.tolist()]
        self._numbers = np.concatenate((self._numbers, amounts[rows]))
        self._words = np.concatenate((self._words, words[rows]))
        first = words[rows, 0]
        order = np.argsort(first)
        where = np.searchsorted(self._sorted, first[order])
        self._sorted = np.insert(self._sorted, where, first[order])
        self._places = np.insert(self._places, where, start + order)

    def _leave(self, gone: _Places) -> None:
        """Take coordinates out; the last ones move to their places."""
        length = len(self._labels) - len(gone)
        stays = np.ones(len(self._labels), np.bool_)
        stays[gone] = False
        holes = gone[gone < length]
        movers = length + np.flatnonzero(stays[length:])
        for hole, mover in zip(holes.tolist(), movers.tolist(), strict=True):
            self._labels[hole] = self._labels[mover]
        del self._labels[length:]
        for column in (self._numbers, self._words):
            column[holes] = column[movers]
        self._numbers, self._words = self._numbers[:length].copy(), self._words[:length].copy()
        kept = stays[self._places]
        moved = np.arange(len(stays))
        moved[movers] = holes
        self._sorted, self._places = self._sorted[kept], moved[self._places[kept]]
