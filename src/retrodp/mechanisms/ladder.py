"""How many different values survive, from buckets of a hash at scales of 1, 2, 4, ... buckets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.bracket import Sureness, bracketed
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.one_noise import OneNoise
from retrodp.noise.key import NoiseKeys
from retrodp.noise.prf import Coordinates
from retrodp.noise.processes import Process
from retrodp.postprocess.occupancy import fewest, most
from retrodp.statistics.buckets import read

Counts = NDArray[np.int64]

MOST_HEIGHT = 19
"""Finest scale of 2^19 buckets: a million counters in all, evaluated every round."""


def height_for(high: int) -> int:
    """Height of a ladder that expects up to `high` items: two to four buckets an item."""
    return high.bit_length() + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder(OneNoise):
    """A bracket around the number of items, from noisy counts of hash buckets at all scales.

    Every scale is a partition of the items into 2^i buckets, i = 0..height, with one counter a
    bucket. A bucket is seen if its noisy count is above tau. Seen buckets bound the number from
    below, unseen ones from above; the ends are the best of all scales. Empty buckets are evaluated
    like full ones. A bucket of one item with many records looks like one of many items with one
    record each: the ends lie a factor of about tau apart, and no point between them is told.

    Guarantee: one vector mechanism; a record moves one bucket a scale. Exactly retroactive, since
    the noise is a function of key, name and round alone, and the secret of the hash lasts. The
    bracket holds with its level for data that do not depend on that secret. Source: theorems 3.1
    and, with signs, 4.1 of "Skirting Additive Error Barriers for Private Turnstile Streams" (ICLR
    2026, arXiv 2602.10360), with full partitions in the place of least significant bits; constants
    in docs/kinds/distinct.md.

    Attributes:
        noise: Of every bucket of every scale.
        height: The finest scale has 2^height buckets.
        sureness: When a bucket is seen, and how rare a hash each end allows for.
        facts: Public facts about the choice of the method, and predicted errors.
    """

    noise: CalibratedNoise
    height: int
    sureness: Sureness
    facts: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(
        cls,
        noise: CalibratedNoise,
        *,
        height: int,
        signed: bool = False,
        facts: tuple[tuple[str, Any], ...] = (),
    ) -> Ladder:
        """A ladder of a height, its threshold settled from the noise."""
        sureness = sureness_of(noise.process, height=height, level=noise.level, signed=signed)
        return cls(noise=noise, height=height, sureness=sureness, facts=facts)

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        """The bracket of one round; `exact` holds the totals of the finest scale's buckets."""
        noisy = self.noisy(round_, exact, keys)
        seen = [int(np.count_nonzero(self._seen(scale))) for scale in noisy]
        total = None if self.sureness.seeing.signed else int(noisy[0][0])
        alone, together = (
            self._ends(seen, total, rarity)
            for rarity in (self.sureness.rarity, self.sureness.rarity_all)
        )
        return bracketed(self.name, round_, alone, together, level=self.noise.level)

    def noisy(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> list[Counts]:
        """Noisy counts of every scale; arrays of 1, 2, 4, ... buckets. Not published."""
        counts = read(exact, 1 << self.height)
        scales = [counts]
        for _ in range(self.height):
            scales.append(scales[-1].reshape(-1, 2).sum(axis=1))
        where = Coordinates.of_indices((1 << (self.height + 1)) - 1)
        exact_all = np.concatenate(scales[::-1])
        noisy = exact_all + self.noise.draw(round_, keys, where)
        edges = [(1 << scale) - 1 for scale in range(self.height + 2)]
        return [noisy[start:end] for start, end in pairwise(edges)]

    def _seen(self, counts: Counts) -> NDArray[np.bool_]:
        seeing = self.sureness.seeing
        found: NDArray[np.bool_] = (np.abs(counts) if seeing.signed else counts) > seeing.tau
        return found

    def _ends(self, seen: list[int], total: int | None, rarity: Decimal) -> tuple[int, int]:
        return ends_of(seen, self.sureness, rarity, total=total)

    def describe(self) -> dict[str, Any]:
        """Public facts; the errors are half the distance of the ends, as predicted."""
        return {
            "mechanism": "ladder with signs" if self.sureness.seeing.signed else "ladder",
            "scales": self.height + 1,
            "buckets": (1 << (self.height + 1)) - 1,
            "tau": self.sureness.seeing.tau,
            **self.noise.describe(),
            **dict(self.facts),
        }


def ends_of(
    seen: list[int], sureness: Sureness, rarity: Decimal, *, total: int | None
) -> tuple[int, int]:
    """Both ends, from the number of seen buckets of each scale.

    Args:
        seen: At 1, 2, 4, ... buckets.
        sureness: When a bucket is seen.
        rarity: ln(1/miss) of each bound.
        total: Noisy count of all records, which is at least the number of items up to the noise;
            None where counts may be negative.
    """
    sizes = [1 << scale for scale in range(len(seen))]
    low = max(fewest(found, size, rarity) for found, size in zip(seen, sizes, strict=True))
    highs = [
        most(size - found, size, sureness.seeing, rarity)
        for found, size in zip(seen, sizes, strict=True)
    ]
    if total is not None:
        highs.append(max(total + sureness.seeing.tau, 0))
    return low, min(highs)


def sureness_of(process: Process, *, height: int, level: Fraction, signed: bool) -> Sureness:
    """The threshold of a ladder, and the rarity of its bounds."""
    return Sureness.of(
        process,
        miss=1 - level,
        buckets=(1 << (height + 1)) - 1,
        bounds=height + 1,
        signed=signed,
    )
