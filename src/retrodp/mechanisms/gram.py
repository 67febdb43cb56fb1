"""Count, sums and products of clipped vectors, and the means and covariances that follow."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from retrodp.mechanisms.answer import Answer, Bounds
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.parts import part_of
from retrodp.mechanisms.several_noises import SeveralNoises
from retrodp.noise.key import NoiseKeys
from retrodp.noise.prf import Coordinates
from retrodp.plan.decimals import common_step
from retrodp.postprocess.covariance import (
    Interval,
    around,
    covariance_interval,
    mean_interval,
)
from retrodp.statistics.moments import COUNT, PRODUCTS, SUMS, Moments, coordinate, label

MEAN, COVARIANCE = "mean", "covariance"
FINER = 100  # means and covariances are published in hundredths of the common step
PARTS_OF_A_COVARIANCE = 4  # noisy numbers: count, two sums, a product


class Halves(NamedTuple):
    """Half widths of count, sums and products, in their own steps, one a round."""

    of_count: tuple[int, ...]
    of_sums: tuple[int, ...]
    of_products: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMoments(SeveralNoises):
    """Sums of 1, x and x x' over surviving records, |x| at most a public norm, every round.

    Guarantee: one vector mechanism (KKMNS theorem 3.2), its parts charged by the exact largest norms
    of x and of the products of its coordinates; means and covariances are memoryless post-processing,
    so all of it is exactly retroactive (KKMNS lemma 3.3).

    Intervals of counts, sums and products follow from the noise law alone. Those of means and
    covariances cover the ranges of all noisy numbers that they are made of at once, each of which
    misses with a quarter of the allowed probability; they are wider than need be, and never too
    narrow.

    Attributes:
        name: Of the release.
        statistic: Columns and norm.
        count: Noise of the count.
        sums: Noise of the sums.
        products: Noise of squares and products.
        halves: Half widths at a quarter of the miss, for a round alone.
        halves_all: The same for all rounds at once.
        level: Coverage of the intervals.
    """

    name: str
    statistic: Moments
    count: CalibratedNoise
    sums: CalibratedNoise
    products: CalibratedNoise
    halves: Halves
    halves_all: Halves
    level: Fraction

    @property
    def step(self) -> Fraction:
        """A hundredth of the coarsest grid that holds 1, the columns' step and its square."""
        return common_step(noise.step for noise in self.noises) / FINER

    @property
    def noises(self) -> tuple[CalibratedNoise, ...]:
        """Of all parts."""
        return self.count, self.sums, self.products

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        """Count, sums, products, means and covariances."""
        noisy = self._noisy(round_, exact, keys)
        found = sorted(
            (
                *self._raw(round_, noisy),
                *self._means(round_, noisy),
                *self._covariances(round_, noisy),
            ),
            key=lambda one: one[0].encode(),
        )
        bounds = [one[2] for one in found]
        return Answer.of_each(
            release=self.name,
            round=round_,
            keys=(key for key, _, _ in found),
            values=(value for _, value, _ in found),
            step=self.step,
            level=self.level,
            each=bounds,
        )

    def _noisy(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> _Noisy:
        names, pairs = self.statistic.names, self.statistic.pairs

        def drawn(noise: CalibratedNoise, places: list[bytes]) -> tuple[int, ...]:
            draws = noise.draw(round_, keys, Coordinates.of_indices(len(places))).tolist()
            return tuple(
                exact.get(place, 0) + draw for place, draw in zip(places, draws, strict=True)
            )

        (count,) = drawn(self.count, [coordinate(COUNT)])
        return _Noisy(
            count,
            drawn(self.sums, [coordinate(SUMS, name) for name in names]),
            drawn(self.products, [coordinate(PRODUCTS, names[i], names[j]) for i, j in pairs]),
        )

    def _raw(self, round_: int, noisy: _Noisy) -> Iterator[tuple[str, int, Bounds]]:
        names, at = self.statistic.names, round_ - 1
        labels = [label(COUNT)]
        labels += [label(SUMS, name) for name in names]
        labels += [label(PRODUCTS, names[i], names[j]) for i, j in self.statistic.pairs]
        noises = (
            [self.count] + [self.sums] * len(noisy.sums) + [self.products] * len(noisy.products)
        )
        totals = [noisy.number, *noisy.sums, *noisy.products]
        for key, noise, total in zip(labels, noises, totals, strict=True):
            factor = int(noise.step / self.step)
            value = total * factor
            half, half_all = noise.half[at] * factor, noise.half_all[at] * factor
            ends = (value - half, value + half, value - half_all, value + half_all)
            yield key, value, Bounds(noise.stddev[at], *ends)

    def _means(self, round_: int, noisy: _Noisy) -> Iterator[tuple[str, int | None, Bounds]]:
        bounds, step = self.statistic.bounds, self.statistic.step
        for place, name in enumerate(self.statistic.names):
            bound = Fraction(bounds[place])
            value = None
            if noisy.number >= 1:
                mean = Fraction(noisy.sums[place], noisy.number)
                value = _within(mean, bound) * step
            both = [
                self._mean(halves, round_, noisy, place)
                for halves in (self.halves, self.halves_all)
            ]
            yield self._derived(label(MEAN, name), value, both, step)

    def _covariances(self, round_: int, noisy: _Noisy) -> Iterator[tuple[str, int | None, Bounds]]:
        names, bounds = self.statistic.names, self.statistic.bounds
        step, grain = self.statistic.step**2, self.statistic.grain
        for place, (one, two) in enumerate(self.statistic.pairs):
            bound = Fraction(bounds[one] * bounds[two])
            value = None
            if noisy.number >= 1:
                means = [
                    _within(Fraction(noisy.sums[each], noisy.number), Fraction(bounds[each]))
                    for each in (one, two)
                ]
                product = _within(Fraction(noisy.products[place] * grain, noisy.number), bound)
                covariance = _within(product - means[0] * means[1], bound)
                value = (max(covariance, Fraction(0)) if one == two else covariance) * step
            both = []
            for halves in (self.halves, self.halves_all):
                product_range = self._product(halves, round_, noisy, place, bound)
                both.append(
                    covariance_interval(
                        product_range,
                        self._mean(halves, round_, noisy, one),
                        self._mean(halves, round_, noisy, two),
                        square=one == two,
                        bound=bound,
                    )
                )
            yield self._derived(label(COVARIANCE, names[one], names[two]), value, both, step)

    def _mean(self, halves: Halves, round_: int, noisy: _Noisy, place: int) -> Interval:
        """Where the mean of a column can lie, in steps."""
        return mean_interval(
            around(noisy.number, halves.of_count[round_ - 1]),
            around(noisy.sums[place], halves.of_sums[round_ - 1]),
            Fraction(self.statistic.bounds[place]),
        )

    def _product(
        self, halves: Halves, round_: int, noisy: _Noisy, place: int, bound: Fraction
    ) -> Interval:
        """Where a mean product can lie, in squared steps."""
        grain = self.statistic.grain
        total = around(noisy.products[place], halves.of_products[round_ - 1])
        found = mean_interval(
            around(noisy.number, halves.of_count[round_ - 1]), total, bound / grain
        )
        # Rounding moves the product of a record by less than a step.
        spare = 1 if grain > 1 else 0
        return Interval((found.low - spare) * grain, (found.high + spare) * grain).within(bound)

    def _derived(
        self, key: str, value: Fraction | None, both: list[Interval], step: Fraction
    ) -> tuple[str, int | None, Bounds]:
        """A number in published steps, with the intervals rounded outward."""
        fine = None if value is None else math.floor(value / self.step + Fraction(1, 2))
        ends: list[int] = []
        for low, high in both:
            ends += (math.floor(low * step / self.step), math.ceil(high * step / self.step))
        return key, fine, Bounds("", *ends)

    def describe(self) -> dict[str, Any]:
        """Public facts; the errors are those of the products. Those of means follow from the data."""
        return {
            "mechanism": "moments of vectors",
            "of": list(self.statistic.names),
            "norm": str(self.statistic.norm),
            **self.products.describe(),
            "parts": [
                part_of(noise, what)
                for noise, what in zip(self.noises, (COUNT, SUMS, PRODUCTS), strict=True)
            ],
        }


def _within(value: Fraction, bound: Fraction) -> Fraction:
    """The nearest number within a bound of zero."""
    return min(max(value, -bound), bound)


class _Noisy(NamedTuple):
    """Noisy sums of one round, each in its own steps."""

    number: int
    sums: tuple[int, ...]
    products: tuple[int, ...]


def narrow_halves(noises: tuple[CalibratedNoise, ...], level: Fraction) -> tuple[Halves, Halves]:
    """Half widths at a part of the miss, for a round alone and for all rounds of a number.

    Args:
        noises: Of count, sums and products.
        level: Of the release's intervals.
    """
    made = [noise.at_level(1 - (1 - level) / PARTS_OF_A_COVARIANCE) for noise in noises]
    return (
        Halves(*(noise.half for noise in made)),
        Halves(*(noise.half_all for noise in made)),
    )
