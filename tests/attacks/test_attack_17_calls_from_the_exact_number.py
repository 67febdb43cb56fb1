"""Attack 17: the number of calls, and every scale with it, follows from the exact number of points."""

from __future__ import annotations

import numpy as np

from retrodp.clustering.one_cluster import Cluster, iterative
from retrodp.clustering.solver import Floats
from retrodp.noise.key import KeyTree
from retrodp.privacy.budget import zCDP

TAU, MOST = 2000, 5000


def calls(points: Floats) -> tuple[Cluster, ...]:
    keys = KeyTree.from_root(bytes(32), b"calls", 1)
    return iterative(points, TAU, 0.05, zCDP(1), most_points=MOST, keys=keys)


def points(number: int) -> Floats:
    return np.full((number, 2), 0.1)


def test_one_point_more_never_changes_the_number_of_calls() -> None:
    numbers = [0, 1, 1999, 2000, 2001, 3000, 5000, 9000]
    assert {len(calls(points(number))) for number in numbers} == {5}


def test_the_noise_of_a_call_follows_from_public_numbers_alone() -> None:
    """Without points what is published is noise: the same noise whatever N was meant to bound."""
    one, two = calls(points(0)), calls(points(0))
    assert [(c.radius, c.size, c.centre.tolist()) for c in one] == [
        (c.radius, c.size, c.centre.tolist()) for c in two
    ]


def test_twin_calls_that_follow_from_the_points_tell_their_number() -> None:
    def naive(number: int) -> int:
        return -(-2 * number // TAU)

    assert naive(3000) != naive(3001)
