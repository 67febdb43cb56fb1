"""One-shot mechanisms: laws against the definition, declared guarantees against every neighbour."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from scipy import stats

from retrodp import private
from retrodp.errors import PlanError
from retrodp.mechanisms.oneshot.centres import NoisyLloyd
from retrodp.mechanisms.oneshot.contract import OneShotMechanism, Values
from retrodp.mechanisms.oneshot.mean import NoisyMean
from retrodp.mechanisms.oneshot.own import OwnFunction
from retrodp.mechanisms.oneshot.ranks import GridQuantile, InteriorPoint, ratio_below, values_needed
from retrodp.noise.coins import Coins
from retrodp.privacy.ratio import odds_above

ALPHA = 1e-9
LOW, HIGH = -1, 3
GRID = range(LOW, HIGH + 1)
EPSILON = Fraction(7, 10)
Law = dict[int, Fraction]


def quantile(share: Fraction) -> GridQuantile:
    return GridQuantile(epsilon=EPSILON, share=share, low=LOW, high=HIGH, step=Fraction(1))


INTERIOR = InteriorPoint(epsilon=EPSILON, low=LOW, high=HIGH, step=Fraction(1))
RANKED = [quantile(Fraction(1, 2)), quantile(Fraction(9, 10)), quantile(Fraction(1, 3)), INTERIOR]
NAMES = ["median", "quantile 9/10", "quantile 1/3", "interior point"]


def law_of(mechanism: GridQuantile | InteriorPoint, values: tuple[int, ...]) -> Law:
    """From the definition, point by point."""

    def level(y: int) -> int:
        below = sum(value < y for value in values)
        not_above = sum(value <= y for value in values)
        if isinstance(mechanism, InteriorPoint):
            return -min(not_above, len(values) - below)
        a, b = mechanism.share.numerator, mechanism.share.denominator
        return max(0, b * below - a * len(values), a * len(values) - b * not_above)

    weights = {y: mechanism.ratio ** -level(y) for y in GRID}
    whole = sum(weights.values(), Fraction(0))
    return {y: weight / whole for y, weight in weights.items()}


def samples(most: int) -> Iterator[tuple[int, ...]]:
    for size in range(most + 1):
        yield from combinations_with_replacement(GRID, size)


def worst_ratio(one: Law, other: Law) -> Fraction:
    return max(max(one[y] / other[y], other[y] / one[y]) for y in GRID)


@pytest.mark.parametrize("mechanism", RANKED, ids=NAMES)
def test_adding_any_value_keeps_to_the_declared_epsilon(
    mechanism: GridQuantile | InteriorPoint,
) -> None:
    allowed = odds_above(mechanism.guarantee.epsilon)
    worst = max(
        worst_ratio(law_of(mechanism, values), law_of(mechanism, (*values, more)))
        for values in samples(4)
        for more in GRID
    )
    assert worst <= allowed
    assert math.log(worst) > float(EPSILON) / 2  # the brute force reaches the promise


@pytest.mark.parametrize("mechanism", RANKED, ids=NAMES)
def test_replacing_any_value_keeps_to_the_declared_epsilon(
    mechanism: GridQuantile | InteriorPoint,
) -> None:
    allowed, _ = mechanism.guarantee.replaced
    worst = max(
        worst_ratio(law_of(mechanism, (*values, one)), law_of(mechanism, (*values, other)))
        for values in samples(3)
        for one in GRID
        for other in GRID
    )
    assert worst <= allowed


@pytest.mark.parametrize("values", [(), (0, 0, 2), (-1, 1, 1, 3, 3), (2,) * 9])
@pytest.mark.parametrize("mechanism", RANKED, ids=NAMES)
@pytest.mark.parametrize("arm", ["accept", "reject"])
def test_points_are_drawn_by_their_law(
    mechanism: GridQuantile | InteriorPoint, values: tuple[int, ...], arm: str
) -> None:
    """5,000 draws; the other arm is the law of an epsilon twice as large, where it differs."""
    draws = 5_000
    coins = Coins(b"law" * 10 + b"ab")
    sample: list[Values] = [(value,) for value in values]
    found = Counter(mechanism.answer(sample, coins)[0] for _ in range(draws))
    law = law_of(mechanism, values)
    if arm == "reject":
        weights = {y: law[y] ** 3 for y in GRID}
        law = {y: weight / sum(weights.values()) for y, weight in weights.items()}
        if values == ():
            return  # every law is uniform there
    expected = np.array([float(law[y]) * draws for y in GRID])
    observed = np.array([found[y] for y in GRID])
    chance = stats.chi2.sf(float(((observed - expected) ** 2 / expected).sum()), len(GRID) - 1)
    assert (chance < ALPHA) == (arm == "reject")


def test_an_interior_point_is_found_from_the_stated_number_on() -> None:
    grid, epsilon = 10**9, Fraction(1)
    needed = values_needed(grid, epsilon=epsilon, miss=1e-3)
    assert needed == pytest.approx(2 * (math.log(grid) + math.log(1e3)), abs=2)
    mechanism = InteriorPoint(epsilon=epsilon, low=0, high=grid - 1, step=Fraction(1))
    sample: list[Values] = [(500_000 + number,) for number in range(needed)]
    found = [mechanism.answer(sample, Coins(bytes([n] * 32)))[0] for n in range(200)]
    assert sum(not 500_000 <= (one or 0) <= 500_000 + needed for one in found) <= 3


def test_the_rank_error_holds_as_often_as_stated() -> None:
    mechanism = GridQuantile(
        epsilon=Fraction(1, 2), share=Fraction(1, 2), low=0, high=9_999, step=Fraction(1)
    )
    sample: list[Values] = [(10 * number,) for number in range(400)]
    error = mechanism.rank_error(0.05)
    found = [mechanism.answer(sample, Coins(bytes([n] * 32)))[0] or 0 for n in range(200)]
    strays = sum(abs(one / 10 - 200) > error + 1 for one in found)
    assert strays <= 25  # 10 expected at most; more than 25 has a chance below 1e-4


def test_ratios_lie_below_what_they_stand_for() -> None:
    for logarithm in (Fraction(1, 10**7), Fraction(1, 3), Fraction(4)):
        ratio = ratio_below(logarithm)
        assert ratio > 1
        assert math.log1p(float(ratio - 1)) <= float(logarithm)
        assert math.log1p(float(ratio - 1)) == pytest.approx(float(logarithm), rel=1e-6)


def test_the_mean_moves_its_two_sums_by_the_width_and_no_more() -> None:
    """The scale of the noise is the width over epsilon, and a value adds the width in L1."""
    mean = NoisyMean(epsilon=Fraction(1, 2), low=-3, high=7, step=Fraction(1))
    for value in range(-3, 8):
        assert abs(value - mean.low) + abs(mean.high - value) == mean.high - mean.low
    assert mean.describe()["scale_once"] == "20"


def test_the_mean_is_near_the_mean() -> None:
    mean = NoisyMean(epsilon=Fraction(1), low=0, high=1000, step=Fraction(1))
    sample: list[Values] = [(number,) for number in range(1000)]
    found = [mean.answer(sample, Coins(bytes([n] * 32)))[0] or 0 for n in range(50)]
    assert np.mean(found) == pytest.approx(499.5, abs=1)
    assert np.std(found) < 3  # 1000 sqrt(2) / 2 / 1000 = 0.7
    assert {mean.answer([], Coins(bytes([n] * 32))) for n in range(40)} & {(None,)}


LLOYD = NoisyLloyd(
    epsilon=Fraction(5),
    k=2,
    columns=("x", "y"),
    ranges=((0, 100), (-20, 20)),
    steps_of=(Fraction(1), Fraction(1, 2)),
)


def test_centres_find_two_far_groups() -> None:
    heaps: tuple[Values, Values] = ((10, -15), (90, 15))
    sample = [heap for heap in heaps for _ in range(400)]
    found = LLOYD.answer(sample, Coins(bytes(32)))
    assert LLOYD.labels == ("1 x", "1 y", "2 x", "2 y")
    assert LLOYD.step == Fraction(1, 2)
    assert found == pytest.approx([20, -15, 180, 15], abs=3)


def test_a_record_moves_the_noisy_sums_by_what_is_paid_for() -> None:
    """A vector at any corner of the box: number and sums over their scales add up to epsilon."""
    rate = LLOYD.epsilon / LLOYD.steps
    widths = [high - low for low, high in LLOYD.ranges]
    for corner in ((0, -20), (100, 20), (0, 20)):
        moved = [
            abs(2 * x - low - high) for x, (low, high) in zip(corner, LLOYD.ranges, strict=True)
        ]
        cost = 1 / (2 / rate) + sum(
            move / (2 * 2 * width / rate) for move, width in zip(moved, widths, strict=True)
        )
        assert cost <= rate


@private(epsilon="1/2", low=0, high=10)
def size(values: list[int], coins: Coins) -> int:
    return len(values) + coins.laplace(Fraction(2))


@private(epsilon=1, low=0, high=1, answers=["a", "b"])
def odd(values: list[int], coins: Coins) -> Any:
    if len(values) == 1:
        raise ValueError(values)
    if len(values) == 4:
        raise SystemExit(1)
    return [1] if len(values) == 2 else [5, 0.5] if len(values) == 3 else "text"


def test_an_own_function_is_held_to_its_range() -> None:
    assert isinstance(size, OwnFunction)
    found = {size.answer([(1,)] * 5, Coins(bytes([n] * 32)))[0] for n in range(200)}
    assert min(one for one in found if one is not None) == 0
    assert max(one for one in found if one is not None) == 10
    assert size([1, 2, 3], Coins(bytes(32))) == 3 + Coins(bytes(32)).laplace(Fraction(2))


@pytest.mark.parametrize(
    ("many", "said"),
    [
        (0, [None, None]),
        (1, [None, None]),
        (2, [None, None]),
        (3, [1, None]),
        (4, [None, None]),
    ],
)
def test_whatever_an_own_function_does_a_release_is_made(many: int, said: list[object]) -> None:
    assert odd.answer([(1,)] * many, Coins(bytes(32))) == said


@pytest.mark.parametrize(
    "wrong",
    [
        {"low": 1, "high": 1},
        {"low": 0.5, "high": 1},
        {"low": 0, "high": 1, "step": 0},
        {"low": 0, "high": 1, "answers": []},
        {"low": 0, "high": 1, "answers": ["b", "a"]},
        {"low": 0, "high": 1, "epsilon": 0},
        {"low": 0, "high": 1, "delta": 1},
    ],
)
def test_a_declaration_that_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(PlanError):
        private(**({"epsilon": 1} | wrong))  # type: ignore[arg-type]


def test_all_mechanisms_answer_an_empty_sample_as_they_promise() -> None:
    mechanisms: list[OneShotMechanism] = [
        quantile(Fraction(1, 2)),
        INTERIOR,
        NoisyMean(epsilon=EPSILON, low=0, high=9, step=Fraction(1)),
        LLOYD,
        size,
    ]
    for mechanism in mechanisms:
        answer = mechanism.answer([], Coins(bytes(32)))
        assert len(answer) == (1 if mechanism.labels is None else len(mechanism.labels))
        assert all(one is None or mechanism.low <= one <= mechanism.high for one in answer)
        assert "mechanism" in mechanism.describe()
