"""Second moments from sketches: unbiased, as exact as predicted, covered for any data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from retrodp.engine.resolve import resolve
from retrodp.engine.sketches import second_moment, sketched_items
from retrodp.errors import PlanError
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.second_moment import SecondMoment
from retrodp.mechanisms.spread import mean_square, share_of_variance, squared_reach
from retrodp.noise.factors.haar import best_haar
from retrodp.noise.key import KeyTree
from retrodp.noise.prf import Coordinates
from retrodp.noise.process import NoiseProcess
from retrodp.plan.plan import Plan
from retrodp.statistics.buckets import stored
from retrodp.statistics.contract import PURPOSE
from retrodp.statistics.sketch import SketchedItems
from tests.support.plans import plan as plan_with

HORIZON, ROUND = 6, 3


@cache
def made(keys: str, model: Any = "zcdp", epsilon: int = 3) -> tuple[SketchedItems, SecondMoment]:
    """Statistic and mechanism of a plan's release."""
    one = f'[release.f2]\nkind = "second_moment"\nof = "who"\n{keys}'
    plan: Plan = plan_with(model=model, releases=one, epsilon=epsilon)
    (entry,) = resolve(plan).releases
    (release,) = plan.releases
    noise = CalibratedNoise.from_spec(entry["noise"])
    return sketched_items(plan, release), second_moment(plan, release, (noise,), entry)


def answers(keys: str, amounts: Mapping[bytes, int], number: int, **kind: Any) -> list[Answer]:
    """What so many keys publish of the same data; hashes and noise of their own."""
    statistic, mechanism = made(keys, **kind)
    counts = np.fromiter(amounts.values(), np.int64, len(amounts))
    found = []
    for one in range(number):
        tree = KeyTree.from_root(one.to_bytes(32, "big"), b"moments", HORIZON)
        hashed = statistic.keyed(tree.lasting_key(release="f2", purpose=PURPOSE))
        totals = stored(hashed.sums([*amounts], counts))
        found.append(mechanism.release(ROUND, totals, tree))
    return found


