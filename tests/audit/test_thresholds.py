from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from retrodp.audit.thresholds import crossing, rounded_law, worst_crossing
from retrodp.noise.dense import DenseProcess
from retrodp.noise.factors.binary import BinaryFactor
from retrodp.noise.factors.delannoy import best_delannoy
from retrodp.noise.factors.dense import best_dense
from retrodp.noise.factors.haar import best_haar
from retrodp.noise.prf import Coordinates
from retrodp.noise.process import NoiseProcess
from retrodp.noise.tails import summed_tail
from retrodp.privacy.calibrate import least_threshold
from tests.audit.sizes import SEED

PROCESSES = [
    NoiseProcess(factor=BinaryFactor(horizon=7), law="laplace", scale=Fraction(5, 2)),
    NoiseProcess(factor=best_delannoy(9), law="laplace", scale=Fraction(3)),
    NoiseProcess(factor=best_haar(7), law="gaussian", scale=Fraction(40)),
    NoiseProcess(factor=BinaryFactor(horizon=7), law="gaussian", scale=Fraction(12)),
]


def label(process: NoiseProcess) -> str:
    return f"{process.factor.name}-{process.law}"


def test_a_single_draw_has_the_formula_of_its_law() -> None:
    process = NoiseProcess(factor=BinaryFactor(horizon=1), law="laplace", scale=Fraction(2))
    law = rounded_law(process, 1)
    # P(X >= 3) of exp(-|k| / 2) is r^3 / (1 + r) with r = exp(-1/2).
    ratio = math.exp(-0.5)
    assert law.tail(3) == pytest.approx(ratio**3 / (1 + ratio), rel=1e-12)
    assert law.masses.sum() == pytest.approx(1)


@pytest.mark.parametrize("process", PROCESSES, ids=label)
def test_the_law_is_that_of_the_drawn_noise(process: NoiseProcess) -> None:
    """Kolmogorov distance of 40,000 draws; 0.02 is exceeded once in 10^13 by DKW."""
    keys = SEED.keys(process.factor.horizon, "law")
    drawn = process.draw(release="r", round=6, keys=keys, where=Coordinates.of_indices(40_000))
    law = rounded_law(process, 6)
    values = np.arange(law.first, law.first + len(law.masses))
    counted = np.searchsorted(np.sort(drawn), values, side="right") / len(drawn)
    assert np.abs(counted - np.cumsum(law.masses)).max() < 0.02


@pytest.mark.parametrize("process", PROCESSES, ids=label)
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-10])
def test_certified_tails_lie_just_above_the_exact_ones(process: NoiseProcess, delta: float) -> None:
    threshold = least_threshold(lambda x: summed_tail(process, x), delta)
    exact = crossing(process, threshold, 1)
    assert exact <= summed_tail(process, threshold - 1) <= exact * 1.03


def test_a_dense_factor_crosses_as_a_gaussian_does() -> None:
    process = DenseProcess(factor=best_dense(7, None), scale=Fraction(10**9))
    assert crossing(process, 80, 1) <= summed_tail(process, 79) <= crossing(process, 80, 1) * 1.03


def test_the_worst_split_is_found() -> None:
    process = PROCESSES[0]
    tails = {records: crossing(process, 30, records) for records in (1, 2, 3)}
    every = [3 * tails[1], tails[1] + tails[2], tails[3]]
    assert worst_crossing(process, 30, records=3, per_bin=3)[0] == pytest.approx(max(every))
    bounded, places = worst_crossing(process, 30, records=3, per_bin=2)
    assert bounded == pytest.approx(max(every[:2]))
    assert sum(size * number for size, number in places.items()) == 3
