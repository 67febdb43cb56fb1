"""Attack 15: a sketch reads its own answers, so a stream fixed beforehand reacts to them all the same.

Which counter an arrival raises follows from what was published. So the draws that hide the arrival
must be ones that nothing published has used.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from retrodp.clustering.arrivals import check_process
from retrodp.clustering.practical import box_columns, practical
from retrodp.errors import PlanError
from retrodp.noise.factors.binary import BinaryFactor
from retrodp.noise.factors.contract import Factor
from retrodp.noise.factors.haar import HaarFactor, best_haar
from retrodp.noise.process import NoiseProcess
from retrodp.privacy.budget import zCDP

HORIZON = 7  # the pinned tree over eight places has seven nodes, so that shifts are unique


def used_before(factor: Factor, arrival: int) -> list[bool]:
    """Of each node that hides an arrival which stays: whether an earlier round used it."""
    nodes = list(dict.fromkeys(node for r in range(1, HORIZON + 1) for node, _ in factor.nodes(r)))
    weights = np.zeros((HORIZON, len(nodes)))
    for row in range(HORIZON):
        for node, weight in factor.nodes(row + 1):
            weights[row, nodes.index(node)] = weight / factor.denominator
    step = (np.arange(1, HORIZON + 1) >= arrival).astype(float)
    shift, _, rank, _ = np.linalg.lstsq(weights, step, rcond=None)
    assert rank == HORIZON == len(nodes)
    assert np.allclose(weights @ shift, step)
    return [
        bool(np.any(weights[: arrival - 1, place]))
        for place in np.flatnonzero(np.abs(shift) > 1e-9)
    ]


def test_an_arrival_is_hidden_by_draws_that_nothing_published_has_used() -> None:
    found = [any(used_before(BinaryFactor(horizon=HORIZON), s)) for s in range(1, HORIZON + 1)]
    assert found == [False] * HORIZON


def test_twin_haar_hides_an_arrival_by_draws_that_were_published_before() -> None:
    factor = best_haar(HORIZON)
    assert isinstance(factor, HaarFactor)
    found = [any(used_before(factor, s)) for s in range(2, HORIZON + 1)]
    assert found == [True, True, True, False, False, False]


def test_such_noise_is_refused_whoever_brings_it() -> None:
    process = NoiseProcess(factor=best_haar(HORIZON), law="gaussian", scale=Fraction(9))
    with pytest.raises(PlanError, match="future"):
        check_process(process)
    with pytest.raises(PlanError):
        practical(
            "a",
            of=box_columns([0], [1], "0.1"),
            k=1,
            horizon=HORIZON,
            budget=zCDP(1),
            factor="haar",  # type: ignore[arg-type]
        )
