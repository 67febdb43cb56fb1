"""Sizes and costs of clusters from the noisy counters of cells, with what the noise may do to them.

All of them are sums over cells, linear in the noisy counters once centres and cells are chosen. Their
error bars are those of the noise, for the chosen cells; see `retrodp.clustering.retroactive`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from retrodp.clustering.cell_tree import Cell, WeightedPoint
from retrodp.clustering.solver import Floats, nearest
from retrodp.statistics.grid import RADIUS


class Part(NamedTuple):
    """A part of a cell's counters in a sum."""

    cell: int
    weight: float


@dataclass(slots=True)
class Errors:
    """How much of each counter's noise is in a number: sums of squared and of absolute weights.

    Attributes:
        squared: Of counts, sums and squares.
        absolute: Likewise.
    """

    squared: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    absolute: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])

    def take(self, component: int, weights: Floats) -> None:
        """Weights of one component's counters, each of a counter of its own."""
        self.squared[component] += float((weights * weights).sum())
        self.absolute[component] += float(np.abs(weights).sum())


COUNTS, SUMS, SQUARES = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Cluster:
    """What is estimated of one cluster.

    Attributes:
        centre: In positions, shape (columns,).
        size: Noisy number of points.
        size_errors: Of the size, in counts.
        moments: By column, the noisy sum of its points' offsets from the centre, in positions. Not 0:
            the centre is made of what stands out of the noise, the cluster of all its cells.
        centre_errors: Of the moments.
    """

    centre: Floats
    size: int
    size_errors: Errors
    moments: tuple[float, ...]
    centre_errors: tuple[Errors, ...]


@dataclass(frozen=True, slots=True)
class Estimates:
    """All clusters of one set of cells.

    Attributes:
        clusters: One a centre, in the order of the centres.
        cost: In positions to the power 2 (k-means) or 1 (k-median).
        least: A lower estimate from the same counters; see `estimates`.
        errors: Of the cost.
    """

    clusters: tuple[Cluster, ...]
    cost: float
    least: float
    errors: Errors


class _Arrays(NamedTuple):
    """Cells as arrays: positions are halves of the doubled ones."""

    counts: Floats
    sums: Floats
    squares: Floats
    centres: Floats
    radii: Floats


def estimates(
    cells: Sequence[Cell],
    points: Sequence[WeightedPoint],
    centres: Floats,
    *,
    power: int,
) -> Estimates:
    """Sizes, and the cost of serving every point of a cell from one centre.

    Args:
        cells: Accepted cells of one instance, at least one.
        points: One a cell, of `weighted_points`.
        centres: In positions, shape (at least 1, columns).
        power: 2 for k-means, 1 for k-median.

    A point that is not kept in the coreset has a weight within the noise, maybe negative: what is left
    of a cell beside its full children. In the sizes it counts with the centre nearest to its cell's
    own mean; in the cost it counts as much a point as its cell would if all of it went there, which is
    rather too much, and in the least cost as the kept points do, which is rather too little.
    """
    array = _arrays(cells)
    means = np.array([[float(value) / 2 for value in point.mean] for point in points])
    places, distances = nearest(means, centres)
    whole = [_parts(cells, point) for point in points]
    clusters = [
        _cluster(array, centre, [whole[at] for at in np.flatnonzero(places == own)])
        for own, centre in enumerate(centres)
    ]
    in_cost: list[dict[int, float]] = [{} for _ in centres]
    cost, kept_cost, kept_weight = 0.0, 0.0, 0
    for at, point in enumerate(points):
        own = int(places[at])
        parts = whole[at] if point.kept else [Part(at, point.weight / cells[at].count)]
        found, slope = _squared_cost(array, parts, centres[own]), 1.0
        least = found
        if power == 1:
            # Between the distance of the mean (Jensen) and the root of mean squares (Cauchy, Schwarz).
            weight = max(point.weight, 0)
            least = weight * float(distances[at])
            found = max(math.sqrt(weight * max(found, 0.0)), least)
            # The root is steep at 0; a cell's points are not closer to a centre than a part of it.
            slope = weight / (2 * max(found, weight * array.radii[at] / 4)) if weight else 0.0
        if point.kept:
            kept_cost, kept_weight = kept_cost + least, kept_weight + point.weight
        cost += found
        for part in parts:
            in_cost[own][part.cell] = in_cost[own].get(part.cell, 0.0) + part.weight * slope
    errors = Errors()
    for centre, weights in zip(centres, in_cost, strict=True):
        if weights:
            _take_cost(array, weights, centre, errors)
    of_all = sum(cluster.size for cluster in clusters) / kept_weight if kept_weight else 1.0
    return Estimates(tuple(clusters), cost, min(cost, kept_cost * max(of_all, 1.0)), errors)


