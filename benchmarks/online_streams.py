"""Streams of points that are only ever added, and clusterings of them to compare with.

Every method here is a function from a stream to the centres after each block of it. The ones that
are private spend epsilon 1 and delta 1e-6 on the whole stream.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import clustering_data as data
from benchmarks.clustering_data import STEPS
from benchmarks.peers import load

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

K = 10
SPREAD = 0.04  # of a group, all columns together
SAMPLE = (
    50_000  # points that the centres without privacy are found from, and that costs are taken on
)
STARTS = 10
ORDERS = ("in any order", "drifting")


@dataclass(frozen=True, slots=True)
class Step:
    """What a method has after a block.

    Attributes:
        block: From 1.
        centres: Published, in units, shape (at most k, d).
        kept: Numbers that it keeps from block to block.
        seconds: Of processor time that it took before it was asked for.
    """

    block: int
    centres: Floats
    kept: int
    seconds: float = 0.0


Method = Callable[[Ints, int], Iterator[Step]]
"""From points in steps and the number of blocks to a step a block."""


@lru_cache(maxsize=2)
def stream(number: int, dimensions: int, order: str) -> Ints:
    """Ten round groups of unequal size in the ball of diameter 1, in steps, in order of arrival.

    Drifting: the groups begin one after the other, and all of them last to the end.
    """
    rng = np.random.default_rng(5 + dimensions)
    middles = data.in_ball(rng, K, dimensions) * 0.42
    chosen = rng.choice(K, number, p=rng.dirichlet(np.full(K, 2.0)))
    points = middles[chosen] + rng.normal(size=(number, dimensions)) * SPREAD / dimensions**0.5
    norms = np.sqrt((points**2).sum(axis=1))
    points *= np.minimum(1, 0.5 / np.maximum(norms, 0.5))[:, None]
    moment = rng.random(number)
    if order == "drifting":
        begin = chosen / K * 0.8
        moment = begin + moment * (1 - begin)
    placed = points[np.argsort(moment, kind="stable")]
    found: Ints = np.round(placed * STEPS).astype(np.int64)
    return found


def units(points: Ints) -> Floats:
    """Steps as parts of a column's range."""
    return points / STEPS


def some(points: Ints, seed: int = 0, most: int = SAMPLE) -> Floats:
    """A sample, in units."""
    if len(points) <= most:
        return units(points)
    chosen = np.random.default_rng(seed).choice(len(points), most, replace=False)
    return units(points[chosen])


def parts(points: Ints, blocks: int) -> list[Ints]:
    """The stream cut into blocks of equal numbers."""
    return np.array_split(points, blocks)


def best(points: Floats, starts: int = STARTS) -> Floats:
    """The best of several runs of scikit-learn's k-means++."""
    cluster, limits = load("sklearn.cluster"), load("threadpoolctl")
    with limits.threadpool_limits(limits=1):
        centres: Floats = (
            cluster.KMeans(n_clusters=K, n_init=starts, random_state=0).fit(points).cluster_centers_
        )
    return centres


def weighted(points: Floats, weights: Floats, seed: int, starts: int = 5) -> Floats:
    """k-means of weighted points; fewer centres than k where there are fewer points."""
    kept = weights > 0
    points, weights = points[kept], weights[kept]
    if len(points) <= K:
        return points if len(points) else np.zeros((1, points.shape[1]))
    cluster, limits = load("sklearn.cluster"), load("threadpoolctl")
    with limits.threadpool_limits(limits=1):
        model = cluster.KMeans(n_clusters=K, n_init=starts, random_state=seed)
        centres: Floats = model.fit(points, sample_weight=weights).cluster_centers_
    return centres


def exact_every_block(points: Ints, blocks: int) -> Iterator[Step]:
    """k-means++ without privacy, anew after every block, of a sample of all points so far."""
    seen = 0
    for block, own in enumerate(parts(points, blocks), start=1):
        seen += len(own)
        sample = some(points[:seen], seed=block, most=SAMPLE // 2)
        yield Step(block, best(sample, starts=5), seen * points.shape[1])


def minibatch(points: Ints, blocks: int) -> Iterator[Step]:
    """scikit-learn's MiniBatchKMeans on the points themselves, without privacy."""
    model = load("sklearn.cluster").MiniBatchKMeans(n_clusters=K, n_init=3, random_state=0)
    limits = load("threadpoolctl")
    for block, own in enumerate(parts(points, blocks), start=1):
        with limits.threadpool_limits(limits=1):
            model.partial_fit(units(own))
        yield Step(block, model.cluster_centers_.copy(), K * (points.shape[1] + 1))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one method did on one stream.

    Attributes:
        final: Cost on all points over that of the best without privacy.
        mean: The same after each tenth of the blocks, from the second tenth on; the average.
        worst: The largest of them.
        recourse: Centres of a block that the block before did not have, added up over all blocks.
        kept: Most numbers kept from block to block.
        seconds: Of processor time, the whole stream.
    """

    final: float
    mean: float
    worst: float
    recourse: int
    kept: int
    seconds: float


def outcome(points: Ints, blocks: int, method: Method) -> Outcome:
    """Run a method over a stream."""
    ends = np.cumsum([len(own) for own in parts(points, blocks)])
    ratios: list[float] = []
    recourse, kept, seconds = 0, 0, 0.0
    before: set[bytes] = set()
    for step, spent in _timed(method(points, blocks)):
        seconds += spent + step.seconds
        kept = max(kept, step.kept)
        now = {row.tobytes() for row in np.ascontiguousarray(step.centres)}
        recourse += len(now - before)
        before = now
        if step.block in checked(blocks):
            ratios.append(ratio(points, int(ends[step.block - 1]), step.centres))
    return Outcome(ratios[-1], float(np.mean(ratios)), max(ratios), recourse, kept, seconds)


def checked(blocks: int) -> list[int]:
    """Blocks after which costs are taken."""
    return [blocks * tenth // 10 for tenth in range(2, 11)]


def ratio(points: Ints, seen: int, centres: Floats) -> float:
    """Cost on the points seen so far over that of the best centres found without privacy."""
    found = _sampled(_Held(points), seen)
    return data.costs(found.sample, centres) / found.least


class _Prefix(NamedTuple):
    """A sample of a prefix, and the least cost of it that is found without privacy."""

    sample: Floats
    least: float


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """A stream, by which one it is."""

    points: Ints

    def __hash__(self) -> int:
        return id(self.points)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and other.points is self.points


@lru_cache(maxsize=40)
def _sampled(stream_: _Held, seen: int) -> _Prefix:
    sample = some(stream_.points[:seen])
    return _Prefix(sample, data.costs(sample, best(sample)))


def _timed(steps: Iterable[Step]) -> Iterator[tuple[Step, float]]:
    began = time.process_time()
    for step in steps:
        yield step, time.process_time() - began
        began = time.process_time()
