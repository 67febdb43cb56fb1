"""Sums over coordinates stay below the certified reach, and the reach is not much too wide."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from retrodp.errors import PlanError
from retrodp.mechanisms.calibrate import choose_factor
from retrodp.noise.dense import DenseProcess
from retrodp.noise.factors.dense import best_dense
from retrodp.noise.factors.fresh import FreshFactor
from retrodp.noise.key import KeyTree
from retrodp.noise.prf import Coordinates
from retrodp.noise.process import Law, NoiseProcess
from retrodp.noise.processes import Process
from retrodp.noise.weighted import norms, reaches, rounding_reach

ALPHA = 1e-9  # one false alarm in 10**9 with fresh keys
HORIZON, ROUND = 20, 7
RUNS = 40_000
MISS = 0.01
KEYS = KeyTree.from_root(bytes(range(32)), b"weighted", HORIZON)
HATS = [1 / 3, *(1 / 3 for _ in range(9)), 1 / 2]  # a rank in a tree of 10 levels
WEIGHTS: dict[str, Sequence[float]] = {
    "one": [1.0],
    "equal": [1.0] * 12,
    "hats": HATS,
    "signs": [(-1.0) ** i / (1 + i) for i in range(8)],
}


def process(law: Law, factor: str, scale: Fraction) -> Process:
    if factor == "fresh":
        return NoiseProcess(factor=FreshFactor(horizon=HORIZON, window=2), law=law, scale=scale)
    if factor == "dense":
        return DenseProcess(factor=best_dense(HORIZON), scale=scale)
    chosen = choose_factor(factor, horizon=HORIZON, law=law)
    return NoiseProcess(factor=chosen, law=law, scale=scale)


def sums(noise: Process, weights: Sequence[float]) -> NDArray[np.float64]:
    """Weighted sums of the noise of so many coordinates, in independent runs."""
    many = RUNS * len(weights)
    draws = noise.draw(
        release="weighted", round=ROUND, keys=KEYS, where=Coordinates.of_indices(many)
    )
    result: NDArray[np.float64] = draws.reshape(RUNS, -1) @ np.array(weights)
    return result


def spread_of(weights: Sequence[float]) -> float:
    return sum(weight**2 for weight in weights) / max(weight**2 for weight in weights)


def reach(
    noise: Process, weights: Sequence[float], miss: float = MISS, *, spread: float = 1
) -> float:
    r = reaches(noise, miss, coordinates=len(weights), spread=spread)[ROUND - 1]
    edge = float(rounding_reach(noise)) * sum(map(abs, weights))
    return float(r * math.hypot(*weights) + edge)


PROCESSES = [
    ("gaussian", "haar", Fraction(400)),
    ("gaussian", "haar", Fraction(2)),
    ("gaussian", "binary", Fraction(400)),
    ("gaussian", "fresh", Fraction(1, 4)),
    ("gaussian", "dense", Fraction(10**9)),
    ("laplace", "delannoy", Fraction(30)),
    ("laplace", "binary", Fraction(1, 2)),
    ("laplace", "haar", Fraction(8)),
    ("laplace", "fresh", Fraction(30)),
]


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize(("law", "factor", "scale"), PROCESSES)
def test_no_weighted_sum_passes_its_reach_too_often(
    law: Law, factor: str, scale: Fraction, weights: Sequence[float]
) -> None:
    noise = process(law, factor, scale)
    drawn, end = sums(noise, weights), reach(noise, weights)
    passed = max(np.count_nonzero(drawn >= end), np.count_nonzero(drawn <= -end))
    assert passed <= float(binom.isf(ALPHA, RUNS, MISS))


@pytest.mark.parametrize(
    ("law", "factor", "scale", "wide"),
    [
        ("gaussian", "haar", Fraction(2000), 1.08),
        ("gaussian", "binary", Fraction(2000), 1.08),
        ("laplace", "delannoy", Fraction(300), 1.45),  # as if one coordinate had all the weight
    ],
)
def test_the_reach_is_close_to_what_it_takes(
    law: Law, factor: str, scale: Fraction, wide: float
) -> None:
    noise = process(law, factor, scale)
    needed = float(np.quantile(sums(noise, HATS), 1 - MISS))
    assert needed < reach(noise, HATS) < wide * needed


LAPLACE = [one for one in PROCESSES if one[0] == "laplace"]


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize(("law", "factor", "scale"), LAPLACE)
def test_no_sum_passes_the_reach_of_its_spread_too_often(
    law: Law, factor: str, scale: Fraction, weights: Sequence[float]
) -> None:
    noise = process(law, factor, scale)
    drawn, end = sums(noise, weights), reach(noise, weights, spread=spread_of(weights))
    passed = max(np.count_nonzero(drawn >= end), np.count_nonzero(drawn <= -end))
    assert passed <= float(binom.isf(ALPHA, RUNS, MISS))


@pytest.mark.parametrize("copies", [1, 2, 4, 9])
@pytest.mark.parametrize("miss", [1e-2, 1e-4, 1e-7])
def test_exact_tails_of_equal_weights_lie_below_the_reach_of_their_spread(
    copies: int, miss: float
) -> None:
    """By convolution: as many equal weights as the spread says are the worst there are."""
    noise = process("laplace", "fresh", Fraction(30))
    values = np.arange(-4_000, 4_001)
    one = np.exp(-np.abs(values) / 30.0)
    one /= one.sum()
    law = np.array([1.0])
    for _ in range(copies):
        law = np.convolve(law, one)
    above = law[::-1].cumsum()[::-1]  # P(sum >= value)
    end = math.ceil(reach(noise, [1.0] * copies, miss, spread=copies))
    assert above[len(law) // 2 + end] <= miss
    assert above[len(law) // 2 + math.floor(0.55 * end)] > miss


def test_the_more_weights_share_the_noise_the_smaller_is_the_reach() -> None:
    noise = process("laplace", "delannoy", Fraction(300))
    r = [reaches(noise, MISS, coordinates=9, spread=spread)[ROUND - 1] for spread in (1, 2, 4, 6)]
    assert r == sorted(r, reverse=True)
    assert r[-1] < 0.9 * r[0]
    needed = float(np.quantile(sums(noise, HATS), 1 - MISS))
    assert needed < reach(noise, HATS, spread=spread_of(HATS)) < 1.2 * needed


def test_twin_half_the_reach_is_passed_too_often() -> None:
    noise = process("gaussian", "haar", Fraction(400))
    drawn, end = sums(noise, HATS), reach(noise, HATS)
    assert np.count_nonzero(drawn >= end / 2) > binom.isf(ALPHA, RUNS, MISS)


@pytest.mark.parametrize(("law", "factor", "scale"), [p for p in PROCESSES if p[1] != "dense"])
def test_norms_are_the_deviations_of_rounds(law: Law, factor: str, scale: Fraction) -> None:
    noise = process(law, factor, scale)
    assert isinstance(noise, NoiseProcess)
    exact = [float(noise.factor.unit_variance(r)) ** 0.5 for r in range(1, HORIZON + 1)]
    assert norms(noise) == pytest.approx(exact, rel=1e-12)


def test_a_smaller_miss_reaches_farther_and_more_coordinates_no_less() -> None:
    noise = process("gaussian", "haar", Fraction(2))
    r = [reaches(noise, miss, coordinates=4)[ROUND - 1] for miss in (0.2, 0.05, 1e-3, 1e-9)]
    assert r == sorted(r)
    assert reaches(noise, 0.05, coordinates=40)[ROUND - 1] >= r[1]


@pytest.mark.parametrize("miss", [0.0, 1.0, math.nan, -0.1])
def test_a_miss_that_is_no_probability_is_refused(miss: float) -> None:
    with pytest.raises(PlanError):
        reaches(process("gaussian", "haar", Fraction(2)), miss, coordinates=1)
