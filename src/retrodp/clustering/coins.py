"""The coins of arrivals: one number for each, decided by the arrival alone.

Promise: a coin depends on the key, the block, the phase, the arrival's identity and its copy
number, and on no other arrival, so that one arrival more moves no other's coin. Knows no point.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from retrodp.errors import UsageError
from retrodp.noise.key import NoiseKeys
from retrodp.noise.labels import label_words

Floats = NDArray[np.float64]

COINS = "coins"  # purpose of the key
_COPIES = "copies"
_UNIT = 2.0**-53


def coins(
    identities: Sequence[bytes], *, release: str, block: int, phase: int, keys: NoiseKeys
) -> Floats:
    """Numbers in [0, 1), multiples of 2^-53, one an arrival, in order.

    Arrivals of one identity in a block are copies of each other, equal in contents. The first has
    the coin of the identity, each further one that of its number; one copy less takes the last coin
    away and no other. The key is that of the block and lost with it.

    Args:
        identities: Canonical bytes of each arrival.
        release: Of the sketch.
        block: From 1 on.
        phase: Of the sketch.
        keys: Source of the coins.
    """
    key = keys.fresh_key(release=release, purpose=f"{COINS} {phase}", round=block)
    words = label_words(identities, key)
    numbers = words[:, 0].copy()
    rising = np.sort(numbers)
    if (rising[1:] == rising[:-1]).any():
        _, places, often = np.unique(words, axis=0, return_inverse=True, return_counts=True)
        copies = _copy_numbers(places.reshape(-1), often)
        again = np.flatnonzero(copies)
        labels = [
            identities[place] + number.to_bytes(8, "big")
            for place, number in zip(again.tolist(), copies[again].tolist(), strict=True)
        ]
        other = keys.fresh_key(release=release, purpose=f"{_COPIES} {phase}", round=block)
        numbers[again] = label_words(labels, other)[:, 0]
    found: Floats = (numbers >> np.uint64(11)).astype(np.float64) * _UNIT
    return found


def require_copies(points: NDArray[np.int64], identities: Sequence[bytes]) -> None:
    """Raise `UsageError` unless every point has an identity, and equal ones have equal points."""
    if len(points) != len(identities):
        raise UsageError("Every point needs an identity.")
    found = dict(zip(identities, range(len(identities)), strict=True))
    if len(found) == len(identities):
        return
    if (points != points[[found[identity] for identity in identities]]).any():
        raise UsageError(
            "Points of one identity differ, so that their coins would hang on their order.",
            do="Give one identity to equal points only.",
        )


def _copy_numbers(places: NDArray[np.intp], often: NDArray[np.intp]) -> NDArray[np.int64]:
    """0, 1, 2, ... within each group, in order."""
    order = np.argsort(places, kind="stable")
    firsts = np.repeat(np.cumsum(often) - often, often)
    numbers = np.empty(len(places), dtype=np.int64)
    numbers[order] = np.arange(len(places)) - firsts
    return numbers
