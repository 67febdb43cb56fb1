"""The comparators charge what brute force charges, and reproduce published tables."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from benchmarks.comparators import (
    best_kary,
    kary_with_subtraction,
    smooth_binary,
    sqrt_coefficients,
    sqrt_toeplitz,
    strategy_toeplitz,
)

Nodes = set[tuple[int, int]]


def signed_nodes(round_: int, k: int) -> Nodes:
    """(level, block) of every node in the balanced digits of a round's number."""
    q, digits, rest = (k - 1) // 2, list[int](), round_
    while rest:
        digit = (rest + q) % k - q
        digits.append(digit)
        rest = (rest - digit) // k
    found, position = Nodes(), 0
    for level in reversed(range(len(digits))):
        for _ in range(abs(digits[level])):
            start = position if digits[level] > 0 else position - k**level
            found.add((level, start // k**level))
            position += k**level if digits[level] > 0 else -(k**level)
    assert position == round_
    return found


@pytest.mark.parametrize("k", [3, 5, 7, 9])
@pytest.mark.parametrize("horizon", [1, 2, 3, 5, 13, 24, 25, 40, 64, 121, 130])
def test_a_kary_tree_is_charged_what_brute_force_finds(horizon: int, k: int) -> None:
    rounds = [signed_nodes(round_, k) for round_ in range(1, horizon + 1)]
    used = set[tuple[int, int]]().union(*rounds)
    levels = range(max(level for level, _ in used) + 1)
    holders = [
        {(level, step // k**level) for level in levels} & used for step in range(horizon + 1)
    ]
    worst = max(len(one ^ two) for one, two in combinations([*holders, Nodes()], 2))
    shape = kary_with_subtraction(horizon, k)
    assert shape.squares.tolist() == [len(nodes) for nodes in rounds]
    assert shape.l1 == shape.l2sq == worst


@pytest.mark.parametrize("horizon", [1, 2, 3, 17, 64])
def test_a_toeplitz_strategy_is_charged_for_its_worst_window(horizon: int) -> None:
    strategy = sqrt_coefficients(horizon) ** 1.3
    matrix = np.array(
        [[strategy[i - j] if i >= j else 0 for j in range(horizon)] for i in range(horizon)]
    )
    columns = np.hstack([matrix, np.zeros((horizon, 1))])
    worst = max(
        float(((columns[:, start] - columns[:, end]) ** 2).sum())
        for start, end in combinations(range(horizon + 1), 2)
    )
    noise = np.tril(np.ones((horizon, horizon))) @ np.linalg.inv(matrix)
    shape = strategy_toeplitz("made up", strategy)
    assert shape.l2sq == pytest.approx(worst)
    assert shape.squares == pytest.approx((noise**2).sum(axis=1))


def test_the_square_root_is_its_own_noise() -> None:
    plain, solved = sqrt_toeplitz(50), strategy_toeplitz("square root", sqrt_coefficients(50))
    assert plain.squares == pytest.approx(solved.squares)
    assert plain.l2sq == pytest.approx(solved.l2sq)


@pytest.mark.parametrize(
    ("horizon", "kary", "smooth", "root"),
    [(365, 24.59, 7.75, 3.746), (1024, 32.41, 8.94, 4.213), (65536, 64.95, 13.27, 6.091)],
)
def test_published_errors_are_reproduced(
    horizon: int, kary: float, smooth: float, root: float
) -> None:
    pure = best_kary(horizon, "laplace").at_epsilon(1)
    assert pure is not None
    assert pure[0] == pytest.approx(kary, rel=0.001)
    assert smooth_binary(horizon).at_rho(0.5)[0] == pytest.approx(smooth, rel=0.001)
    assert sqrt_toeplitz(horizon).at_rho(0.5)[0] == pytest.approx(root, rel=0.001)
