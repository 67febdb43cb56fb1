"""Means: a noisy centred sum over a noisy count, with an interval that covers both errors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from retrodp.mechanisms.answer import Answer, Bounds
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.contract import Adaptive, Retroactive
from retrodp.mechanisms.guarantee import adaptive_guarantee
from retrodp.noise.key import NoiseKeys
from retrodp.noise.prf import Coordinates
from retrodp.noise.processes import AnyFactor
from retrodp.privacy.loss import PrivacyLoss
from retrodp.statistics.means import COUNT, SUM, CentredMean, coordinate

FINER = 100  # a mean is published in hundredths of the column's step
CERTAIN = 10
"""Deviations of a count from which on a standard deviation of the first order is claimed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanOfBins:
    """Mean of a bounded column, whole or for a public set of bins.

    Guarantee: privacy of its two parts together, which are counters (KKMNS theorem 3.2); the
    quotient is memoryless post-processing, so it is exactly retroactive (KKMNS lemma 3.3).

    The interval is honest at any size: each part holds at half the allowed miss, and the quotient
    is bounded over the rectangle of both. Where the count may be 0 it is the whole public range,
    and where the noisy count is below 1 there is no value.

    Attributes:
        name: Of the release.
        statistic: Column, centre and bins.
        bins: Public labels, sorted by UTF-8 bytes; None for a single mean.
        total: Noise of the centred sum.
        count: Noise of the count.
        level: Coverage of the interval.
    """

    name: str
    statistic: CentredMean
    bins: tuple[str, ...] | None
    total: CalibratedNoise
    count: CalibratedNoise
    level: Fraction

    @property
    def step(self) -> Fraction:
        """A hundredth of the column's step."""
        return self.total.step / FINER

    @property
    def factor(self) -> AnyFactor:
        """Nodes of the noise of both parts."""
        return self.total.process.factor

    @property
    def retroactive(self) -> Retroactive:
        """Exactly retroactive: memoryless post-processing of two counters."""
        return "exact"

    @property
    def adaptive(self) -> Adaptive:
        """As for the parts."""
        return adaptive_guarantee(self.total.process)

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        """One mean a bin, in hundredths of the column's step."""
        labels = ("",) if self.bins is None else self.bins
        where = Coordinates.of_indices(len(labels))
        sums = self.total.draw(round_, keys, where).tolist()
        counts = self.count.draw(round_, keys, where).tolist()
        values: list[int | None] = []
        bounds: list[Bounds] = []
        for label, sum_noise, count_noise in zip(labels, sums, counts, strict=True):
            total = exact.get(coordinate(SUM, label.encode()), 0) + sum_noise
            count = exact.get(coordinate(COUNT, label.encode()), 0) + count_noise
            values.append(self._value(total, count))
            bounds.append(self._bounds(round_, total, count))
        return Answer.of_each(
            release=self.name,
            round=round_,
            keys=self.bins,
            values=values,
            step=self.step,
            level=self.level,
            each=bounds,
        )

    @property
    def _range(self) -> tuple[int, int]:
        """Public bounds of the column less the centre, in steps."""
        _, (least, greatest) = self.statistic.of.grid
        return least - self.statistic.centre, greatest - self.statistic.centre

    def _fine(self, centred: Fraction) -> Fraction:
        """A centred mean inside the public range, in published steps."""
        least, greatest = self._range
        return (
            min(max(centred, Fraction(least)), Fraction(greatest)) + self.statistic.centre
        ) * FINER

    def _value(self, total: int, count: int) -> int | None:
        return (
            None if count < 1 else math.floor(self._fine(Fraction(total, count)) + Fraction(1, 2))
        )

    def _bounds(self, round_: int, total: int, count: int) -> Bounds:
        at = round_ - 1
        low, high = self._interval(total, count, self.total.half[at], self.count.half[at])
        low_all, high_all = self._interval(
            total, count, self.total.half_all[at], self.count.half_all[at]
        )
        return Bounds(self._stddev(round_, total, count), low, high, low_all, high_all)

    def _interval(self, total: int, count: int, off_sum: int, off_count: int) -> tuple[int, int]:
        """Ends of the quotient over all sums and counts within their errors."""
        least, greatest = count - off_count, count + off_count
        low, high = (Fraction(end) for end in self._range)
        if least >= 1:
            smallest, largest = total - off_sum, total + off_sum
            low = Fraction(smallest, greatest if smallest > 0 else least)
            high = Fraction(largest, least if largest > 0 else greatest)
        return math.floor(self._fine(low)), math.ceil(self._fine(high))

    def _stddev(self, round_: int, total: int, count: int) -> str:
        """First-order standard deviation of the quotient, from noisy numbers only.

        Of the error after the cut at the column's bounds, were the published mean the exact one.
        None where the count is not far above its own error: there the quotient follows no law that
        one number would describe.
        """
        sum_error = float(self.total.stddev[round_ - 1])
        count_error = float(self.count.stddev[round_ - 1])
        if count < max(1, CERTAIN * count_error):
            return ""
        step = float(self.total.step)
        mean = total / count * step
        stddev = math.hypot(sum_error, mean * count_error) / count
        least, greatest = (float(end) * step for end in self._range)
        mean = min(max(mean, least), greatest)
        return f"{stddev * _cut((least - mean) / stddev, (greatest - mean) / stddev):.6g}"

    def cost(self) -> tuple[PrivacyLoss, ...]:
        """Both parts over the whole horizon for one unit."""
        return self.total.losses() + self.count.losses()

    def describe(self) -> dict[str, Any]:
        """Public facts about the mechanism; the errors are those of the sum and of the count."""
        return {
            "mechanism": "mean of sum and count",
            "bins": None if self.bins is None else len(self.bins),
            **self.total.describe(),
            "of_the_count": self.count.describe(),
        }


def _cut(low: float, high: float) -> float:
    """Root mean square of a standard normal error that is cut at `low` <= 0 <= `high`."""
    below, above = _normal(low), _normal(-high)
    inside = 1 - below - above + low * _density(low) - high * _density(high)
    return math.sqrt(inside + low**2 * below + high**2 * above)


def _normal(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def _density(x: float) -> float:
    return math.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
