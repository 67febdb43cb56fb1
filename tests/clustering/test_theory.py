"""The theorem's numbers: lemmas 10, 27, 29, 30 and 33 as they are charged, and refusals."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np
import pytest

from retrodp.clustering.theory import Constants, Sketch, Theory
from retrodp.errors import PlanError
from retrodp.privacy.budget import ApproxDP, PureDP, zCDP

BUDGETS = (PureDP(3), zCDP("0.7"), ApproxDP(1, "1e-6"))
MANY = PureDP(10**9)


def theory(**changed: object) -> Theory:
    settings = {"points": 1000, "k": 2, "dimensions": 2, "budget": PureDP(1)} | changed
    return Theory(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("factor", [1 + math.sqrt(2), 3.0])
def test_lemma_10_a_served_ring_is_near_with_the_constants_and_with_no_smaller_ones(
    power: float, factor: float
) -> None:
    """A point of ring l is D from its centre, and some representative F 2^l r_min from that."""
    near, least = Constants.of(factor, power)
    inner = np.linspace(0.0, 2.0, 20_001)
    outer = np.linspace(2.0, 4.0, 2001)  # ring 2; the others are this one, larger
    missed_inside = (inner + 2 * factor) ** power - near * inner**power
    missed_outside = (outer + 4 * factor) ** power / outer**power
    assert missed_inside.max() <= least * (1 + 1e-9)
    assert missed_inside.max() >= 0.999 * least
    assert missed_outside.max() == pytest.approx(near)


@pytest.mark.parametrize("budget", BUDGETS)
def test_lemma_27_the_calls_and_the_count_of_a_sketch_spend_its_part(
    budget: PureDP | zCDP | ApproxDP,
) -> None:
    """Epsilon: 2 Psi eps_d + eps_c. Rho: a pair of points costs 2^2 times one."""
    own = theory(budget=budget)
    for_weights = own.weights.budget
    spent = {_spent(one) * own.repetitions + _amount(for_weights) for one in own.sketches}
    total = 2 * _amount(for_weights)
    assert spent == {total}
    if not isinstance(budget, ApproxDP):
        assert total == _amount(budget)


def _spent(sketch: Sketch) -> Fraction:
    pairs = 2 if isinstance(sketch.dense, PureDP) else 4
    return pairs * sketch.calls * _amount(sketch.dense) + _amount(sketch.counter.budget)


def _amount(budget: PureDP | zCDP) -> Fraction:
    return budget.epsilon if isinstance(budget, PureDP) else budget.rho


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0])
def test_lemma_27_the_delta_of_a_pair_is_below_the_paper_s(epsilon: float) -> None:
    """Group privacy for two gives (1 + e^eps) delta; the paper has 2 e^(2 eps) delta."""
    assert 1 + math.exp(epsilon) <= 2 * math.exp(2 * epsilon)


@pytest.mark.parametrize("points", [2, 3, 1000, 1024, 1025])
@pytest.mark.parametrize("power", [1.0, 2.0])
def test_lemma_29_some_guess_is_right_whatever_the_optimum(points: int, power: float) -> None:
    own = theory(points=points, power=power)
    optima = np.geomspace(1e-9, points, 3000).tolist()
    right = [
        [g for g in own.guesses if g < optimum <= 2 * g or (optimum <= 1 / points >= g)]
        for optimum in optima
    ]
    assert len(own.guesses) == 2 * math.ceil(math.log2(points))
    assert [optimum for optimum, found in zip(optima, right, strict=True) if not found] == []
    # And with the right one the sketch is as large as lemma 10 asks for.
    near, least = own.constants
    small = [
        optimum
        for optimum, found in zip(optima, right, strict=True)
        if own.sketch(found[-1]).calls
        < 8 * own.k * own.sketch(found[-1]).rings * (3 + least + near * optimum / found[-1])
    ]
    assert small == []


@pytest.mark.parametrize("least", [1.0, 3.0, 64.0, 499.0])
def test_lemma_29_fewer_guesses_do_down_to_the_least_that_counts(least: float) -> None:
    own, paper = theory(least_guess=least), theory()
    optima = np.geomspace(1e-9, own.points, 3000).tolist()
    served = [
        any(g < optimum <= 2 * g or optimum <= 2 * g <= 2 * least for g in own.guesses)
        for optimum in optima
    ]
    assert all(served)
    assert set(own.guesses) < set(paper.guesses)
    assert min(own.guesses) <= least < 2 * min(own.guesses)
    assert own.repetitions < paper.repetitions
    near_the_least = own.prefix.beta - 24 * max(o.tau * o.rings for o in own.sketches) * own.k
    assert near_the_least == pytest.approx(8 * (own.constants.least + 3) * least)


@pytest.mark.parametrize("budget", BUDGETS)
def test_lemma_29_tau_is_twice_the_count_s_error_and_enough_for_dense_balls(
    budget: PureDP | zCDP | ApproxDP,
) -> None:
    own = theory(budget=budget)
    short = [
        one.guess
        for one in own.sketches
        if one.tau < 2 * one.counter.accuracy(1 / 8) or one.tau < 3 * 4 * one.noise
    ]
    assert short == []
    assert all(one.rings == max(1, math.ceil(-math.log2(one.r_min))) for one in own.sketches)


@pytest.mark.parametrize("optimum", [None, 20.0])
def test_lemma_30_enough_repetitions_and_not_one_too_many(optimum: float | None) -> None:
    """A repetition is good at a time with q = 1/2, over the guesses if there are several."""
    own = theory(optimum=optimum, failure=0.1)
    good = 0.5 / len(own.guesses)

    def fails(repetitions: int) -> float:
        return own.points * (1 - good) ** repetitions

    assert fails(own.repetitions) <= 0.05
    # The paper's (1 - q)^R <= exp(-q R) gives away less than a third of them.
    assert fails(int(0.65 * own.repetitions)) > 0.05
    assert own.repetitions == math.ceil(math.log(own.points / 0.05) / good)


def test_lemma_33_as_many_counts_as_representatives_and_no_more() -> None:
    own = theory(optimum=20.0)
    (one,) = own.sketches
    assert own.most_representatives == 1 + own.repetitions * one.calls * one.size
    # Size blow-up: so many places a call for a capacity of Psi tau, constant but for the scales.
    scales = 1 + math.ceil(2 * math.log2(1 / (6 * one.r_min)))
    assert one.size <= scales * one.capacity / one.noise


@pytest.mark.parametrize("dimensions", [2, 10])
@pytest.mark.parametrize("budget", [PureDP(1), ApproxDP(1, "1e-6")])
def test_the_theorem_is_vacuous_for_a_million_points(
    dimensions: int, budget: PureDP | ApproxDP
) -> None:
    own = Theory(points=10**6, k=10, dimensions=dimensions, budget=budget)
    worst = max(one.capacity for one in own.sketches)
    with pytest.raises(PlanError, match=re.escape(f"Psi tau = {worst:.3g} points of n")):
        own.refuse_vacuous()
    assert worst > 4 * 10**13


def test_an_additive_error_that_the_origin_alone_reaches_is_refused() -> None:
    own = theory(
        points=10_000, k=1, dimensions=1, budget=MANY, power=1, optimum=1000.0, failure=0.5
    )
    with pytest.raises(PlanError, match="the origin costs as the only centre"):
        own.refuse_vacuous()


def test_guesses_whose_cells_do_not_fit_are_refused() -> None:
    settings = {"points": 10**5, "k": 1, "dimensions": 1, "budget": PureDP(10**13), "power": 1}
    paper, fewer = theory(**settings), theory(**settings, least_guess=16.0)
    paper.refuse_vacuous()
    with pytest.raises(PlanError, match="cells, all of which are counted"):
        paper.refuse_oversized()
    fewer.refuse_vacuous()
    fewer.refuse_oversized()


def test_dense_balls_without_a_proof_are_refused() -> None:
    own = theory(points=10**13, k=1, dimensions=4, budget=PureDP(10**10), power=1, optimum=10.0**10)
    with pytest.raises(PlanError, match="up to 3 dimensions"):
        own.refuse_vacuous()


@pytest.mark.parametrize(
    "wrong",
    [
        {"points": 1},
        {"points": 10**19},
        {"k": 0},
        {"dimensions": 0},
        {"failure": 0.0},
        {"failure": math.nan},
        {"power": 0.5},
        {"optimum": 0.0},
        {"optimum": math.nan},
        {"optimum": 1000.0},
        {"least_guess": 0.0},
        {"least_guess": 500.0},
    ],
)
def test_settings_that_cannot_be_right_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(PlanError):
        theory(**wrong)


def test_the_guarantee_gets_better_with_the_budget_and_worse_with_representatives() -> None:
    little, much = theory(budget=PureDP(1)), theory(budget=PureDP(100))
    assert much.prefix.beta < little.prefix.beta
    assert much.prefix.alpha == little.prefix.alpha
    assert little.semi_coreset(10).eta2 < little.semi_coreset(1000).eta2
