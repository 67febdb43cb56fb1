"""A parameter that is no number is refused where it is given, by a comparison that NaN fails, too."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from retrodp import _check
from retrodp.audit import attack, differencing, reconstruct
from retrodp.audit.estimate import (
    Claim,
    Cut,
    Evidence,
    best_cut,
    proportion_above,
    proportion_below,
    samples_needed,
)
from retrodp.audit.twosample import two_sample
from retrodp.clustering.consistent import most_arrivals
from retrodp.clustering.coreset import Coreset
from retrodp.clustering.dense_ball import proved_factor
from retrodp.clustering.meyerson_reference import meyerson
from retrodp.clustering.practical import box_columns
from retrodp.clustering.theory import Theory
from retrodp.clustering.transport import (
    SemiCoreset,
    Transport,
    Weighted,
    achieved,
    least_kappa,
    transport,
    triangle_constant,
)
from retrodp.errors import PlanError, RetrodpError, UsageError
from retrodp.mechanisms.counter import Counter
from retrodp.mechanisms.histogram import Histogram, SparseHistogram
from retrodp.mechanisms.masked import GaussianMap
from retrodp.mechanisms.oneshot.centres import NoisyLloyd
from retrodp.mechanisms.oneshot.mean import NoisyMean
from retrodp.mechanisms.oneshot.prefixes import PrefixInteriorPoint
from retrodp.mechanisms.oneshot.ranks import GridQuantile, InteriorPoint, values_needed
from retrodp.mechanisms.threshold import threshold_for
from retrodp.noise.coins import Coins
from retrodp.postprocess.covariance import Gram
from retrodp.privacy.budget import require_fit, shares_of, zCDP
from retrodp.privacy.conversion import delta_of_rho
from retrodp.privacy.loss import GaussianLoss
from retrodp.privacy.masking import (
    Closeness,
    block_closeness,
    marginal_closeness,
    masked_error,
    paper_deviation,
    tight_block_closeness,
)
from retrodp.privacy.ratio import RatioLoss
from retrodp.privacy.sampling import (
    Bound,
    OneShot,
    chance_of_entry,
    gated_bound,
    persistent_bound,
    poisson_charge,
)

ONE, HALF = Fraction(1), Fraction(1, 2)
NOT_NUMBERS = [math.nan, math.inf, -math.inf, np.float64("nan"), -1.0]
POINTS = np.zeros((2, 2))
DATA = Weighted.ones(POINTS)
THEORY = Theory(points=1000, k=2, dimensions=2, budget=zCDP(1))
CLOSE = Closeness(0.1, 1e-6)
SMALL = OneShot(epsilon=Fraction(1, 100))
WORLDS = np.zeros(4), np.ones(4)

Call = Callable[[Any], object]


def evidence(p: float = 0.5) -> Evidence:
    return Evidence(p=p, q=0.1, miss=0.01, counted=((1, 2), (1, 2)), event="e")


def coins() -> Coins:
    return Coins(bytes(32))


def coreset(stddev: float) -> Coreset:
    whole = np.zeros((1, 1), dtype=np.int64)
    return Coreset(
        block=1,
        phase=0,
        points=whole,
        centres=whole.copy(),
        weights=whole[0].copy(),
        births=whole[0].copy(),
        weight_stddev=stddev,
    )


CALLS: dict[str, Call] = {
    "Counter.step": lambda x: Counter(horizon=2, budget=zCDP(1), step=x),
    "Counter.level": lambda x: Counter(horizon=2, budget=zCDP(1), level=x),
    "Histogram.step": lambda x: Histogram(("a",), horizon=2, budget=zCDP(1), step=x),
    "SparseHistogram.max_bins": lambda x: SparseHistogram(
        horizon=2, budget=zCDP(1), delta=1e-6, max_bins=x
    ),
    "threshold_for.per_bin": lambda x: threshold_for(
        Counter(horizon=2, budget=zCDP(1)).noise.process, delta=1e-6, records=2, per_bin=x
    ),
    "Coins.bits": lambda x: coins().bits(x),
    "Coins.below": lambda x: coins().below(x),
    "Coins.chance": lambda x: coins().chance(x),
    "Coins.chance_exp": lambda x: coins().chance_exp(x),
    "Coins.laplace": lambda x: coins().laplace(x),
    "Coins.gaussian": lambda x: coins().gaussian(x),
    "Coins.level": lambda x: coins().level([1, 2], x),
    "OneShot.delta": lambda x: OneShot(epsilon=ONE, delta=x),
    "OneShot.replace_delta": lambda x: OneShot(epsilon=ONE, replace_epsilon=ONE, replace_delta=x),
    "RatioLoss.greatest": lambda x: RatioLoss(greatest=x, least=HALF),
    "RatioLoss.least": lambda x: RatioLoss(greatest=Fraction(2), least=x),
    "RatioLoss.chance": lambda x: RatioLoss(greatest=Fraction(2), least=HALF, chance=x),
    "gated_bound.gate_epsilon": lambda x: gated_bound(Bound(1.0, 1e-6), x, 1e-7),
    "gated_bound.gate_delta": lambda x: gated_bound(Bound(1.0, 1e-6), 1.0, x),
    "persistent_bound.size": lambda x: persistent_bound(
        SMALL, 2, 1e-6, size=x, occupancy=9999, rank_slack=1e-6
    ),
    "chance_of_entry.rank_slack": lambda x: chance_of_entry(3, size=2, occupancy=50, rank_slack=x),
    "chance_of_entry.occupancy": lambda x: chance_of_entry(3, size=2, occupancy=x, rank_slack=HALF),
    "poisson_charge.rate": lambda x: poisson_charge(SMALL, 2, rate=x),
    "require_fit.total": lambda x: require_fit(x, {"a": HALF}, quantity="rho"),
    "require_fit.part": lambda x: require_fit(ONE, {"a": x}, quantity="rho"),
    "shares_of.total": lambda x: shares_of(x, {"a": ONE}),
    "delta_of_rho.epsilon": lambda x: delta_of_rho(ONE, x),
    "paper_deviation.alpha": lambda x: paper_deviation(1.0, alpha=x, beta=1e-6),
    "block_closeness.base_miss": lambda x: block_closeness(2, CLOSE, base_miss=x, slack=1e-6),
    "marginal_closeness.base_miss": lambda x: marginal_closeness(CLOSE, base_miss=x),
    "tight_block_closeness.base_miss": lambda x: tight_block_closeness(
        2, 1, variance=Fraction(100), beta=1e-6, base_miss=x
    ),
    "masked_error.error": lambda x: masked_error(x, deviation=1.0, coordinates=1, miss=0.1),
    "masked_error.deviation": lambda x: masked_error(1.0, deviation=x, coordinates=1, miss=0.1),
    "GaussianMap.strays": lambda x: GaussianMap.of(1, alpha=ONE, beta=HALF).strays(x),
    "NoisyMean.step": lambda x: NoisyMean(epsilon=ONE, low=0, high=9, step=x),
    "NoisyMean.high": lambda x: NoisyMean(epsilon=ONE, low=0, high=x, step=ONE),
    "GridQuantile.low": lambda x: GridQuantile(epsilon=ONE, share=HALF, low=x, high=9, step=ONE),
    "GridQuantile.share": lambda x: GridQuantile(epsilon=ONE, share=x, low=0, high=9, step=ONE),
    "InteriorPoint.step": lambda x: InteriorPoint(epsilon=ONE, low=0, high=9, step=x),
    "PrefixInteriorPoint.high": lambda x: PrefixInteriorPoint(
        epsilon=ONE, delta=HALF, miss=0.1, low=0, high=x, step=ONE
    ),
    "NoisyLloyd.ranges": lambda x: NoisyLloyd(
        epsilon=ONE, k=1, columns=("a",), ranges=((0, x),), steps_of=(ONE,)
    ),
    "values_needed.miss": lambda x: values_needed(9, epsilon=ONE, miss=x),
    "Gram.ridge": lambda x: Gram(("a", "b"), 9.0, np.zeros(2), np.eye(2)).ridge(
        "a", ["b"], penalty=x
    ),
    "proved_factor": proved_factor,
    "Theory.power": lambda x: Theory(points=99, k=2, dimensions=2, budget=zCDP(1), power=x),
    "Theory.optimum": lambda x: Theory(points=99, k=2, dimensions=2, budget=zCDP(1), optimum=x),
    "Theory.sketch": THEORY.sketch,
    "Theory.semi_coreset": THEORY.semi_coreset,
    "triangle_constant.power": triangle_constant,
    "Weighted.cost": lambda x: DATA.cost(POINTS, x),
    "transport.power": lambda x: transport(DATA, DATA, np.zeros(2, dtype=np.int64), x),
    "achieved.power": lambda x: achieved(Transport(1.0, 1.0), 1.0, x, negative_weights=False),
    "meyerson.phase": lambda x: meyerson(
        POINTS, [b"a", b"b"], k=1, power=2, estimate=1.0, most_points=2, key=bytes(32), phase=x
    ),
    "most_arrivals": lambda x: most_arrivals(np.ones(1, dtype=np.int64), x),
    "Coreset.weight_stddev": coreset,
    "box_columns.step": lambda x: box_columns([0], [1], x),
    "deviation": attack.require_deviation,
    "reconstruct.noisy": lambda x: reconstruct.noisy(2, x),
    "differencing.kept": differencing.kept,
    "differencing.noisy": differencing.noisy,
    "samples_needed.p": lambda x: samples_needed(x, 0.1, claim_epsilon=1.0, delta=0.0, miss=0.01),
    "samples_needed.q": lambda x: samples_needed(0.5, x, claim_epsilon=1.0, delta=0.0, miss=0.01),
    "samples_needed.claim_epsilon": lambda x: samples_needed(
        0.5, 0.1, claim_epsilon=x, delta=0.0, miss=0.01
    ),
    "samples_needed.delta": lambda x: samples_needed(
        0.5, 0.1, claim_epsilon=1.0, delta=x, miss=0.01
    ),
    "samples_needed.miss": lambda x: samples_needed(0.5, 0.1, claim_epsilon=1.0, delta=0.0, miss=x),
    "proportion_above.hits": lambda x: proportion_above(x, 10, 0.01),
    "proportion_above.miss": lambda x: proportion_above(5.0, 10, x),
    "proportion_below.hits": lambda x: proportion_below(x, 10, 0.01),
    "proportion_below.miss": lambda x: proportion_below(5.0, 10, x),
    "Evidence.epsilon": lambda x: evidence().epsilon(x),
    "Claim.beside": lambda x: Claim.of_losses(
        [GaussianLoss(shift=1, variance=ONE)], epsilon=ONE, beside=x
    ),
    "two_sample.claimed": lambda x: two_sample(*WORLDS, alpha=0.01, claimed=x),
}


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_what_is_not_finite_or_below_zero_is_refused(call: Call, value: float) -> None:
    with pytest.raises(RetrodpError) as refusal:
        call(value)
    assert refusal.value.what


EXACT = [
    "Counter.step",
    "Coins.below",
    "Coins.bits",
    "Coins.chance",
    "Coins.gaussian",
    "Coins.laplace",
    "OneShot.delta",
    "OneShot.replace_delta",
    "RatioLoss.chance",
    "poisson_charge.rate",
    "require_fit.total",
    "require_fit.part",
    "SparseHistogram.max_bins",
    "threshold_for.per_bin",
    "NoisyMean.step",
    "GridQuantile.share",
]
"""Parameters that take exact numbers."""


@pytest.mark.parametrize(
    "value", [True, Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity")], ids=repr
)
@pytest.mark.parametrize("name", EXACT)
def test_a_truth_value_or_a_decimal_that_is_no_number_is_refused(name: str, value: object) -> None:
    with pytest.raises(RetrodpError) as refusal:
        CALLS[name](value)
    assert refusal.value.what


TRUE = [
    "Theory.power",
    "Theory.optimum",
    "triangle_constant.power",
    "Weighted.cost",
    "meyerson.phase",
    "marginal_closeness.base_miss",
    "paper_deviation.alpha",
    "samples_needed.p",
    "samples_needed.delta",
    "Evidence.epsilon",
    "two_sample.claimed",
    "deviation",
    "Gram.ridge",
]


@pytest.mark.parametrize("name", TRUE)
def test_a_truth_value_is_no_number(name: str) -> None:
    with pytest.raises(RetrodpError):
        CALLS[name](True)


@pytest.mark.parametrize(
    "costs", [([math.nan], [1.0]), ([1.0], [math.nan]), ([math.inf], [1.0])], ids=repr
)
def test_a_cost_that_is_no_number_hides_no_broken_bound(
    costs: tuple[Sequence[float], Sequence[float]],
) -> None:
    with pytest.raises(UsageError, match="must be finite"):
        SemiCoreset(kappa=1, eta1=0, eta2=0).broken_by(*costs, optimum=1.0)
    with pytest.raises(UsageError, match="must be finite"):
        least_kappa(*costs, optimum=1.0, eta1=0.0, eta2=0.0)


def test_a_score_that_is_no_number_hides_no_broken_claim() -> None:
    claim = Claim(points=((1.0, 0.0),), loss=1.0, pure=True)
    scores = np.array([0.0, math.nan]), np.array([1.0, 2.0])
    with pytest.raises(UsageError, match="no number"):
        best_cut("score", scores, claim, miss=0.01)
    with pytest.raises(UsageError, match="no number"):
        Cut(name="score", threshold=1.0, upper=True, world=1).evidence(scores, miss=0.01)
    with pytest.raises(UsageError, match="not all finite"):
        two_sample(*scores, alpha=0.01)


def test_a_float_for_coins_is_refused_with_what_to_write() -> None:
    with pytest.raises(UsageError, match="must be exact") as refusal:
        coins().chance(0.5)  # type: ignore[arg-type]  # what is refused
    assert "Fraction" in refusal.value.expected


@pytest.mark.parametrize("probability", [Fraction(3, 2), Fraction(-1, 2)])
def test_a_coin_of_no_probability_is_refused(probability: Fraction) -> None:
    with pytest.raises(UsageError, match="between 0 and 1"):
        coins().chance(probability)


def test_a_step_is_the_number_that_was_meant() -> None:
    given: Any = 0.1
    counter = Counter(horizon=2, budget=zCDP(1), step=given)
    assert counter.noise.step == Fraction(1, 10)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_transport_cost_that_is_no_number_promises_nothing(value: float) -> None:
    with pytest.raises(PlanError, match="alpha must be finite"):
        SemiCoreset.of_transport(value, 1.0, 2, negative_weights=False)
    with pytest.raises(PlanError, match="beta must be finite"):
        SemiCoreset.of_transport(1.0, value, 2, negative_weights=False)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_published_value_that_is_no_number_makes_no_model(value: float) -> None:
    with pytest.raises(UsageError, match="not all finite"):
        Gram.of({("count",): value, ("sum", "a"): 1.0, ("product", "a", "a"): 1.0})


def test_ends_of_a_grid_are_in_order() -> None:
    with pytest.raises(PlanError, match="low <= high"):
        InteriorPoint(epsilon=ONE, low=3, high=2, step=ONE)


@pytest.mark.parametrize("check", [_check.positive, _check.probability])
@pytest.mark.parametrize("value", [True, "0.5", None, math.nan, Decimal("nan"), Decimal("sNaN")])
def test_what_is_no_number_is_neither_positive_nor_a_probability(
    check: Callable[..., None], value: object
) -> None:
    check(level=0.5)
    check(level=Fraction(1, 2))
    check(level=Decimal("0.5"))
    check(level=np.float64(0.5))
    with pytest.raises(PlanError, match="level must"):
        check(level=value)
