"""Different items of a raw signed stream, whose counts may be negative."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from retrodp import _check
from retrodp.errors import UsageError
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.calibrate import (
    DEFAULT_LEVEL,
    choose_factor,
    process_of,
)
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.ladder import MOST_HEIGHT, Ladder, height_for
from retrodp.noise.key import NoiseKeys
from retrodp.privacy.budget import PureDP, zCDP
from retrodp.statistics.contract import PURPOSE
from retrodp.statistics.items import bucket_sums


class SignedDistinct:
    """Number of items whose count is not zero, where updates are bare numbers of any sign.

    Records of a store never count below zero: a deletion of nothing does nothing. A raw stream of
    (item, +1 or -1) has no such rule; `encode` turns its updates into sums for `release`, and the
    caller adds them up from round to round.

    Guarantee: `budget` for streams that differ in one update, which counts from its round to the
    last; as `Ladder` in all else. An item is seen through random signs, so the upper end is about
    41 (tau + 1)^2 times as large as the number of filled buckets where an unsigned ladder has
    2 tau. Source: theorem 4.1 of "Skirting Additive Error Barriers for Private Turnstile Streams"
    (ICLR 2026); the constant is derived in `retrodp.postprocess.occupancy`.
    """

    def __init__(
        self,
        *,
        horizon: int,
        budget: zCDP | PureDP,
        high: int,
        name: str = "distinct",
        level: Fraction = DEFAULT_LEVEL,
    ) -> None:
        """Calibrate the noise.

        Args:
            horizon: Rounds covered.
            budget: `zCDP(rho)` for Gaussian noise, `PureDP(epsilon)` for Laplace noise.
            high: Greatest number of items expected; more only widen the bracket.
            name: Label of the noise and of the hash.
            level: Coverage of the bracket.
        """
        _check.whole(least=1, horizon=horizon, high=high)
        _check.probability(level=level)
        height = min(height_for(high), MOST_HEIGHT)
        split = (1,) * (height + 1)
        law = "gaussian" if isinstance(budget, zCDP) else "laplace"
        factor = choose_factor("auto", horizon=horizon, law=law)
        process = process_of(factor, budget, split=split)
        noise = CalibratedNoise.of(
            name, process, step=Fraction(1), amount=1, split=split, level=level
        )
        self.ladder = Ladder.of(noise, height=height, signed=True)

    def encode(self, items: Sequence[bytes], signs: ArrayLike, keys: NoiseKeys) -> dict[bytes, int]:
        """Sums of one batch of updates on the buckets that they touch.

        Args:
            items: Labels, canonical bytes.
            signs: +1 or -1 each; the guarantee is for one update of that size.
            keys: Of the stream; the hash lasts as long as they do.
        """
        amounts = np.asarray(signs, dtype=np.int64)
        if amounts.shape != (len(items),) or bool((np.abs(amounts) != 1).any()):
            raise UsageError("Updates of a signed stream are +1 or -1, one an item.")
        key = keys.lasting_key(release=self.ladder.name, purpose=PURPOSE)
        return bucket_sums(items, amounts, key=key, height=self.ladder.height, signed=True)

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        """The bracket of a round, from the sums of all updates up to it."""
        return self.ladder.release(round_, exact, keys)
