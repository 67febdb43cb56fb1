"""Factors against brute force: every window is hidden, at the price that is charged for it."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import gcd
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial.distance import pdist

from retrodp.errors import HorizonExceededError, PlanError, UsageError
from retrodp.noise.factors import (
    LONGEST_HORIZON,
    BinaryFactor,
    DelannoyFactor,
    Factor,
    HaarFactor,
    best_delannoy,
    best_haar,
    factor_from_spec,
)
from retrodp.noise.factors.delannoy import least_w, reach
from retrodp.noise.key import Node

Matrix = NDArray[np.float64]
Maker = Callable[[int], Factor]

SMALL = range(1, 65)
CHOSEN = [65, 90, 100, 127, 128, 129, 150, 182, 200, 255]
CHOSEN += [256, 257, 300, 333, 365, 366, 400, 450, 511, 512]


def binary(horizon: int) -> Factor:
    return BinaryFactor(horizon=horizon)


def crowded_haar(horizon: int) -> Factor:
    """The first positions instead of the best: any strictly increasing map will do."""
    positions = tuple(range(1, horizon + 1))
    return HaarFactor(horizon=horizon, height=horizon.bit_length(), positions=positions)


def scattered_haar(horizon: int) -> Factor:
    height = horizon.bit_length() + 1
    chosen = random.Random(horizon).sample(range(1, 1 << height), horizon)
    return HaarFactor(horizon=horizon, height=height, positions=tuple(sorted(chosen)))


def tall_delannoy(horizon: int) -> Factor:
    """One level more than the best: any (w, z) with room will do."""
    z = best_delannoy(horizon).z + 1
    return DelannoyFactor(horizon=horizon, w=least_w(horizon, z), z=z)


MAKERS = [binary, best_haar, best_delannoy]
OTHERS = [crowded_haar, scattered_haar, tall_delannoy]


def weights(factor: Factor) -> tuple[csr_array, list[Node]]:
    """Weights of all nodes in all rounds, shape (horizon, nodes), and the nodes."""
    index: dict[Node, int] = {}
    rows: list[int] = []
    columns: list[int] = []
    values: list[int] = []
    for round_ in range(1, factor.horizon + 1):
        for node, weight in factor.nodes(round_):
            rows.append(round_ - 1)
            columns.append(index.setdefault(node, len(index)))
            values.append(weight)
    shape = (factor.horizon, len(index))
    return csr_array((np.array(values, dtype=float), (rows, columns)), shape=shape), list(index)


def shifts(factor: Factor, nodes: Sequence[Node], steps: Sequence[int]) -> Matrix:
    """What the identity of a node says about a step 1..horizon+1, shape (nodes, steps).

    The shift of a window is the column of its first round minus that of the round after it.
    """
    columns: dict[str, Callable[[Factor, Node, int], int]] = {
        "binary": _binary_shift,
        "haar": _haar_shift,
        "delannoy": _delannoy_shift,
    }
    shift = columns[factor.name]
    return np.array([[shift(factor, node, step) for step in steps] for node in nodes], dtype=float)


def _binary_shift(factor: Factor, node: Node, step: int) -> int:
    level, index = node
    assert isinstance(level, int)
    assert isinstance(index, int)
    return int(step <= factor.horizon and (step - 1) >> level == index)


def _haar_shift(factor: Factor, node: Node, step: int) -> int:
    assert isinstance(factor, HaarFactor)
    level, index = node
    assert isinstance(level, int)
    assert isinstance(index, int)
    end = 1 << factor.height
    position = factor.positions[step - 1] if step <= factor.horizon else end
    low, middle = index * (end >> level), (2 * index + 1) * (end >> level) // 2
    if low < position <= middle:
        return 1
    return -1 if middle < position <= low + (end >> level) else 0


def _delannoy_shift(factor: Factor, node: Node, step: int) -> int:
    side, _, low, high = node
    assert isinstance(low, int)
    assert isinstance(high, int)
    left = step <= (factor.horizon + 1) // 2
    offset = step if left else factor.horizon + 2 - step
    return int(side == ("L" if left else "R") and low < offset <= high)


def hides_every_window(factor: Factor, used: Matrix, columns: Matrix) -> bool:
    """Whether (nodes of l) . v is the denominator inside each window and 0 outside.

    By linearity: the product with the columns is the table of prefixes up to a constant a round,
    which differences of columns do not see.
    """
    steps = np.arange(1, factor.horizon + 2)
    prefixes = steps[None, :] <= steps[:-1, None]
    rest = used @ columns - factor.denominator * prefixes
    return bool((rest == rest[:, :1]).all())


def window_costs(columns: Matrix) -> tuple[Matrix, Matrix]:
    """(L1, squared L2) of the shifts of all windows."""
    if columns.shape[1] == 2:  # one window: one pair of columns
        window = columns[:, 0] - columns[:, 1]
        return np.abs(window).sum(keepdims=True), (window**2).sum(keepdims=True)
    l1 = np.asarray(pdist(columns.T, "cityblock"))
    l2sq = np.asarray(pdist(columns.T, "sqeuclidean"))
    return l1, l2sq


def dominated(factor: Factor, l1: Matrix, l2sq: Matrix) -> bool:
    """Whether all shifts, of sizes 1 and 2, are at most those of the factor's shape in order."""
    twos, ones = (l2sq - l1) / 2, 2 * l1 - l2sq
    most_twos = sum(count for shift, count in factor.window_shape if shift >= 2)
    most = sum(count for _, count in factor.window_shape)
    return bool((twos <= most_twos).all() and (twos + ones <= most).all())


