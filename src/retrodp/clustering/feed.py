"""A private stream for any online clusterer: coresets, block by block, as weighted points.

Promise: what is delivered is a function of published coresets, so whatever a consumer does with it
costs no privacy (online post-processing, lemma 20 of Cohen et al. 2026). Knows no clusterer.

A consumer that takes a whole weighted set a round uses `centres` and `weights`; one that can only
add points takes `additions`: `model.partial_fit(points, sample_weight=weights)` in scikit-learn,
`model.learn_one(dict)` as often as the weight says in river.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrodp.clustering.coreset import Changes, Coreset

Ints = NDArray[np.int64]


class Additions(NamedTuple):
    """Points that became sure in a block, as weighted points.

    Attributes:
        points: Noisy means, in grid steps, shape (r, d).
        weights: Above 0, shape (r,); over all blocks they add up to `Coreset.monotone`.
    """

    points: Ints
    weights: Ints


class Delivery(NamedTuple):
    """What is known after one block.

    Attributes:
        block: From 1.
        centres: Noisy means of the representatives, in grid steps, shape (m, d).
        weights: Signed noisy numbers of points, shape (m,).
        changes: What is new since the block before.
        additions: For consumers that cannot take anything back.
    """

    block: int
    centres: Ints
    weights: Ints
    changes: Changes
    additions: Additions


def deliveries(coresets: Iterable[Coreset]) -> Iterator[Delivery]:
    """One delivery for each coreset of a sketch, in order.

    Args:
        coresets: Of blocks 1, 2, ..., as `retrodp.clustering.running.run` gives them.
    """
    before: Coreset | None = None
    sure: Ints | None = None
    for coreset in coresets:
        earlier = Coreset.empty(coreset.points.shape[1]) if before is None else before
        monotone = coreset.monotone(sure)
        grown = monotone.copy()
        if sure is not None:
            grown[: len(sure)] -= sure
        which = np.flatnonzero(grown)
        yield Delivery(
            block=coreset.block,
            centres=coreset.centres,
            weights=coreset.weights,
            changes=coreset.changes(earlier),
            additions=Additions(coreset.centres[which], grown[which]),
        )
        before, sure = coreset, monotone
