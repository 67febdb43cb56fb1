"""Losses of which only the likelihood ratio is known: composition, chance, groups."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from retrodp.errors import PlanError
from retrodp.privacy.accountant import delta_of, epsilon_of
from retrodp.privacy.conversion import epsilon_integer_orders
from retrodp.privacy.loss import GaussianLoss, PrivacyLoss, PureLoss, total_rho
from retrodp.privacy.ratio import RatioLoss, log_above, odds_above, own_delta, ratio_atoms
from tests.privacy.pairs import Pair, bernoulli, delta, mixed, power

EPSILONS = (0.0, 0.05, 0.2, 0.7, 1.5, 3.0)
ROUNDS = (1, 2, 4)


def worst(loss: RatioLoss) -> Pair:
    """The two-point pair of one round, from its definition alone."""
    spread = loss.greatest - loss.least
    point = (1 - loss.least) / spread
    return Pair((point * loss.greatest, 1 - point * loss.greatest), (point, 1 - point))


@pytest.mark.parametrize("count", ROUNDS)
@pytest.mark.parametrize("ends", [("3/2", "5/6"), ("2", "1/2"), ("21/20", "1/10")])
def test_delta_is_that_of_the_worst_rounds_to_the_last_digit(
    ends: tuple[str, str], count: int
) -> None:
    greatest, least = map(Fraction, ends)
    loss = RatioLoss(greatest=greatest, least=least, count=count)
    pair = power(worst(loss), count)
    exact = [max(delta(pair, e), delta(pair.reversed, e)) for e in EPSILONS]
    claimed = [delta_of([loss], e) for e in EPSILONS]
    assert all(c >= x for c, x in zip(claimed, exact, strict=True))
    assert claimed == pytest.approx(exact, rel=1e-6, abs=1e-200)
    assert [own_delta(loss, e) for e in EPSILONS] == pytest.approx(exact, rel=1e-6, abs=1e-200)


@pytest.mark.parametrize("ratios", [(0.9, 1.05, 1.2), (0.5, 1.0, 3.0), (0.84, 1.4, 1.49)])
def test_every_round_within_the_ratios_loses_less(ratios: tuple[float, ...]) -> None:
    """Any law with a mean ratio of 1 on these three values is dominated."""
    loss = RatioLoss(greatest=Fraction(3), least=Fraction(1, 2), count=2)
    low, middle, high = ratios
    for weight in (0.0, 0.1, 0.25):
        rest = (1 - weight * middle - (1 - weight) * low) / (high - low)
        without = np.array([1 - weight - rest, weight, rest])
        assert without.min() >= 0
        pair = power(Pair(tuple(without * np.array(ratios)), tuple(without)), 2)
        exact = [max(delta(pair, e), delta(pair.reversed, e)) for e in EPSILONS]
        assert all(x <= delta_of([loss], e) for x, e in zip(exact, EPSILONS, strict=True))


@pytest.mark.parametrize("count", ROUNDS)
def test_a_secret_chance_counts_as_advanced_joint_convexity_says(count: int) -> None:
    ratio, chance = Fraction(3), Fraction(1, 10)
    loss = RatioLoss(greatest=ratio, least=1 / ratio, count=count, chance=chance)
    full = power(worst(RatioLoss(greatest=ratio, least=1 / ratio)), count)
    for epsilon in EPSILONS:
        inner = math.log1p(math.expm1(epsilon) / 0.1)
        expected = 0.1 * delta(full, inner)
        assert delta_of([loss], epsilon) == pytest.approx(expected, rel=1e-6, abs=1e-200)
        # The two laws of one inserted record: in a sample with this chance, or not.
        pair = mixed(full, 0.1)
        assert max(delta(pair, epsilon), delta(pair.reversed, epsilon)) <= expected * (1 + 1e-9)


def test_losses_of_all_kinds_compose_in_both_directions() -> None:
    """Against brute force over the noise, the coins and a randomised response."""
    ratio = RatioLoss(greatest=Fraction(8, 5), least=Fraction(7, 8), count=2)
    losses: list[PrivacyLoss] = [
        GaussianLoss(shift=1, variance=Fraction(4)),
        PureLoss(epsilon=Fraction(1, 4)),
        ratio,
    ]
    noise = np.arange(-60, 61)
    gaussian = np.exp(-(noise**2) / 8)
    gaussian /= gaussian.sum()
    one = Pair(tuple(gaussian[1:-1]), tuple(gaussian[:-2]))
    whole = one.times(bernoulli(0.25)).times(power(worst(ratio), 2))
    for epsilon in EPSILONS:
        exact = max(delta(whole, epsilon), delta(whole.reversed, epsilon))
        claimed = delta_of(losses, epsilon)
        assert exact <= claimed <= exact * 1.01 + 1e-13


def test_removing_a_record_may_cost_more_than_adding_it() -> None:
    loss = RatioLoss(greatest=Fraction(21, 20), least=Fraction(1, 10))
    law = [ratio_atoms(loss, 0.0, reverse=reverse).losses[-1] for reverse in (False, True)]
    assert law[1] > 10 * law[0]
    assert delta_of([loss], 0.1) > 0


@pytest.mark.parametrize("count", [1, 30, 365])
def test_rho_bounds_every_renyi_divergence(count: int) -> None:
    loss = RatioLoss(greatest=Fraction(3, 2), least=Fraction(9, 10), count=count)
    for reverse, tilt in product((False, True), (0.01, 0.5, 1, 7, 100)):
        moment = ratio_atoms(loss, tilt, reverse=reverse).log_moment
        assert moment <= float(loss.rho) * tilt * (tilt + 1)
    assert total_rho([loss]) == loss.rho


def test_integer_orders_hold_for_sampled_rounds_too() -> None:
    loss = RatioLoss(greatest=Fraction(3, 2), least=Fraction(9, 10), count=30)
    assert epsilon_integer_orders([loss], 1e-6) >= epsilon_of([loss], 1e-6)


@pytest.mark.parametrize("size", [2, 3])
def test_a_group_is_never_cheaper_than_its_members_in_any_rounds(size: int) -> None:
    """Members matter in W = 2 rounds each, wherever those lie."""
    one = RatioLoss(greatest=Fraction(3, 2), least=Fraction(3, 4), count=2)
    group = one.group(size)
    for together in product(range(size + 1), repeat=2 * size):
        if sum(together) == 2 * size:
            losses: list[PrivacyLoss] = [
                RatioLoss(greatest=one.greatest**m, least=one.least**m) for m in together if m
            ]
            for epsilon in (0.3, 1.0):
                assert delta_of(losses, epsilon) <= delta_of([group], epsilon) * (1 + 1e-6)


def test_bounds_of_exponentials_lie_on_the_private_side() -> None:
    for epsilon in (Fraction(1, 10**6), Fraction(1, 3), Fraction(5), Fraction(60)):
        odds = odds_above(epsilon)
        assert math.log(odds) >= float(epsilon) * (1 - 1e-15)
        assert float(log_above(odds)) == pytest.approx(float(epsilon), rel=1e-4)


def test_fifty_records_of_a_large_epsilon_are_still_numbers() -> None:
    odds = odds_above(Fraction(60)) ** 50
    loss = RatioLoss(greatest=odds, least=1 / odds, count=30)
    assert float(loss.epsilon) == pytest.approx(30 * 50 * 60, rel=1e-6)
    assert own_delta(loss, 1.0) == pytest.approx(1)
    assert delta_of([loss], 1) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"greatest": Fraction(1)},
        {"least": Fraction(1)},
        {"least": Fraction(0)},
        {"count": 0},
        {"chance": Fraction(0)},
        {"chance": Fraction(1, 2)},  # with unequal ends
    ],
)
def test_what_is_no_bound_is_refused(wrong: dict[str, object]) -> None:
    good = {"greatest": Fraction(3), "least": Fraction(1, 2), "count": 1, "chance": Fraction(1)}
    with pytest.raises(PlanError):
        RatioLoss(**(good | wrong))  # type: ignore[arg-type]
