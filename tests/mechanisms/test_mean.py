"""Means: two counters and a quotient, honest at any size."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import pytest

from retrodp.engine.compile import compile_plan
from retrodp.engine.resolve import resolve
from retrodp.mechanisms.answer import Answer, Bounds
from retrodp.mechanisms.mean import FINER, MeanOfBins
from retrodp.noise.key import KeyTree
from retrodp.noise.prf import Coordinates
from retrodp.privacy.loss import total_rho
from retrodp.statistics.means import COUNT, SUM, coordinate
from tests.contracts.mechanisms import Recording
from tests.support.plans import HORIZON, MODELS, Model, plan

KEYS = 800
LEVEL, SIGMAS = 0.95, 6.2
RELEASES = '[release.mean]\nkind = "mean"\nof = "amount"'
LEAST, GREATEST, MIDDLE = -10, 40, 15  # steps of one half


@cache
def mean(model: Model = "zcdp", *, by: str = "") -> MeanOfBins:
    made = plan("ids", model, releases=RELEASES + by, epsilon=1)
    [release] = compile_plan(made, resolve(made))
    assert isinstance(release.mechanism, MeanOfBins)
    return release.mechanism


def totals(values: list[int], label: bytes = b"") -> dict[bytes, int]:
    """Exact totals of records with these amounts, in steps."""
    centred = sum(value - MIDDLE for value in values)
    return {coordinate(SUM, label): centred, coordinate(COUNT, label): len(values)}


def tree(number: int) -> KeyTree:
    return KeyTree.from_root(number.to_bytes(32, "big"), b"means", HORIZON)


def bounds_of(answer: Answer) -> Bounds:
    assert answer.each is not None
    [bounds] = answer.each
    return bounds


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("values", [[40] * 3, [-10] * 30, [-10, 40] * 200, [0] * 2000, [17]])
def test_the_interval_covers_the_mean_at_its_level(model: Model, values: list[int]) -> None:
    true = Fraction(sum(values), len(values)) * FINER
    made, exact = mean(model), totals(values)
    inside = inside_all = 0
    for number in range(KEYS):
        bounds = bounds_of(made.release(3, exact, tree(number)))
        inside += bounds.low <= true <= bounds.high
        inside_all += bounds.low_all <= true <= bounds.high_all
    allowed = LEVEL - SIGMAS * math.sqrt(LEVEL * (1 - LEVEL) / KEYS)
    assert min(inside, inside_all) / KEYS >= allowed


@pytest.mark.parametrize("count", [0, 1, 5])
def test_values_and_intervals_never_leave_the_public_range(count: int) -> None:
    made = mean()
    answers = [made.release(2, totals([40] * count), tree(number)) for number in range(300)]
    bounds = [bounds_of(answer) for answer in answers]
    assert min(one.low_all for one in bounds) >= LEAST * FINER
    assert max(one.high_all for one in bounds) <= GREATEST * FINER
    values = [answer.values[0] for answer in answers]
    known = [value for value in values if value is not None]
    assert min(known) >= LEAST * FINER
    assert max(known) <= GREATEST * FINER
    assert count or None in values  # where the noisy count is below 1 there is no value


def test_an_interval_for_all_rounds_holds_that_of_one() -> None:
    made = mean()
    nested = []
    for number in range(200):
        bounds = bounds_of(made.release(4, totals([3] * 60), tree(number)))
        nested.append(bounds.low_all <= bounds.low <= bounds.high <= bounds.high_all)
    assert nested == [True] * 200


@pytest.mark.parametrize("model", MODELS)
def test_sum_and_count_together_cost_the_budget_of_the_release(model: Model) -> None:
    made = plan("ids", model, releases=RELEASES, epsilon=1)
    resolved = resolve(made)
    cost = mean(model).cost()
    if model == "zcdp":
        rho = Fraction(resolved.budget["rho"])
        assert rho * Fraction(99, 100) < total_rho(cost) <= rho
    else:
        assert sum((loss.epsilon for loss in cost), Fraction(0)) == 1  # type: ignore[union-attr]


def test_sum_and_count_have_noise_of_their_own() -> None:
    keys = Recording(tree(1))
    mean().release(3, {}, keys)
    names = {label[1] for label in keys.labels}
    assert names == {"mean/sum", "mean/count"}


def test_twin_one_label_for_both_parts_would_couple_them() -> None:
    parts = [Recording(tree(1)), Recording(tree(1))]
    mean().total.process.draw(
        release="mean", round=3, keys=parts[0], where=Coordinates.of_indices(1)
    )
    mean().count.process.draw(
        release="mean", round=3, keys=parts[1], where=Coordinates.of_indices(1)
    )
    assert parts[0].labels == parts[1].labels


def test_bins_are_public_and_released_when_empty() -> None:
    answer = mean(by='\nby = "country"').release(3, totals([3] * 5000, b"DE"), tree(1))
    assert answer.keys == ("DE", "FR", "[null]", "other")
    assert answer.values[0] == pytest.approx(3 * FINER, abs=60)


def test_a_mean_is_rounded_to_a_hundredth_of_a_step() -> None:
    answer = mean().release(3, totals([3] * 10_000), tree(1))
    assert answer.step == Fraction(1, 200)
    assert float(answer.value) == pytest.approx(1.5, abs=0.5)
