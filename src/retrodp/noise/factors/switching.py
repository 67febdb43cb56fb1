"""What it costs the pinned Haar factor to hide a value that switches several times.

A window moves a count up once and down once. The number of different items moves otherwise: while
the window lasts, an item that others show and hide now and then is there throughout. The
difference of the two streams is a sequence g of -1, 0 and 1 that begins and ends at 0, moves by at
most 1 from one round to the next, and is never below 0 before it is above for the last time, or
the other way about. This counts the node shifts of all such sequences with a bounded number of
moves. Knows no data.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.int64]

# The value of g and whether its other sign has begun: it crosses at 0, once.
_VALUES = (0, 1, 0, -1)
_BEFORE, _AFTER = (0, 1), (2, 3)
_STATES = range(len(_VALUES))
_NONE = np.int64(-(1 << 40))

MOST_COUNTED = 128
"""Moves up to which the sequences are counted out; beyond, a simpler bound is enough."""


def switching_l2sq(height: int, moves: int) -> int:
    """Most that the squared node shifts of a sequence with so many moves sum to.

    A node over (lo, hi] with the middle mid moves by 2 g(mid) - g(lo) - g(hi). All nodes of a level
    are alike, so the largest sum over a node's interval, by the states at its ends and the moves
    inside, follows from that over its halves. The positions that rounds do not use are admitted
    too, so this is an upper bound whatever the position map.

    Args:
        height: h; positions 0..2^h, both ends at 0.
        moves: Most rounds in which g moves, the return to 0 after the last round included.

    Returns:
        A whole number; 2 h + 2 for two moves, which is the window's.

    Time: 64 `height` times `moves` vector operations of as many entries.
    """
    if moves > MOST_COUNTED:
        return simple_bound(height, moves)
    table = _steps(moves)
    for _ in range(height):
        table = _doubled(table)
    return int(max(table[0, end].max() for end in (0, 2)))


def simple_bound(height: int, moves: int) -> int:
    """A bound without counting, a sixth above it.

    Let N be the sum over the halves of a level's nodes of how far g moves across each. N is at most
    the number of moves, and one a half; the half in which the sign changes may count 2. A node
    whose halves move the same way or one of which does not move shifts by as much as it counts.
    Halves that move against each other, which they then do no more on coarser levels, count 2 and
    shift by 2, squared 2 more; there are at most half as many such nodes as moves. Where the sign
    changes, a node's squared shift is at most 4 more (a shift of 3, counted 3 and met once).
    """
    return moves + sum(min(moves, (2 << level) + 1) + 4 for level in range(height))


def _steps(moves: int) -> Table:
    """One step between neighbouring positions: at most one move, of 1."""
    table = np.full((len(_STATES), len(_STATES), moves + 1), _NONE)
    for start in _STATES:
        for end in _STATES:
            distance = abs(_VALUES[end] - _VALUES[start])
            back = start in _AFTER and end in _BEFORE
            if not back and distance <= min(1, moves):
                table[start, end, distance] = 0
    return table


def _doubled(table: Table) -> Table:
    """The same for intervals twice as long."""
    most = table.shape[2]
    found = np.full_like(table, _NONE)
    for start in _STATES:
        for middle in _STATES:
            for end in _STATES:
                shift = (2 * _VALUES[middle] - _VALUES[start] - _VALUES[end]) ** 2
                for spent in np.flatnonzero(table[start, middle] >= 0).tolist():
                    sums = table[start, middle, spent] + table[middle, end, : most - spent] + shift
                    np.maximum(found[start, end, spent:], sums, out=found[start, end, spent:])
    found[found < 0] = _NONE
    return found
