"""What every mechanism promises, for those that the sampling compiler makes of plans."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from functools import cache

import pytest

from retrodp.audit.compiled import COMPILED
from retrodp.audit.subjects import MODELS, Model, plan_of
from retrodp.engine.compile import CompiledRelease, compile_plan
from retrodp.engine.resolve import resolve
from retrodp.errors import HorizonExceededError, PlanError
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.sampled import Sampled
from retrodp.noise.key import KeyTree
from retrodp.privacy.accountant import delta_of
from retrodp.privacy.loss import pure_epsilon
from retrodp.stream.batch import Batch
from retrodp.stream.update import Record
from tests.contracts.mechanisms import Recording
from tests.stream.rows import payload

HORIZON = 8
TREE = KeyTree.from_root(bytes(range(32)), b"compiled", HORIZON)
TITLES = [title for title in COMPILED if title.startswith("sample")]
every = pytest.mark.parametrize("title", TITLES)


@cache
def made(title: str, model: Model = "zcdp") -> CompiledRelease:
    plan = plan_of({"r": COMPILED[title]}, model=model, horizon=HORIZON)
    (release,) = compile_plan(plan, resolve(plan))
    return release


def sampled(title: str, model: Model = "zcdp") -> Sampled:
    mechanism = made(title, model).mechanism
    assert isinstance(mechanism, Sampled)
    return mechanism


def exact(title: str) -> dict[bytes, int]:
    names = ["who", "product", "country", "amount", "gift", "weight"]
    records = [
        Record("", f"id{n}", 1, None, payload("w", "p", "DE", n % 40 - 8, True, n % 10))
        for n in range(3_000)
    ]
    return made(title).statistic.encode(Batch.of_records(records, names))


@every
def test_a_round_twice_gives_the_same_bytes_and_another_key_others(title: str) -> None:
    mechanism, live = sampled(title), exact(title)
    first = [mechanism.release(r, live, TREE).to_bytes() for r in range(1, HORIZON + 1)]
    assert first == [
        sampled(title).release(r, dict(reversed(live.items())), TREE).to_bytes()
        for r in range(1, HORIZON + 1)
    ]
    other = KeyTree.from_root(bytes(32), b"compiled", HORIZON)
    assert first != [mechanism.release(r, live, other).to_bytes() for r in range(1, HORIZON + 1)]


@every
def test_coins_are_labelled_by_release_and_round_and_fresh_unless_ranks_last(title: str) -> None:
    seen = Recording(TREE)
    sampled(title).release(3, exact(title), seen)
    kinds = {label[0] for label in seen.labels}
    assert {label[1] for label in seen.labels} <= {"r", "r/live"}
    assert ("lasting" in kinds) == ("persistent" in title)
    assert {label[3] for label in seen.labels if label[0] == "fresh"} == {3}


@every
def test_the_next_round_after_the_last_is_refused(title: str) -> None:
    longer = KeyTree.from_root(bytes(32), b"longer", HORIZON + 5)
    assert sampled(title).release(HORIZON, {}, TREE).round == HORIZON
    with pytest.raises(HorizonExceededError):
        sampled(title).release(HORIZON + 1, {}, longer)
    with pytest.raises(PlanError):
        sampled(title).release(0, {}, TREE)


@every
def test_an_answer_survives_its_bytes_and_lies_in_its_interval(title: str) -> None:
    answer = sampled(title).release(2, exact(title), TREE)
    assert Answer.from_bytes(answer.to_bytes()) == answer
    assert [
        figure
        for figure in answer.figures()
        if figure.value is not None and not figure.bounds.low <= figure.value <= figure.bounds.high
    ] == []


@every
@pytest.mark.parametrize("model", MODELS)
def test_the_cost_is_nearly_all_of_the_budget_and_no_more(title: str, model: Model) -> None:
    losses = sampled(title, model).cost()
    if model == "pure":
        total = pure_epsilon(losses)
        assert total is not None
        assert 0.95 < total <= 1 + 1e-9
    else:
        # With so few rounds a larger epsilon would cost far more than delta at once.
        assert delta_of(losses, 1) <= 1e-6 < delta_of(losses, 0.98)


@every
def test_a_mechanism_is_frozen_and_describes_no_data(title: str) -> None:
    mechanism, live = sampled(title), exact(title)
    said = json.dumps(mechanism.describe()) + repr(mechanism)
    assert "id2999" not in said
    assert str(sum(live.values()) * 7) not in said
    with pytest.raises((FrozenInstanceError, AttributeError)):
        mechanism.name = "other"  # type: ignore[misc]
