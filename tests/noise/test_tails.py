"""Tail bounds against exact laws worked out independently, by enumeration and by convolution."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from retrodp.errors import PlanError
from retrodp.noise.factors import (
    BinaryFactor,
    DelannoyFactor,
    Factor,
    HaarFactor,
    best_delannoy,
    best_haar,
)
from retrodp.noise.process import Law, NoiseProcess
from retrodp.noise.tails import (
    best_delannoy_for_threshold,
    half_width,
    half_width_all,
    half_widths,
    least_threshold_of,
    quantile,
    summed_tail,
    upper_tail,
)

Weights = tuple[int, ...]
Law_ = dict[int, float]  # probability of a value of the weighted sum


def node_law(law: Law, scale: Fraction, least: float) -> Law_:
    """Probabilities of one draw, down to `least`, from the definition of the law."""
    mpmath.mp.dps = 40
    weights: dict[int, mpmath.mpf] = {}
    k = 0
    while k == 0 or weights[k - 1] > least:
        exponent = Fraction(k) / scale if law == "laplace" else Fraction(k * k) / (2 * scale)
        weights[k] = weights[-k] = mpmath.exp(
            -mpmath.mpf(exponent.numerator) / exponent.denominator
        )
        k += 1
    total = mpmath.fsum(weights.values())
    return {value: float(weight / total) for value, weight in weights.items()}


@lru_cache(maxsize=512)
def sum_law(
    law: Law, scale: Fraction, weights: Weights, least: float
) -> tuple[int, NDArray[np.float64]]:
    """(Smallest value, tails from it on) of the weighted sum; only positive terms are added."""
    node = node_law(law, scale, least)
    reach = max(node)
    low, probabilities = 0, np.ones(1)
    for weight in weights:
        wider = np.zeros(len(probabilities) + 2 * weight * reach)
        for value, probability in node.items():
            start = weight * (value + reach)
            wider[start : start + len(probabilities)] += probability * probabilities
        low, probabilities = low - weight * reach, wider
    return low, np.append(probabilities[::-1].cumsum()[::-1], 0.0)


def sum_tail(process: NoiseProcess, round_: int, first: int, *, least: float = 1e-50) -> float:
    """P[weighted sum >= first], below the truth by about `least`."""
    weights = tuple(sorted(abs(w) for _, w in process.factor.nodes(round_)))
    low, tails = sum_law(process.law, process.scale, weights, least)
    return float(tails[min(max(first - low, 0), len(tails) - 1)])


def exact_tail(process: NoiseProcess, round_: int, x: int) -> float:
    """P[floor(N + 1/2) >= x]."""
    return sum_tail(process, round_, math.ceil(process.factor.denominator * (x - Fraction(1, 2))))


def exact_stray(process: NoiseProcess, round_: int, q: int) -> float:
    """P[|floor(N + 1/2)| > q]: N >= q + 1/2, or -N > q + 1/2."""
    edge = process.factor.denominator * (q + Fraction(1, 2))
    first = math.ceil(edge), math.floor(edge) + 1
    return sum(sum_tail(process, round_, value) for value in first)


def gaussian(factor: Factor, variance: int | Fraction) -> NoiseProcess:
    return NoiseProcess(factor=factor, law="gaussian", scale=Fraction(variance))


def laplace(factor: Factor, scale: int | Fraction) -> NoiseProcess:
    return NoiseProcess(factor=factor, law="laplace", scale=Fraction(scale))


def excesses(process: NoiseProcess, rounds: range | list[int], tails: range) -> list[float]:
    """Bound over exact tail, for rounds and values x whose tail is at least 1e-40."""
    pairs = [
        (upper_tail(process, t, x), exact)
        for t in rounds
        for x in tails
        if (exact := exact_tail(process, t, x)) > 1e-40
    ]
    assert len(pairs) > len(rounds)
    return [bound / exact for bound, exact in pairs]


def full_haar(height: int) -> HaarFactor:
    positions = tuple(range(1, 1 << height))
    return HaarFactor(horizon=len(positions), height=height, positions=positions)


@pytest.mark.parametrize(
    ("factor", "variance", "most"),
    [
        (full_haar(1), 1, 1 + 1e-8),
        (full_haar(1), 4, 1 + 1e-8),
        (full_haar(2), 1, 1.2),
        (full_haar(2), 4, 1 + 1e-4),
        (full_haar(3), 1, 1.4),
        (BinaryFactor(horizon=7), 1, 1.01),
    ],
)
def test_gaussian_bounds_exceed_enumerated_tails_by_little(
    factor: Factor, variance: int, most: float
) -> None:
    """Every combination of draws is enumerated, and each sum is rounded as noise is."""
    process = gaussian(factor, variance)
    node = node_law("gaussian", process.scale, 1e-20)
    denominator = factor.denominator
    ratios = []
    for round_ in range(1, factor.horizon + 1):
        weights = [w for _, w in factor.nodes(round_)]
        tails: dict[int, float] = defaultdict(float)
        for draws in product(node, repeat=len(weights)):
            total = sum(w * y for w, y in zip(weights, draws, strict=True))
            rounded = (total + denominator // 2) // denominator
            tails[rounded] += math.prod(node[y] for y in draws)
        exact = {x: math.fsum(p for v, p in tails.items() if v >= x) for x in range(1, 9)}
        ratios += [upper_tail(process, round_, x) / p for x, p in exact.items() if p > 1e-11]
    assert len(ratios) >= factor.horizon
    assert min(ratios) > 1 - 1e-8  # what enumeration leaves out
    assert max(ratios) < most


@pytest.mark.parametrize(
    ("process", "most"),
    [
        (gaussian(best_haar(15), 1), 1.8),
        (gaussian(best_haar(15), 2), 1.06),
        (gaussian(best_haar(100), 4), 1.01),
        (gaussian(best_haar(365), 20), 1.001),
        (gaussian(BinaryFactor(horizon=100), Fraction(1, 2)), 1.3),
        (gaussian(BinaryFactor(horizon=100), 1), 1.01),
        (gaussian(BinaryFactor(horizon=100), 20), 1 + 1e-8),
        (gaussian(best_delannoy(100), 6), 1 + 1e-8),
        (laplace(best_delannoy(365), 6), 1 + 1e-8),
        (laplace(best_delannoy(365), Fraction(1, 3)), 1 + 1e-8),
        (laplace(BinaryFactor(horizon=365), 16), 1 + 1e-8),
    ],
)
def test_bounds_exceed_exact_tails_by_little(process: NoiseProcess, most: float) -> None:
    horizon = process.factor.horizon
    rounds = sorted({1, 3, 7, horizon // 2, horizon})
    deviation = math.ceil(math.sqrt(process.max_variance))
    ratios = excesses(process, rounds, range(1, 20 * deviation + 2, max(1, deviation // 2)))
    assert min(ratios) > 1 - 1e-9
    assert max(ratios) < most


@pytest.mark.parametrize("scale", [1, 5])
def test_laplace_bounds_hold_for_any_weights(scale: int) -> None:
    """Chernoff: certified, with a quantile 25 % too large at most."""
    process = laplace(best_haar(15), scale)
    ratios = excesses(process, range(1, 16, 2), range(1, 30 * scale, scale))
    assert min(ratios) > 1
    rounds = [1, 5, 8, 15]
    for_bound = [quantile(process, t, 1e-9) for t in rounds]
    for_exact = [
        next(q for q in range(for_bound[i] + 1) if exact_tail(process, t, q + 1) <= 1e-9)
        for i, t in enumerate(rounds)
    ]
    assert all(e <= b <= 1.25 * e + 1 for b, e in zip(for_bound, for_exact, strict=True))


@pytest.mark.parametrize(
    ("count", "scale"), [(3, Fraction(5, 2)), (8, Fraction(16)), (2, Fraction(1, 4))]
)
def test_laplace_sums_are_exact_far_beyond_1e_30(count: int, scale: Fraction) -> None:
    """Against the difference of two negative binomials, summed in 60 digits."""
    process = laplace(BinaryFactor(horizon=(1 << count) - 1), scale)
    with mpmath.workdps(60):
        ratio = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
        most = int(130 * scale) + 40
        counts = [
            mpmath.binomial(k + count - 1, k) * (1 - ratio) ** count * ratio**k
            for k in range(2 * most)
        ]
        tails = [mpmath.mpf(0)]
        for probability in reversed(counts):
            tails.append(tails[-1] + probability)
        tails.reverse()
        exact = {
            x: mpmath.fsum(counts[h] * tails[x + h] for h in range(most))
            for x in (1, int(10 * scale), int(50 * scale), int(100 * scale))
            if x > 0
        }
        ratios = [upper_tail(process, process.factor.horizon, x) / p for x, p in exact.items()]
        assert min(exact.values()) < 1e-30
    assert all(1 <= ratio < 1 + 1e-8 for ratio in ratios)


def test_the_continuous_law_would_under_report() -> None:
    """Twin: the Gaussian tail of the same variance is below the exact tail of rounded noise."""
    process = gaussian(best_haar(7), 1)
    exact, deviation = exact_tail(process, 4, 2), math.sqrt(0.25)
    continuous = 0.5 * math.erfc((2 - 0.5) / deviation / math.sqrt(2))
    assert continuous < exact <= upper_tail(process, 4, 2)


PROCESSES = [
    gaussian(best_haar(365), 20),
    gaussian(best_haar(2), Fraction(1, 10)),
    gaussian(BinaryFactor(horizon=365), 16),
    laplace(best_delannoy(365), 6),
    laplace(best_haar(365), 18),
    laplace(DelannoyFactor(horizon=2000, w=1000, z=1), 2),
    laplace(best_delannoy(365), 2**36),
    gaussian(best_haar(365), 2**60),
]


@pytest.mark.parametrize("process", PROCESSES)
def test_bounds_fall_and_are_probabilities(process: NoiseProcess) -> None:
    step = max(1, math.isqrt(int(process.max_variance)) // 4)
    values = [upper_tail(process, 2, x) for x in range(-2 * step, 200 * step, step)]
    assert values[0] == 1
    assert all(0 < after <= before <= 1 for before, after in pairwise(values))
    assert values[-1] < 1e-30


@pytest.mark.parametrize("process", PROCESSES)
def test_summed_tail_is_the_sum_over_the_rounds(process: NoiseProcess) -> None:
    x = 3 * math.isqrt(int(process.max_variance)) + 1
    rounds = range(1, process.factor.horizon + 1)
    summed = math.fsum(upper_tail(process, t, x) for t in rounds)
    assert summed_tail(process, x) == pytest.approx(summed, rel=1e-8)
    assert summed_tail(process, x) >= summed * (1 - 1e-15)


@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("probability", [0.3, 1e-3, 1e-30])
def test_quantiles_are_the_least_that_the_bounds_allow(
    process: NoiseProcess, probability: float
) -> None:
    q = quantile(process, 2, probability)
    assert upper_tail(process, 2, q + 1) <= probability
    assert q == 0 or upper_tail(process, 2, q) > probability


@pytest.mark.parametrize(
    "process",
    [gaussian(best_haar(12), 8), gaussian(best_haar(1), 4), laplace(best_delannoy(12), 4)],
)
@pytest.mark.parametrize("miss", [0.5, 0.05, 1e-4, 1e-12])
def test_half_widths_are_least_for_the_exact_law(process: NoiseProcess, miss: float) -> None:
    horizon = process.factor.horizon
    widths = [half_width(process, t, miss) for t in range(1, horizon + 1)]
    exact = [
        next(q for q in range(200) if exact_stray(process, t, q) <= miss)
        for t in range(1, horizon + 1)
    ]
    assert widths == exact


def test_a_band_for_all_rounds_gives_each_its_part_of_the_miss() -> None:
    process = gaussian(best_haar(365), 20)
    band = half_widths(process, 0.05 / 365)
    assert [half_width_all(process, t, 0.05) for t in range(1, 366)] == band.tolist()
    assert (band > half_widths(process, 0.05)).all()


@pytest.mark.parametrize("miss", [0.0, 1.0, math.nan, -0.1, 1e-301])
def test_impossible_miss_probabilities_are_refused(miss: float) -> None:
    with pytest.raises(PlanError):
        half_width(PROCESSES[0], 1, miss)


def test_quantiles_of_4096_rounds_are_exact() -> None:
    """At the round of largest variance, against the convolution of its 13 nodes."""
    process = gaussian(best_haar(4096), 26)
    worst = int(process.factor.profile().squares.argmax()) + 1
    q = quantile(process, worst, 1e-9)
    edges = [process.factor.denominator * (2 * x - 1) // 2 for x in (q + 1, q)]
    exact = [sum_tail(process, worst, edge, least=1e-16) for edge in edges]
    assert exact[0] <= 1e-9 < exact[1]


def test_a_million_rounds_are_bounded() -> None:
    process = gaussian(best_haar(1 << 20), 46)
    widths = half_widths(process, 1e-9)
    analytic = math.sqrt(process.max_variance) * 6.11  # two-sided 1e-9 of a normal deviate
    assert widths.shape == (1 << 20,)
    assert analytic - 1 <= widths.max() <= analytic + 1
    assert widths.min() > 0


def test_least_threshold_is_the_least_that_delta_allows() -> None:
    process = laplace(best_delannoy(365), 6)
    tau = least_threshold_of(process, 1e-6)
    assert summed_tail(process, tau - 1) <= 1e-6 < summed_tail(process, tau - 2)


@pytest.mark.parametrize(("horizon", "delta"), [(1, 1e-6), (2, 1e-6), (365, 1e-9), (4096, 1e-6)])
def test_best_delannoy_for_a_threshold_beats_all_other_pairs(horizon: int, delta: float) -> None:
    def tau(factor: DelannoyFactor) -> int:
        return least_threshold_of(laplace(factor, factor.window_l1), delta)

    best = best_delannoy_for_threshold(horizon, epsilon=1, delta=delta)
    others = [
        DelannoyFactor(horizon=horizon, w=w, z=z)
        for z in range(1, 9)
        if (w := _least_w(horizon, z)) <= 100
    ]
    assert tau(best) == min(map(tau, others))


def _least_w(horizon: int, z: int) -> int:
    """By trial: constructing a factor without room is refused."""
    for w in range(1, 101):
        try:
            DelannoyFactor(horizon=horizon, w=w, z=z)
        except PlanError:
            continue
        return w
    return 101


def test_a_haar_map_of_any_positions_is_bounded() -> None:
    factor = HaarFactor(horizon=3, height=4, positions=(1, 7, 15))
    ratios = excesses(gaussian(factor, 10), [1, 2, 3], range(1, 25))
    assert 1 - 1e-9 < min(ratios) <= max(ratios) < 1.01
