"""Meyerson's sketch without privacy: what the private sketch is measured against.

Promise: algorithm 1 of Cohen et al. (2026) as it stands, with a coin for each point that depends on
the key, the phase and the point's identity alone. It returns points of the data: nothing of it may
be published.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from retrodp import _check
from retrodp.errors import PlanError, UsageError
from retrodp.noise.labels import label_words

Floats = NDArray[np.float64]

_PHASE_BYTES = 4


def meyerson(  # noqa: PLR0913  the inputs of the algorithm
    points: Floats,
    identities: Sequence[bytes],
    *,
    k: int,
    power: int,
    estimate: float,
    most_points: int,
    key: bytes,
    phase: int = 0,
) -> NDArray[np.intp]:
    """Places of the points that are sampled, in order of arrival.

    A point at distance r from those sampled so far is sampled with probability
    min(1, k log(n) r^power / estimate); the first one is.

    Args:
        points: In order of arrival, shape (n, d).
        identities: Of each, for its coin.
        k: Clusters.
        power: 1 or 2.
        estimate: Guess of the cost of the best k centres.
        most_points: Public bound on the number of points, whose logarithm is taken.
        key: 32 bytes.
        phase: Coins of another phase are others.

    Time: n, and a pass over all later points for each that is sampled.
    """
    _check.whole(least=1, k=k)
    _check.whole(least=2, most_points=most_points)
    _check.whole(least=0, phase=phase)
    _check.positive(estimate=estimate)
    if isinstance(power, bool) or power not in {1, 2}:
        raise PlanError(f"power must be 1 (k-median) or 2 (k-means), got {power!r}.")
    if len(points) != len(identities) or len(points) > most_points:
        raise UsageError("Every point needs an identity, and there may be no more than planned.")
    rate = k * math.log(most_points) / estimate
    units = coins(identities, key=key, phase=phase)
    costs = np.full(len(points), math.inf)
    chosen: list[int] = []
    start = 0
    while start < len(points):
        # The next point that its coin takes, at the distances of now: those before it are not taken.
        taken = np.flatnonzero(units[start:] < np.minimum(1.0, rate * costs[start:]))
        if not len(taken):
            break
        place = start + int(taken[0])
        chosen.append(place)
        squares = ((points - points[place]) ** 2).sum(axis=1)
        np.minimum(costs, squares if power == 2 else np.sqrt(squares), out=costs)
        start = place + 1
    return np.array(chosen, dtype=np.intp)


def coins(identities: Sequence[bytes], *, key: bytes, phase: int) -> Floats:
    """Numbers in [0, 1) of identities in a phase."""
    head = phase.to_bytes(_PHASE_BYTES, "big")
    words = label_words([head + one for one in identities], key)
    found: Floats = (words[:, 0] >> np.uint64(11)).astype(np.float64) / 2.0**53
    return found
