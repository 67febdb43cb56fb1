"""From a budget to noise: all of it is spent, none of it twice."""

from __future__ import annotations

from fractions import Fraction

import pytest

from retrodp.errors import PlanError
from retrodp.mechanisms.calibrate import (
    calibrated,
    choose_factor,
    gaussian_process,
    laplace_process,
    worst_error,
)
from retrodp.mechanisms.counter import Counter
from retrodp.noise.factors.fresh import FreshFactor
from retrodp.privacy.budget import PureDP, zCDP
from retrodp.privacy.loss import total_rho


@pytest.mark.parametrize("factor", ["haar", "binary", "delannoy"])
@pytest.mark.parametrize("rho", ["1/3", "1e-4", "7"])
def test_gaussian_noise_spends_its_budget_but_for_the_rounding_of_its_variance(
    factor: str, rho: str
) -> None:
    noise = calibrated("x", horizon=30, budget=zCDP(rho), factor=factor, amount=3)
    spent = total_rho(noise.losses())
    assert spent <= Fraction(rho)
    assert spent >= Fraction(rho) * (1 - Fraction(1, 500))


@pytest.mark.parametrize("factor", ["haar", "binary", "delannoy"])
@pytest.mark.parametrize("epsilon", ["1/3", "1e-4", "7"])
def test_laplace_noise_spends_its_budget_exactly(factor: str, epsilon: str) -> None:
    noise = calibrated("x", horizon=30, budget=PureDP(epsilon), factor=factor, amount=3)
    [loss] = noise.losses()
    assert loss.epsilon == Fraction(epsilon)  # type: ignore[union-attr]


def test_the_best_factor_of_each_law_is_chosen() -> None:
    assert choose_factor("auto", horizon=365, law="gaussian").name == "haar"
    assert choose_factor("auto", horizon=365, law="laplace").name == "delannoy"


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_a_window_gets_fresh_noise_exactly_where_that_errs_less(law: str) -> None:
    horizon = 64
    chosen = [
        choose_factor("auto", horizon=horizon, law=law, window=window).name
        for window in range(1, horizon + 1)
    ]
    tree = choose_factor("auto", horizon=horizon, law=law)
    better = [
        worst_error(FreshFactor(horizon=horizon, window=window), law) <= worst_error(tree, law)
        for window in range(1, horizon + 1)
    ]
    assert [name == "fresh" for name in chosen] == better
    assert chosen[0] == "fresh"
    assert chosen[-1] == tree.name


def test_a_tree_charges_a_window_as_if_it_were_longer() -> None:
    """A short window at the middle costs a tree as much as any: only fresh noise gains from it."""
    short = calibrated("x", horizon=64, budget=zCDP(1), factor="haar", window=2)
    whole = calibrated("x", horizon=64, budget=zCDP(1), factor="haar")
    assert short.process == whole.process


def test_larger_contributions_get_proportionally_larger_noise() -> None:
    factor = choose_factor("delannoy", horizon=30, law="laplace")
    one = laplace_process(factor, epsilon=Fraction(1), amount=1).scale
    assert laplace_process(factor, epsilon=Fraction(1), amount=7).scale == 7 * one
    assert laplace_process(factor, epsilon=Fraction(1), amount=1, split=(3, 3, 1)).scale == 7 * one
    gauss = gaussian_process(factor, rho=Fraction(1), amount=1).scale
    assert gaussian_process(factor, rho=Fraction(1), amount=1, split=(3, 1)).scale == 10 * gauss


@pytest.mark.parametrize("horizon", [0, -1, 1.5, True, 2**20 + 1])
def test_a_horizon_that_is_none_is_refused(horizon: int) -> None:
    with pytest.raises(PlanError):
        Counter(horizon=horizon, budget=PureDP(1))


@pytest.mark.parametrize("level", ["0", "1", "-1/2", "2"])
def test_a_level_that_is_no_probability_is_refused(level: str) -> None:
    with pytest.raises(PlanError):
        Counter(horizon=5, budget=PureDP(1), level=Fraction(level))


def test_an_unknown_factor_is_refused_with_the_known_ones() -> None:
    with pytest.raises(PlanError, match="delannoy"):
        Counter(horizon=5, budget=PureDP(1), factor="wavelet")


def test_a_counter_takes_a_number_or_a_total() -> None:
    from retrodp.noise.key import KeyTree  # noqa: PLC0415  used once

    keys = KeyTree.from_root(bytes(32), b"x", 5)
    counter = Counter(horizon=5, budget=PureDP(1))
    assert counter.release(2, 17, keys) == counter.release(2, {b"": 17}, keys)
