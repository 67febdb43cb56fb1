"""From additive error on a small domain to a factor of 1 + eta on any: theorem 4.2, as a function.

Items are hashed to M = 1, 2, 4, ... buckets. Whatever estimates the number of filled buckets with
some additive error then bounds the number of items: at the right scale they fill a fixed share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.bracket import bracketed, rarity_of
from retrodp.mechanisms.calibrate import DEFAULT_LEVEL, process_of
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.noise.factors.fresh import FreshFactor
from retrodp.noise.key import NoiseKeys
from retrodp.noise.prf import Coordinates
from retrodp.postprocess.occupancy import fewest, most_that_fill
from retrodp.privacy.budget import PureDP, zCDP

Interval: TypeAlias = tuple[int, int]


def reduced(filled: Mapping[int, Interval], rarity: Decimal) -> Interval:
    """Bounds on the number of items from bounds on the filled buckets of several hashes.

    Args:
        filled: By number of buckets M: an interval that holds the number of those that hold an
            item. From any estimator; the errors of estimator and hash add up.
        rarity: ln(1/miss) of each of the two bounds that a scale gives.

    Returns:
        The intersection over all scales, (low, high).
    """
    low = max(fewest(max(ends[0], 0), size, rarity) for size, ends in filled.items())
    high = min(most_that_fill(max(ends[1], 0), size, rarity) for size, ends in filled.items())
    return low, max(low, high)


def pays_from(half: int, eta: float, rarity: Decimal) -> int:
    """Items from which `reduced` is within a factor of 1 + eta, if a scale of the right size exists.

    Args:
        half: Additive error of the estimator, in filled buckets, on every scale.
        eta: Above 0.
        rarity: As for `reduced`.

    Returns:
        The least power of two D from which, with D items in D buckets, the ends are at most a
        factor of 1 + eta apart.
    """
    return _least_power(lambda size: _ratio_at(size, half, rarity) <= 1 + eta)


def _ratio_at(size: int, half: int, rarity: Decimal) -> float:
    filled = round(size * -math.expm1(size * math.log1p(-1 / size))) if size > 1 else 1
    low, high = reduced({size: (filled - half, filled + half)}, rarity)
    return high / max(low, 1)


def _least_power(holds: Callable[[int], bool]) -> int:
    size = 1
    while not holds(size):
        size *= 2
    return size


@dataclass(frozen=True, slots=True, kw_only=True)
class ReducedDistinct:
    """`reduced` with the exact small-domain estimator: filled buckets plus fresh noise.

    Bucket totals of the finest scale are all it keeps, so that its memory is 2^height numbers,
    however many items there are. Its error is that of `FreshDistinct` with sqrt(scales) times the
    noise, and the hash's on top: it pays where items are too many to be kept, and nowhere else.

    Guarantee: a record changes, at each scale, whether one bucket is filled, in any subset of its
    rounds: scales T in squared L2, scales T in L1. Exactly retroactive.

    Attributes:
        noise: One node a round and scale.
        lowest: Coarsest scale.
        height: Finest scale, 2^height buckets.
        rarity: ln(1/miss) of each bound, for a round alone.
        rarity_all: For all rounds together.
        level: Coverage of the bracket.
    """

    noise: CalibratedNoise
    lowest: int
    height: int
    rarity: Decimal
    rarity_all: Decimal
    level: Fraction

    @classmethod
    def of(
        cls,
        *,
        horizon: int,
        budget: zCDP | PureDP,
        lowest: int,
        height: int,
        name: str = "distinct",
        level: Fraction = DEFAULT_LEVEL,
    ) -> ReducedDistinct:
        """Calibrate it: half of the miss for the noise of all scales, half for the hash."""
        scales = height - lowest + 1
        split = (1,) * scales
        factor = FreshFactor(horizon=horizon, window=horizon)
        process = process_of(factor, budget, split=split)
        miss = (1 - level) / 2
        noise = CalibratedNoise.of(
            name, process, step=Fraction(1), amount=1, split=split, level=1 - miss / scales
        )
        return cls(
            noise=noise,
            lowest=lowest,
            height=height,
            rarity=rarity_of(miss / (2 * scales)),
            rarity_all=rarity_of(miss / (2 * scales * horizon)),
            level=level,
        )

    @property
    def name(self) -> str:
        """Label of the noise."""
        return self.noise.release

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        """The bracket of a round; `exact` as `bucket_sums` without signs at `height` gives it."""
        full = {int.from_bytes(name, "big") for name, total in exact.items() if total > 0}
        scales = range(self.lowest, self.height + 1)
        where = Coordinates.of_indices(len(scales))
        draws = self.noise.draw(round_, keys, where).tolist()
        noisy = {
            1 << scale: len({bucket >> (self.height - scale) for bucket in full}) + draw
            for scale, draw in zip(scales, draws, strict=True)
        }
        at = round_ - 1
        alone, together = (
            reduced({size: (n - half, n + half) for size, n in noisy.items()}, rarity)
            for half, rarity in (
                (self.noise.half[at], self.rarity),
                (self.noise.half_all[at], self.rarity_all),
            )
        )
        return bracketed(self.name, round_, alone, together, level=self.level)
