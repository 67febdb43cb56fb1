"""Retroactive k-means and k-median: centres of the surviving points, every round (KKMNS theorem 3.4).

A round's noisy cells give a weighted coreset, the coreset gives centres. Both steps see noisy
numbers of this round and the round's coins alone, so they are memoryless post-processing (KKMNS
lemma 3.3): exactly retroactive, at the price of the counters.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from retrodp import _check
from retrodp.clustering import solver
from retrodp.clustering.cell_tree import Cell, NoisyCells, WeightedPoint, weighted_points
from retrodp.clustering.estimates import Cluster, Errors, Estimates, estimates
from retrodp.clustering.solver import Floats
from retrodp.mechanisms.answer import Answer, Bounds
from retrodp.mechanisms.band import Band
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.parts import part_of
from retrodp.mechanisms.several_noises import SeveralNoises
from retrodp.noise.key import NoiseKeys
from retrodp.plan.columns import Column
from retrodp.plan.decimals import common_step
from retrodp.statistics.cells import COUNT, SQUARE, SUM, Cells
from retrodp.statistics.contract import PURPOSE

Objective = Literal["kmeans", "kmedian"]

COINS = "centres"  # purpose of the key that a round's seeds come from
MOST_COUNTERS = 1 << 20
"""Counters in one sum that the bands are certified for."""

DEVIATIONS = {"few": Fraction(3), "many": Fraction(9, 2)}
"""Standard deviations that a count must exceed: more where a cell has hundreds of children."""

MANY = 4  # bits of branching from which there are many children


class Bands(NamedTuple):
    """How far weighted sums of counts, sums and squares stray."""

    counts: Band
    sums: Band
    squares: Band


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters(SeveralNoises):
    """At most k centres of the surviving points, with sizes and cost.

    Guarantee: one vector mechanism over all cells of the grids (KKMNS theorem 3.2). A record adds 1,
    an offset of norm at most 1 and its square, of at most 1, in cell radii, to one cell a level.
    Everything published is post-processing of these counters, empty cells included.

    Attributes:
        name: Of the release.
        statistic: Cells; bound to the lasting key when a round is released.
        objective: "kmeans" or "kmedian".
        k: Centres asked for.
        count: Noise of the counts.
        sums: Noise of the sums.
        square: Noise of the squares.
        thresholds: Count above which a cell is accepted, by round.
        bands: Of the error bars.
        coreset: Whether the weighted points are published beside the centres.
        level: Coverage of the intervals.
    """

    name: str
    statistic: Cells
    objective: Objective
    k: int
    count: CalibratedNoise
    sums: CalibratedNoise
    square: CalibratedNoise
    thresholds: tuple[int, ...]
    bands: Bands
    coreset: bool
    level: Fraction

    @property
    def step(self) -> Fraction:
        """The grid that holds 1 and every column."""
        return step_of(self.statistic.of)

    @property
    def noises(self) -> tuple[CalibratedNoise, ...]:
        """Of all parts."""
        return self.count, self.sums, self.square

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        """Number of centres, centres, sizes, cost, and the coreset where it is asked for."""
        found = self.found(round_, exact, keys)
        rows = self._rows(round_, found)
        return answer_of(rows, name=self.name, round_=round_, step=self.step, level=self.level)

    def found(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Found:
        """Cells, coreset and centres of the instance of least estimated cost."""
        _check.round_within(round_, len(self.thresholds))
        if self.objective == "kmeans":
            solver.require()  # whatever the data: not only where there are points enough
        secret = keys.lasting_key(release=self.name, purpose=PURPOSE)
        noisy = NoisyCells(
            statistic=self.statistic.keyed(secret),
            count=self.count,
            sums=self.sums,
            square=self.square,
        )
        # Asked for before any data are looked at: a round without a key is refused, whatever they are.
        coins = keys.fresh_key(release=self.name, purpose=COINS, round=round_)
        threshold = self.thresholds[round_ - 1]
        instances = [
            self._instance(
                noisy.read(instance, round_, exact, keys, threshold=threshold), threshold, coins
            )
            for instance in range(self.statistic.instances)
        ]
        return min(instances, key=lambda one: one.rank)

    def _instance(self, cells: tuple[Cell, ...], threshold: int, coins: bytes) -> Found:
        points = weighted_points(cells, threshold)
        kept = [point for point in points if point.kept]
        if not kept:
            return Found(cells, points, None)
        means = np.array([[float(value) / 2 for value in point.mean] for point in kept])
        weights = np.array([float(point.weight) for point in kept])
        if self.objective == "kmeans":
            centres = solver.kmeans(means, weights, self.k, coins=coins)
            power = 2
        else:
            centres = solver.kmedian(means, weights, self.k, coins=coins)
            power = 1
        centres = centres[np.lexsort(centres.T[::-1])]
        return Found(cells, points, estimates(cells, points, centres, power=power))

    def _rows(self, round_: int, found: Found) -> Iterator[Row]:
        """Every published number."""
        one = int(1 / self.step)
        made = found.estimates
        clusters = () if made is None else made.clusters
        yield Row(label("centres"), len(clusters) * one, exactly(len(clusters) * one))
        for number, cluster in enumerate(clusters, start=1):
            yield self._size(round_, number, cluster, one)
            yield from self._centre(round_, number, cluster)
        if made is not None:
            yield self._cost(round_, made)
        if self.coreset:
            yield from self._coreset(found, one)

    def _size(self, round_: int, number: int, cluster: Cluster, one: int) -> Row:
        errors = cluster.size_errors
        ends = self._halves(round_, errors)
        stddev = math.sqrt(errors.squared[0]) * float(self.count.stddev[round_ - 1])
        value = cluster.size * one
        half, half_all = (math.ceil(end) * one for end in ends)
        bounds = Bounds(
            f"{stddev:.6g}", value - half, value + half, value - half_all, value + half_all
        )
        return Row(label("size", number), value, bounds)

    def _centre(self, round_: int, number: int, cluster: Cluster) -> Iterator[Row]:
        """The centre on the columns' grids; for k-means with an interval for its points' mean.

        The points' moment about the centre is the noisy one but for the noise; divided by their
        number it is how far their mean lies from the centre. The interval holds the centre too.
        """
        grid, step = self.statistic.grid, self.step
        for place, column in enumerate(self.statistic.of):
            own, (low, high) = column.grid
            up, down = grid.factors[place]
            per_step = up / 2.0**down
            raw = cluster.centre[place] / per_step + grid.minima[place]
            scale = int(own / step)
            value = min(max(math.floor(raw + 0.5), low), high) * scale
            ends: list[int] = []
            moment = cluster.moments[place]
            halves = self._halves(round_, cluster.centre_errors[place])
            for half, size_half in zip(
                halves, self._halves(round_, cluster.size_errors), strict=True
            ):
                sure = cluster.size - size_half
                if self.objective == "kmedian" or sure < 1:
                    ends += [low * scale, high * scale]
                    continue
                # Half a step more: the mean was rounded to the grid.
                below, above = (
                    math.ceil(max(half + way, 0.0) / sure / per_step + 0.5) * scale
                    for way in (-moment, moment)
                )
                ends += [max(low * scale, value - below), min(high * scale, value + above)]
            yield Row(label("centre", number, column.name), value, Bounds("", *ends))

    def _cost(self, round_: int, made: Estimates) -> Row:
        power = 2 if self.objective == "kmeans" else 1
        unit = float(self.statistic.grid.unit) ** power / float(self.step)
        value = math.floor(made.cost * unit + 0.5)
        least = math.floor(made.least * unit + 0.5)
        ends: list[int] = []
        for half in self._halves(round_, made.errors):
            wide = math.ceil(half * unit)
            ends += [max(least - wide, 0), value + wide]  # a cost is never below 0
        return Row(label("cost"), value, Bounds("", *ends))

    def _coreset(self, found: Found, one: int) -> Iterator[Row]:
        """Weighted points in canonical order, from whole numbers alone: equal on every machine."""
        grid, step = self.statistic.grid, self.step
        kept = [point for point in found.points if point.kept]
        for number, point in enumerate(kept, start=1):
            weight = point.weight * one
            yield Row(label("coreset", number, "weight"), weight, exactly(weight))
            for place, column in enumerate(self.statistic.of):
                own, _ = column.grid
                up, down = grid.factors[place]
                raw = point.mean[place] * (1 << down) / (2 * up) + grid.minima[place]
                value = math.floor(raw + Fraction(1, 2)) * int(own / step)
                yield Row(label("coreset", number, "at", column.name), value, exactly(value))

    def _halves(self, round_: int, errors: Errors) -> tuple[float, float]:
        """Half widths for the round alone and for all rounds."""
        total = [0.0, 0.0]
        for place, band in enumerate(self.bands):
            squared, absolute = errors.squared[place], errors.absolute[place]
            edge = float(band.rounding) * absolute
            for which, reach in enumerate((band.reach, band.reach_all)):
                total[which] += float(reach[round_ - 1]) * math.sqrt(squared) + edge
        return total[0], total[1]

    def describe(self) -> dict[str, Any]:
        """Public facts; the errors are those of a cell's count. Those of centres follow from data."""
        grid = self.statistic.grid
        return {
            "mechanism": f"{self.objective} of noisy cells",
            "of": [*self.statistic.names],
            "k": self.k,
            "instances": self.statistic.instances,
            "levels": [*grid.levels],
            "cells": [1 << grid.bits(level) for level in grid.counted],
            "least_count": max(self.thresholds) + 1,
            **self.count.describe(),
            "parts": [
                part_of(noise, what)
                for noise, what in zip(self.noises, (COUNT, SUM, SQUARE), strict=True)
            ],
        }


