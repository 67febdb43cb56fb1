"""Counts and sums by stamp: what the revised past is made of.

Promise: linear, like what it refines; a record adds to one coordinate, that of its stamp and bin, in
whichever round it arrives. Totals are kept by stamp alone: sums over stamps are worked out when a
round is released, so that a deletion touches one total. Knows no noise.

A coordinate is four bytes of stamp, and four of the index of a public bin or the label of an open
one. Seven bits a byte, so that labels stay readable as UTF-8, and all public coordinates of a round
are read at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrodp.statistics.contract import Component
from retrodp.statistics.counts import Count, Sum, kept_counts
from retrodp.stream.batch import Batch

IntArray = NDArray[np.int64]

WIDTH = 4
"""Bytes of a stamp, and of the index of a bin; both are below 2^28."""

_SHIFTS = np.arange(7 * (WIDTH - 1), -1, -7)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByStamp:
    """A count or sum, split by stamp.

    Attributes:
        inner: What is counted or added up.
        bins: Labels of the public bins in the order of publication; a scalar has the one bin ().
            None for an open domain.
        oldest: Records of earlier stamps count as of this stamp; without it (None) they do not
            count. Only an epoch that goes on from another has stamps before round 1.
    """

    inner: Count | Sum
    bins: tuple[str, ...] | None
    oldest: int | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that `encode` reads."""
        return self.inner.columns

    @property
    def components(self) -> tuple[Component, ...]:
        """As without stamps: a record has one stamp, and many may share it."""
        return self.inner.components

    @property
    def coordinates(self) -> int | None:
        """Public bins of a stamp."""
        return None if self.bins is None else max(1, len(self.bins))

    def encode(self, batch: Batch) -> dict[bytes, int]:
        """Sum of the batch's records on each stamp and bin."""
        assert batch.stamps is not None
        stamps: list[int] = batch.stamps.tolist()
        sums: dict[tuple[int, tuple[object, ...]], int] = {}
        for stamp, weight, values in zip(
            stamps, self._weights(batch), self._values(batch), strict=True
        ):
            if stamp >= 1 or self.oldest is not None:
                place = (max(stamp, self.oldest or 1), values)
                sums[place] = sums.get(place, 0) + weight
        coded = self._coded({values for _, values in sums})
        return {
            seven_bits(stamp) + coded[values]: total
            for (stamp, values), total in sums.items()
            if total
        }

    def _weights(self, batch: Batch) -> list[int]:
        counts = kept_counts(self.inner.where, batch)
        if isinstance(self.inner, Count):
            return counts
        amounts = batch.columns[self.inner.of.name]
        return [
            amount * count if isinstance(amount, int) else 0
            for amount, count in zip(amounts, counts, strict=True)
        ]

    def _values(self, batch: Batch) -> Iterable[tuple[object, ...]]:
        by = self.inner.by
        if by is None:
            return [()] * batch.length
        # 1 == True in Python, but the values of one column have one type: tuples cannot mix them.
        return zip(*(batch.columns[column.name] for column in by.columns), strict=True)

    def _coded(self, found: Collection[tuple[object, ...]]) -> dict[tuple[object, ...], bytes]:
        by = self.inner.by
        if by is None:
            return dict.fromkeys(found, seven_bits(0))
        labels = {values: by.text(values) for values in found}
        if self.bins is None:
            return {values: label.encode() for values, label in labels.items()}
        places = {label: place for place, label in enumerate(self.bins)}
        return {values: seven_bits(places[label]) for values, label in labels.items()}


def seven_bits(number: int) -> bytes:
    """A whole number below 2^28 in four bytes below 128, the highest first."""
    return bytes((number >> 21, number >> 14 & 127, number >> 7 & 127, number & 127))


def places(totals: Mapping[bytes, int]) -> tuple[IntArray, IntArray, IntArray]:
    """Stamp, bin and total of every public coordinate, each of shape (n,).

    Raises:
        OverflowError: A total beyond 64 bits, which a ledger does not hold.
    """
    count = len(totals)
    coded = np.frombuffer(b"".join(totals), dtype=np.uint8).reshape(count, 2, WIDTH)
    numbers = (coded.astype(np.int64) << _SHIFTS).sum(axis=2)
    return numbers[:, 0], numbers[:, 1], np.fromiter(totals.values(), dtype=np.int64, count=count)


def labelled(coordinate: bytes) -> tuple[int, bytes]:
    """Stamp and label of an open coordinate."""
    high, upper, lower, low = coordinate[:WIDTH]
    return high << 21 | upper << 14 | lower << 7 | low, coordinate[WIDTH:]
