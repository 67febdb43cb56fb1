"""Different values: records per item, or per bucket that a keyed hash puts the items into.

An item is what the values of some columns make together; null is a value like any other. All
statistics here are linear: they add up records, not items. A record moves one bucket a scale (or
one an instance), and which items share a bucket is for the secret of the hash to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from retrodp.noise.labels import label_words
from retrodp.plan.expression import Expression
from retrodp.statistics.buckets import named, stored
from retrodp.statistics.contract import Component
from retrodp.statistics.counts import columns_of, kept_counts, summed
from retrodp.statistics.hashed import Hashed, sub_key
from retrodp.statistics.label import BinLabels
from retrodp.stream.batch import Batch

ALL: tuple[str, ...] = ()
"""A partition that no bound on equal values refines: different items may share a bucket."""

SAMPLE = 1 << 14
"""Records that tell whether items repeat."""

Weights = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """Which item a record is, and whether it counts.

    Attributes:
        of: The columns whose values make an item.
        where: Condition on the records; None: all.
    """

    of: BinLabels
    where: Expression | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the plan that are read."""
        return columns_of(self.of, self.where)

    def counted(self, batch: Batch) -> dict[bytes, int]:
        """Records of each item, copies included; its label, UTF-8."""
        if self.where is None and len(self.of.columns) == 1 and bool((batch.counts == 1).all()):
            # The same sums by a loop in C. One column has values of one type, so none are mixed.
            values = Counter(batch.columns[self.of.columns[0].name])
            return dict(zip(self._labels(values), values.values(), strict=True))
        return summed(self.of, batch, kept_counts(self.where, batch))

    def listed(self, batch: Batch) -> tuple[list[bytes], Weights]:
        """Labels and records of each, in any order; a label may be there several times.

        Where most records have an item of their own, grouping them costs more than it saves.
        """
        if self.where is None and len(self.of.columns) == 1:
            values = batch.columns[self.of.columns[0].name]
            some = values[:: len(values) // SAMPLE + 1]
            if 2 * len(set(some)) > len(some):
                return self._labels(values), batch.counts
        counted = self.counted(batch)
        return [*counted], np.fromiter(counted.values(), np.int64, len(counted))

    def _labels(self, values: Iterable[object]) -> list[bytes]:
        """Labels of a single column."""
        return [
            # Most texts are their own label, which spares a call for each.
            value.encode()
            if type(value) is str and value and value[0] != "["
            else self.of.text((value,)).encode()
            for value in values
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentItems:
    """Records of each item, for whoever asks which are there.

    The number of items with a positive count is not linear. A record moves it by one in those
    rounds of its life in which no other record has its value: in any subset of them. Noise for it
    must be independent from round to round; k records of one unit move it by k.
    """

    items: Items

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that `encode` reads."""
        return self.items.columns

    @property
    def components(self) -> tuple[Component, ...]:
        """One number; a record moves it by one."""
        return (Component("", 1, Fraction(1), Fraction(1), (ALL,)),)

    def encode(self, batch: Batch) -> dict[bytes, int]:
        """Records per item."""
        return self.items.counted(batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketedItems(Hashed):
    """Records per bucket of a hash into 2^height buckets; with `signed`, with a sign an item.

    The first i bits of a bucket's number are its number among the 2^i buckets of scale i, so the
    finest scale holds all coarser ones. Every scale is charged.

    Attributes:
        items: What is hashed.
        height: Scales are 2^0, 2^1, ..., 2^height buckets.
        signed: Whether each item's records are counted with a random sign of its own.
    """

    items: Items
    height: int
    signed: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that `encode` reads."""
        return self.items.columns

    @property
    def components(self) -> tuple[Component, ...]:
        """A record moves one bucket of each scale by one."""
        return (Component("", 1, Fraction(1), Fraction(1), (ALL,) * (self.height + 1)),)

    @property
    def coordinates(self) -> int:
        """Buckets of all scales."""
        return (1 << (self.height + 1)) - 1

    def encode(self, batch: Batch) -> dict[bytes, int]:
        """Records per bucket of the finest scale."""
        key = self.secret
        items, amounts = self.items.listed(batch)
        return bucket_sums(items, amounts, key=key, height=self.height, signed=self.signed)


@dataclass(frozen=True, slots=True, kw_only=True)
class LowBitItems(Hashed):
    """Records per number of zeros at the end of a hash, for several hashes.

    Bucket k of an instance takes an item with probability 2^-(k + 1), the last one the rest.

    Attributes:
        items: What is hashed.
        instances: Independent hashes.
        levels: Buckets of each, at most 64.
    """

    items: Items
    instances: int
    levels: int

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that `encode` reads."""
        return self.items.columns

    @property
    def components(self) -> tuple[Component, ...]:
        """A record moves one bucket of each instance by one."""
        return (Component("", 1, Fraction(1), Fraction(1), (ALL,) * self.instances),)

    @property
    def coordinates(self) -> int:
        """Buckets of all instances."""
        return self.instances * self.levels

    def encode(self, batch: Batch) -> dict[bytes, int]:
        """Records per instance and bucket."""
        secret = self.secret
        items, amounts = self.items.listed(batch)
        sums = np.zeros((self.instances, self.levels), dtype=np.int64)
        for instance in range(0, self.instances, 2):
            words = label_words(items, sub_key(secret, instance))
            for column in range(min(2, self.instances - instance)):
                level = np.minimum(zeros_at_end(words[:, column]), self.levels - 1)
                np.add.at(sums[instance + column], level, amounts)
        return {
            low_bit_coordinate(instance, level): int(sums[instance, level])
            for instance, level in zip(*map(np.ndarray.tolist, np.nonzero(sums)), strict=True)
        }


def bucket_sums(
    items: Sequence[bytes], amounts: Weights, *, key: bytes, height: int, signed: bool
) -> dict[bytes, int]:
    """Sums of amounts per bucket of the finest scale; zeros are left out.

    Args:
        items: Labels; they may repeat.
        amounts: Of each, shape ``(len(items),)``; of any sign.
        key: Secret of the hash, 32 bytes.
        height: Of the finest scale, which has 2^height buckets.
        signed: Whether each item's amounts get a random sign of its own.
    """
    words = label_words(items, key)
    if signed:
        amounts = np.where(words[:, 1] & np.uint64(1), amounts, -amounts)
    found = first_bits(words[:, 0], height)
    if len(items) << 3 < 1 << height:  # few items: their buckets alone, in order
        buckets, place = np.unique(found, return_inverse=True)
        sums = np.zeros(len(buckets), dtype=np.int64)
        np.add.at(sums, place, amounts)
        return named(buckets, sums)
    sums = np.zeros(1 << height, dtype=np.int64)
    np.add.at(sums, found, amounts)
    return stored(sums)


def low_bit_coordinate(instance: int, level: int) -> bytes:
    """Where the total of one bucket of an instance stands."""
    return bytes((instance, level))


def first_bits(words: NDArray[np.uint64], height: int) -> NDArray[np.int64]:
    """The first `height` bits of each word as a number."""
    # In two steps: a shift by all 64 bits is undefined.
    return ((words >> np.uint64(1)) >> np.uint64(63 - height)).astype(np.int64)


def zeros_at_end(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Number of zero bits at the end of each word; 64 for zero."""
    return np.bitwise_count(~words & (words - np.uint64(1))).astype(np.int64)
