"""How many different values survive, from the rarest hash bits that are seen (MinHash by low bits)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
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
from retrodp.postprocess.occupancy import fewest_by_median, most_by_median


def levels_for(high: int) -> int:
    """Buckets of a hash that expects up to `high` items: the last two are above them."""
    return min(high.bit_length() + 3, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class MinHash(OneNoise):
    """A bracket around the number of items, from the highest level that each of R hashes sees.

    Hash r puts an item into bucket k = 0, 1, ... with probability 2^-(k + 1): the zeros at its end.
    Each bucket has a counter; a bucket is seen if its noisy count is above tau. With l the median
    over the hashes of the highest bucket seen, E = 2^(l + 1) is at most 8 D and, once D is at least
    8 tau, above D / (8 tau), with probability at least 3/4 - 1/tau for a single hash. The ends
    published are the exact ones of that argument for the median at the stated level.

    Guarantee: one vector mechanism; a record moves one bucket a hash. Exactly retroactive. The
    bracket holds with its level for data that do not depend on the secret of the hash. Source:
    theorem 3.1 of "Skirting Additive Error Barriers for Private Turnstile Streams" (ICLR 2026,
    arXiv 2602.10360).

    Attributes:
        noise: Of every bucket of every hash.
        instances: R, odd.
        levels: Buckets of a hash; the last one takes what is left.
        sureness: When a bucket is seen, and how rare a hash each end allows for.
        facts: Public facts about the choice of the method, and predicted errors.
    """

    noise: CalibratedNoise
    instances: int
    levels: int
    sureness: Sureness
    facts: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(
        cls,
        noise: CalibratedNoise,
        *,
        instances: int,
        levels: int,
        facts: tuple[tuple[str, Any], ...] = (),
    ) -> MinHash:
        """R hashes, their threshold settled from the noise."""
        return cls(
            noise=noise,
            instances=instances,
            levels=levels,
            sureness=sureness_of(
                noise.process, instances=instances, levels=levels, level=noise.level
            ),
            facts=facts,
        )

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        """The bracket of one round; `exact` holds the totals of each hash's buckets."""
        counts = np.zeros((self.instances, self.levels), dtype=np.int64)
        for coordinate, total in exact.items():
            counts[coordinate[0], coordinate[1]] = total
        draws = self.noise.draw(round_, keys, Coordinates.of_indices(counts.size))
        noisy = counts + draws.reshape(counts.shape)
        tau = self.sureness.seeing.tau
        median = int(np.sort(highest(noisy > tau))[self.instances // 2])
        records = max(int(noisy.sum(axis=1).min()) + self.levels * tau, 0)
        alone, together = (
            self._ends(median, records, all_rounds=all_rounds) for all_rounds in (False, True)
        )
        return bracketed(self.name, round_, alone, together, level=self.noise.level)

    def _ends(self, median: int, records: int, *, all_rounds: bool) -> tuple[int, int]:
        return ends_of(
            median,
            self.sureness,
            instances=self.instances,
            levels=self.levels,
            records=records,
            all_rounds=all_rounds,
        )

    def describe(self) -> dict[str, Any]:
        """Public facts; the errors are half the distance of the ends, as predicted."""
        return {
            "mechanism": "minhash",
            "instances": self.instances,
            "levels": self.levels,
            "tau": self.sureness.seeing.tau,
            **self.noise.describe(),
            **dict(self.facts),
        }


def highest(seen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Highest bucket that each hash sees, -1 where none; `seen` has shape (hashes, buckets)."""
    levels = seen.shape[1]
    found = levels - 1 - np.argmax(seen[:, ::-1], axis=1)
    return np.where(seen.any(axis=1), found, -1).astype(np.int64)


def ends_of(
    median: int,
    sureness: Sureness,
    *,
    instances: int,
    levels: int,
    records: int,
    all_rounds: bool,
) -> tuple[int, int]:
    """Both ends, from the median of the highest buckets seen.

    Args:
        median: -1 where most hashes see nothing.
        sureness: When a bucket is seen.
        instances: Hashes.
        levels: Buckets of a hash.
        records: Bound on the number of records, which is at least that of items.
        all_rounds: For all rounds together, or for one.
    """
    rarity = sureness.rarity_all if all_rounds else sureness.rarity
    low = fewest_by_median(median, instances, rarity)
    if median >= levels - 2:  # the bucket above takes the rest, and says nothing from above
        return low, max(records, low)
    high = most_by_median(median, instances, sureness.seeing, rarity)
    return low, max(min(high, records), low)


def sureness_of(process: Process, *, instances: int, levels: int, level: Fraction) -> Sureness:
    """The threshold of the hashes' buckets, and the rarity of the two bounds."""
    return Sureness.of(process, miss=1 - level, buckets=instances * levels, bounds=1)
