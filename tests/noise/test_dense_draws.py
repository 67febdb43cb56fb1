"""The draws of a dense factor's nodes, for whoever adds them up himself."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from retrodp.noise.dense import DenseProcess, combined
from retrodp.noise.factors.dense import square_root
from retrodp.noise.key import KeyTree
from retrodp.noise.prf import Coordinates

HORIZON = 12
KEYS = KeyTree.from_root(b"d" * 32, b"s" * 16, HORIZON)


@pytest.mark.parametrize("round_", [1, 5, HORIZON])
def test_node_draws_add_up_to_the_noise_of_their_round(round_: int) -> None:
    process = DenseProcess(factor=square_root(HORIZON, None), scale=Fraction(10**9))
    where = Coordinates.of_indices(np.array([3, 1, 70]))
    draws = np.concatenate(
        [
            process.node_draws(release="r", rounds=part, keys=KEYS, where=where)
            for part in (range(1, round_), (round_,))
        ]
    )
    noise = process.draw(release="r", round=round_, keys=KEYS, where=where)
    assert combined(process.factor, draws).tolist() == noise.tolist()
    assert (draws == np.rint(draws)).all()
