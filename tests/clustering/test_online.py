"""The mechanism of online clusterings: blocks in parts, steps of columns, and what a consumer reads."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from retrodp.clustering.arrivals import arrival_norms
from retrodp.clustering.feed import deliveries
from retrodp.clustering.online import Memory, OnlineClusters, published_coreset
from retrodp.engine.compile import compile_plan, mechanism_of
from retrodp.engine.resolve import resolve
from retrodp.errors import HorizonExceededError, PlanError
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.contract import Seen, Stateful
from retrodp.noise.factors.binary import BinaryFactor
from retrodp.noise.factors.gathered import BlockKeys, Blocks
from retrodp.noise.key import KeyTree
from retrodp.plan.plan import Plan
from retrodp.privacy.accountant import delta_of
from retrodp.privacy.loss import GaussianNorm, PureLoss
from retrodp.statistics.grid import RADIUS
from retrodp.stream.batch import Batch
from tests.support.online import places, plan

HORIZON = 8


def made(own: Plan) -> OnlineClusters:
    (release,) = compile_plan(own, resolve(own))
    assert isinstance(release.mechanism, OnlineClusters)
    assert isinstance(release.mechanism, Stateful)
    return release.mechanism


def tree(horizon: int = HORIZON) -> KeyTree:
    return KeyTree.from_root(bytes(range(32)), b"online", horizon)


def seen(mechanism: OnlineClusters, first: int, last: int) -> Seen:
    points = [*places(first, last)]
    columns: dict[str, list[object]] = {
        "x": [x for x, _ in points],
        "y": [y for _, y in points],
    }
    batch = Batch(len(points), columns, np.ones(len(points), dtype=np.int64))
    identities = [b"%d" % number for number in range(first, last)]
    return Seen({}, mechanism.statistic.arrivals(batch, identities))


def lived(mechanism: OnlineClusters, rounds: list[tuple[int, int]]) -> list[tuple[Answer, bytes]]:
    """Answers and states of rounds in each of which some points arrive."""
    keys, state, found = tree(mechanism.gathered.horizon), mechanism.begin(), []
    for round_, (first, last) in enumerate(rounds, start=1):
        answer, state = mechanism.advance(round_, seen(mechanism, first, last), keys, state)
        found.append((answer, state))
    return found


@pytest.fixture(scope="module")
def weekly() -> OnlineClusters:
    return made(plan(epsilon=20, keys="blocks = 4"))


def test_a_block_in_parts_is_a_block(weekly: OnlineClusters) -> None:
    apart = lived(weekly, [(0, 130), (130, 400), (400, 500), (500, 600)])
    at_once = lived(weekly, [(0, 0), (0, 400), (400, 600), (0, 0)])
    assert weekly.gathered.length == 2
    assert apart[1] == at_once[1]
    assert apart[3] == at_once[3]
    assert apart[2][1] != at_once[2][1]
    assert replace(apart[2][0], round=2) == apart[1][0]


def test_the_last_step_can_be_taken_again_and_is_a_function_of_its_arguments(
    weekly: OnlineClusters,
) -> None:
    found = lived(weekly, [(0, 200), (200, 400), (400, 600), (600, 700)])
    again = weekly.advance(4, seen(weekly, 600, 700), tree(), found[2][1])
    assert again == found[3]
    late = tree().advanced(4)
    assert weekly.advance(4, seen(weekly, 600, 700), late, found[2][1]) == found[3]


def test_a_key_that_forgot_the_rounds_before_a_block_closes_it(weekly: OnlineClusters) -> None:
    """Coins and noise of block 2 are asked for in rounds 3 and 4, and derivable in both."""
    whole = lived(weekly, [(0, 200), (200, 400), (400, 500), (500, 600)])
    keys, state = tree(), weekly.begin()
    for round_, (first, last) in enumerate([(0, 200), (200, 400), (400, 500), (500, 600)], start=1):
        keys = keys.advanced(round_)
        answer, state = weekly.advance(round_, seen(weekly, first, last), keys, state)
        assert (answer, state) == whole[round_ - 1]


def test_the_horizon_ends_it(weekly: OnlineClusters) -> None:
    with pytest.raises(HorizonExceededError):
        weekly.advance(HORIZON + 1, seen(weekly, 0, 1), tree(), weekly.begin())


@pytest.mark.parametrize(("horizon", "length"), [(8, 1), (8, 3), (7, 2), (5, 5), (9, 4)])
def test_blocks_cover_the_rounds(horizon: int, length: int) -> None:
    blocks = Blocks(horizon=horizon, length=length)
    numbers = [blocks.of(round_) for round_ in range(1, horizon + 1)]
    assert numbers[0] == 1
    assert numbers[-1] == blocks.number
    assert {after - before for before, after in pairwise(numbers)} <= {0, 1}
    ends = [round_ for round_ in range(1, horizon + 1) if blocks.ends(round_)]
    assert ends == [blocks.end(block) for block in range(1, blocks.number + 1)]
    with pytest.raises(HorizonExceededError):
        blocks.of(horizon + 1)
    with pytest.raises(PlanError):
        Blocks(horizon=horizon, length=0)


def test_keys_of_blocks_are_those_of_their_last_rounds() -> None:
    keys, blocks = tree(), Blocks(horizon=8, length=3)
    own = BlockKeys(keys, blocks)
    assert own.fresh_key(release="r", purpose="coins 0", round=2) == (
        keys.fresh_key(release="r", purpose="coins 0", round=6)
    )
    node = {"release": "r", "factor": "binary", "node": (0, 2)}
    assert own.node_key(**node, last=3) == keys.node_key(**node, last=8)  # type: ignore[arg-type]
    assert own.lasting_key(release="r", purpose="p") == keys.lasting_key(release="r", purpose="p")


# What one record is charged.


def used_nodes(horizon: int) -> int:
    """Most nodes that a step up in one round moves by one each, to the horizon: by brute force."""
    factor = BinaryFactor(horizon=horizon)
    used = {node for round_ in range(1, horizon + 1) for node, _ in factor.nodes(round_)}
    return max(
        sum(index << level < round_ <= index + 1 << level for level, index in used)  # type: ignore[operator]
        for round_ in range(1, horizon + 1)
    )


@pytest.mark.parametrize("horizon", [1, 2, 5, 8, 13, 64])
def test_a_record_is_charged_for_a_step_that_lasts(horizon: int) -> None:
    assert arrival_norms(BinaryFactor(horizon=horizon)).l2_squared == used_nodes(horizon)


@pytest.mark.parametrize("records", [1, 3])
def test_the_whole_budget_is_spent_and_no_more(records: int) -> None:
    person = f'unit = "person_round"\nperson = "who"\nmax_records = {records}'
    own = plan(stream=person, texts='who = "text"', epsilon=1)
    mechanism = made(own)
    losses = mechanism.cost()
    assert 0.99e-6 < delta_of(losses, Fraction(1)) <= 1e-6
    levels = len(mechanism.sketch.box.grid.counted)
    moved = used_nodes(HORIZON) * records**2
    expected = {"cells": levels, "weights": 1, "sums": RADIUS**2, "size": 1}
    found = {
        name: loss.norm_squared
        for name, loss in zip(expected, losses, strict=True)
        if isinstance(loss, GaussianNorm)
    }
    assert found == {name: moved * squares for name, squares in expected.items()}


def test_pure_epsilon_adds_up_to_the_plans() -> None:
    mechanism = made(plan(model="pure", epsilon=2))
    losses = mechanism.cost()
    assert all(isinstance(loss, PureLoss) for loss in losses)
    assert sum(loss.epsilon for loss in losses if isinstance(loss, PureLoss)) == 2


def test_twin_charging_windows_would_have_more_noise() -> None:
    factor = BinaryFactor(horizon=64)
    assert factor.window_l2sq > arrival_norms(factor).l2_squared


# What is published.


def test_a_consumer_reads_the_coreset_that_was_published() -> None:
    own = plan(epsilon=20)
    mechanism = made(own)
    found = lived(mechanism, [(0, 300), (300, 600), (600, 900)])
    columns = mechanism.statistic.of
    read = [published_coreset(answer, columns) for answer, _ in found]
    for coreset, (_, state) in zip(read, found, strict=True):
        shown = Memory.from_bytes(state).shown
        assert coreset.points.tolist() == shown.points
        assert coreset.centres.tolist() == shown.means
        assert coreset.weights.tolist() == shown.weights
        assert coreset.births.tolist() == shown.births
        assert (coreset.block, coreset.phase) == (shown.block, shown.phase)
    delivered = [*deliveries(read)]
    sure = sum(int(one.additions.weights.sum()) for one in delivered)
    assert 600 < sure <= 950


def test_distances_are_in_units_whatever_the_steps_of_the_columns() -> None:
    """One column in hundredths, one in tenths: the same places as both in hundredths."""
    fine = plan(epsilon=400)
    text = fine.text.replace('y = { type = "number", min = -5, max = 5, step = 0.01 }', "Y", 1)
    coarse = Plan.loads(text.replace("Y", 'y = { type = "number", min = -5, max = 5, step = 0.1 }'))
    found = []
    for own, down in ((fine, 1), (coarse, 10)):
        mechanism = made(own)
        points = [(x, y // 10 * 10 // down) for x, y in places(0, 600)]
        columns: dict[str, list[object]] = {
            "x": [x for x, _ in points],
            "y": [y for _, y in points],
        }
        batch = Batch(len(points), columns, np.ones(len(points), dtype=np.int64))
        identities = [b"%d" % number for number in range(len(points))]
        begun = mechanism.statistic.arrivals(batch, identities)
        state = mechanism.begin()
        for round_ in (1, 2, 3):
            now = Seen({}, begun if round_ == 1 else {})
            answer, state = mechanism.advance(round_, now, tree(), state)
        found.append(
            {
                tuple(json.loads(one.key)): float((one.value or 0) * answer.step)
                for one in answer.figures()
                if one.key.startswith('["centre",')
            }
        )
    assert found[0].keys() == found[1].keys()
    assert max(abs(found[0][key] - found[1][key]) for key in found[0]) <= 0.1


def test_the_weights_intervals_hold() -> None:
    """Over 40 keys; a level of 95 % holds in fewer than 25 of them with probability below 1e-9."""
    own = plan(epsilon=20)
    mechanism = made(own)
    arrivals = seen(mechanism, 0, 300)
    held = []
    for key in range(40):
        keys = KeyTree.from_root(key.to_bytes(32, "big"), b"held", HORIZON)
        answer, state = mechanism.advance(1, arrivals, keys, mechanism.begin())
        bounds = next(one.bounds for one in answer.figures() if one.key.endswith('1,"weight"]'))
        held.append(bounds.low <= 300 / answer.step <= bounds.high)
        del state
    assert sum(held) >= 25


def test_a_mechanism_is_what_was_resolved() -> None:
    own = plan()
    resolved = resolve(own)
    one, two = (mechanism_of(own, own.releases[0], resolved.releases[0]) for _ in range(2))
    assert isinstance(one, OnlineClusters)
    assert one == two
    assert one.retroactive == "no"
    assert one.adaptive == "yes"
    assert one.watches
