"""Cumulative counts of a bounded column at public edges."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

from retrodp.mechanisms.answer import Answer, Bounds
from retrodp.mechanisms.band import Band
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.one_noise import OneNoise
from retrodp.mechanisms.ordered import (
    Cumulative,
    NoisyTree,
    cumulative,
    group_labels,
    in_key_order,
    labelled,
)
from retrodp.noise.key import NoiseKeys
from retrodp.noise.prf import Coordinates
from retrodp.postprocess.halving import Weight, counts_below, depth, weights_below
from retrodp.postprocess.monotone import never_falling

HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class CumulativeCounts(OneNoise):
    """How many surviving values lie at or below each edge, every round.

    With few edges every cell between two of them has a counter of its own, and counts are added up
    (`flat`). With more, noise lies on the count at the last edge and on the differences between
    the halves of a tree over the cells. Either way these are counters of KKMNS theorem 3.2 that
    are charged together, and the rest is memoryless post-processing: exactly retroactive.

    Published values never fall from edge to edge: they are the least-squares fit that does not.
    Intervals are those of the unfitted counts, from the noise law alone, widened to the published
    value where it lies outside.

    Attributes:
        texts: Edges as they are written, rising.
        groups: Public labels, sorted by UTF-8 bytes; None for one group.
        flat: Whether every cell has a counter of its own.
        noise: Of the counters, in records.
        band: Of sums of them; see `cumulative_band`.
        level: Coverage of the intervals.
    """

    texts: tuple[str, ...]
    groups: tuple[str, ...] | None
    flat: bool
    noise: CalibratedNoise
    band: Band
    level: Fraction

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        """A count for every group and edge, empty ones too."""
        counts = cumulative(exact, group_labels(self.groups))
        noisy = [*(self._flat if self.flat else self._tree)(round_, counts, keys)]
        errors = edge_errors(
            self.band, round_, edge_weights(len(self.texts), flat=self.flat), flat=self.flat
        )
        deviations = self._deviations(round_)
        values: list[int] = []
        bounds: list[Bounds] = []
        for below in noisy:
            plain = [math.floor(count + HALF) for count in below]
            fitted = never_falling(plain)
            values += fitted
            bounds += [
                _widened(stddev, own, value, halves)
                for stddev, own, value, halves in zip(
                    deviations, plain, fitted, errors, strict=True
                )
            ]
        labels = labelled(self.groups, self.texts)
        order = in_key_order(labels)
        return Answer(
            release=self.name,
            round=round_,
            keys=tuple(labels[place] for place in order),
            values=tuple(values[place] for place in order),
            step=self.step,
            stddev="",
            half=max(half for half, _ in errors),
            half_all=max(half_all for _, half_all in errors),
            level=self.level,
            each=tuple(bounds[place] for place in order),
        )

    def _flat(
        self, round_: int, counts: Sequence[Cumulative], keys: NoiseKeys
    ) -> Iterator[list[Fraction]]:
        edges = len(self.texts)
        where = Coordinates.of_indices(edges * len(counts))
        draws = self.noise.draw(round_, keys, where).tolist()
        for group, count in enumerate(counts):
            sums = accumulate(draws[group * edges : (group + 1) * edges])
            yield [Fraction(count.below(cell) + own) for cell, own in enumerate(sums, start=1)]

    def _tree(
        self, round_: int, counts: Sequence[Cumulative], keys: NoiseKeys
    ) -> Iterator[list[Fraction]]:
        edges = len(self.texts)
        tree = NoisyTree(counts, edges, lambda where: self.noise.draw(round_, keys, where))
        for group, total in enumerate(tree.totals()):
            yield counts_below(edges, total, tree.differences, group=group)

    def _deviations(self, round_: int) -> list[str]:
        """Standard deviation of the unfitted count at each edge, in records, six digits."""
        own = float(self.noise.stddev[round_ - 1])
        weights = edge_weights(len(self.texts), flat=self.flat)
        return [f"{own * math.sqrt(weight.squared):.6g}" for weight in weights]

    def describe(self) -> dict[str, Any]:
        """Public facts; the errors are those at the worst edge in the worst round."""
        edges = len(self.texts)
        worst = worst_errors(self.noise, self.band, edges, flat=self.flat)
        return {
            "mechanism": "cumulative counts" if self.flat else "cumulative counts of a tree",
            "edges": edges,
            "levels": moved_by_one(edges, flat=self.flat),
            "groups": None if self.groups is None else len(self.groups),
            **self.noise.describe(),
            "stddev_max": float(worst["stddev"]),
            "error_max": worst["half"],
            "error_all_max": worst["half_all"],
        }


def is_flat(edges: int, law: str) -> bool:
    """Whether a counter for each cell serves the worst edge at least as well as a tree.

    Squared errors are compared at one budget: Gaussian noise pays for the coordinates that a
    record moves, Laplace noise for their square.
    """
    levels = depth(edges) + 1
    price = levels if law == "gaussian" else levels**2
    return edges <= price * max(weight.squared for weight in weights_below(edges))


def moved_by_one(edges: int, *, flat: bool) -> int:
    """Counters that one record moves by one."""
    return 1 if flat else depth(edges) + 1


def cumulative_band(noise: CalibratedNoise, edges: int) -> Band:
    """The band of the intervals: both sides at half the miss."""
    return Band.of(noise.process, miss=(1 - noise.level) / 2, coordinates=edges)


def edge_weights(edges: int, *, flat: bool) -> Sequence[Weight]:
    """Weights of the counters in the count at each edge."""
    if flat:
        one = Fraction(1)
        return [Weight(cells * one, cells * one, one) for cells in range(1, edges + 1)]
    return weights_below(edges)


def edge_errors(
    band: Band, round_: int, weights: Sequence[Weight], *, flat: bool
) -> list[tuple[int, int]]:
    """Half widths at each edge for the round alone and for all rounds, in whole records."""
    rounded = (
        Fraction(0) if flat else HALF
    )  # a count of a tree is a fraction before it is published
    pairs = (band.half(round_, *weight) for weight in weights)
    return [
        (math.floor(half + rounded), math.floor(half_all + rounded)) for half, half_all in pairs
    ]


def worst_errors(noise: CalibratedNoise, band: Band, edges: int, *, flat: bool) -> dict[str, Any]:
    """Largest errors over edges and rounds: `stddev` (six digits), `half`, `half_all`."""
    weights = edge_weights(edges, flat=flat)
    errors = edge_errors(band.worst(), 1, weights, flat=flat)
    norm = math.sqrt(max(weight.squared for weight in weights))
    return {
        "stddev": f"{max(map(float, noise.stddev)) * norm:.6g}",
        "half": max(half for half, _ in errors),
        "half_all": max(half_all for _, half_all in errors),
    }


def _widened(stddev: str, own: int, value: int, halves: tuple[int, int]) -> Bounds:
    """Both intervals around the unfitted count, with the published value inside."""
    half, half_all = halves
    return Bounds(
        stddev,
        min(own - half, value),
        max(own + half, value),
        min(own - half_all, value),
        max(own + half_all, value),
    )
