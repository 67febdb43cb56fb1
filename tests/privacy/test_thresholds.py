"""The thresholds of sparse histograms at epsilon 1, pinned Haar, certified for integer noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

from retrodp.noise.factors.haar import best_haar
from retrodp.noise.process import NoiseProcess
from retrodp.noise.tails import summed_tail
from retrodp.privacy import (
    DeltaSplit,
    delta_of,
    gaussian_losses,
    largest_rho,
    least_threshold,
    split_delta,
)
from tests.privacy.reference import FloatArray, haar_variances

CELLS = [
    # horizon, height, delta, published threshold (noise not rounded, not whole)
    (365, 9, "1e-6", 106.5),
    (365, 9, "1e-9", 161.9),
    (4096, 13, "1e-6", 152.0),
    (4096, 13, "1e-9", 228.0),
    (2**20, 21, "1e-6", 271.0),
    (2**20, 21, "1e-9", 394.0),
]
TENTHS = 10  # thresholds are compared to a tenth


def unit_deviations(height: int, horizon: int) -> tuple[FloatArray, FloatArray]:
    """Deviations per unit node variance and how many rounds have each, in 4000 steps."""
    usable = min(horizon, 2**height - 1)
    deviations = np.sqrt(haar_variances(height, usable))
    edges = np.unique(np.linspace(0, usable, 4001).astype(np.int64))
    # The largest of each step, so that the tail is not underestimated.
    return deviations[edges[1:] - 1], np.diff(edges).astype(np.float64) * horizon / usable


def threshold_of(height: int, horizon: int, delta: Fraction) -> tuple[float, DeltaSplit, Fraction]:
    """Least tau, in tenths and before rounding, over the splits of delta."""
    norm = Fraction(2 * height + 2)
    shape = ((2, 1), (1, 2 * height - 2))
    deviations, rounds = unit_deviations(height, horizon)

    def rho_at(split: DeltaSplit) -> Fraction:
        return largest_rho(
            lambda rho: gaussian_losses(shape, variance=norm / (2 * rho)), 1, split.noise
        )

    def tail_at(split: DeltaSplit) -> Callable[[int], float]:
        sigma = math.sqrt(norm / (2 * rho_at(split)))
        return lambda x: float(rounds @ ndtr(-(x / TENTHS) / (sigma * deviations)))

    def tau(split: DeltaSplit) -> float:
        return 1 + least_threshold(tail_at(split), split.thresholds) / TENTHS

    best = split_delta(delta, reserved=Fraction(0), cost=tau)
    return tau(best), best, rho_at(best)


@pytest.mark.parametrize(("horizon", "height", "delta", "published"), CELLS)
def test_haar_thresholds_are_the_published_ones_within_2_per_cent(
    horizon: int, height: int, delta: str, published: float
) -> None:
    tau, split, rho = threshold_of(height, horizon, Fraction(delta))
    assert tau == pytest.approx(published, rel=0.02)
    assert split.noise + split.thresholds == Fraction(delta)
    losses = gaussian_losses(
        ((2, 1), (1, 2 * height - 2)), variance=Fraction(2 * height + 2) / (2 * rho)
    )
    assert delta_of(losses, 1) <= split.noise


@pytest.mark.parametrize(
    ("horizon", "delta", "published"), [(h, d, tau) for h, _, d, tau in CELLS if h <= 4096]
)
def test_whole_thresholds_with_certified_tails_stay_within_2_per_cent(
    horizon: int, delta: str, published: float
) -> None:
    """What is released is ``floor(N + 1/2)``: half a step and the whole number are included."""
    factor = best_haar(horizon)
    norm = Fraction(factor.window_l2sq)

    def process_at(split: DeltaSplit) -> NoiseProcess:
        rho = largest_rho(
            lambda rho: gaussian_losses(factor.window_shape, variance=norm / (2 * rho)),
            1,
            split.noise,
        )
        return NoiseProcess(factor=factor, law="gaussian", scale=norm / (2 * rho))

    def tau(split: DeltaSplit) -> int:
        process = process_at(split)
        return 1 + least_threshold(lambda x: summed_tail(process, x), split.thresholds)

    best = split_delta(Fraction(delta), reserved=Fraction(0), cost=tau)
    assert tau(best) == pytest.approx(published + 0.5, rel=0.02)
    assert summed_tail(process_at(best), tau(best) - 1) <= best.thresholds
