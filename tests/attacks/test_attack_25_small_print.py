"""Attack 25: the small print that a careless reading gets wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrodp.mechanisms.answer import Answer
from retrodp.noise.factors.binary import BinaryFactor
from retrodp.noise.factors.fresh import FreshFactor
from retrodp.noise.factors.haar import HaarFactor
from tests.contracts.test_sensitivity import node_shifts, vector
from tests.support.answers import pairs_of
from tests.support.plans import plan
from tests.support.stores import new_store, published


@pytest.mark.parametrize(("horizon", "charge"), [(1, 1), (2, 2), (4, 3), (8, 5), (16, 7)])
def test_binary_charges_2h_minus_1_only_from_4_on(horizon: int, charge: int) -> None:
    factor = BinaryFactor(horizon=horizon)
    assert (factor.window_l1, factor.window_l2sq) == (charge, charge)


def test_twin_the_formula_below_4_would_charge_too_little() -> None:
    assert BinaryFactor(horizon=2).window_l2sq > 2 * 1 - 1


def test_a_window_of_one_round_at_the_middle_costs_haar_as_much_as_any() -> None:
    factor = HaarFactor(horizon=7, height=3, positions=tuple(range(1, 8)))
    _, columns = node_shifts(factor)
    shortest = [float((vector(columns, r, [r + 1]) ** 2).sum()) for r in range(1, 8)]
    assert max(shortest) == factor.window_l2sq == 2 * 3 + 2


@pytest.mark.parametrize("window", [1, 3, 30])
def test_fresh_noise_charges_the_length_of_the_window(window: int) -> None:
    assert FreshFactor(horizon=365, window=window).window_l2sq == window
    assert FreshFactor(horizon=2, window=window).window_l2sq == min(window, 2)


def test_empty_public_bins_are_evaluated_like_full_ones(ram: Path) -> None:
    with new_store(ram / "store", plan(epsilon=1)) as store:
        store.close_round()
    answer = Answer.from_bytes(published(ram / "store")[1]["by_country"])
    values = pairs_of(answer)
    assert len(values) == 4 * 3  # countries with other and null, by gift with null
    assert len(set(values.values())) > 2  # noise of their own, and no bare zeros


def test_names_of_published_bins_are_never_looked_up_elsewhere(ram: Path) -> None:
    """An open domain without records publishes no label at all."""
    with new_store(ram / "store", plan(epsilon=1)) as store:
        store.close_round()
    assert Answer.from_bytes(published(ram / "store")[1]["by_product"]).keys == ()
