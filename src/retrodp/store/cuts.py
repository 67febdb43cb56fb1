"""Where a sorted list of names is cut into packs: a function of the names alone.

Promise: whether a name begins a pack depends on the name and on nothing beside it, so the packs of
a set of names are the same however the set came about, and a change touches the packs that hold
what it changes, or the one before, at most. Knows no table.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np
import numpy.typing as npt

MEAN_ROWS = 256
"""Of a pack. Names that somebody chose to be cut, or not to be, cost time and nothing else."""

_WORD = np.uint32(0x9E3779B1)
_OTHER_WORD = np.uint32(0x85EBCA6B)
_SHIFT = np.uint32(32 - (MEAN_ROWS - 1).bit_length())


def cuts(names: Sequence[str], spaces: Sequence[str] | None = None) -> npt.NDArray[np.bool_]:
    """Which names begin a pack.

    Args:
        names: Ids.
        spaces: Their namespaces, if there are any; where each person numbers the records anew,
            many have the same id.
    """
    hashes = np.fromiter(map(crc32, map(str.encode, names)), np.uint32, len(names))
    if spaces is not None:
        own = np.fromiter(map(crc32, map(str.encode, spaces)), np.uint32, len(spaces))
        hashes ^= own * _OTHER_WORD
    found: npt.NDArray[np.bool_] = (hashes * _WORD) >> _SHIFT == 0
    return found
