"""Partial sums: the same noise as node by node, each sum worked out once."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from retrodp.errors import HorizonExceededError, PlanError
from retrodp.noise.factors import BinaryFactor, Factor, best_delannoy, best_haar
from retrodp.noise.factors.contract import PINNED
from retrodp.noise.factors.fresh import FreshFactor
from retrodp.noise.key import Node
from retrodp.noise.running import RunningSums
from tests.noise.test_factors import crowded_haar, scattered_haar, tall_delannoy

Maker = Callable[[int], Factor]
Integers = NDArray[np.int64 | np.int32]


def binary(horizon: int) -> Factor:
    return BinaryFactor(horizon=horizon)


def fresh(horizon: int) -> Factor:
    return FreshFactor(horizon=horizon, window=3)


MAKERS: list[Maker] = [binary, best_haar, best_delannoy, fresh]
MAKERS += [crowded_haar, scattered_haar, tall_delannoy]
HORIZONS = [1, 2, 3, 5, 8, 24, 31, 64, 126, 365]


def expanded(factor: Factor, round_: int) -> tuple[dict[Node, int], bool]:
    """Weights that the sums of a round add up to, and whether every mean was of even numbers."""
    sums: list[dict[Node, int]] = []
    even = True
    for partial in factor.sums(round_):
        total: dict[Node, int] = defaultdict(int)
        held = [sums[base] for base in partial.bases if base != PINNED]
        for base in held:
            for node, weight in base.items():
                even &= len(partial.bases) == 1 or weight % 2 == 0
                total[node] += weight // len(partial.bases)
        total[partial.node] += partial.weight
        sums.append(total)
    return dict(sums[-1]), even


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("horizon", HORIZONS)
def test_the_sums_of_a_round_add_up_to_its_weighted_nodes(make: Maker, horizon: int) -> None:
    factor = make(horizon)
    rounds = range(1, horizon + 1)
    assert [expanded(factor, t) for t in rounds] == [(dict(factor.nodes(t)), True) for t in rounds]


@pytest.mark.parametrize("make", MAKERS)
def test_a_sum_builds_on_earlier_sums_only(make: Maker) -> None:
    found = [
        (place, base)
        for round_ in range(1, 127)
        for place, partial in enumerate(make(126).sums(round_))
        for base in partial.bases
    ]
    assert all(PINNED <= base < place for place, base in found)


@pytest.mark.parametrize("make", [binary, best_haar, best_delannoy, fresh])
@pytest.mark.parametrize("horizon", [64, 365, 1024])
def test_all_rounds_need_little_more_than_one_sum_each(make: Maker, horizon: int) -> None:
    factor = make(horizon)
    filled, before = 0, factor.sums(1)[:0]
    for round_ in range(1, horizon + 1):
        path = factor.sums(round_)
        shared = [a == b for a, b in zip(before, path, strict=False)]
        filled += len(path) - (shared.index(False) if False in shared else len(shared))
        before = path
    assert horizon <= filled <= 1.05 * horizon


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("round_", [0, 25, -1])
def test_sums_of_a_round_outside_the_horizon_are_refused(make: Maker, round_: int) -> None:
    with pytest.raises((HorizonExceededError, PlanError)):
        make(24).sums(round_)


def draws_of(node: Node) -> Integers:
    """Three numbers that belong to a node."""
    digest = hashlib.blake2b(repr(node).encode(), digest_size=24).digest()
    return np.frombuffer(digest, dtype="<i8") >> 40


def running(factor: Factor, seen: list[Node]) -> RunningSums:
    def draw_into(row: Integers, node: Node) -> None:
        seen.append(node)
        row[:] = draws_of(node)

    return RunningSums(draw_into, np.empty((factor.profile().terms, 3), dtype=np.int64))


def weighted(factor: Factor, round_: int) -> list[int]:
    total = np.zeros(3, dtype=np.int64)
    for node, weight in factor.nodes(round_):
        total += weight * draws_of(node)
    return [int(value) for value in total]


@pytest.mark.parametrize("make", MAKERS)
@given(rounds=st.lists(st.integers(1, 37), max_size=30))
def test_rounds_in_any_order_have_the_noise_of_their_nodes(make: Maker, rounds: list[int]) -> None:
    factor = make(37)
    sums = running(factor, [])
    assert [sums.at(factor.sums(t)).tolist() for t in rounds] == [
        weighted(factor, t) for t in rounds
    ]


@pytest.mark.parametrize("make", [binary, best_haar, best_delannoy])
def test_a_round_asked_for_again_draws_nothing(make: Maker) -> None:
    factor, seen = make(37), list[Node]()
    sums = running(factor, seen)
    first = sums.at(factor.sums(20)).tolist()
    drawn = len(seen)
    assert sums.at(factor.sums(20)).tolist() == first
    assert len(seen) == drawn == len(factor.nodes(20))


@pytest.mark.parametrize("make", [binary, best_haar, best_delannoy])
@pytest.mark.parametrize("fails_at", [0, 1, 2])
def test_a_draw_that_failed_leaves_no_half_written_sum_behind(make: Maker, fails_at: int) -> None:
    factor, asked = make(37), list[Node]()
    failing = True

    def draw_into(row: Integers, node: Node) -> None:
        asked.append(node)
        row[:] = draws_of(node)
        if failing and len(asked) > len(factor.nodes(11)) + fails_at:
            row[:] = 0
            raise KeyError(node)

    sums = RunningSums(draw_into, np.empty((factor.profile().terms, 3), dtype=np.int64))
    sums.at(factor.sums(11))
    with pytest.raises(KeyError):
        [sums.at(factor.sums(round_)) for round_ in range(12, 38)]
    failing = False
    rounds = [*range(12, 38), 11]
    assert [sums.at(factor.sums(t)).tolist() for t in rounds] == [
        weighted(factor, t) for t in rounds
    ]
