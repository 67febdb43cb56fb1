"""Counts made anew at the head of each block: how few noises, how old an answer."""

from __future__ import annotations

import itertools

import pytest

from retrodp.engine.compile import compile_plan
from retrodp.engine.resolve import resolve
from retrodp.mechanisms.contract import Seen
from retrodp.mechanisms.recompute import Recompute
from retrodp.noise.key import KeyTree
from retrodp.plan.plan import Plan

HORIZON = 50


def made(epsilon: str = "1", horizon: int = HORIZON, window: str | None = None) -> Recompute:
    table = {"kind": "distinct", "of": "who", "method": "recompute", "window": window}
    plan = Plan.from_dict(
        {
            "stream": {
                "start": "2024-01-01",
                "round": "1d",
                "horizon": horizon,
                "forgetting": "partial",
            },
            "columns": {"who": "text"},
            "privacy": {"model": "zcdp", "epsilon": epsilon, "delta": "1e-6"},
            "release": {"d": {key: value for key, value in table.items() if value}},
        }
    )
    (release,) = compile_plan(plan, resolve(plan))
    assert isinstance(release.mechanism, Recompute)
    return release.mechanism


def test_an_answer_stands_until_the_next_head() -> None:
    mechanism, keys = made(), KeyTree.from_root(bytes(32), b"blocks", HORIZON)
    block, state, values = mechanism.block, mechanism.begin(), []
    assert 1 < block < HORIZON
    for round_ in range(1, HORIZON + 1):
        totals = {b"%d" % number: 1 for number in range(1000 * round_)}
        answer, state = mechanism.advance(round_, Seen(totals, {}), keys, state)
        values.append(answer.values[0])
        assert len(state) == 8
    changes = [at for at, (a, b) in enumerate(itertools.pairwise(values), start=2) if a != b]
    assert changes == list(range(1 + block, HORIZON + 1, block))


@pytest.mark.parametrize("window", [None, "10d"])
def test_no_life_meets_more_heads_than_are_charged(window: str | None) -> None:
    mechanism = made(window=window)
    longest = HORIZON if window is None else 10
    heads = range(1, HORIZON + 1, mechanism.block)
    met = max(
        sum(begin <= head < min(begin + longest, HORIZON + 1) for head in heads)
        for begin in range(1, HORIZON + 1)
    )
    assert mechanism.factor.window_l2sq == met


def test_blocks_grow_with_the_horizon_as_jain_and_others_choose_them() -> None:
    """(T log T / rho)^(1/3), rho of the plan."""
    short, long = made(horizon=100), made(horizon=6400)
    assert long.block / short.block == pytest.approx((64 * 1.903) ** (1 / 3), rel=0.1)


def test_where_every_round_is_a_head_nothing_is_remembered() -> None:
    assert made(epsilon="1").retroactive == "no"
    generous = made(epsilon="60", horizon=6)
    assert generous.block == 1
    assert generous.retroactive == "exact"
