"""Sum of the squared numbers of records by item, from a sketch whose counters are hidden."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from retrodp.mechanisms.answer import Answer, Bounds
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.one_noise import OneNoise
from retrodp.mechanisms.spread import mean_square
from retrodp.noise.key import NoiseKeys
from retrodp.noise.prf import Coordinates
from retrodp.statistics.buckets import Ints, read

VARIANCE_STEPS = 1 << 20
"""Variances are stored in this part of a squared step."""

_GAUSSIAN, _LAPLACE = 3, 6  # fourth moment over the squared variance, if that is large
_LARGEST = 1 << 63


class Spread(NamedTuple):
    """How far the published number strays, in deviations of a row; see `mechanisms.spread`.

    Attributes:
        squared: q^2 of a round.
        squared_all: q^2 of all rounds at once.
        share: Variance of the published number over that of a row.
    """

    squared: Fraction
    squared_all: Fraction
    share: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondMoment(OneNoise):
    """Publishes the debiased squares of a noisy sketch, made one by the median or mean of its rows.

    Guarantee: all counters are one vector mechanism, charged by what a record moves; exactly
    retroactive, since noise and hashes are functions of key and name. A row of B buckets estimates
    F2 without bias and with variance (2 / B) (F2 + B v)^2 at most, v the noise's variance (dense:
    (2 / B) (F2 + v)^2, with a larger v). The intervals hold for any data. Source: CountSketch
    (Charikar, Chen, Farach-Colton 2002) for squares; dense: theorem 5.1 of "Skirting Additive Error
    Barriers for Private Turnstile Streams" (2026).

    Attributes:
        noise: Of each counter.
        rows: Of the sketch.
        buckets: Of a row.
        dense: Whether every record moves every counter.
        middle: Whether the rows' median is published, or their mean.
        variances: Mean squares of the noise by round, in `1 / VARIANCE_STEPS` of a squared step.
        spread: Of the published number.
    """

    noise: CalibratedNoise
    rows: int
    buckets: int
    dense: bool
    middle: bool
    variances: tuple[int, ...]
    spread: Spread

    @property
    def step(self) -> Fraction:
        """One squared record."""
        return Fraction(1)

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        """The answer of one round; `exact` holds the counters that are not zero.

        Empty buckets are read like full ones.
        """
        size = self.rows * self.buckets
        counters = read(exact, size)
        counters += self.noise.draw(round_, keys, Coordinates.of_indices(size))
        estimates = [self._row(row, round_) for row in counters.reshape(self.rows, self.buckets)]
        whole = median(estimates) if self.middle else sum(estimates) / self.rows
        value = max(0, math.floor(whole + Fraction(1, 2)))
        low, high = self._interval(float(whole), round_, self.spread.squared)
        low_all, high_all = self._interval(float(whole), round_, self.spread.squared_all)
        bounds = Bounds(f"{self.stddev_at(value, round_):.6g}", low, high, low_all, high_all)
        return Answer.of_one(
            value, bounds, release=self.name, round=round_, step=self.step, level=self.noise.level
        )

    def _row(self, counters: Ints, round_: int) -> Fraction:
        variance = Fraction(self.variances[round_ - 1], VARIANCE_STEPS)
        return (_squares(counters) - self.buckets * variance) / self._divisor

    @property
    def _divisor(self) -> int:
        """Times that a row counts the moment."""
        return self.buckets if self.dense else 1

    def stddev_at(self, moment: float, round_: int) -> float:
        """Predicted standard deviation of the published number where the moment is known."""
        return math.sqrt(self._row_variance(moment, round_) * float(self.spread.share))

    def _row_variance(self, moment: float, round_: int) -> float:
        hashes, cross, noise = self._terms(round_)
        return hashes * moment * moment + cross * moment + noise

    def _terms(self, round_: int) -> tuple[float, float, float]:
        """The variance of a row as a polynomial of the moment, from the square down."""
        variance = self.variances[round_ - 1] / VARIANCE_STEPS
        added = variance * self.buckets / self._divisor
        # Whole numbers that are hardly ever more than 1 have a fourth moment like their second.
        gaussian = self.noise.process.law == "gaussian"
        fourth = max(_GAUSSIAN * variance, 1 + variance) if gaussian else 1 + _LAPLACE * variance
        noise = (fourth - variance) * variance * self.buckets / self._divisor**2
        return 2 / self.buckets, 4 * added / self.buckets, noise

    def _interval(self, whole: float, round_: int, squared: Fraction) -> tuple[int, int]:
        """All moments from which the estimate is at most q deviations away."""
        hashes, cross, noise = (float(squared) * term for term in self._terms(round_))
        # (1 - hashes) x^2 - (2 whole + cross) x + whole^2 - noise <= 0
        first, second = 1 - hashes, whole + cross / 2
        root = math.sqrt(max(0.0, second**2 - first * (whole**2 - noise)))
        return max(0, math.floor((second - root) / first)), max(
            0, math.ceil((second + root) / first)
        )

    def describe(self) -> dict[str, Any]:
        """Public facts; the errors are those at a moment of 0, and grow with it."""
        worst = 1 + max(range(len(self.variances)), key=self.variances.__getitem__)
        return {
            "mechanism": "second moment of a sketch",
            **self.noise.describe(),
            "step": "1",
            "rows": self.rows,
            "buckets": self.buckets,
            "dense": self.dense,
            "estimate": "median of rows" if self.middle else "mean of rows",
            "stddev_max": self.stddev_at(0, worst),
            "error_max": float(self._interval(0, worst, self.spread.squared)[1]),
            "error_all_max": float(self._interval(0, worst, self.spread.squared_all)[1]),
            "relative_stddev": math.sqrt(2 / self.buckets * float(self.spread.share)),
        }


def fits(spread: Spread, buckets: int) -> bool:
    """Whether intervals of a round and of all rounds are finite."""
    return max(spread.squared, spread.squared_all) * 2 / buckets < Fraction(9, 10)


def stored_variances(noise: CalibratedNoise) -> list[int]:
    """What the resolved plan keeps of the noise's mean squares."""
    rounds = range(1, noise.horizon + 1)
    return [round(mean_square(noise.process, round_) * VARIANCE_STEPS) for round_ in rounds]


def _squares(counters: Ints) -> int:
    """Sum of squares; exact whatever their size."""
    if int(np.abs(counters).max()) ** 2 * len(counters) < _LARGEST:
        return int(counters @ counters)
    return sum(value * value for value in counters.tolist())
