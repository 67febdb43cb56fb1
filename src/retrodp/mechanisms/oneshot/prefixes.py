r"""An interior point of a huge domain, by prefixes: the sample grows with the logarithm of its digits.

Promise: private for adding, removing and replacing one value alike, exactly drawn. Of use where a
grid has more than some 2^250 points; below, `ranks.InteriorPoint` needs fewer values.

**The mechanism.** With d binary digits and pairs of values drawn at random,

1. choose a length z in 0..d at which many pairs agree on z digits or fewer, and many on z or more: the
   exponential mechanism on ``min(#{agree <= z} - low, #{agree >= z} - high)``;
2. publish, within, the prefixes of z digits that hold at least a noisy threshold of values, and take the
   fullest;
3. of its first value, its middle (the first with digit 1 after the prefix) and its last, draw one by
   depth, by the exponential mechanism.

If few values lie before the prefix and few behind it, pairs that agree on at most z digits lie within it
and part there, so its middle is deep; otherwise its first or last value is. Many pairs agree on z digits
only if a prefix holds many values.

**Privacy.** Couple the random pairings: a value more, less or other makes one agreement more, less or
other. Both counts of 1 change by one at most, so it is ``2 ln G`` = epsilon/3 private. In 2 the counts
change by 2 in L1, which noise of scale 6/epsilon pays for, unless a prefix with a single value is
published: delta. Depths in 3 change by one.

Source: Bun, Nissim, Stemmer, Vadhan 2015, section 3, one step of the recursion with the exponential
mechanism in the place of the next, constants worked out anew.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from retrodp._check import positive, probability
from retrodp.mechanisms.oneshot.contract import Values, require_grid
from retrodp.mechanisms.oneshot.ranks import Segment, drawn, ratio_below
from retrodp.noise.coins import Coins
from retrodp.privacy.sampling import OneShot

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixInteriorPoint:
    """A value between the least and the greatest, from few values of very many digits.

    Attributes:
        epsilon: For adding, removing or replacing one value.
        delta: Likewise.
        miss: Probability of failure that the mechanism is laid out for, from `values_needed` on.
        low: First point of the domain, in steps.
        high: Last point.
        step: Size of a step.
    """

    epsilon: Fraction
    delta: Fraction
    miss: float
    low: int
    high: int
    step: Fraction

    def __post_init__(self) -> None:
        positive(epsilon=self.epsilon)
        probability(delta=self.delta, miss=self.miss)
        require_grid(self.low, self.high, self.step)

    @property
    def guarantee(self) -> OneShot:
        """The same for a replacement as for a value more or less."""
        return OneShot(
            epsilon=self.epsilon,
            delta=self.delta,
            replace_epsilon=self.epsilon,
            replace_delta=self.delta,
        )

    @property
    def labels(self) -> None:
        """One number."""
        return None

    @property
    def digits(self) -> int:
        """Binary digits of the domain, d."""
        return (self.high - self.low).bit_length()

    @property
    def scale(self) -> Fraction:
        """Of the noise on the numbers of values of a prefix."""
        return 6 / self.epsilon

    @property
    def threshold(self) -> int:
        """Least noisy number from which on a prefix is published: one value reaches it with delta."""
        return 1 + math.ceil(float(self.scale) * math.log(1 / float(self.delta)) * (1 + _ROUNDING))

    @property
    def ratio(self) -> Fraction:
        """G, of both draws: a step of either changes a weight by this factor."""
        return ratio_below(self.epsilon / 6)

    @property
    def depth(self) -> int:
        """Depth from which one of three points is drawn inside, but for a third of the miss."""
        return math.ceil(float(6 / self.epsilon) * math.log(9 / self.miss))

    @property
    def crowd(self) -> int:
        """Values of a prefix that is published, but for a third of the miss."""
        return self.threshold + math.ceil(float(self.scale) * math.log(3 / self.miss))

    @property
    def values_needed(self) -> int:
        """Values from which on an interior point is found but for about the miss."""
        slack = float(6 / self.epsilon) * math.log(3 * (self.digits + 1) / self.miss)
        return 2 * math.ceil(3 * self.depth + self.crowd + 2 * slack)

    def answer(self, sample: Sequence[Values], coins: Coins) -> Sequence[int | None]:
        """One point of the domain, or None if no prefix is published."""
        values = [value - self.low for (value,) in sample if isinstance(value, int)]
        length = self._length(agreements(values, coins, digits=self.digits), coins)
        prefix = self._prefix(Counter(value >> (self.digits - length) for value in values), coins)
        if prefix is None:
            return (None,)
        free = self.digits - length
        first, last = prefix << free, ((prefix + 1) << free) - 1
        points = sorted({first, first + (1 << free >> 1), last})
        depths = [
            min(sum(value <= point for value in values), sum(value >= point for value in values))
            for point in points
        ]
        place = drawn(_levels(depths), self.ratio, coins)
        return (min(self.low + points[place], self.high),)

    def _length(self, agreed: Sequence[int], coins: Coins) -> int:
        scores = [
            min(
                sum(own <= length for own in agreed) - 3 * self.depth,
                sum(own >= length for own in agreed) - self.crowd,
            )
            for length in range(self.digits + 1)
        ]
        return drawn(_levels(scores), self.ratio, coins)

    def _prefix(self, counts: Counter[int], coins: Coins) -> int | None:
        noisy = {
            prefix: count + coins.laplace(self.scale) for prefix, count in sorted(counts.items())
        }
        fullest = max(noisy, key=lambda prefix: noisy[prefix], default=None)
        return None if fullest is None or noisy[fullest] < self.threshold else fullest

    def describe(self) -> dict[str, Any]:
        """Public facts."""
        return {
            "mechanism": "interior point by prefixes",
            "digits": self.digits,
            "epsilon_once": str(self.epsilon),
            "delta_once": str(self.delta),
            "values_needed": self.values_needed,
        }


def agreements(values: Sequence[int], coins: Coins, *, digits: int) -> list[int]:
    """Leading digits in which the values of each random pair agree; one may be left over."""
    order = coins.shuffled(range(len(values)))
    return [
        digits - (values[one] ^ values[other]).bit_length()
        for one, other in zip(order[::2], order[1::2], strict=False)
    ]


def _levels(scores: Sequence[int]) -> list[Segment]:
    best = max(scores)
    return [Segment(place, 1, best - score) for place, score in enumerate(scores)]
