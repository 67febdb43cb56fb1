"""Centres of weighted points: good ones, the same for the same coins, and never more than there are."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sklearn.cluster
import threadpoolctl

from retrodp.clustering import solver
from retrodp.clustering.solver import Floats, kmeans, kmedian, lengths
from retrodp.errors import UsageError

Solve = Callable[..., Floats]
COINS = bytes(range(32))

both = pytest.mark.parametrize("solve", [kmeans, kmedian])


def groups() -> tuple[Floats, Floats]:
    rng = np.random.default_rng(3)
    middles = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])
    points = np.concatenate([middle + rng.normal(size=(30, 2)) for middle in middles])
    return points, rng.uniform(1, 5, size=len(points))


@both
def test_well_parted_groups_are_found(solve: Solve) -> None:
    points, weights = groups()
    centres = solve(points, weights, 4, coins=COINS)
    expected = np.array(
        [
            np.average(points[i : i + 30], axis=0, weights=weights[i : i + 30])
            for i in range(0, 120, 30)
        ]
    )
    away = np.sqrt(((centres[:, None] - expected[None]) ** 2).sum(axis=2)).min(axis=1)
    assert len(centres) == 4
    assert float(away.max()) < 0.5


@both
def test_equal_coins_give_equal_bytes(solve: Solve) -> None:
    points, weights = groups()
    one, two = (solve(points, weights, 7, coins=COINS).tobytes() for _ in range(2))
    assert one == two


@both
def test_fewer_distinct_points_than_centres_are_their_own_centres(solve: Solve) -> None:
    points = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])
    assert solve(points, np.ones(3), 5, coins=COINS).tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_one_median_is_the_geometric_median() -> None:
    # Of the corners of a triangle with all angles below 120 degrees: it sees its sides under 120.
    points = np.array([[0.0, 0.0], [4.0, 0.0], [1.0, 3.0]])
    (centre,) = kmedian(points, np.ones(3), 1, coins=COINS)
    pulls = (points - centre) / np.sqrt(((points - centre) ** 2).sum(axis=1))[:, None]
    assert float(np.abs(pulls.sum(axis=0)).max()) < 1e-3


def test_a_heavy_point_is_the_median() -> None:
    points = np.array([[0.0], [1.0], [100.0]])
    (centre,) = kmedian(points, np.array([1.0, 5.0, 1.0]), 1, coins=COINS)
    assert float(centre[0]) == pytest.approx(1.0, abs=1e-3)


def test_a_unit_of_length_changes_nothing_but_the_unit() -> None:
    points, weights = groups()
    small = kmeans(points * 2.0**-30, weights, 4, coins=COINS)
    large = kmeans(points, weights, 4, coins=COINS)
    assert np.allclose(np.sort(small, axis=0) * 2.0**30, np.sort(large, axis=0))


def test_the_limit_on_threads_is_never_lifted_by_another_thread() -> None:
    """The limit is the process's: one that ends would free the threads of one that runs."""
    points, weights = groups()
    seen: list[int] = []
    real = sklearn.cluster.KMeans.fit

    def counting(model: object, *arguments: object, **named: object) -> object:
        found = real(model, *arguments, **named)
        seen.extend(pool["num_threads"] for pool in threadpoolctl.threadpool_info())
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sklearn.cluster.KMeans, "fit", counting)
        with ThreadPoolExecutor(4) as pool:
            made = [pool.submit(kmeans, points, weights, 7, coins=COINS) for _ in range(24)]
            bytes_ = {one.result().tobytes() for one in made}
    assert len(bytes_) == 1
    assert len(seen) >= 24
    assert set(seen) == {1}


def test_a_length_is_the_vectors_own_business() -> None:
    """To the last bit, however many others there are and however they lie in memory."""
    vectors = np.random.default_rng(1).normal(size=(500, 37))
    alone = np.concatenate([lengths(one[None, :]) for one in vectors])
    assert lengths(vectors).tolist() == alone.tolist()
    assert lengths(np.asfortranarray(vectors)).tolist() == alone.tolist()
    assert np.allclose(alone, np.linalg.norm(vectors, axis=1))


def test_a_missing_solver_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match="pip install scikit-learn threadpoolctl"):
        solver.require()
    points, weights = groups()
    with pytest.raises(UsageError, match="scikit-learn"):
        kmeans(points, weights, 4, coins=COINS)
