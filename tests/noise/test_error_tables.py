"""Published tables of expected errors and thresholds, reproduced from the factors.

Reference values are typed from the tables: root mean square errors (largest over rounds / mean over
rounds) at epsilon = 1 (pure) and rho = 1/2 (zCDP) before rounding, and thresholds at epsilon = 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import pytest

from retrodp.noise.factors import BinaryFactor, Factor, best_delannoy, best_haar
from retrodp.noise.gaussian import DiscreteGaussian
from retrodp.noise.laplace import DiscreteLaplace
from retrodp.noise.process import NoiseProcess
from retrodp.noise.tails import best_delannoy_for_threshold, least_threshold_of

HORIZONS = (365, 1024, 65536, 1 << 20)


@lru_cache(maxsize=8)
def binary(horizon: int) -> BinaryFactor:
    return BinaryFactor(horizon=horizon)


haar = lru_cache(maxsize=8)(best_haar)
delannoy = lru_cache(maxsize=8)(best_delannoy)


def errors(factor: Factor, node_variance: float) -> tuple[float, float]:
    """Largest and root mean square error over rounds, before rounding."""
    units = factor.profile().squares / float(factor.denominator) ** 2
    return math.sqrt(units.max() * node_variance), math.sqrt(units.mean() * node_variance)


def at_epsilon_one(factor: Factor, l1: int) -> tuple[float, float]:
    return errors(factor, DiscreteLaplace(scale=Fraction(l1)).variance_exactish)


def at_rho_half(factor: Factor, l2sq: int) -> tuple[float, float]:
    variance = Fraction(l2sq) / (2 * Fraction(1, 2))
    return errors(factor, DiscreteGaussian(variance=variance).variance_exactish)


PURE = {
    "paper": [(79.99, 57.16), (98.38, 69.57), (192.3, 136.0), (265.6, 187.8)],
    "binary": [(63.99, 45.73), (84.96, 60.08), (175.4, 124.0), (246.7, 174.4)],
    "delannoy": [(20.76, 18.52), (25.43, 22.31), (47.97, 43.05), (64.78, 59.42)],
}
ZCDP = {
    "paper": [(12.65, 9.04), (14.83, 10.49), (23.32, 16.49), (28.98, 20.49)],
    "binary": [(11.31, 8.08), (13.78, 9.75), (22.27, 15.75), (27.93, 19.75)],
    "haar": [(4.29, 3.83), (4.91, 4.45), (7.34, 6.83), (8.98, 8.43)],
}
PURE_ROWS: dict[str, Callable[[int], tuple[float, float]]] = {
    "paper": lambda t: at_epsilon_one(binary(t), binary(t).classical_l1),
    "binary": lambda t: at_epsilon_one(binary(t), binary(t).window_l1),
    "delannoy": lambda t: at_epsilon_one(delannoy(t), delannoy(t).window_l1),
}
ZCDP_ROWS: dict[str, Callable[[int], tuple[float, float]]] = {
    "paper": lambda t: at_rho_half(binary(t), binary(t).classical_l1),
    "binary": lambda t: at_rho_half(binary(t), binary(t).window_l2sq),
    "haar": lambda t: at_rho_half(haar(t), haar(t).window_l2sq),
}


@pytest.mark.parametrize("row", PURE)
@pytest.mark.parametrize("column", range(len(HORIZONS)))
def test_pure_errors_are_those_of_the_table(row: str, column: int) -> None:
    assert PURE_ROWS[row](HORIZONS[column]) == pytest.approx(PURE[row][column], rel=0.01)


@pytest.mark.parametrize("row", ZCDP)
@pytest.mark.parametrize("column", range(len(HORIZONS)))
def test_zcdp_errors_are_those_of_the_table(row: str, column: int) -> None:
    assert ZCDP_ROWS[row](HORIZONS[column]) == pytest.approx(ZCDP[row][column], rel=0.01)


@pytest.mark.parametrize("horizon", HORIZONS)
def test_the_chosen_factors_gain_what_was_claimed(horizon: int) -> None:
    """3.9 to 4.1 times less error than the classical tree at pure epsilon, 2.9 to 3.3 at zCDP."""
    pure = PURE_ROWS["paper"](horizon)[0] / PURE_ROWS["delannoy"](horizon)[0]
    zcdp = ZCDP_ROWS["paper"](horizon)[0] / ZCDP_ROWS["haar"](horizon)[0]
    assert 3.8 < pure < 4.15
    assert 2.9 < zcdp < 3.3


@pytest.mark.parametrize(
    ("horizon", "delta", "tau"),
    [
        (365, 1e-6, 140.5),
        (365, 1e-9, 177.5),
        (4096, 1e-6, 239),
        (4096, 1e-9, 292),
        (1 << 20, 1e-6, 517.5),
        (1 << 20, 1e-9, 604),
    ],
)
def test_delannoy_thresholds_are_those_of_the_table(horizon: int, delta: float, tau: float) -> None:
    factor = best_delannoy_for_threshold(horizon, epsilon=1, delta=delta)
    process = NoiseProcess(factor=factor, law="laplace", scale=Fraction(factor.window_l1))
    assert least_threshold_of(process, delta) == pytest.approx(tau, rel=0.02)


@pytest.mark.parametrize(
    ("horizon", "delta", "tau"),
    [(365, 1e-6, 424), (365, 1e-9, 555), (4096, 1e-6, 745), (4096, 1e-9, 943)],
)
def test_binary_thresholds_are_those_of_the_table(horizon: int, delta: float, tau: int) -> None:
    """The table has the exact maximum over all rounds; the sum over rounds is a little larger."""
    factor = binary(horizon)
    process = NoiseProcess(factor=factor, law="laplace", scale=Fraction(factor.window_l1))
    found = least_threshold_of(process, delta)
    assert tau <= found == pytest.approx(tau, rel=0.02)
