"""Which places become representatives: cells that stand out, and means that lie far off.

Promise: a function of what was published, and of the noisy counts that are told; no point and no exact
count is seen. The caller knows keys, labels and thresholds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrodp.clustering.coreset import Coreset
from retrodp.clustering.means import apart, noise_of_means, unlike
from retrodp.clustering.memory import Memory, among
from retrodp.clustering.places import Box
from retrodp.statistics.grid import Placed

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_REPRESENTATIVES = 1 << 13
MOST_LOOKED_AT = 1 << 20
"""Cells of one level whose counts are looked at in one block."""
_LEVEL_BITS = 6


def codes_of(level: int, numbers: Ints) -> Ints:
    """Codes of cells of one level; no two cells of any levels share one."""
    return numbers << _LEVEL_BITS | level


class Worth(NamedTuple):
    """Which means are worth a representative: those whose points would gain so much by it.

    Attributes:
        cost: Of a point at a squared distance.
        least: Gain from which one is.
    """

    cost: Callable[[Floats], Floats]
    least: float


def full_cells(
    box: Box, grid: Placed, memory: Memory, full: Callable[[Ints], NDArray[np.bool_]]
) -> tuple[Ints, Ints]:
    """Places of cells that stand out for the first time in this phase, and codes of all that did.

    All children of accepted cells are looked at, empty ones too, and all cells of the first level:
    which they are follows from what was published.

    Args:
        box: Of the points.
        grid: Its cells at their place.
        memory: Of the block.
        full: Whether cells of these codes stand out.
    """
    levels = box.grid.counted
    born, accepted = [], [memory.accepted]
    room = MOST_REPRESENTATIVES - len(memory.points)
    parents = np.zeros(1, dtype=np.int64)
    for level in levels:
        bits = box.grid.bits(level) if level == levels[0] else box.grid.branching(level)
        sides = np.arange(1 << bits, dtype=np.int64)
        parents = parents[: max(1, MOST_LOOKED_AT >> bits)]
        numbers = (parents[:, None] << bits | sides[None, :]).reshape(-1)
        numbers = grid.inside(level, numbers)
        codes = codes_of(level, numbers)
        before = among(codes, memory.accepted)
        new, asked = numbers[~before], codes[~before]
        found = np.flatnonzero(full(asked))[:room]
        room -= len(found)  # whoever is left out is looked at again
        accepted.append(asked[found])
        parents = np.sort(np.concatenate([numbers[before], new[found]]))
        if len(found):
            born.append(box.middles(grid, level, new[found]))
    middles = np.concatenate(born) if born else np.zeros((0, box.columns), dtype=np.int64)
    return unlike(middles, memory.points), np.sort(np.concatenate(accepted))


def far_means(box: Box, coreset: Coreset, taken: Ints, deviation: float, worth: Worth) -> Ints:
    """Means that become representatives of their own: where cells are wide, middles lie far off.

    A mean does that is worth it, and whose distance neither its noise nor another representative
    explains.

    Args:
        box: Of the points.
        coreset: As published.
        taken: Representatives so far, in grid steps, shape (m, d).
        deviation: Of the noise of a sum of offsets.
        worth: What is worth a representative.
    """
    heavy = coreset.positive
    heavy = heavy[(coreset.centres[heavy] != coreset.points[heavy]).any(axis=1)]
    centres, weights = coreset.centres[heavy], coreset.weights[heavy]
    noise = noise_of_means(box, weights, deviation)
    _, squares = box.nearest(box.positions(centres), box.positions(taken))
    gains = weights * worth.cost(squares)
    far = np.flatnonzero((gains >= worth.least) & (squares >= 4 * noise))
    order = far[np.argsort(-squares[far], kind="stable")]
    room = MOST_REPRESENTATIVES - len(taken)
    chosen: Ints = order[apart(box, centres[order], noise[order])][:room]
    found: Ints = centres[chosen]
    return found


def with_born(coreset: Coreset, memory: Memory, born: Ints) -> tuple[Coreset, Memory]:
    """The new representatives at the end; they have no arrivals yet, which tells nothing."""
    zeros = np.zeros(len(born), dtype=np.int64)
    points = np.concatenate([memory.points, born])
    births = np.concatenate([memory.births, zeros + memory.block])
    return replace(
        coreset,
        points=points,
        centres=np.concatenate([coreset.centres, born]),
        weights=np.concatenate([coreset.weights, zeros]),
        births=births.copy(),
    ), replace(
        memory,
        points=points.copy(),
        births=births,
        weights=np.concatenate([memory.weights, zeros]),
        sums=np.concatenate([memory.sums, np.zeros_like(born)]),
    )
