"""Private clusterings of a stream of additions that the online kind is compared with.

Both rest on the noisy cells of the package's own `kmeans`, so that what is compared is how a stream
is dealt with and not how a coreset is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.clustering import only_clusters, plan
from benchmarks.online_streams import Ints, K, Step, parts, units, weighted
from retrodp.clustering.retroactive import Clusters, Found
from retrodp.noise.key import KeyTree
from retrodp.statistics.cells import Cells
from retrodp.stream.batch import Batch

Floats = NDArray[np.float64]


@cache
def cells(dimensions: int, horizon: int, key: int) -> tuple[Cells, Clusters, KeyTree]:
    """Statistic, mechanism and key of a `kmeans` over so many rounds."""
    keys = KeyTree.from_root(key.to_bytes(32, "big"), b"benchmark", horizon)
    return (*only_clusters(plan(dimensions, "kmeans", horizon=horizon, round_="1h"), keys), keys)


def batch(points: Ints) -> Batch:
    """Points as records."""
    columns: dict[str, list[object]] = {
        f"x{place}": points[:, place].tolist() for place in range(points.shape[1])
    }
    return Batch(len(points), columns, np.ones(len(points), dtype=np.int64))


def retroactive(points: Ints, blocks: int) -> Iterator[Step]:
    """The kind `kmeans`: from noisy cells of all points so far, centres anew after every block."""
    statistic, mechanism, keys = cells(points.shape[1], blocks, 1)
    totals: dict[bytes, int] = {}
    for block, own in enumerate(parts(points, blocks), start=1):
        for label, amount in statistic.encode(batch(own)).items():
            totals[label] = totals.get(label, 0) + amount
        found = mechanism.found(block, totals, keys).centres
        centres = np.zeros((1, points.shape[1])) if found is None else placed(statistic, found)
        yield Step(block, centres, len(totals))


def placed(statistic: Cells, positions: Floats) -> Floats:
    """Positions in the box as units."""
    return positions * float(statistic.grid.unit) - 0.5


@dataclass(frozen=True, slots=True)
class MergeAndReduce:
    """A private coreset a group of blocks, merged in a binary tree (Epasto, Mukherjee, Zhong 2026).

    In their style, for comparison: a point is in one group, so every group's one-shot coreset has
    the whole budget (parallel composition); what is merged and reduced is noisy already. A group is
    published when it is complete, so that points of an incomplete one are not seen.

    Attributes:
        groups: Of blocks; few groups have little noise and see their points late.
        reduced: Points to which a merged coreset is brought down.
    """

    groups: int
    reduced: int = 400

    def __call__(self, points: Ints, blocks: int) -> Iterator[Step]:
        """A step a block."""
        rng = np.random.default_rng(7)
        length = -(-blocks // self.groups)
        tree: list[tuple[int, Floats, Floats]] = []
        waiting: list[Ints] = []
        centres = np.zeros((1, points.shape[1]))
        for block, own in enumerate(parts(points, blocks), start=1):
            waiting.append(own)
            if block % length == 0 or block == blocks:
                tree.append((0, *_coreset(np.concatenate(waiting), block)))
                waiting = []
                while len(tree) > 1 and tree[-1][0] == tree[-2][0]:
                    (height, *first), (_, *second) = tree.pop(), tree.pop()
                    ends, weights = (
                        np.concatenate(both) for both in zip(first, second, strict=True)
                    )
                    tree.append((height + 1, *self._less(ends, weights, rng)))
                every = np.concatenate([own for _, own, _ in tree])
                centres = weighted(every, np.concatenate([own for _, _, own in tree]), block)
            kept = sum(own.size + len(weights) for _, own, weights in tree)
            yield Step(block, centres, kept + sum(own.size for own in waiting))

    def _less(
        self, points: Floats, weights: Floats, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Fewer weighted points: each goes to the nearest of a sample by weight."""
        if len(points) <= self.reduced:
            return points, weights
        odds = weights / weights.sum()
        chosen = points[rng.choice(len(points), self.reduced, replace=False, p=odds)]
        nearest = ((points[:, None] - chosen[None]) ** 2).sum(axis=2).argmin(axis=1)
        total: Floats = np.bincount(nearest, weights, self.reduced).astype(np.float64)
        filled = total > 0
        sums = np.stack(
            [np.bincount(nearest, weights * axis, self.reduced) for axis in points.T], axis=1
        )
        return sums[filled] / total[filled, None], total[filled]


def _coreset(points: Ints, key: int) -> tuple[Floats, Floats]:
    """Noisy weighted points of one group, with the whole budget."""
    statistic, mechanism, keys = cells(points.shape[1], 1, 1000 + key)
    found: Found = mechanism.found(1, statistic.encode(batch(points)), keys)
    kept = [point for point in found.points if point.kept]
    means = np.array([[float(value) / 2 for value in point.mean] for point in kept])
    weights = np.array([float(point.weight) for point in kept])
    if not kept:
        return np.zeros((0, points.shape[1])), weights
    return placed(statistic, means), weights


def meyerson(points: Ints, blocks: int) -> Iterator[Step]:
    """Meyerson's online facilities without privacy, then k-means++ of them after every block.

    The price of a facility doubles when there are too many; facilities then become weighted points
    of the next phase (Charikar, O'Callaghan, Panigrahy 2003).
    """
    rng = np.random.default_rng(11)
    most = 5 * K * int(np.log2(len(points)))
    price = 1e-4
    places, weights = np.empty((most + 1, points.shape[1])), np.zeros(most + 1)
    number = 0
    for block, own in enumerate(parts(points, blocks), start=1):
        waiting = [(units(own), np.ones(len(own)))]
        while waiting:
            rows, masses = waiting.pop()
            coins = rng.random(len(rows))
            for at, row in enumerate(rows):
                away = ((places[:number] - row) ** 2).sum(axis=1)
                nearest = int(away.argmin()) if number else 0
                if number and coins[at] * price >= masses[at] * away[nearest]:
                    weights[nearest] += masses[at]
                    continue
                places[number], weights[number] = row, masses[at]
                number += 1
                if number > most:
                    price *= 2
                    waiting.append((rows[at + 1 :], masses[at + 1 :]))
                    waiting.append((places[:number].copy(), weights[:number].copy()))
                    number = 0
                    break
        centres = weighted(places[:number], weights[:number], block)
        yield Step(block, centres, number * (points.shape[1] + 1))
