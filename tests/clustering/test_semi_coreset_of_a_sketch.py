"""What a run of the practical sketch reaches, in the terms of definition 4."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from retrodp.clustering.coreset import Coreset
from retrodp.clustering.practical import box_columns, practical
from retrodp.clustering.running import run
from retrodp.clustering.solver import Floats
from retrodp.clustering.transport import (
    Transport,
    Weighted,
    achieved,
    least_kappa,
    powers,
    transport,
)
from retrodp.noise.key import KeyTree
from retrodp.privacy.budget import ApproxDP

BLOCKS, A_BLOCK, K = 25, 1000, 3
UNIT = 1000  # steps


class Reached(NamedTuple):
    """The last coreset, what it stands for, how points were moved, and centres to try."""

    coreset: Coreset
    data: Weighted
    moved: Transport
    optimum: float
    tried: list[Floats]


@cache
def reached() -> Reached:
    rng = np.random.default_rng(4)
    middles = np.array([[300, 100], [-250, 200], [0, -350]])
    points = middles[rng.integers(0, K, BLOCKS * A_BLOCK)]
    points = np.rint(points + 25 * rng.normal(size=points.shape)).astype(np.int64)
    sketch = practical(
        "places",
        of=box_columns(["-0.5"] * 2, ["0.5"] * 2, "0.001"),
        k=K,
        horizon=BLOCKS,
        budget=ApproxDP(1, "1e-6"),
    )
    keys = KeyTree.from_root(bytes(32), b"reached", BLOCKS)
    parts = np.split(points, BLOCKS)
    names = [[b"%d %d" % (block, one) for one in range(A_BLOCK)] for block in range(BLOCKS)]
    (*_, last) = run(sketch, zip(parts, names, strict=True), keys)
    places = []
    for block, own in enumerate(parts, start=1):
        there = last.points[last.births < block]
        places.append(powers(own / 1.0, there / 1.0, 2).argmin(axis=1))
    data, sketched = (
        Weighted.ones(points / UNIT),
        Weighted(last.points / UNIT, last.weights.astype(np.float64)),
    )
    centres = middles / UNIT
    tried = [centres]
    tried += [rng.uniform(-0.5, 0.5, (K, 2)) for _ in range(40)]
    tried += [
        centres + spread * rng.normal(size=(K, 2)) for spread in (0.01, 0.1) for _ in range(20)
    ]
    return Reached(
        last,
        data,
        transport(data, sketched, np.concatenate(places), 2),
        data.cost(centres, 2),
        tried,
    )


def costs(own: Reached, weights: Floats) -> tuple[list[float], list[float]]:
    sketched = Weighted(own.coreset.points / UNIT, weights)
    return (
        [own.data.cost(centres, 2) for centres in own.tried],
        [sketched.cost(centres, 2) for centres in own.tried],
    )


def test_a_run_of_the_sketch_is_the_semi_coreset_that_its_transport_certifies() -> None:
    own = reached()
    certified = achieved(own.moved, own.optimum, 2, negative_weights=True)
    weights = own.coreset.weights.astype(np.float64)
    assert certified.broken_by(*costs(own, weights), own.optimum) == []
    # The twin: the same weights, all at the first representative, are no such semi-coreset.
    lazy = np.zeros_like(weights)
    lazy[0] = weights.sum()
    assert certified.broken_by(*costs(own, lazy), own.optimum) != []


def test_points_were_moved_little_and_weights_err_by_their_noise() -> None:
    """The first block has no representative but the middle of the box."""
    own = reached()
    many, deviation = len(own.coreset), own.coreset.weight_stddev
    first = float((own.data.points[:A_BLOCK] ** 2).sum())
    assert first < own.moved.moved < first + 3 * own.optimum
    assert 0.4 * many * deviation < own.moved.mismatch < 1.2 * many * deviation


def test_costs_of_centres_are_kept_to_a_small_factor() -> None:
    own = reached()
    exact, noisy = costs(own, own.coreset.weights.astype(np.float64))
    first = float((own.data.points[:A_BLOCK] ** 2).sum())
    kappa = least_kappa(exact, noisy, optimum=own.optimum, eta1=0.0, eta2=first)
    assert 1 <= kappa < 1.3
    assert least_kappa(exact, noisy, optimum=own.optimum, eta1=0.0, eta2=0.0) > 1.3