EVEN = {b"%d" % item: 20 for item in range(300)}
STEEP = {b"%d" % item: 2000 // (item + 1) for item in range(500)}
TWO = {b"a": 900, b"b": 900}
NOTHING: dict[bytes, int] = {}


def moment(amounts: Mapping[bytes, int]) -> int:
    return sum(amount**2 for amount in amounts.values())


@pytest.mark.parametrize(
    "keys",
    [
        'method = "mean"\nrows = 4\nbuckets = 600',
        'method = "median"\nrows = 5\nbuckets = 300',
        'method = "dense"\nrows = 3\nbuckets = 200',
    ],
)
def test_the_error_is_within_a_tenth_of_the_predicted(keys: str) -> None:
    """1,000 keys: the measured deviation strays by 2.2 % of itself, so 10 % is 4.5 deviations."""
    _, mechanism = made(keys)
    truth = moment(EVEN)
    values = np.array([answer.values[0] for answer in answers(keys, EVEN, 1000)], dtype=float)
    predicted = mechanism.stddev_at(truth, ROUND)
    measured = math.sqrt(float(((values - truth) ** 2).mean()))
    assert abs(values.mean() - truth) < 5 * predicted / math.sqrt(1000)
    assert measured == pytest.approx(predicted, rel=0.1)


def test_the_prediction_is_the_formula_of_one_sketch() -> None:
    """sqrt(2 / (r B)) (F2 + r B kappa), kappa the variance that one row alone would have."""
    keys = 'method = "mean"\nrows = 4\nbuckets = 600'
    _, mechanism = made(keys)
    _, alone = made('method = "mean"\nrows = 1\nbuckets = 600')
    kappa = alone.noise.process.variance(ROUND)
    formula = math.sqrt(2 / (4 * 600)) * (1e5 + 4 * 600 * kappa)
    assert mechanism.stddev_at(1e5, ROUND) == pytest.approx(formula, rel=0.01)


def test_dense_counters_err_like_as_many_buckets() -> None:
    """Theorem 5.1's projection and a sketch of as many counters, at one budget."""
    _, dense = made('method = "dense"\nrows = 3\nbuckets = 200')
    _, sketch = made('method = "median"\nrows = 3\nbuckets = 200')
    ratio = dense.stddev_at(1e5, ROUND) / sketch.stddev_at(1e5, ROUND)
    assert ratio == pytest.approx(1, rel=0.01)
    assert len(dense.noise.split) == 600
    assert len(sketch.noise.split) == 3


@pytest.mark.parametrize("data", [EVEN, STEEP, TWO, NOTHING], ids=["even", "steep", "two", "none"])
@pytest.mark.parametrize(
    ("keys", "model"),
    [
        ('method = "median"\nrows = 5\nbuckets = 300', "zcdp"),
        ('method = "mean"\nrows = 4\nbuckets = 600', "zcdp"),
        ('method = "dense"\nrows = 3\nbuckets = 200', "zcdp"),
        ('method = "median"\nrows = 5\nbuckets = 300', "pure"),
    ],
)
def test_intervals_hold_for_any_data(keys: str, model: Any, data: dict[bytes, int]) -> None:
    """Level 0.95, 200 keys: fewer than 176 covered has probability below 1e-4."""
    truth = moment(data)
    found = [answer.each for answer in answers(keys, data, 200, model=model)]
    covered = sum(each is not None and each[0].low <= truth <= each[0].high for each in found)
    every = sum(each is not None and each[0].low_all <= truth <= each[0].high_all for each in found)
    assert covered >= 176
    assert every >= covered


@pytest.mark.parametrize(("model", "epsilon"), [("zcdp", 40), ("zcdp", 60), ("pure", 12)])
def test_intervals_hold_where_noise_hardly_reaches_a_step(model: Any, epsilon: int) -> None:
    """Rounding takes away most of such noise, and twelve times its variance is not what it adds."""
    keys = 'method = "mean"\nrows = 1\nbuckets = 1024'
    for data in ({b"a": 1}, {b"a": 3, b"b": 2}):
        found = [one.each for one in answers(keys, data, 100, model=model, epsilon=epsilon)]
        truth = moment(data)
        assert sum(each is not None and each[0].low <= truth <= each[0].high for each in found) > 83


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("scale", ["1/3", "1", "6", "90"])
@pytest.mark.parametrize("round_", [1, 3, 4])
def test_the_mean_square_of_rounded_noise_is_the_drawn_one(
    law: Any, scale: str, round_: int
) -> None:
    """200,000 draws, five standard errors."""
    process = NoiseProcess(factor=best_haar(6), law=law, scale=Fraction(scale))
    tree = KeyTree.from_root(bytes(32), b"rounded", 6)
    where = Coordinates.of_indices(200_000)
    drawn = process.draw(release="r", round=round_, keys=tree, where=where).astype(float) ** 2
    error = 5 * float(drawn.std()) / math.sqrt(len(drawn))
    assert float(drawn.mean()) == pytest.approx(mean_square(process, round_), abs=error)


def test_an_accuracy_is_kept_beside_what_noise_adds() -> None:
    """eta = 0.25 at level 0.95: the error is below eta F2 + 8 z^2 kappa / eta in 95 of 100 keys."""
    keys = "accuracy = 0.25"
    _, mechanism = made(keys)
    _, alone = made('method = "mean"\nrows = 1\nbuckets = 600')
    kappa = alone.noise.process.variance(ROUND)
    for data in (EVEN, STEEP):
        truth = moment(data)
        bound = 0.25 * truth + 8 * 1.96**2 * kappa / 0.25
        values = [answer.values[0] for answer in answers(keys, data, 150)]
        kept = sum(value is not None and abs(value - truth) <= bound for value in values)
        assert kept >= 130  # below has probability below 1e-4 at 95 %
    assert mechanism.rows * mechanism.buckets >= 8 * 1.96**2 / 0.25**2


def test_what_is_published_is_never_below_zero() -> None:
    found = answers('method = "median"\nrows = 5\nbuckets = 300', NOTHING, 40)
    assert min(answer.values[0] or 0 for answer in found) == 0
    assert min(answer.each[0].low for answer in found if answer.each is not None) == 0


def test_squares_too_large_for_64_bits_stay_exact() -> None:
    huge = {b"one": 1 << 40}
    (answer,) = answers('method = "median"\nrows = 5\nbuckets = 300', huge, 1)
    assert answer.values[0] == pytest.approx(1 << 80, rel=1e-9)


def test_the_median_of_rows_needs_fewer_deviations_than_their_mean_for_many_rounds() -> None:
    assert squared_reach(5, median=True, miss=0.05 / 365) < squared_reach(
        5, median=False, miss=0.05 / 365
    )
    assert squared_reach(1, median=True, miss=0.05) == pytest.approx(20)
    assert share_of_variance(1, median=True) == pytest.approx(1, abs=1e-5)
    assert share_of_variance(5, median=True) == pytest.approx(0.28683, abs=1e-4)
    assert share_of_variance(4, median=False) == Fraction(1, 4)


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ("rows = 4", "odd"),
        ("rows = 65", "odd"),
        ("accuracy = 0.001", "at least 0.01"),
        ("accuracy = 1", "below 1"),
        ("accuracy = 0.1\nrows = 3", "accuracy, or rows"),
        ("buckets = 2000000", "at most 4194304"),
        ('method = "dense"\nbuckets = 4000', "at most 8192"),
        ('method = "dense"\naccuracy = 0.02', "Ask for less accuracy"),
        ('method = "mean"\nbuckets = 100', "buckets a row"),
        ('method = "largest"', "one of median, mean, dense"),
    ],
)
def test_sizes_that_cannot_be_are_refused_with_what_can(keys: str, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        made(keys)
