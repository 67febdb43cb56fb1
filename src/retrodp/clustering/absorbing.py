"""Arrivals of a block, and the exact counters of a sketch after them.

Promise: nothing is published of it. What an arrival adds is a function of itself, of its coin and of what
was published before, so that arrivals may come in any order and in parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrodp.clustering.memory import Memory, added
from retrodp.clustering.places import Box
from retrodp.clustering.representatives import codes_of
from retrodp.statistics.grid import Placed

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Sampled = Callable[[Memory, Floats, Floats], NDArray[np.intp]]
"""Of the memory, squared distances to the nearest representative, and coins: places of the sample."""


class Arrivals(NamedTuple):
    """The points of one block.

    Attributes:
        positions: In the box, shape (n, d).
        coins: In [0, 1), shape (n,).
    """

    positions: Ints
    coins: Floats


def counted(memory: Memory, arrivals: Arrivals, box: Box, grid: Placed, sampled: Sampled) -> Memory:
    """The exact counters after arrivals; the block stays that of the memory."""
    positions = arrivals.positions
    representatives = box.positions(memory.points)
    places, squares = box.nearest(positions, representatives)
    many = len(memory.points)
    offsets = box.offsets(positions, representatives[places])
    # Whole numbers below 2^53, so that sums of floats are exact in any order.
    sums = [np.bincount(places, column, many) for column in offsets.T]
    chosen = sampled(memory, squares, arrivals.coins)
    codes = [codes_of(level, numbers) for level, numbers in grid.numbers(positions[chosen])]
    cells, counts = added(memory.cells, memory.counts, np.concatenate(codes))
    return replace(
        memory,
        size=memory.size + len(chosen),
        weights=memory.weights + np.bincount(places, minlength=many),
        sums=memory.sums + np.stack(sums, axis=1).astype(np.int64),
        cells=cells,
        counts=counts,
    )
