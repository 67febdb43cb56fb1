"""Tail bounds of dense noise against sums over all draws, and against the continuous Gaussian."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from retrodp.errors import PlanError
from retrodp.noise.dense import DenseProcess
from retrodp.noise.dense_tails import bracket, log_tails
from retrodp.noise.factors.dense import DenseFactor, best_dense, rows_of, square_root
from retrodp.noise.factors.rows import exact_row
from retrodp.noise.factors.triangle import packed
from retrodp.noise.tails import (
    half_width,
    half_width_all,
    half_widths,
    least_threshold_of,
    quantile,
    summed_tail,
    upper_tail,
)

Law = NDArray[np.float64]


def process_of(root: list[list[int]], variance: int | Fraction) -> DenseProcess:
    factor = DenseFactor(
        name="dense", horizon=len(root), window=len(root), root=packed(np.array(root))
    )
    return DenseProcess(factor=factor, scale=Fraction(variance))


def at_rho(factor: DenseFactor, rho: Fraction) -> DenseProcess:
    return DenseProcess(factor=factor, scale=factor.window_l2sq / (2 * rho))


@lru_cache(maxsize=16)
def node_law(variance: Fraction) -> tuple[int, Law]:
    """(Reach, probabilities from -reach to reach) of one draw, from the definition of the law."""
    reach = math.ceil(14 * math.sqrt(variance)) + 2
    values = np.arange(-reach, reach + 1)
    weights = np.exp(-(values**2) / (2 * float(variance)))
    return reach, weights / weights.sum()


def exact_tail(process: DenseProcess, round_: int, x: int) -> float:
    """P[floor(N + 1/2) >= x], every combination of the first draws, the last one summed up."""
    numerators, denominator = exact_row(process.factor.matrix(), round_)
    reach, law = node_law(process.scale)
    tails = np.append(law[::-1].cumsum()[::-1], 0.0)
    *others, last = numerators
    edge = Fraction(2 * x - 1, 2) * denominator
    total = []
    for draws in product(range(-reach, reach + 1), repeat=round_ - 1):
        known = sum(n * z for n, z in zip(others, draws, strict=True))
        least = min(max(math.ceil((edge - known) / last), -reach), reach + 1)
        probability = math.prod(law[z + reach] for z in draws)
        total.append(probability * tails[least + reach])
    return math.fsum(total)


FINE = process_of([[40, 0], [-21, 33]], 70**2)
COARSE = process_of([[3, 0, 0], [1, 2, 0], [-1, 1, 3]], Fraction(5, 2))
TINY = process_of([[2, 0, 0], [-1, 2, 0], [1, -1, 2]], Fraction(1, 3))


@pytest.mark.parametrize(
    ("process", "round_", "most"),
    [
        (FINE, 1, 2.0),
        (FINE, 2, 2.0),
        (COARSE, 1, 99),
        (COARSE, 2, 99),
        (COARSE, 3, 99),
        (TINY, 3, 999),
    ],
)
def test_bounds_exceed_enumerated_tails(process: DenseProcess, round_: int, most: float) -> None:
    """On a coarse grid smoothing costs much and Chernoff's bound serves; on a fine one little."""
    exact = {x: exact_tail(process, round_, x) for x in range(1, 9)}
    ratios = [upper_tail(process, round_, x) / p for x, p in exact.items() if p > 1e-12]
    assert len(ratios) >= 2
    assert min(ratios) >= 1 - 1e-9
    assert max(ratios) < most


@pytest.mark.parametrize("process", [FINE, COARSE, TINY])
def test_strays_are_rarer_than_allowed_at_the_half_width(process: DenseProcess) -> None:
    for_round = []
    for round_ in range(1, process.factor.horizon + 1):
        q = half_width(process, round_, 0.01)
        beyond = exact_tail(process, round_, q + 1)
        below = 1 - exact_tail(process, round_, -q)
        for_round.append(beyond + below)
    assert max(for_round) <= 0.01


FACTORS = [best_dense(30), best_dense(30, 5), square_root(40)]


