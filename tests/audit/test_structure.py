from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from retrodp.audit.structure import Structure, window, windows, worst_size, worst_windows
from retrodp.noise.factors.binary import BinaryFactor
from retrodp.noise.factors.contract import Factor
from retrodp.noise.factors.delannoy import best_delannoy
from retrodp.noise.factors.dense import best_dense
from retrodp.noise.factors.haar import HaarFactor, best_haar

FACTORS: list[Factor] = [
    BinaryFactor(horizon=8),
    BinaryFactor(horizon=13),
    best_delannoy(13),
    best_haar(15),
]


@pytest.mark.parametrize("factor", FACTORS, ids=lambda factor: f"{factor.name}-{factor.horizon}")
def test_the_least_shift_of_the_worst_window_is_what_the_factor_declares(factor: Factor) -> None:
    structure = Structure.of(factor)
    assert structure.full_rank
    assert structure.square
    assert worst_size(structure, law="laplace", longest=None) <= factor.window_l1 + 1e-9
    assert worst_size(structure, law="gaussian", longest=None) == pytest.approx(factor.window_l2sq)


def test_where_nodes_are_more_than_rounds_the_least_shift_is_no_larger_than_declared() -> None:
    factor = HaarFactor(horizon=3, height=4, positions=(1, 7, 15))
    structure = Structure.of(factor)
    assert not structure.square
    assert worst_size(structure, law="gaussian", longest=None) <= factor.window_l2sq + 1e-9


def test_a_dense_factor_is_read_by_its_rows() -> None:
    factor = best_dense(7, None)
    structure = Structure.of(factor)
    assert structure.square
    assert worst_size(structure, law="gaussian", longest=None) == pytest.approx(factor.window_l2sq)


def test_shifts_make_the_window_they_are_for() -> None:
    structure = Structure.of(BinaryFactor(horizon=11))
    made = np.array(
        [structure.weights @ structure.shift(window(11, *pair)) for pair in windows(11, None)]
    )
    asked = np.array([window(11, *pair) for pair in windows(11, None)])
    assert np.allclose(made, asked)


def test_a_round_that_is_a_fixed_sum_of_others_is_noticed() -> None:
    class Doubled(BinaryFactor):
        def nodes(self, round: int, /) -> tuple[tuple[tuple[int | str, ...], int], ...]:  # noqa: A002
            return BinaryFactor.nodes(self, 3 if round == 4 else round)

    assert not Structure.of(Doubled(horizon=6)).full_rank


def test_positions_make_no_difference_to_what_a_window_costs_at_most() -> None:
    spread = HaarFactor(horizon=3, height=4, positions=(1, 7, 15))
    near = replace(spread, positions=(7, 8, 9))
    sizes = [worst_size(Structure.of(one), law="gaussian", longest=None) for one in (spread, near)]
    assert max(sizes) <= spread.window_l2sq + 1e-9


def test_the_windows_tried_first_are_the_worst_and_of_every_sort() -> None:
    structure = Structure.of(BinaryFactor(horizon=7))
    chosen = worst_windows(structure, law="gaussian", longest=None, most=4)
    sizes = [structure.l2_squared(window(7, *pair)) for pair in windows(7, None)]
    assert structure.l2_squared(window(7, *chosen[0])) == pytest.approx(max(sizes))
    assert any(end == 8 for _, end in chosen)
    assert any(end == begin + 1 for begin, end in chosen)
    assert len(set(chosen)) == 4


def test_no_window_is_longer_than_a_record_counts() -> None:
    structure = Structure.of(BinaryFactor(horizon=7))
    chosen = worst_windows(structure, law="laplace", longest=2, most=20)
    assert {end - begin for begin, end in chosen} == {1, 2}
