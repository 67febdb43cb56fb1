"""Noisy means of representatives, and which of them deserve to be representatives of their own.

Promise: post-processing of published numbers, column after column, so that no order of summation is
left to the machine. Knows no point.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from retrodp.clustering.places import Box
from retrodp.statistics.grid import RADIUS

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_LEAST = 1e-300  # a division by it gives a number, whatever it is


def noisy_means(box: Box, points: Ints, weights: Ints, sums: Ints, deviation: float) -> Ints:
    """Noisy means in grid steps, drawn to the representative as far as they may be noise.

    The offset of the mean is shortened by the part of its square that noise explains (James and
    Stein 1961): where that is all of it, the representative itself is given.

    Args:
        box: Of the points.
        points: Representatives in grid steps, shape (m, d).
        weights: Noisy, above 0, shape (m,).
        sums: Noisy sums of offsets, in `clip` over `RADIUS`, shape (m, d).
        deviation: Of the noise of a sum.
    """
    offsets = sums / weights[:, None]
    squares = np.zeros(len(points))
    for column in offsets.T:
        squares += column * column
    noise = box.columns * (deviation / weights) ** 2
    kept = np.maximum(0.0, 1.0 - noise / np.maximum(squares, _LEAST))
    doubled = np.floor(offsets * kept[:, None] * (2 * box.clip / RADIUS) + 0.5)
    reach = 2 * box.clip
    moved = np.clip(doubled, -reach, reach).astype(np.int64)
    found = box.steps(2 * box.positions(points) + moved)
    still = kept == 0
    found[still] = points[still]
    return found


def noise_of_means(box: Box, weights: Ints, deviation: float) -> Floats:
    """Expected squared distance that noise moves a mean by, as distances are told by `box`."""
    length = box.apart(deviation * box.clip / RADIUS)
    found: Floats = box.columns * (length / weights) ** 2
    return found


def apart(box: Box, places: Ints, noise: Floats) -> list[int]:
    """Places of rows that no earlier chosen row explains but for noise, in order.

    Args:
        box: Of the points.
        places: In grid steps, shape (n, d).
        noise: Expected squared distance of each row from where it should be.
    """
    chosen: list[int] = []
    positions = box.positions(places)
    for own in range(len(places)):
        if chosen:
            _, squares = box.nearest(positions[[own]], positions[chosen])
            if squares[0] < 4 * noise[own]:
                continue
        chosen.append(own)
    return chosen


def unlike(some: Ints, others: Ints) -> Ints:
    """Those rows that are not among the others, each once, in order."""
    known = set(map(tuple, others.tolist()))
    kept = []
    for place, row in enumerate(map(tuple, some.tolist())):
        if row not in known:
            known.add(row)
            kept.append(place)
    return some[kept]