def brute(make: Maker, horizon: int) -> tuple[Factor, bool, int, int]:
    """The factor; whether windows are hidden and dominated; largest L1 and squared L2."""
    factor = make(horizon)
    used, nodes = weights(factor)
    columns = shifts(factor, nodes, range(1, horizon + 2))
    l1, l2sq = window_costs(columns)
    sound = hides_every_window(factor, used.toarray(), columns) and dominated(factor, l1, l2sq)
    return factor, sound, int(l1.max()), int(l2sq.max())


@pytest.mark.parametrize("make", MAKERS + OTHERS)
def test_every_window_is_hidden_within_the_declared_sensitivities(make: Maker) -> None:
    cases = [brute(make, horizon) for horizon in SMALL]
    assert all(sound for _, sound, _, _ in cases)
    assert all(l1 <= factor.window_l1 for factor, _, l1, _ in cases)
    assert all(l2sq <= factor.window_l2sq for factor, _, _, l2sq in cases)


@pytest.mark.parametrize("horizon", CHOSEN)
@pytest.mark.parametrize("make", MAKERS)
def test_longer_horizons_hide_every_window_too(make: Maker, horizon: int) -> None:
    factor, sound, l1, l2sq = brute(make, horizon)
    assert sound
    assert l1 <= factor.window_l1
    assert l2sq <= factor.window_l2sq


@pytest.mark.sweep
@pytest.mark.parametrize("make", MAKERS)
def test_every_horizon_up_to_512_hides_every_window(make: Maker) -> None:
    cases = [brute(make, horizon) for horizon in range(1, 513)]
    assert all(sound for _, sound, _, _ in cases)
    assert all(l1 <= factor.window_l1 for factor, _, l1, _ in cases)
    assert all(l2sq <= factor.window_l2sq for factor, _, _, l2sq in cases)


def test_binary_attains_its_sensitivity_at_every_horizon() -> None:
    cases = [brute(binary, horizon) for horizon in (*SMALL, 128, 200, 255, 256, 365)]
    declared = [(factor.window_l1, factor.window_l2sq) for factor, _, _, _ in cases]
    assert [(l1, l2sq) for _, _, l1, l2sq in cases] == declared


def test_haar_attains_its_sensitivity_at_full_capacity() -> None:
    """And so does already the window of one round in the middle."""
    cases = [brute(crowded_haar, (1 << height) - 1) for height in range(1, 9)]
    declared = [(2 * height, 2 * height + 2) for height in range(1, 9)]
    assert [(l1, l2sq) for _, _, l1, l2sq in cases] == declared
    assert [(f.window_l1, f.window_l2sq) for f, _, _, _ in cases] == declared
    factor = crowded_haar(255)
    columns = shifts(factor, weights(factor)[1], [128, 129])
    window = columns[:, 0] - columns[:, 1]
    assert (window**2).sum() == 18


