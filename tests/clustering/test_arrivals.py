"""What one arrival moves in the noise of counters that only grow, by brute force."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from retrodp.clustering.arrivals import (
    Part,
    arrival_norms,
    check_process,
    factor_of,
    gaussian_part,
    laplace_part,
    losses_of,
)
from retrodp.errors import PlanError
from retrodp.noise.factors.binary import BinaryFactor
from retrodp.noise.factors.delannoy import best_delannoy
from retrodp.noise.factors.dense import DenseFactor, square_root
from retrodp.noise.factors.haar import best_haar
from retrodp.noise.factors.rows import exact_row
from retrodp.noise.process import NoiseProcess
from retrodp.noise.processes import AnyFactor
from retrodp.privacy.loss import PureLoss
from retrodp.privacy.norms import Norms

HORIZONS = [1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 33]
ONE = Part(name="one", share=Fraction(1), norms=Norms(1, 1), moved=1)


def shift_of_arrival(factor: BinaryFactor, arrival: int) -> dict[tuple[int | str, ...], int]:
    """Used nodes that hold the round of an arrival, by 1 each."""
    found = {}
    for round_ in range(1, factor.horizon + 1):
        for node, _ in factor.nodes(round_):
            level, index = node
            assert isinstance(level, int)
            assert isinstance(index, int)
            if index << level < arrival <= index + 1 << level:
                found[node] = 1
    return found


@pytest.mark.parametrize("horizon", HORIZONS)
def test_an_arrival_moves_a_binary_tree_by_used_nodes_over_its_round(horizon: int) -> None:
    factor, squares = BinaryFactor(horizon=horizon), []
    for arrival in range(1, horizon + 1):
        shift = shift_of_arrival(factor, arrival)
        squares.append(sum(value**2 for value in shift.values()))
        noise = [
            sum(weight * shift.get(node, 0) for node, weight in factor.nodes(round_))
            for round_ in range(1, horizon + 1)
        ]
        assert noise == [int(round_ >= arrival) for round_ in range(1, horizon + 1)]
        first_uses = {
            node: round_ for round_ in range(horizon, 0, -1) for node, _ in factor.nodes(round_)
        }
        assert all(first_uses[node] >= arrival for node in shift)  # what was shown is not touched
    assert arrival_norms(factor) == Norms(max(squares), max(squares))


@pytest.mark.parametrize("horizon", HORIZONS)
def test_an_arrival_moves_a_dense_factor_by_a_column_of_its_root(horizon: int) -> None:
    factor = square_root(horizon, None)
    root = factor.matrix()
    rows = [exact_row(root, round_) for round_ in range(1, horizon + 1)]
    for arrival in range(1, horizon + 1):
        shift = root[:, arrival - 1].tolist()
        assert shift[: arrival - 1] == [0] * (arrival - 1)  # what was shown is not touched
        moved = [
            Fraction(sum(n * s for n, s in zip(numerators, shift, strict=False)), denominator)
            for numerators, denominator in rows
        ]
        assert moved == [int(round_ >= arrival) for round_ in range(1, horizon + 1)]
    norms = arrival_norms(factor)
    assert norms.l2_squared == max(sum(v * v for v in column) for column in root.T.tolist())
    assert norms.l2_squared <= factor.window_l2sq


def test_an_arrival_costs_less_than_a_window_that_may_end() -> None:
    factor = square_root(250, None)
    assert arrival_norms(factor).l2_squared < 0.66 * factor.window_l2sq
    assert arrival_norms(BinaryFactor(horizon=250)).l1 == 8 < BinaryFactor(horizon=250).window_l1


@pytest.mark.parametrize("name", ["sqrt", "binary"])
def test_gaussian_noise_of_a_part_costs_its_share_and_hardly_less(name: str) -> None:
    factor = factor_of(name, 20)  # type: ignore[arg-type]
    assert isinstance(factor, DenseFactor | BinaryFactor)
    part = Part(name="sums", share=Fraction(1, 4), norms=Norms(9, 4096**2), moved=3)
    loss = losses_of(part, gaussian_part(part, factor, Fraction(1, 2)))
    assert Fraction(1, 8) * Fraction(999, 1000) < loss.rho <= Fraction(1, 8)


@pytest.mark.parametrize("name", ["delannoy", "binary"])
def test_laplace_noise_of_a_part_costs_its_share(name: str) -> None:
    part = Part(name="sums", share=Fraction(1, 4), norms=Norms(9, 4), moved=3)
    loss = losses_of(part, laplace_part(part, factor_of(name, 20), Fraction(2)))  # type: ignore[arg-type]
    assert loss == PureLoss(epsilon=Fraction(1, 2))


@pytest.mark.parametrize("factor", [best_haar(8), best_delannoy(8)])
def test_gaussian_noise_that_reaches_into_the_future_is_refused(factor: AnyFactor) -> None:
    process = NoiseProcess(factor=factor, law="gaussian", scale=Fraction(9))  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="future"):
        check_process(process)


def test_a_factor_that_nobody_knows_is_refused() -> None:
    with pytest.raises(PlanError):
        factor_of("haar", 8)  # type: ignore[arg-type]
    with pytest.raises(PlanError):
        laplace_part(ONE, square_root(4, None), Fraction(1))
    with pytest.raises(PlanError):
        arrival_norms(best_haar(8))


def test_charges_are_whole_numbers() -> None:
    norms = arrival_norms(square_root(100, None))
    assert type(norms.l1) is int
    assert type(norms.l2_squared) is int
    assert np.isfinite(float(norms.l2_squared))
