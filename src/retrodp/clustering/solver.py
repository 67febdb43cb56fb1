"""Centres of weighted points: k-means by scikit-learn, k-median by local search; noisy points only.

Promise: a function of points, weights, k and coins alone, on one thread; its last bits may differ
from machine to machine, which is why whoever publishes centres rounds them. Knows no data.
"""

from __future__ import annotations

import importlib.util
import threading

import numpy as np
from numpy.typing import NDArray

from retrodp.errors import ExtraMissingError
from retrodp.noise.prf import BlockPRF, Coordinates

Floats = NDArray[np.float64]

STARTS = 20
"""Beginnings of k-means, of which the best is kept."""

MEDIAN_STARTS = 8
CANDIDATES = 4  # of a next centre; the best is taken
ROUNDS = 60  # of assigning and moving centres; few starts need twenty
INNER = 6  # Weiszfeld steps a round
ALONE = threading.Lock()
"""The limit on the solver's threads is the process's: whoever leaves it lifts it for all others."""

ENOUGH = 1e-7  # relative gain of a round below which a start has settled


def require() -> None:
    """Raise unless scikit-learn is there.

    Raises:
        ExtraMissingError: It is not; names the extra that brings it.
    """
    if importlib.util.find_spec("sklearn") is None:
        raise ExtraMissingError(
            "Clusterings need scikit-learn, which is not installed.",
            do="Install it where retrodp is installed: python -m pip install scikit-learn threadpoolctl",
        )


def kmeans(points: Floats, weights: Floats, k: int, *, coins: bytes) -> Floats:
    """At most k centres of weighted k-means.

    Args:
        points: Shape (m, d).
        weights: Above 0, shape (m,).
        k: Centres asked for.
        coins: 32 bytes, used here alone.

    Returns:
        Shape (min(k, distinct points), d).
    """
    distinct, merged = _merged(points, weights)
    if len(distinct) <= k:
        return distinct
    require()
    from sklearn.cluster import KMeans  # noqa: PLC0415  an optional dependency
    from threadpoolctl import threadpool_limits  # noqa: PLC0415  comes with it

    seed = int.from_bytes(coins[:4], "big")
    # Normed to the spread, so that the stopping rule means the same in every unit.
    low, width = distinct.min(axis=0), float(np.ptp(distinct, axis=0).max())
    with ALONE, threadpool_limits(limits=1):
        model = KMeans(n_clusters=k, n_init=STARTS, random_state=seed)
        model.fit((distinct - low) / width, sample_weight=merged)
    centres: Floats = model.cluster_centers_.astype(np.float64) * width + low
    return centres


def kmedian(points: Floats, weights: Floats, k: int, *, coins: bytes) -> Floats:
    """At most k centres of weighted k-median, by local search from several seedings.

    Each start draws centres by distance (the k-median form of k-means++), then assigns points and
    moves every centre towards its cluster's geometric median (Weiszfeld) until nothing is gained.

    Args, returns: As `kmeans`.
    """
    distinct, merged = _merged(points, weights)
    if len(distinct) <= k:
        return distinct
    draws = _uniforms(coins, MEDIAN_STARTS * k * CANDIDATES)
    best, least = distinct[:k], np.inf
    for own in draws.reshape(MEDIAN_STARTS, k, CANDIDATES):
        found, cost = _settled(distinct, merged, _seeded(distinct, merged, own))
        if cost < least:
            best, least = found, cost
    return best


def lengths(vectors: Floats) -> Floats:
    """Euclidean length of each row, shape (n,).

    Column after column, so that a row's bits are its own business: whether a point lies in a cell
    may not depend, in the last bit, on how many others there are.
    """
    squares = np.zeros(len(vectors), dtype=np.float64)
    for column in range(vectors.shape[1]):
        squares += vectors[:, column] * vectors[:, column]
    found: Floats = np.sqrt(squares)
    return found


def nearest(points: Floats, centres: Floats) -> tuple[NDArray[np.intp], Floats]:
    """Place of each point's nearest centre and its distance."""
    distances = _distances(points, centres)
    places = distances.argmin(axis=1)
    return places, distances[np.arange(len(points)), places]


def _merged(points: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Distinct points in lexicographic order, with their weights together."""
    distinct, places = np.unique(points, axis=0, return_inverse=True)
    return distinct, np.bincount(places.reshape(-1), weights, len(distinct)).astype(np.float64)


def _uniforms(coins: bytes, count: int) -> Floats:
    """Numbers in (0, 1), 53 bits each."""
    words = BlockPRF(coins).blocks(Coordinates.of_indices(count))[:, 0]
    return ((words >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53


def _distances(points: Floats, centres: Floats) -> Floats:
    squares: Floats = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    return np.sqrt(squares)


def _seeded(points: Floats, weights: Floats, draws: Floats) -> Floats:
    """One centre for each row of draws, each the best of its candidates."""
    chosen: list[int] = []
    closest = np.full(len(points), np.inf)
    for own in draws:
        mass = weights * closest if chosen else weights
        edges = np.cumsum(mass)
        candidates = np.minimum(np.searchsorted(edges, own * edges[-1]), len(points) - 1)
        options = np.minimum(closest[:, None], _distances(points, points[candidates]))
        best = int((options * weights[:, None]).sum(axis=0).argmin())
        chosen.append(int(candidates[best]))
        closest = options[:, best]
    return points[chosen]


def _settled(points: Floats, weights: Floats, centres: Floats) -> tuple[Floats, float]:
    places, distances = nearest(points, centres)
    cost = float((weights * distances).sum())
    centres = _averages(points, weights, centres, places)
    for _ in range(ROUNDS):
        for _ in range(INNER):
            centres = _nearer_the_medians(points, weights, centres, places)
        places, distances = nearest(points, centres)
        before, cost = cost, float((weights * distances).sum())
        if not cost < before * (1 - ENOUGH):
            break
    return centres, cost


def _averages(points: Floats, weights: Floats, centres: Floats, places: NDArray[np.intp]) -> Floats:
    """Weighted average of each centre's points; a centre without points stays."""
    total = np.bincount(places, weights, len(centres))
    moved = np.stack(
        [np.bincount(places, weights * column, len(centres)) for column in points.T], axis=1
    )
    return np.where(total[:, None] > 0, moved / np.where(total > 0, total, 1.0)[:, None], centres)


def _nearer_the_medians(
    points: Floats, weights: Floats, centres: Floats, places: NDArray[np.intp]
) -> Floats:
    """One step of every cluster towards its geometric median (Vardi and Zhang 2000).

    A centre that stands on a point is held by the point's weight against the pull of the others.
    """
    away = points - centres[places]
    distances = np.sqrt((away**2).sum(axis=1))
    free = distances > 0
    pulls = np.where(free, weights / np.where(free, distances, 1.0), 0.0)
    target = _averages(points, pulls, centres, places)
    holding = np.bincount(places, np.where(free, 0.0, weights), len(centres))
    pull = np.stack(
        [np.bincount(places, pulls * column, len(centres)) for column in away.T], axis=1
    )
    strength = np.sqrt((pull**2).sum(axis=1))
    held = np.minimum(1.0, np.where(strength > 0, holding / np.where(strength > 0, strength, 1), 1))
    return target + held[:, None] * (centres - target)