@pytest.mark.parametrize(("w", "z"), [(1, 1), (3, 1), (2, 2), (5, 2), (3, 3), (6, 3), (4, 4)])
def test_delannoy_attains_its_sensitivity_at_full_capacity(w: int, z: int) -> None:
    def full(horizon: int) -> Factor:
        return DelannoyFactor(horizon=horizon, w=w, z=z)

    factor, sound, l1, l2sq = brute(full, 2 * reach(w, z))
    assert sound
    assert (l1, l2sq) == (2 * z, 2 * z) == (factor.window_l1, factor.window_l2sq)
    assert factor.profile().squares.max() == w


def test_binary_charges_2h_minus_1_at_powers_of_two_from_4_on() -> None:
    charged = {1 << h: BinaryFactor(horizon=1 << h).window_l1 for h in range(21)}
    assert charged == {1: 1, 2: 2} | {1 << h: 2 * h - 1 for h in range(2, 21)}


def test_binary_keeps_the_classical_charge_for_comparison() -> None:
    assert [BinaryFactor(horizon=t).classical_l1 for t in (1, 2, 365, 1024)] == [2, 4, 20, 22]


@pytest.mark.parametrize("make", MAKERS)
def test_windows_of_4096_rounds_are_hidden(make: Maker) -> None:
    factor = make(4096)
    source = random.Random(4096)
    windows = [sorted(source.sample(range(1, 4098), 2)) for _ in range(40)]
    windows += [[1, 2], [1, 4097], [4096, 4097], [2048, 2049], [2048, 4097]]
    used, nodes = weights(factor)
    ends = np.array(windows)
    moved = shifts(factor, nodes, ends[:, 0].tolist()) - shifts(factor, nodes, ends[:, 1].tolist())
    rounds = np.arange(1, 4097)[:, None]
    inside = (ends[:, 0] <= rounds) & (rounds < ends[:, 1])
    assert (used @ moved == factor.denominator * inside).all()
    l1, l2sq = np.abs(moved).sum(axis=0), (moved**2).sum(axis=0)
    assert dominated(factor, l1, l2sq)
    assert l1.max() <= factor.window_l1
    assert l2sq.max() <= factor.window_l2sq