class Row(NamedTuple):
    """One published number."""

    key: str
    value: int
    bounds: Bounds


def answer_of(
    rows: Iterable[Row], *, name: str, round_: int, step: Fraction, level: Fraction
) -> Answer:
    """The numbers of a round as one answer, in the order of their keys' bytes."""
    ordered = sorted(rows, key=lambda row: row.key.encode())
    return Answer.of_each(
        release=name,
        round=round_,
        keys=(row.key for row in ordered),
        values=(row.value for row in ordered),
        step=step,
        level=level,
        each=(row.bounds for row in ordered),
    )


def step_of(columns: Iterable[Column]) -> Fraction:
    """The grid that holds 1 and every column."""
    return common_step((Fraction(1), *(column.grid[0] for column in columns)))


@dataclass(frozen=True)
class Found:
    """What one instance found.

    Attributes:
        cells: Accepted, in canonical order.
        points: One a cell; those kept are the coreset.
        estimates: Of the centres; None without a point that stands out of the noise.
    """

    cells: tuple[Cell, ...]
    points: tuple[WeightedPoint, ...]
    estimates: Estimates | None

    @cached_property
    def rank(self) -> tuple[bool, float]:
        """Instances that found something first, the one of least estimated cost before others."""
        return (True, 0.0) if self.estimates is None else (False, self.estimates.cost)

    @property
    def centres(self) -> Floats | None:
        """In positions."""
        if self.estimates is None:
            return None
        return np.array([cluster.centre for cluster in self.estimates.clusters])


def label(*what: str | int) -> str:
    """Label of a number: a JSON array of what it is, its place, and the column that it is of."""
    return json.dumps(what, ensure_ascii=False, separators=(",", ":"))


def exactly(value: int) -> Bounds:
    """Bounds of a number that is what it is: it estimates nothing."""
    return Bounds("", value, value, value, value)


def least_counts(noise: CalibratedNoise, grid_bits: int) -> tuple[int, ...]:
    """Counts above which a cell is accepted, by round.

    Three deviations of the noise, or four and a half where a cell has sixteen children or more.

    Args:
        noise: Of the counts.
        grid_bits: Most bits by which a cell has more than its parent.
    """
    deviations = DEVIATIONS["many" if grid_bits >= MANY else "few"]
    return tuple(max(1, math.ceil(deviations * Fraction(text))) for text in noise.stddev)


def bands_of(noises: Sequence[CalibratedNoise], level: Fraction) -> Bands:
    """Bands of the three components, which share the allowed miss of a number made of all."""
    miss = (1 - level) / (2 * len(noises))
    return Bands(
        *(Band.of(noise.process, miss=miss, coordinates=MOST_COUNTERS) for noise in noises)
    )
