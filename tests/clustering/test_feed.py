"""Any online clusterer can learn from the private stream."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from retrodp.clustering.coreset import Coreset
from retrodp.clustering.feed import Delivery, deliveries
from retrodp.clustering.practical import box_columns, practical
from retrodp.clustering.running import run
from retrodp.noise.key import KeyTree
from retrodp.privacy.budget import ApproxDP

MIDDLES = np.array([[2000, 2000], [8000, 3000], [5000, 8000]])
BLOCKS, EACH = 30, 1500


@pytest.fixture(scope="module")
def coresets() -> list[Coreset]:
    generator = np.random.default_rng(7)
    which = generator.integers(0, 3, (BLOCKS, EACH))
    points = np.rint(MIDDLES[which] + 150 * generator.normal(size=(BLOCKS, EACH, 2)))
    sketch = practical(
        "feed",
        of=box_columns([0, 0], [10_000, 10_000], "1"),
        k=3,
        horizon=BLOCKS,
        budget=ApproxDP(1, "1e-6"),
    )
    blocks = (
        (block.astype(np.int64), [b"%d:%d" % (place, one) for one in range(EACH)])
        for place, block in enumerate(points)
    )
    return list(run(sketch, blocks, KeyTree.from_root(b"f" * 32, b"s" * 16, BLOCKS)))


def fed(coresets: list[Coreset]) -> Iterator[Delivery]:
    return deliveries(coresets)


def test_additions_add_up_to_the_monotone_weights(coresets: list[Coreset]) -> None:
    total = sum(int(one.additions.weights.sum()) for one in fed(coresets))
    monotone = None
    for coreset in coresets:
        monotone = coreset.monotone(monotone)
    assert monotone is not None
    assert total == int(monotone.sum())
    assert 0.9 * BLOCKS * EACH < total < 1.01 * BLOCKS * EACH
    assert all((one.additions.weights > 0).all() for one in fed(coresets))


def test_changes_add_up_to_the_signed_weights(coresets: list[Coreset]) -> None:
    total = np.zeros(len(coresets[-1]), np.int64)
    for one in fed(coresets):
        total[: len(one.changes.weights)] += one.changes.weights
    assert total.tolist() == coresets[-1].weights.tolist()


def test_a_delivery_needs_nothing_but_the_coresets_up_to_it(coresets: list[Coreset]) -> None:
    early, late = list(fed(coresets[:9])), list(fed(coresets))[:9]
    for one, other in zip(early, late, strict=True):
        assert np.array_equal(one.additions.points, other.additions.points)
        assert np.array_equal(one.weights, other.weights)


def close(centres: np.ndarray) -> bool:
    away = np.sqrt(((centres[:, None] - MIDDLES[None]) ** 2).sum(axis=2))
    return bool((away.min(axis=0) < 300).all())


def test_mini_batch_k_means_learns_from_the_stream(coresets: list[Coreset]) -> None:
    pytest.importorskip("sklearn")
    from sklearn.cluster import MiniBatchKMeans  # noqa: PLC0415

    model = MiniBatchKMeans(3, random_state=1, n_init=3)
    waiting: list[tuple[np.ndarray, np.ndarray]] = []
    for delivery in fed(coresets):
        waiting.append(delivery.additions)
        points = np.concatenate([points for points, _ in waiting])
        if len(points) >= 3:  # the first batch must have as many points as clusters
            weights = np.concatenate([weights for _, weights in waiting])
            model.partial_fit(points.astype(float), sample_weight=weights.astype(float))
            waiting = []
    assert close(model.cluster_centers_)


@pytest.mark.skipif(importlib.util.find_spec("river") is None, reason="needs river")
def test_rivers_streaming_k_means_learns_from_the_stream(coresets: list[Coreset]) -> None:
    cluster: Any = importlib.import_module("river.cluster")
    model = cluster.KMeans(n_clusters=3, halflife=0.05, mu=5000, sigma=3000, seed=1)
    for delivery in fed(coresets):
        for point, weight in zip(*map(np.ndarray.tolist, delivery.additions), strict=True):
            for _ in range(max(1, weight // 100)):  # river's centres take no weights
                model.learn_one(dict(enumerate(point)))
    centres = [[centre[axis] for axis in (0, 1)] for centre in model.centers.values()]
    assert close(np.array(centres))