@pytest.mark.parametrize("horizon", [2, 3, 7, 12, 24, 126, 365])
def test_delannoy_without_the_side_in_its_nodes_would_cancel(horizon: int) -> None:
    """The naive identity (level, lo, hi): rounds l and horizon + 1 - l share all their draws."""
    factor = best_delannoy(horizon)
    used, nodes = weights(factor)
    naive: dict[Node, int] = {}
    merge = np.zeros((len(nodes), len(nodes)))
    for i, node in enumerate(nodes):
        merge[i, naive.setdefault(node[1:], len(naive))] = 1
    merged = used @ merge
    mirrored = merged + merged[::-1]
    assert (mirrored[: horizon // 2] == 0).all()
    columns = shifts(factor, nodes, range(1, horizon + 2))
    assert not hides_every_window(factor, merged, merge.T @ columns)
    assert np.linalg.matrix_rank(merged) < horizon


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("horizon", [1, 2, 3, 24, 126])
def test_the_noise_of_all_rounds_has_full_rank(make: Maker, horizon: int) -> None:
    used, _ = weights(make(horizon))
    assert np.linalg.matrix_rank(used.toarray()) == horizon


def test_a_position_map_that_is_not_monotone_hides_windows_wrongly() -> None:
    good = best_haar(10)
    used, nodes = weights(good)
    columns = shifts(good, nodes, range(1, 12))
    order = [0, 1, 3, 2, *range(4, 10)]
    swapped = np.array(good.positions)[order]
    assert hides_every_window(good, used.toarray(), columns)
    # Rounds 3 and 4 trade places; no shift of the draws hides round 3 together with round 4 only
    # at the old price, and the declared shifts hide the wrong round.
    assert not hides_every_window(good, used.toarray()[order], columns)
    with pytest.raises(PlanError, match="rise strictly"):
        HaarFactor(horizon=10, height=good.height, positions=tuple(swapped.tolist()))


@pytest.mark.parametrize("make", MAKERS + OTHERS)
def test_last_is_the_last_round_that_uses_the_node(make: Maker) -> None:
    wrong = []
    for horizon in (*SMALL, 100, 255, 256, 365):
        factor = make(horizon)
        last: dict[Node, int] = {}
        for round_ in range(1, horizon + 1):
            last.update({node: round_ for node, _ in factor.nodes(round_)})
        wrong += [(horizon, node) for node, round_ in last.items() if factor.last(node) != round_]
    assert wrong == []


@pytest.mark.parametrize(
    ("factor", "node"),
    [
        (BinaryFactor(horizon=12), (0, 1)),
        (BinaryFactor(horizon=12), (3, 1)),
        (BinaryFactor(horizon=12), (2, 2, 0)),
        (BinaryFactor(horizon=12), ("L", 0)),
        (BinaryFactor(horizon=12), (-1, 0)),
        (HaarFactor(horizon=2, height=3, positions=(3, 4)), (1, 1)),
        (HaarFactor(horizon=2, height=3, positions=(3, 4)), (3, 0)),
        (HaarFactor(horizon=2, height=3, positions=(3, 4)), (1, 2)),
        (DelannoyFactor(horizon=11, w=2, z=2), ("R", 2, 0, 12)),
        (DelannoyFactor(horizon=11, w=2, z=2), ("M", 2, 0, 4)),
        (DelannoyFactor(horizon=1, w=2, z=2), ("L", 2, 0, 4)),
        (DelannoyFactor(horizon=11, w=2, z=2), (0, 2, 0, 4)),
    ],
)
def test_a_node_that_no_round_uses_has_no_last_round(factor: Factor, node: Node) -> None:
    with pytest.raises(UsageError, match="No round"):
        factor.last(node)


@pytest.mark.parametrize(("make", "most", "mean"), [(best_haar, 8, 4), (best_delannoy, 5, 2)])
def test_few_past_rounds_stay_derivable(make: Maker, most: int, mean: float) -> None:
    """Past rounds all of whose nodes are still needed, by the time of the asking."""
    factor = make(365)
    until = [min(factor.last(node) for node, _ in factor.nodes(t)) for t in range(1, 366)]
    open_ = [sum(last >= now for last in until[: now - 1]) for now in range(1, 366)]
    assert max(open_) <= most
    assert sum(open_) <= mean * len(open_)


@pytest.mark.parametrize("make", MAKERS + OTHERS)
def test_profile_and_variance_say_what_the_nodes_say(make: Maker) -> None:
    cases = [make(horizon) for horizon in (*SMALL, 365)]
    bad = []
    for factor in cases:
        rows = [[w for _, w in factor.nodes(t)] for t in range(1, factor.horizon + 1)]
        profile = factor.profile()
        squares = [sum(w * w for w in row) for row in rows]
        agrees = (
            profile.squares.tolist() == squares
            and profile.grains.tolist() == [gcd(*row) for row in rows]
            and profile.terms >= max(map(len, rows))
            and profile.largest_weight >= max(max(map(abs, row)) for row in rows)
            and profile.spacing_sq >= max(largest_spacing(row) for row in rows)
            and [factor.unit_variance(t) for t in range(1, factor.horizon + 1)]
            == [Fraction(square, factor.denominator**2) for square in squares]
        )
        grain_of = defaultdict(set)
        for square, grain in zip(squares, profile.grains.tolist(), strict=True):
            grain_of[square].add(grain)
        bad += [] if agrees and all(len(g) == 1 for g in grain_of.values()) else [factor.horizon]
    assert bad == []


def largest_spacing(row: list[int]) -> float:
    """Of `Profile.spacing_sq`, from the definition."""

    def primitive(tail: list[int]) -> Fraction:
        return Fraction(sum(w * w for w in tail), gcd(*tail) ** 2)

    return max(
        (float(primitive(row[i:]) / primitive(row[i + 1 :])) for i in range(len(row) - 1)),
        default=0.0,
    )


def reference_haar(horizon: int, height: int) -> tuple[Fraction, list[int]]:
    """Largest variance and positions by sorting fractions, ties to the smaller position."""

    def variance(position: int) -> Fraction:
        total = Fraction(0)
        for level in range(height):
            size = 1 << height - level
            inside = position % size
            total += Fraction(min(inside, size - inside), size) ** 2
        return total

    chosen = sorted((variance(p), p) for p in range(1, 1 << height))[:horizon]
    return chosen[-1][0], sorted(p for _, p in chosen)


@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 5, 10, 13, 31, 32, 60, 117, 374])
def test_best_haar_has_the_least_error_of_all_heights(horizon: int) -> None:
    factor = best_haar(horizon)
    lowest = horizon.bit_length()
    costs = {h: reference_haar(horizon, h)[0] * (2 * h + 2) for h in range(lowest, lowest + 5)}
    assert factor.height == min(costs, key=lambda h: (costs[h], h))
    assert list(factor.positions) == reference_haar(horizon, factor.height)[1]


