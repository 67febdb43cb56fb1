"""Sketches: records in the buckets of keyed hashes, with the sign of a keyed hash.

The secret of the hashes hides no data; it keeps whoever writes records from choosing ones that meet
in a bucket. Several items share a bucket, so a person's records may all meet there, with one sign:
k records of a person are charged k times, not the root of k (partitions without columns).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from retrodp.noise.labels import label_words
from retrodp.noise.prf import BlockPRF, Coordinates
from retrodp.plan.expression import Expression
from retrodp.statistics.buckets import stored
from retrodp.statistics.codes import Codes
from retrodp.statistics.contract import Component, columns_read
from retrodp.statistics.counts import kept_counts
from retrodp.statistics.hashed import Hashed, sub_key
from retrodp.statistics.items import ALL, Items
from retrodp.stream.batch import Batch

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

WORD_SIGNS = 128
_CHUNK = 1 << 12


@dataclass(frozen=True, slots=True, kw_only=True)
class SketchedItems(Hashed):
    """Signed records per row and bucket: CountSketch, or a dense projection by random signs.

    Attributes:
        items: What is hashed.
        rows: Independent hashes.
        buckets: Of each row.
        dense: Whether a record moves every bucket of every row, each with a sign of its own; else
            one bucket a row.
    """

    items: Items
    rows: int
    buckets: int
    dense: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that `encode` reads."""
        return self.items.columns

    @property
    def components(self) -> tuple[Component, ...]:
        """A record moves one bucket of each row by one; a dense one all of them."""
        moved = self.rows * (self.buckets if self.dense else 1)
        return (Component("", 1, Fraction(1), Fraction(1), (ALL,) * moved),)

    @property
    def coordinates(self) -> int:
        """Counters, all of them hidden and read every round."""
        return self.rows * self.buckets

    def encode(self, batch: Batch) -> dict[bytes, int]:
        """Signed records per bucket, by `place`."""
        counted = self.items.counted(batch)
        amounts = np.fromiter(counted.values(), np.int64, len(counted))
        return stored(self.sums([*counted], amounts))

    def sums(self, items: Sequence[bytes], amounts: Ints) -> Ints:
        """Signed amounts by row and bucket, shape (rows buckets,); items may repeat."""
        secret = self.secret
        sums = np.zeros(self.rows * self.buckets, dtype=np.int64)
        if self.dense:
            for first, signs in _sign_blocks(items, secret, len(sums)):
                for start in range(0, len(items), _CHUNK):
                    part = slice(start, start + _CHUNK)
                    sums[first : first + signs.shape[1]] += amounts[part] @ signs[part]
            return sums
        for first in range(0, self.rows, 2):
            words = label_words(items, sub_key(secret, first))
            for row in range(first, min(first + 2, self.rows)):
                bucket, sign = places(words[:, row - first], self.buckets)
                np.add.at(sums, bucket + row * self.buckets, amounts * sign)
        return sums


@dataclass(frozen=True, slots=True, kw_only=True)
class SketchedPrefixes(Hashed):
    """Signed records per level, row and bucket, of the codes of a column cut to each level's bits.

    Attributes:
        codes: Numbers of the column's values, and how they are cut.
        rows: Independent hashes of each level.
        buckets: Of each row.
        where: Condition on the records; None: all.
    """

    codes: Codes
    rows: int
    buckets: int
    where: Expression | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that `encode` reads."""
        return columns_read((self.codes.column.name,), self.where)

    @property
    def components(self) -> tuple[Component, ...]:
        """A record moves one bucket of each row of each level by one."""
        moved = self.rows * len(self.codes.shifts)
        return (Component("", 1, Fraction(1), Fraction(1), (ALL,) * moved),)

    @property
    def coordinates(self) -> int:
        """Counters, all of them hidden and read every round."""
        return len(self.codes.shifts) * self.rows * self.buckets

    def encode(self, batch: Batch) -> dict[bytes, int]:
        """Signed records per bucket, by `place`; null is no value and counts nowhere."""
        counted = Counter[object]()
        values = batch.columns[self.codes.column.name]
        if self.where is None and bool((batch.counts == 1).all()):
            counted.update(values)  # the same sums by a loop in C
        else:
            kept = kept_counts(self.where, batch)
            for value, count in zip(values, kept, strict=True):
                counted[value] += count
        counted.pop(None, None)
        amounts = np.fromiter(counted.values(), np.int64, len(counted))
        return stored(self.sums(self.codes.of([*counted]), amounts))

    def sums(self, codes: Words, amounts: Ints) -> Ints:
        """Signed amounts by level, row and bucket, shape (levels rows buckets,)."""
        levels = len(self.codes.shifts)
        sums = np.zeros(levels * self.rows * self.buckets, dtype=np.int64)
        order = np.argsort(codes)
        codes, amounts = codes[order], amounts[order]
        for level in reversed(range(levels)):  # the longest first: the shorter are ever fewer
            codes, amounts = _added_up(codes >> np.uint64(self.codes.shifts[level]), amounts)
            for row, bucket, sign in self.found(level, codes):
                first = (level * self.rows + row) * self.buckets
                np.add.at(sums, bucket + first, amounts * sign)
            codes = codes << np.uint64(self.codes.shifts[level])
        return sums

    def found(self, level: int, prefixes: Words) -> Iterator[tuple[int, Ints, Ints]]:
        """Row, bucket and sign of each prefix of a level, row by row."""
        secret, at = self.secret, Coordinates.of_indices(prefixes)
        for first in range(0, self.rows, 2):
            words = BlockPRF(sub_key(secret, first, level)).blocks(at)
            for row in range(first, min(first + 2, self.rows)):
                yield row, *places(words[:, row - first], self.buckets)


def _added_up(codes: Words, amounts: Ints) -> tuple[Words, Ints]:
    """Different ones of sorted numbers, and the sum of the amounts of each."""
    if not len(codes):
        return codes, amounts
    (begins,) = np.nonzero(np.concatenate(([True], codes[1:] != codes[:-1])))
    return codes[begins], np.add.reduceat(amounts, begins)


def places(words: Words, buckets: int) -> tuple[Ints, Ints]:
    """Bucket and sign of each word: its upper half as a fraction of the buckets, its last bit."""
    bucket = ((words >> np.uint64(32)) * np.uint64(buckets)) >> np.uint64(32)
    sign = 1 - 2 * (words & np.uint64(1)).astype(np.int64)
    return bucket.astype(np.int64), sign


def _sign_blocks(items: Sequence[bytes], secret: bytes, signs: int) -> Iterator[tuple[int, Ints]]:
    """Signs of each item, `WORD_SIGNS` counters at a time: where they begin, shape (n, at most)."""
    for first in range(0, signs, WORD_SIGNS):
        words = label_words(items, sub_key(secret, first))
        bits = np.unpackbits(words.view(np.uint8).reshape(len(items), 16), axis=1)
        yield first, 1 - 2 * bits[:, : signs - first].astype(np.int64)
