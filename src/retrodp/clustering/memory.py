"""What an online sketch remembers from block to block: whole counters, and what it published.

Promise: canonical bytes without any point, id, coin or draw of noise. Sampled points live on as
counts of cells alone. Counters are exact, so the bytes belong where the records lie and nowhere
else. Knows no rule of the sketch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from retrodp.errors import StoreCorruptError

Ints = NDArray[np.int64]

_FORMAT = b"\x01"
_HEAD = 9
_WORD = np.dtype("<i8")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Memory:
    """The state after a block.

    Attributes:
        block: The last block that was closed; 0 before the first.
        phase: How often the sample began anew.
        doublings: Of the first estimate of the cost.
        start: The block before the phase's first one.
        size: Exact number of points sampled in this phase.
        mark: The cells are looked at when the published number of sampled points reaches it.
        points: Representatives in grid steps, published, shape (m, d).
        births: Block at whose end each was born, published, shape (m,).
        weights: Exact numbers of arrivals that each was nearest to, shape (m,).
        sums: Exact sums of their offsets, shape (m, d).
        cells: Codes of the cells that sampled points of this phase lie in, rising.
        counts: Exact number of sampled points in each.
        accepted: Codes of the cells that were published in this phase, rising.
    """

    block: int
    phase: int
    doublings: int
    start: int
    size: int
    mark: int
    points: Ints
    births: Ints
    weights: Ints
    sums: Ints
    cells: Ints
    counts: Ints
    accepted: Ints

    @classmethod
    def first(cls, middle: Ints, mark: int) -> Self:
        """Before the first block: one representative, at a public place.

        Args:
            middle: The place, shape (1, d).
            mark: See the attributes.
        """
        none = np.zeros(0, dtype=np.int64)
        zero = np.zeros(1, dtype=np.int64)
        return cls(
            block=0,
            phase=0,
            doublings=0,
            start=0,
            size=0,
            mark=mark,
            points=middle,
            births=zero,
            weights=zero,
            sums=np.zeros_like(middle),
            cells=none,
            counts=none,
            accepted=none,
        )

    def begun(self, mark: int) -> Self:
        """A new phase: nothing of the sample is left."""
        none = np.zeros(0, dtype=np.int64)
        return replace(
            self,
            phase=self.phase + 1,
            doublings=self.doublings + 1,
            start=self.block,
            size=0,
            mark=mark,
            cells=none,
            counts=none,
            accepted=none,
        )

    def to_bytes(self) -> bytes:
        """A byte for the format, nine numbers, then the arrays in the order of the attributes."""
        head = (
            *(self.block, self.phase, self.doublings, self.start, self.size, self.mark),
            *(len(self.points), len(self.cells), len(self.accepted)),
        )
        arrays = (
            *(np.array(head), self.points, self.births, self.weights, self.sums),
            *(self.cells, self.counts, self.accepted),
        )
        return _FORMAT + b"".join(array.astype(_WORD).tobytes() for array in arrays)

    @classmethod
    def from_bytes(cls, state: bytes, columns: int) -> Self:
        """What `to_bytes` wrote.

        Raises:
            StoreCorruptError: It did not write that.
        """
        body, rest = divmod(len(state) - len(_FORMAT), _WORD.itemsize)
        if not state.startswith(_FORMAT) or rest or body < _HEAD:
            raise _unreadable()
        words = np.frombuffer(state, _WORD, offset=len(_FORMAT)).astype(np.int64, copy=False)
        *numbers, many, cells, accepted = words[:_HEAD].tolist()
        lengths = (many * columns, many, many, many * columns, cells, cells, accepted)
        if min(lengths) < 0 or body != _HEAD + sum(lengths):
            raise _unreadable()
        points, births, weights, sums, codes, counts, taken = np.split(
            words[_HEAD:], np.cumsum(lengths)[:-1]
        )
        block, phase, doublings, start, size, mark = numbers
        return cls(
            block=block,
            phase=phase,
            doublings=doublings,
            start=start,
            size=size,
            mark=mark,
            points=points.reshape(many, columns),
            births=births,
            weights=weights,
            sums=sums.reshape(many, columns),
            cells=codes,
            counts=counts,
            accepted=taken,
        )


def _unreadable() -> StoreCorruptError:
    return StoreCorruptError(
        "The state of an online clustering cannot be read.", do="Restore the store from a back-up."
    )


def added(codes: Ints, counts: Ints, more: Ints) -> tuple[Ints, Ints]:
    """Codes and counts after further occurrences.

    Args:
        codes: Rising, each once.
        counts: Of each.
        more: Further codes, in any order, repeats included.
    """
    new, often = np.unique(more, return_counts=True)
    place = np.searchsorted(codes, new)
    known = np.zeros(len(new), dtype=bool)
    inside = place < len(codes)
    known[inside] = codes[place[inside]] == new[inside]
    grown = counts.copy()
    grown[place[known]] += often[known]
    fresh = ~known
    return np.insert(codes, place[fresh], new[fresh]), np.insert(grown, place[fresh], often[fresh])


def counts_of(codes: Ints, counts: Ints, asked: Ints) -> Ints:
    """The counts of codes that are asked for; 0 where there is none."""
    found = np.zeros(len(asked), dtype=np.int64)
    if len(codes):
        place = np.minimum(np.searchsorted(codes, asked), len(codes) - 1)
        there = codes[place] == asked
        found[there] = counts[place[there]]
    return found


def among(some: Ints, others: Ints) -> NDArray[np.bool_]:
    """Whether each of `some` is among the sorted `others`."""
    if not len(others):
        return np.zeros(len(some), dtype=bool)
    place = np.minimum(np.searchsorted(others, some), len(others) - 1)
    found: NDArray[np.bool_] = others[place] == some
    return found
