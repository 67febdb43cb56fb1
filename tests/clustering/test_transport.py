"""Lemmas 5, 12 and 14 and definition 4 of the theorem on semi-coresets, by brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from retrodp.clustering.transport import (
    Approximation,
    SemiCoreset,
    Weighted,
    achieved,
    least_kappa,
    transport,
    triangle_constant,
)
from retrodp.errors import PlanError, UsageError

POWERS = (1.0, 1.2, 1.5, 2.0, 3.0)
LINE = np.linspace(0.0, 1.0, 11)


def excess(power: float, slack: float, theta: float) -> float:
    """Most by which lemma 12 is missed on a line, where the triangle inequality is tight."""
    ratios = np.geomspace(1e-6, 1e6, 20_001)
    return float(((ratios + 1) ** power - (1 + slack) * ratios**power - theta).max())


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("slack", [0.1, 0.5, 1.0])
def test_lemma_12_holds_with_its_constant_and_with_no_smaller_one(
    power: float, slack: float
) -> None:
    theta = triangle_constant(power, slack)
    scale = max(1.0, theta)
    assert excess(power, slack, theta) <= 1e-6 * scale
    assert excess(power, slack, 0.999 * theta) > 0


def test_the_constants_of_the_two_usual_powers() -> None:
    assert triangle_constant(1) == 1
    assert triangle_constant(2) == 2
    assert triangle_constant(2, 0.5) == pytest.approx(3)


@pytest.mark.parametrize(("power", "slack"), [(0.5, 1.0), (math.nan, 1.0), (2.0, 0.0)])
def test_a_power_below_one_or_no_slack_is_refused(power: float, slack: float) -> None:
    with pytest.raises(PlanError):
        triangle_constant(power, slack)


def instance(
    number: int, power: float, *, signed: bool
) -> tuple[Weighted, Weighted, float, list[float], list[float], float]:
    """Data and a sketch on a line, costs for all pairs of centres, the optimum, the transport."""
    generator = np.random.default_rng(number)
    data = Weighted(generator.choice(LINE, (12, 1)), generator.integers(0, 4, 12).astype(float))
    places = generator.integers(0, 5, 12)
    positions = generator.choice(LINE, (5, 1))
    true = np.bincount(places, data.weights, 5)
    noise = generator.integers(-3, 4, 5)
    weights = true + noise if signed else np.maximum(true + noise, 0)
    sketch = Weighted(positions, weights.astype(float))
    centres = [np.array(pair)[:, None] for pair in itertools.combinations(LINE, 2)]
    costs = [data.cost(own, power) for own in centres]
    others = [sketch.cost(own, power) for own in centres]
    moved = transport(data, sketch, places, power)
    return data, sketch, min(costs), costs, others, moved.total


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_lemma_14_transport_makes_a_semi_coreset(
    power: float, share: float, *, signed: bool
) -> None:
    """Whatever part of the transport cost is charged to the optimum, over 40 sketches."""
    broken = []
    for number in range(40):
        _, _, optimum, costs, others, total = instance(number, power, signed=signed)
        alpha = share * total / optimum if optimum > 0 else 0.0
        beta = total - alpha * optimum
        found = SemiCoreset.of_transport(alpha, beta, power, negative_weights=signed)
        broken += found.broken_by(costs, others, optimum)
    assert broken == []


def test_lemma_14_as_printed_fails_for_negative_weights_and_ours_does_not() -> None:
    """The printed eta1 is alpha / 2 at p = 1. A weight of -0.2 far away needs alpha."""
    data = Weighted(np.array([[0.0], [0.1]]), np.array([10.0, 1.0]))
    sketch = Weighted(np.array([[0.0], [0.1], [1.0]]), np.array([10.0, 1.0, -0.2]))
    moved = transport(data, sketch, np.array([0, 1]), 1)
    optimum = 0.1  # of one centre, at 0
    assert moved.total == pytest.approx(2 * optimum)
    costs, others = ([one.cost(np.array([[0.0]]), 1)] for one in (data, sketch))
    printed = SemiCoreset.of_transport(2, 0, 1, negative_weights=False)
    ours = SemiCoreset.of_transport(2, 0, 1, negative_weights=True)
    assert (printed.kappa, printed.eta1, printed.eta2) == (4, 1, 0)
    assert printed.broken_by(costs, others, optimum) == [0]
    assert ours.broken_by(costs, others, optimum) == []


def test_twin_a_semi_coreset_promised_without_the_mismatch_is_broken() -> None:
    broken = []
    for number in range(50):
        _, _, optimum, costs, others, _ = instance(number, 2.0, signed=True)
        broken += SemiCoreset(kappa=2, eta1=0, eta2=0).broken_by(costs, others, optimum)
    assert len(broken) > 50


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_lemma_5_centres_good_for_the_sketch_are_good_for_the_data(power: float) -> None:
    """Every pair of centres is an (alpha, beta)-approximation for some alpha and beta: all are tried."""
    worse: list[float] = []
    for number in range(40):
        _, _, optimum, costs, others, _ = instance(number, power, signed=True)
        if optimum == 0:
            continue
        kappa = least_kappa(costs, others, optimum=optimum, eta1=0.5, eta2=2.0)
        own = SemiCoreset(kappa=kappa, eta1=0.5, eta2=2.0)
        least = min(others)
        for cost, other in zip(costs, others, strict=True):
            alpha = 1.0 if least <= 0 else max(1.0, other / least)
            beta = max(0.0, other - alpha * least)
            promised = own.of_centres(Approximation(alpha, beta))
            worse.append(cost - promised.alpha * optimum - promised.beta)
    assert len(worse) > 1500
    assert max(worse) <= 1e-9


def test_lemma_5_has_the_paper_s_constants() -> None:
    own = SemiCoreset(kappa=3, eta1=0.5, eta2=7)
    assert own.of_centres(Approximation(2, 5)) == Approximation(2 * 9 + 1.5, 3 * 3 * 7 + 15)


def test_the_measured_kappa_is_the_least_that_holds() -> None:
    _, _, optimum, costs, others, _ = instance(3, 2.0, signed=True)
    kappa = least_kappa(costs, others, optimum=optimum, eta1=0.1, eta2=0.5)
    assert kappa > 1.01
    assert math.isfinite(kappa)
    holds = SemiCoreset(kappa=kappa, eta1=0.1, eta2=0.5)
    less = SemiCoreset(kappa=0.99 * kappa, eta1=0.1, eta2=0.5)
    assert holds.broken_by(costs, others, optimum) == []
    assert less.broken_by(costs, others, optimum) != []


def test_a_sketch_below_every_bound_has_no_kappa() -> None:
    assert least_kappa([1.0], [-5.0], optimum=1.0, eta1=1, eta2=1) == math.inf
    assert least_kappa([0.0], [2.0], optimum=1.0, eta1=1, eta2=1) == math.inf


def test_what_a_run_achieved_holds_for_all_centres() -> None:
    checked, broken = 0, []
    for number in range(40):
        data, sketch, optimum, costs, others, _ = instance(number, 2.0, signed=True)
        if optimum == 0:
            continue
        places = np.random.default_rng(number + 1000).integers(0, 5, 12)
        found = achieved(transport(data, sketch, places, 2), optimum, 2, negative_weights=True)
        broken += found.broken_by(costs, others, optimum)
        checked += 1
    assert checked > 30
    assert broken == []


def test_transport_is_distance_and_mismatch() -> None:
    data = Weighted.ones(np.array([[0.0, 0.0], [0.0, 0.6]]))
    sketch = Weighted(np.array([[0.0, 0.1], [0.8, 0.0], [0.5, 0.5]]), np.array([1.5, 0.0, -2.0]))
    moved = transport(data, sketch, np.array([0, 1]), 2)
    assert moved.moved == pytest.approx(0.01 + 1.0)
    assert moved.mismatch == pytest.approx(0.5 + 1.0 + 2.0)
    assert moved.total == moved.moved + moved.mismatch


def test_a_cost_of_no_centres_is_refused() -> None:
    with pytest.raises(UsageError):
        Weighted.ones(np.zeros((1, 2))).cost(np.zeros((0, 2)), 2)
