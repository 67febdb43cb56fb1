"""Streams of coresets as a sketch would publish them, without one."""

from __future__ import annotations

from functools import cache

import numpy as np

from retrodp.clustering.coreset import Coreset

STDDEV = 4.0


@cache
def coresets(
    seed: int, *, blocks: int = 40, drifting: bool = False, louder: int = 0, off: int = 0
) -> tuple[Coreset, ...]:
    """Representatives around six places, noisy weights that grow, and new ones now and then.

    Args:
        seed: Of everything.
        blocks: How many.
        drifting: Whether groups come one after the other.
        louder: By how much the noise's deviation grows in every block.
        off: How far means may lie from their representatives, in every column.
    """
    rng = np.random.default_rng(seed)
    middles = rng.integers(-4000, 4000, (6, 2))
    many = 60
    group = rng.integers(0, 6, many)
    points = middles[group] + rng.integers(-400, 400, (many, 2))
    births = np.sort(rng.integers(0, blocks * 2 // 3, many))
    if drifting:
        births = np.sort(births)
        points = points[np.argsort(group, kind="stable")]
    births[0] = 0
    away = rng.integers(-off, off + 1, (many, 2))
    true = np.zeros(many, dtype=np.int64)
    found = []
    for block in range(1, blocks + 1):
        there = births < block
        true[there] += rng.poisson(8, int(there.sum()))
        stddev = STDDEV + louder * block
        noisy = true[there] + np.rint(rng.normal(size=int(there.sum())) * stddev).astype(np.int64)
        found.append(
            Coreset(
                block=block,
                phase=0,
                points=points[there].astype(np.int64),
                centres=(points + away)[there].astype(np.int64),
                weights=noisy,
                births=births[there].astype(np.int64),
                weight_stddev=stddev,
            )
        )
    return tuple(found)
