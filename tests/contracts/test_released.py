"""What every release of several components promises, made as a plan makes it."""

from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError

import pytest

from retrodp.engine.check import describe
from retrodp.engine.compile import compile_plan
from retrodp.engine.resolve import resolve
from retrodp.errors import HorizonExceededError, PlanError
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.contract import Mechanism
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from retrodp.privacy.accountant import delta_of
from retrodp.privacy.loss import pure_epsilon
from tests.contracts.mechanisms import Recording
from tests.contracts.released import CASES, IDS, TREE, Released
from tests.support.mechanisms import pure
from tests.support.vectors import HORIZON

every_release = pytest.mark.parametrize("case", CASES, ids=IDS)
ROUNDS = range(1, HORIZON + 1)


def all_rounds(mechanism: Mechanism, exact: dict[bytes, int]) -> list[bytes]:
    return [mechanism.release(round_, exact, TREE).to_bytes() for round_ in ROUNDS]


@every_release
def test_bytes_depend_on_key_plan_round_and_totals_alone(case: Released) -> None:
    """Not on the order of rounds or totals, on what was deleted, or on the process."""
    exact, mechanism = case.exact(), pure(case.make())
    made = all_rounds(mechanism, exact)
    backwards = [mechanism.release(r, exact, TREE).to_bytes() for r in reversed(ROUNDS)]
    gone = dict(reversed([*exact.items(), *((label + b"?", 0) for label in exact)]))
    assert backwards[::-1] == made
    assert all_rounds(pickle.loads(pickle.dumps(mechanism)), gone) == made
    assert len(set(made)) == HORIZON


@every_release
def test_a_plan_read_back_makes_the_same_bytes(case: Released) -> None:
    read = ResolvedPlan.from_json(case.resolved.to_json())
    (again,) = compile_plan(case.plan, read)
    exact = case.exact()
    assert all_rounds(pure(again), exact) == all_rounds(pure(case.make()), exact)


@every_release
def test_noise_is_asked_for_by_public_labels_alone(case: Released) -> None:
    few, many = Recording(TREE), Recording(TREE)
    mechanism = pure(case.make())
    mechanism.release(3, {}, few)
    mechanism.release(3, {label: 1000 * total for label, total in case.exact().items()}, many)
    assert few.labels == many.labels
    assert few.labels


@every_release
def test_components_share_no_node(case: Released) -> None:
    """Each asks for its own nodes: as many labels as components times nodes."""
    seen, release = Recording(TREE), case.make()
    pure(release).release(3, {}, seen)
    nodes = [label for label in seen.labels if label[0] == "node"]
    each = len(release.mechanism.factor.nodes(3))
    assert len(nodes) == each * len(release.statistic.components)


@every_release
def test_no_description_holds_an_exact_value(case: Released) -> None:
    exact = {label: total * 7_654_321 for label, total in case.exact().items() if total}
    mechanism = pure(case.make())
    said = json.dumps(mechanism.describe()) + repr(mechanism) + repr(mechanism.cost())
    assert [total for total in exact.values() if str(total) in said] == []


@every_release
def test_a_mechanism_is_frozen_and_exactly_retroactive(case: Released) -> None:
    mechanism = pure(case.make())
    assert mechanism.retroactive == "exact"
    with pytest.raises((FrozenInstanceError, AttributeError)):
        mechanism.name = "other"  # type: ignore[misc]
    with pytest.raises((AttributeError, TypeError)):
        mechanism.memory = {}  # type: ignore[attr-defined]


@every_release
def test_the_last_round_is_released_and_the_next_is_refused(case: Released) -> None:
    mechanism, longer = pure(case.make()), TREE.from_root(bytes(32), b"longer", HORIZON + 5)
    assert mechanism.release(HORIZON, {}, TREE).round == HORIZON
    with pytest.raises(HorizonExceededError):
        mechanism.release(HORIZON + 1, {}, longer)
    with pytest.raises(PlanError):
        mechanism.release(0, {}, TREE)


@every_release
def test_an_answer_survives_its_bytes_and_its_intervals_hold_its_value(case: Released) -> None:
    answer = pure(case.make()).release(3, case.exact(), TREE)
    assert Answer.from_bytes(answer.to_bytes()) == answer
    assert answer.keys == tuple(sorted(answer.keys or (), key=str.encode))
    assert len(set(answer.keys)) == len(answer) > 0
    outside = [
        figure.key
        for figure in answer.figures()
        if figure.bounds.low_all > figure.bounds.low
        or figure.bounds.high_all < figure.bounds.high
        or (
            figure.value is not None and not figure.bounds.low <= figure.value <= figure.bounds.high
        )
    ]
    assert outside == []


@every_release
def test_the_declared_cost_is_the_accountants_bill_and_nearly_all_of_the_budget(
    case: Released,
) -> None:
    statement = describe(case.plan, case.resolved)["budget"]
    losses = pure(case.make()).cost()
    if case.model == "pure":
        assert pure_epsilon(losses) == case.plan.privacy.epsilon == 1
        return
    spent = delta_of(losses, case.plan.privacy.epsilon)
    parts = statement["delta_parts"]
    assert 0.8 * parts["conversion"] < spent <= parts["conversion"]
    assert statement["delta_spent"] <= 1e-6
    if case.unit == "record":
        ((epsilon, delta),) = [(one["epsilon"], one["delta"]) for one in statement["groups"][:1]]
        assert (epsilon, delta) == (1.0, 1e-6)


@pytest.mark.parametrize("kind", ["matrix", "linear", "clipped", "cube", "open_cube", "gram"])
def test_dense_noise_serves_vectors_at_the_same_cost(kind: str) -> None:
    text = Released(kind=kind, model="zcdp", unit="record").plan.text
    text = text.replace('model = "zcdp"', 'model = "zcdp"\nforward_secrecy = false')
    read = Plan.loads(text)
    resolved = resolve(read)
    (release,) = compile_plan(read, resolved)
    assert release.mechanism.factor.name == "dense"
    parts = describe(read, resolved)["budget"]["delta_parts"]
    spent = delta_of(release.mechanism.cost(), 1)
    assert 0.8 * parts["conversion"] < spent <= parts["conversion"]
    exact = Released(kind=kind, model="zcdp", unit="record").exact()
    made = [pure(release).release(r, exact, TREE).to_bytes() for r in ROUNDS]
    assert made == [pure(release).release(r, exact, TREE).to_bytes() for r in ROUNDS]