@pytest.mark.parametrize("factor", FACTORS, ids=["dense", "windows", "sqrt"])
@pytest.mark.parametrize("rho", [Fraction(1, 2), Fraction(1, 50), Fraction(1, 10**6)])
@pytest.mark.parametrize("miss", [0.05, 1e-3, 1e-9])
def test_half_widths_are_those_of_the_continuous_gaussian(
    factor: DenseFactor, rho: Fraction, miss: float
) -> None:
    """Never less, and at most a hundredth of a deviation and the step to the next whole more."""
    process = at_rho(factor, rho)
    sigmas = np.sqrt(rows_of(factor).squares * float(process.scale))
    continuous = -sigmas * ndtri(miss / 2) - 0.5
    widths = half_widths(process, miss)
    assert (widths >= np.floor(continuous)).all()
    assert (widths <= np.ceil(continuous + 0.01 * sigmas + 0.01)).all()
    assert half_width(process, 7, miss) == widths[6]
    assert half_width_all(process, 7, miss) == half_width(process, 7, miss / factor.horizon)


@pytest.mark.parametrize("delta", [1e-6, 1e-9])
def test_a_threshold_is_that_of_the_continuous_gaussian(delta: float) -> None:
    process = at_rho(FACTORS[0], Fraction(1, 50))
    tau = least_threshold_of(process, delta)
    sigmas = np.sqrt(rows_of(process.factor).squares * float(process.scale))

    def crossing(threshold: float) -> float:
        return float(ndtr(-(threshold - 1.5) / sigmas).sum())

    assert crossing(tau) <= delta
    assert crossing(tau - 1 - 0.01 * sigmas.max()) > delta
    assert summed_tail(process, tau - 1) <= delta < summed_tail(process, tau - 2)


def test_tails_fall_and_start_at_one() -> None:
    process = at_rho(FACTORS[0], Fraction(1, 2))
    tails = [upper_tail(process, 12, x) for x in range(-2, 40)]
    assert tails[:3] == [1.0, 1.0, 1.0]
    assert all(tails[i] >= tails[i + 1] > 0 for i in range(len(tails) - 1))
    assert upper_tail(process, 12, 10**6) <= 1e-300
    assert summed_tail(process, 9) == pytest.approx(
        sum(upper_tail(process, t, 9) for t in range(1, 31)), rel=1e-6
    )
    q = quantile(process, 12, 1e-4)
    assert upper_tail(process, 12, q + 1) <= 1e-4 < upper_tail(process, 12, q)


def test_a_round_beyond_the_horizon_has_no_tail() -> None:
    with pytest.raises(PlanError, match="round must be"):
        upper_tail(FINE, 0, 1)


@pytest.mark.parametrize("ratio", [1e-4, 0.02, 0.124, 0.126, 0.5, 3.0])
def test_the_bracket_is_a_sum_over_whole_numbers(ratio: float) -> None:
    k = np.arange(-4000, 4001)
    direct = float(np.exp(-(k**2) / (2 * ratio)).sum()) / math.sqrt(2 * math.pi * ratio)
    shifted = float(np.exp(-((k - 0.37) ** 2) / (2 * ratio)).sum()) / math.sqrt(2 * math.pi * ratio)
    assert bracket(ratio) == pytest.approx(direct, rel=1e-12)
    assert shifted <= bracket(ratio) * (1 + 1e-12)


def test_the_density_of_a_smoothed_draw_is_as_bounded_as_the_module_says() -> None:
    variance = 3.0
    k = np.arange(-60, 61)
    weights = np.exp(-(k**2) / (2 * variance))
    y = np.linspace(-12, 12, 4001)[:, None]
    density = (weights / weights.sum() * np.exp(-((y - k) ** 2) / 2)).sum(axis=1)
    wide = variance + 1
    gaussian = np.exp(-(y[:, 0] ** 2) / (2 * wide)) / math.sqrt(wide)
    ratios = density / gaussian
    assert ratios.max() <= bracket(variance / wide)
    assert ratios.max() > 1


def test_the_plain_gaussian_tail_would_be_too_small() -> None:
    """The twin: at an atom of z_1 / 3 it leaves half of the atom out; the bound holds."""
    (reach, law), square = node_law(COARSE.scale), rows_of(COARSE.factor).squares[:1]
    edges = np.arange(1, 9) / 3
    exact = law[::-1].cumsum()[::-1][reach + 1 : reach + 9]
    plain = ndtr(-edges / math.sqrt(float(COARSE.scale) * square[0]))
    bounds = np.exp(log_tails(COARSE, square, edges))
    assert (plain < exact).all()
    assert (bounds >= exact).all()
