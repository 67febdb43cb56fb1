"""Quantiles of a bounded column, from one tree of noisy differences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from retrodp.mechanisms.answer import Answer, Bounds
from retrodp.mechanisms.band import Band
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.one_noise import OneNoise
from retrodp.mechanisms.ordered import (
    NoisyTree,
    cumulative,
    group_labels,
    in_key_order,
    labelled,
)
from retrodp.noise.key import NoiseKeys
from retrodp.postprocess.halving import (
    Search,
    Target,
    depth,
    largest_weights,
    searched,
    widest,
)
from retrodp.statistics.ordered import GridCells

ONE = Fraction(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles(OneNoise):
    """The least values that stated shares of the surviving values do not exceed, every round.

    Noise lies on the number of values and on the differences between the halves of a tree over the
    column's grid, one counter (KKMNS theorem 3.2) each; a record moves `depth + 1` of them by one.
    Everything else is memoryless post-processing, so the release is exactly retroactive (KKMNS
    lemma 3.3). Whether a node is empty is never looked at.

    The published quantile is where a walk down the tree ends; quantiles of one tree never cross.
    The interval ends where walks for the target less and plus the band of the noise end. It can
    miss the exact quantile only if the noise leaves the band at one of the `depth` middles above
    the exact quantile, and each may do so with an equal part of the allowed miss. So it holds at
    any size of the data, for ties, gaps and skew. Where the band allows an empty group, there is
    no value and the interval is the whole public range.

    Attributes:
        cells: Grid of the column.
        at: Shares, rising.
        texts: How the shares are written.
        groups: Public labels, sorted by UTF-8 bytes; None for one group.
        noise: Of the totals and the differences, in records.
        band: Of sums of them; see `quantile_band`.
        column_step: Size of a step of the column.
        level: Coverage of the intervals.
    """

    cells: GridCells
    at: tuple[Fraction, ...]
    texts: tuple[str, ...]
    groups: tuple[str, ...] | None
    noise: CalibratedNoise
    band: Band
    column_step: Fraction
    level: Fraction

    @property
    def step(self) -> Fraction:
        """The column's step."""
        return self.column_step

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        """One quantile for every group and share."""
        counts = cumulative(exact, group_labels(self.groups))
        tree = NoisyTree(
            counts, self.cells.count, lambda where: self.noise.draw(round_, keys, where)
        )
        totals = tree.totals()
        searches = [
            Search(group, total, target)
            for group, total in enumerate(totals)
            if self._surely_some(round_, total)
            for share in self.at
            for target in self._targets(round_, share)
        ]
        ends = iter(searched(self.cells.count, searches, tree.differences))
        values: list[int | None] = []
        bounds: list[Bounds] = []
        for total in totals:
            for _ in self.at:
                some = self._surely_some(round_, total)
                value, *interval = [next(ends) for _ in range(5)] if some else self._nothing
                values.append(self.cells.least + value if some else None)
                bounds.append(Bounds("", *(self.cells.least + end for end in interval)))
        return self._answer(round_, values, bounds)

    @property
    def _nothing(self) -> list[int]:
        last = self.cells.count - 1
        return [0, 0, last, 0, last]

    def _surely_some(self, round_: int, total: int) -> bool:
        """Whether the band of the noisy total excludes that there are no records."""
        half, _ = self.band.half(round_, ONE, ONE)
        return total - half >= 1

    def _targets(self, round_: int, share: Fraction) -> list[Target]:
        """The value, the ends for this round, the ends for all rounds."""
        at, band = round_ - 1, self.band
        alone = tuple((own.spread, own.reach[at]) for own in band.narrower)
        together = tuple((own.spread, own.reach_all[at]) for own in band.narrower)
        return [Target(share)] + [
            Target(share, side, width, band.rounding, narrower)
            for width, narrower in ((band.reach[at], alone), (band.reach_all[at], together))
            for side in (-1, 1)
        ]

    def _answer(
        self, round_: int, values: Sequence[int | None], bounds: Sequence[Bounds]
    ) -> Answer:
        labels = labelled(self.groups, self.texts)
        order = in_key_order(labels)
        return Answer.of_each(
            release=self.name,
            round=round_,
            keys=(labels[place] for place in order),
            values=(values[place] for place in order),
            step=self.step,
            level=self.level,
            each=(bounds[place] for place in order),
        )

    def describe(self) -> dict[str, Any]:
        """Public facts; the errors are those of the rank, in records, largest over the rounds."""
        errors = rank_errors(self.noise, self.cells.count, self.at)
        return {
            "mechanism": "quantiles of a tree of differences",
            "cells": self.cells.count,
            "levels": depth(self.cells.count) + 1,
            "groups": None if self.groups is None else len(self.groups),
            **self.noise.describe(),
            "error_is": "of the rank, in records",
            "stddev_max": float(errors["stddev"]),
            "error_max": errors["half"],
            "error_all_max": errors["half_all"],
        }


def quantile_band(noise: CalibratedNoise, cells: int) -> Band:
    """The band that intervals of quantiles need: an equal part of the miss for every level."""
    levels = max(depth(cells), 1)
    return Band.of(noise.process, miss=(1 - noise.level) / levels, coordinates=levels + 1)


def _reach_at(reaches: Mapping[Fraction, Fraction], spread: float) -> float:
    """Reach of the largest listed spread that the weights have."""
    return float(min(reach for least, reach in reaches.items() if least <= max(spread, 1)))


def rank_errors(noise: CalibratedNoise, cells: int, at: Sequence[Fraction]) -> dict[str, Any]:
    """Predicted errors of the rank of a quantile, in records, whatever the data.

    The rank error of a published value x for the share q of n values is how far q n lies outside
    the ranks that x has. It exceeds `half` with at most the allowed miss: only if the noise leaves
    the band at a middle above one of two fixed cells, the last whose rank is too low by `half` and
    the first whose rank is too high.

    Returns:
        `stddev`: of the noisy rank, at the worst value and in the worst round, six digits; `half`:
        the rank error of any share in a round alone; `half_all`: in all rounds.
    """
    levels = max(depth(cells), 1)
    band = Band.of(noise.process, miss=(1 - noise.level) / (2 * levels), coordinates=levels + 1)
    worst, rounding = band.worst(), float(band.rounding)
    alone, together = (
        {Fraction(1): one[0]} | {own.spread: other[0] for own, other in narrower}
        for one, narrower in (
            (worst.reach, [(own, own.reach) for own in worst.narrower]),
            (worst.reach_all, [(own, own.reach_all) for own in worst.narrower]),
        )
    )
    widths = [
        max(widest(cells, share, partial(_reach_at, reaches), rounding) for share in at)
        for reaches in (alone, together)
    ]
    largest = max(largest_weights(cells, share)[0] for share in at)
    deviation = max(float(text) for text in noise.stddev) * largest
    half, half_all = (math.ceil(width * (1 + 1e-9)) for width in widths)
    return {"stddev": f"{deviation:.6g}", "half": half, "half_all": half_all}
