r"""Quantiles, medians and interior points by the exponential mechanism on a grid, drawn exactly.

Promise: a grid point of level d (how far its rank is from the one that is wanted) is drawn with
probability proportional to ``G^-d``, G a fraction, exactly; no float decides anything.

**Quantile at a/b.** With m values, ``lo`` below y and ``hi`` not above it, the level of y is the
distance of ``a m`` from ``[b lo, b hi]``. One value more or less moves it by at most
``D = max(a, b - a)``, one value replaced by at most b. So the draw is ``2 D ln G``-private for adding
or removing a record and ``2 b ln G`` for replacing one.

**Interior point.** The depth of y is the smaller of the numbers of values not above and not below it;
its level is the greatest depth less its own. A value more raises every depth by 0 or 1 and none falls,
so a weight and the sum of all weights grow by factors in [1, G], and the draw is ``ln G``-private: half
of what a depth that can go either way would cost.

**Error.** Among X grid points, levels above t are drawn with probability at most ``X G^-t``, since a
point of level 0 exists.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

from retrodp._check import instance, positive, probability
from retrodp.errors import PlanError
from retrodp.mechanisms.oneshot.contract import Values, require_grid
from retrodp.noise.coins import Coins
from retrodp.privacy.sampling import OneShot

_RATIO_BITS = 24


class Segment(NamedTuple):
    """Neighbouring grid points of one level."""

    start: int
    length: int
    level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GridQuantile:
    """A value of the grid whose rank is near a share of the values.

    Attributes:
        epsilon: For adding or removing one record.
        share: Of the values, strictly between 0 and 1; 1/2 is the median.
        low: First grid point, in steps.
        high: Last grid point.
        step: Size of a step.
    """

    epsilon: Fraction
    share: Fraction
    low: int
    high: int
    step: Fraction

    def __post_init__(self) -> None:
        positive(epsilon=self.epsilon)
        instance(Fraction, expected="an exact fraction", share=self.share)
        probability(share=self.share)
        require_grid(self.low, self.high, self.step)

    @property
    def guarantee(self) -> OneShot:
        """``epsilon``, and b/D times it for a replacement."""
        most, whole = self._moves
        return OneShot(epsilon=self.epsilon, replace_epsilon=self.epsilon * whole / most)

    @property
    def labels(self) -> None:
        """One number."""
        return None

    @property
    def _moves(self) -> tuple[int, int]:
        """D and b."""
        whole = self.share.denominator
        return max(self.share.numerator, whole - self.share.numerator), whole

    @property
    def ratio(self) -> Fraction:
        """G."""
        return ratio_below(self.epsilon / (2 * self._moves[0]))

    def answer(self, sample: Sequence[Values], coins: Coins) -> Sequence[int | None]:
        """One grid point."""
        values = sorted(value for (value,) in sample if isinstance(value, int))
        part, whole = self.share.numerator * len(values), self.share.denominator

        def level(below: int, not_above: int) -> int:
            return max(0, whole * below - part, part - whole * not_above)

        return (drawn(_segments(values, self.low, self.high, level), self.ratio, coins),)

    def rank_error(self, miss: float) -> float:
        """Rank error within the sample, in records, that is exceeded with at most this chance."""
        return _levels(self.high - self.low + 1, self.ratio, miss) / self.share.denominator

    def describe(self) -> dict[str, Any]:
        """Public facts."""
        return {
            "mechanism": "exponential mechanism for a quantile",
            "share": str(self.share),
            "grid": self.high - self.low + 1,
            "epsilon_once": str(self.epsilon),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class InteriorPoint:
    """A grid point between the least and the greatest value (KKMNS corollary 5.9).

    It is the depth-weighted median, so most of the time it lies well inside. From
    `values_needed` on it lies between the extremes except with the stated probability.

    Attributes:
        epsilon: For adding or removing one record.
        low: First grid point, in steps.
        high: Last grid point.
        step: Size of a step.
    """

    epsilon: Fraction
    low: int
    high: int
    step: Fraction

    def __post_init__(self) -> None:
        positive(epsilon=self.epsilon)
        require_grid(self.low, self.high, self.step)

    @property
    def guarantee(self) -> OneShot:
        """``epsilon``; a replacement is two steps."""
        return OneShot(epsilon=self.epsilon)

    @property
    def labels(self) -> None:
        """One number."""
        return None

    @property
    def ratio(self) -> Fraction:
        """G."""
        return ratio_below(self.epsilon)

    def answer(self, sample: Sequence[Values], coins: Coins) -> Sequence[int | None]:
        """One grid point."""
        values = sorted(value for (value,) in sample if isinstance(value, int))
        count = len(values)
        greatest = (count + 1) // 2

        def level(below: int, not_above: int) -> int:
            return greatest - min(not_above, count - below)

        return (drawn(_segments(values, self.low, self.high, level), self.ratio, coins),)

    def rank_error(self, miss: float) -> float:
        """Depth less than half the sample, in records, that is exceeded with at most this chance."""
        return _levels(self.high - self.low + 1, self.ratio, miss)

    def describe(self) -> dict[str, Any]:
        """Public facts."""
        return {
            "mechanism": "exponential mechanism for an interior point",
            "grid": self.high - self.low + 1,
            "epsilon_once": str(self.epsilon),
            "values_needed": values_needed(
                self.high - self.low + 1, epsilon=self.epsilon, miss=0.05
            ),
        }


def values_needed(grid: int, *, epsilon: Fraction, miss: float) -> int:
    """Sample size from which an interior point is found except with probability `miss`.

    A point of depth 0 has level (m + 1) // 2 at least: ``m = 2 / eps0 (ln X + ln 1/miss)``.
    """
    levels = _levels(grid, ratio_below(epsilon), miss)
    return 2 * math.floor(levels) + 1


def ratio_below(logarithm: Fraction) -> Fraction:
    """A fraction of 24 bits not above ``exp(logarithm)``, and above 1."""
    bits = _RATIO_BITS + max(0, -math.floor(math.log2(min(1.0, float(logarithm)))))
    if float(logarithm) > 500:
        raise PlanError("An epsilon of one round above 500 is no privacy.")
    above_one = math.floor(math.expm1(float(logarithm)) * (1 - 1e-12) * 2**bits)
    return 1 + Fraction(above_one, 2**bits)


def drawn(segments: Sequence[Segment], ratio: Fraction, coins: Coins) -> int:
    """A grid point with probability proportional to ``ratio^-level``, exactly."""
    least = min(segment.level for segment in segments)
    sizes = [0] * (max(segment.level for segment in segments) - least + 1)
    for segment in segments:
        sizes[segment.level - least] += segment.length
    level = coins.level(sizes, ratio) + least
    place = coins.below(sizes[level - least])
    for segment in segments:
        if segment.level == level:
            if place < segment.length:
                return segment.start + place
            place -= segment.length
    raise AssertionError


def _segments(values: Sequence[int], low: int, high: int, level: _Level) -> list[Segment]:
    """The grid cut at the values, each piece of one level."""
    found: list[Segment] = []
    start = low
    for value in sorted({min(max(value, low), high) for value in values}):
        if start < value:
            # Between two neighbouring values as many are below as not above.
            below = bisect_left(values, start)
            found.append(Segment(start, value - start, level(below, below)))
        below, not_above = bisect_left(values, value), bisect_right(values, value)
        found.append(Segment(value, 1, level(below, not_above)))
        start = value + 1
    if start <= high:
        below = bisect_left(values, start)
        found.append(Segment(start, high - start + 1, level(below, below)))
    return found


class _Level(Protocol):
    def __call__(self, below: int, not_above: int, /) -> int: ...


def _levels(grid: int, ratio: Fraction, miss: float) -> float:
    """Level that is exceeded with probability at most `miss`."""
    probability(miss=miss)
    return (math.log(grid) - math.log(miss)) / math.log1p(float(ratio - 1))