def test_delannoy_reach_counts_half_the_delannoy_numbers() -> None:
    table: dict[tuple[int, int], int] = {}
    for w in range(12):
        for z in range(12):
            near = [(w - 1, z), (w, z - 1), (w - 1, z - 1)]
            table[w, z] = 1 if 0 in (w, z) else sum(table[pair] for pair in near)
    assert {pair: 2 * reach(*pair) + 1 for pair in table} == table


@pytest.mark.parametrize(
    ("horizon", "pair"),
    [(1, (1, 1)), (2, (1, 1)), (365, (6, 3)), (1024, (9, 3)), (65536, (18, 4)), (1 << 20, (21, 5))],
)
def test_best_delannoy_chooses_the_published_pairs(horizon: int, pair: tuple[int, int]) -> None:
    factor = best_delannoy(horizon)
    assert (factor.w, factor.z) == pair


@pytest.mark.parametrize("horizon", [1, 2, 17, 365, 4096])
def test_best_delannoy_has_the_least_product_of_all_pairs(horizon: int) -> None:
    factor = best_delannoy(horizon)
    products = {z: least_w(horizon, z) * 4 * z * z for z in range(1, 20)}
    smaller = [least_w(horizon, z) - 1 for z in range(1, 20)]
    assert factor.w * 4 * factor.z**2 == min(products.values())
    assert all(2 * reach(w, z) < horizon for z, w in enumerate(smaller, 1))


@pytest.mark.parametrize("make", MAKERS + OTHERS)
@pytest.mark.parametrize("horizon", [1, 2, 365])
def test_a_factor_survives_json(make: Maker, horizon: int) -> None:
    factor = make(horizon)
    again = factor_from_spec(json.loads(json.dumps(factor.spec())))
    assert again == factor
    assert again.spec() == factor.spec()


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"factor": "toeplitz", "horizon": 3},
        {"factor": "binary"},
        {"factor": "binary", "horizon": "3"},
        {"factor": "binary", "horizon": True},
        {"factor": "binary", "horizon": 0},
        {"factor": "binary", "horizon": LONGEST_HORIZON + 1},
        {"factor": "binary", "horizon": 3, "w": 1},
        {"factor": "delannoy", "horizon": 3},
        {"factor": "delannoy", "horizon": 3, "w": 1, "z": 1},
        {"factor": "delannoy", "horizon": 3, "w": 1 << 21, "z": 2},
        {"factor": "haar", "horizon": 2, "height": 2},
        {"factor": "haar", "horizon": 2, "height": 2, "positions": [1]},
        {"factor": "haar", "horizon": 2, "height": 2, "positions": [2, 1]},
        {"factor": "haar", "horizon": 2, "height": 2, "positions": [1, 1]},
        {"factor": "haar", "horizon": 2, "height": 2, "positions": [0, 1]},
        {"factor": "haar", "horizon": 2, "height": 2, "positions": [1, 4]},
        {"factor": "haar", "horizon": 2, "height": 2, "positions": [1, 2.0]},
        {"factor": "haar", "horizon": 2, "height": 2, "positions": [True, 2]},
        {"factor": "haar", "horizon": 2, "height": 2, "positions": "12"},
        {"factor": "haar", "horizon": 2, "height": 40, "positions": [1, 2]},
    ],
)
def test_a_description_that_is_no_factor_is_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(PlanError):
        factor_from_spec(spec)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("round_", [0, -1, True, 1.0])
def test_rounds_outside_the_horizon_are_refused(make: Maker, round_: Any) -> None:
    with pytest.raises(PlanError, match="round must be"):
        make(12).nodes(round_)


@pytest.mark.parametrize("make", MAKERS)
def test_the_round_after_the_horizon_is_refused_and_never_wraps(make: Maker) -> None:
    with pytest.raises(HorizonExceededError):
        make(12).nodes(13)