def _arrays(cells: Sequence[Cell]) -> _Arrays:
    radii = np.array([cell.radius for cell in cells], dtype=np.float64) / 2
    return _Arrays(
        np.array([cell.count for cell in cells], dtype=np.float64),
        np.array([cell.sums for cell in cells], dtype=np.float64) * (radii / RADIUS)[:, None],
        np.array([cell.square for cell in cells], dtype=np.float64) * (radii**2 / RADIUS),
        np.array([cell.centre for cell in cells], dtype=np.float64) / 2,
        radii,
    )


def _parts(cells: Sequence[Cell], point: WeightedPoint) -> list[Part]:
    return [
        Part(point.cell, 1.0),
        *(Part(child, -1.0) for child in cells[point.cell].children),
    ]


def _cluster(array: _Arrays, centre: Floats, parts: Sequence[Sequence[Part]]) -> Cluster:
    """A cluster of cells; whole cells and their parents cancel to what is left of them."""
    weights: dict[int, float] = {}
    for part in _flat(parts):
        weights[part.cell] = weights.get(part.cell, 0.0) + part.weight
    own = np.fromiter(weights, dtype=np.intp)
    share = np.fromiter(weights.values(), dtype=np.float64)
    size_errors = Errors()
    size_errors.take(COUNTS, share)
    size = int((share * array.counts[own]).sum())
    moments, centre_errors = [], []
    for column in range(len(centre)):
        errors, away = Errors(), array.centres[own, column] - centre[column]
        errors.take(SUMS, share * array.radii[own] / RADIUS)
        errors.take(COUNTS, share * away)
        centre_errors.append(errors)
        moments.append(float((share * (array.sums[own, column] + array.counts[own] * away)).sum()))
    return Cluster(centre, size, size_errors, tuple(moments), tuple(centre_errors))


def _flat(parts: Sequence[Sequence[Part]]) -> Iterator[Part]:
    for own in parts:
        yield from own


def _squared_cost(array: _Arrays, parts: Sequence[Part], centre: Floats) -> float:
    """Sum over cells of Q - 2 S.(c - m) + n |c - m|^2, the squared distances of their points to c."""
    total = 0.0
    for cell, weight in parts:
        away = centre - array.centres[cell]
        turned = float((array.sums[cell] * away).sum())
        squared = float((away * away).sum())
        total += weight * (array.squares[cell] - 2 * turned + array.counts[cell] * squared)
    return total


def _take_cost(
    array: _Arrays, weights: Mapping[int, float], centre: Floats, errors: Errors
) -> None:
    """The noise of the same sum, for parts of cells that are served from one centre."""
    own = np.fromiter(weights, dtype=np.intp)
    share = np.fromiter(weights.values(), dtype=np.float64)
    away, radii = centre[None, :] - array.centres[own], array.radii[own]
    errors.take(COUNTS, share * (away**2).sum(axis=1))
    errors.take(SQUARES, share * radii**2 / RADIUS)
    for column in range(len(centre)):
        errors.take(SUMS, -2 * share * away[:, column] * radii / RADIUS)
