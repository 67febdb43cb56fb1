"""The loss that a mechanism declares covers every window of any unit, found by brute force."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from numpy.typing import NDArray

from retrodp.mechanisms.calibrate import choose_factor, gaussian_process, laplace_process
from retrodp.mechanisms.calibrated import losses_of
from retrodp.noise.factors.contract import Factor
from retrodp.noise.factors.fresh import FreshFactor
from retrodp.privacy.loss import total_rho
from tests.noise.test_factors import shifts, weights

Matrix = NDArray[np.float64]
TREES = ("haar", "binary", "delannoy")
WINDOW = 3


def factor_of(name: str, horizon: int) -> Factor:
    if name == "fresh":
        return FreshFactor(horizon=horizon, window=WINDOW)
    return choose_factor(name, horizon=horizon, law="gaussian")


def node_shifts(factor: Factor) -> tuple[Matrix, Matrix]:
    """Weights of the nodes (rounds x nodes), and the shift of each step's node identities."""
    used, nodes = weights(factor)
    horizon = factor.horizon
    if isinstance(factor, FreshFactor):  # the shift up to a step is one for every round before it
        rounds = [int(node[0]) for node in nodes]
        columns = -(np.arange(1, horizon + 2)[None, :] > np.array(rounds)[:, None]).astype(float)
    else:
        columns = shifts(factor, nodes, range(1, horizon + 2))
    return used.toarray(), columns


def units(horizon: int, records: int, longest: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Starts, and the ends of so many windows that share it."""
    for start in range(1, horizon + 1):
        ends = range(start + 1, min(start + longest, horizon + 1) + 1)
        for chosen in combinations_with_replacement(ends, records):
            yield start, chosen


def vector(columns: Matrix, start: int, ends: Sequence[int]) -> Matrix:
    """Node shifts that hide the difference of these windows together."""
    total = np.zeros(len(columns))
    for end in ends:
        total += columns[:, start - 1] - columns[:, end - 1]
    return total


def trajectory(horizon: int, start: int, ends: Sequence[int]) -> Matrix:
    """How the exact values of the two streams differ, round by round."""
    rounds = np.arange(1, horizon + 1)
    total = np.zeros(horizon)
    for end in ends:
        total += (rounds >= start) & (rounds < end)
    return total


def worst(name: str, horizon: int, records: int) -> tuple[int, int]:
    """Largest L1 norm and squared L2 norm over all units, each shown to hide its difference."""
    factor = factor_of(name, horizon)
    used, columns = node_shifts(factor)
    longest = WINDOW if name == "fresh" else horizon
    l1, l2sq, hidden, count = 0.0, 0.0, 0, 0
    for start, ends in units(horizon, records, longest):
        shift = vector(columns, start, ends)
        difference = factor.denominator * trajectory(horizon, start, ends)
        hidden += np.array_equal(used @ shift, difference)
        count += 1
        l1 = max(l1, float(np.abs(shift).sum()))
        l2sq = max(l2sq, float((shift**2).sum()))
    assert hidden == count > 0
    return int(l1), int(l2sq)


@pytest.mark.parametrize("name", [*TREES, "fresh"])
@pytest.mark.parametrize("horizon", [1, 2, 5, 7, 12])
@pytest.mark.parametrize("amount", [1, 7])
def test_every_window_of_a_record_costs_at_most_what_is_declared(
    name: str, horizon: int, amount: int
) -> None:
    l1, l2sq = worst(name, horizon, records=1)
    factor = factor_of(name, horizon)
    gauss = gaussian_process(factor, rho=Fraction(1, 3), amount=amount)
    declared = total_rho(losses_of(gauss, amount=amount))
    assert Fraction(l2sq * amount**2) / (2 * gauss.scale) <= declared <= Fraction(1, 3)
    laplace = laplace_process(factor, epsilon=Fraction(1, 3), amount=amount)
    [loss] = losses_of(laplace, amount=amount)
    assert Fraction(l1 * amount) / laplace.scale <= loss.epsilon == Fraction(1, 3)  # type: ignore[union-attr]


@pytest.mark.parametrize("name", [*TREES, "fresh"])
@pytest.mark.parametrize("records", [2, 3])
def test_records_of_one_round_in_one_bin_cost_at_most_what_is_declared(
    name: str, records: int
) -> None:
    horizon = 6
    one_l1, one_l2sq = worst(name, horizon, 1)
    l1, l2sq = worst(name, horizon, records)
    # Equal ends attain it: the charge of k records in one bin cannot be less than k squared.
    assert (l1, l2sq) == (records * one_l1, records**2 * one_l2sq)
    factor, split = factor_of(name, horizon), (records,)
    gauss = gaussian_process(factor, rho=Fraction(1), amount=2, split=split)
    assert Fraction(l2sq * 4) / (2 * gauss.scale) <= total_rho(
        losses_of(gauss, amount=2, split=split)
    )
    laplace = laplace_process(factor, epsilon=Fraction(1), amount=2, split=split)
    [loss] = losses_of(laplace, amount=2, split=split)
    assert Fraction(l1 * 2) / laplace.scale <= loss.epsilon  # type: ignore[union-attr]


@pytest.mark.parametrize("split", [(1, 1, 1), (2, 1), (2, 2, 1)])
@pytest.mark.parametrize("name", TREES)
def test_records_in_several_bins_add_their_squares(name: str, split: tuple[int, ...]) -> None:
    horizon = 6
    factor = factor_of(name, horizon)
    norms = [worst(name, horizon, records) for records in split]
    gauss = gaussian_process(factor, rho=Fraction(1), amount=1, split=split)
    spent = sum((Fraction(l2sq) / (2 * gauss.scale) for _, l2sq in norms), Fraction(0))
    assert spent <= total_rho(losses_of(gauss, amount=1, split=split)) <= 1
    laplace = laplace_process(factor, epsilon=Fraction(1), amount=1, split=split)
    assert sum(l1 for l1, _ in norms) / laplace.scale <= 1


@pytest.mark.parametrize("name", TREES)
def test_twin_sensitivity_argued_for_additions_only_is_too_small(name: str) -> None:
    """One end of a window moves fewer nodes than both: a deletion is not for free."""
    horizon = 12
    _, columns = node_shifts(factor_of(name, horizon))
    additions_only = float((columns[:, :-1] ** 2).sum(axis=0).max())
    assert 0 < additions_only < worst(name, horizon, 1)[1]
