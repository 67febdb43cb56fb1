"""What every mechanism promises, for those that count different values and forget completely."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import FrozenInstanceError, replace
from functools import cache

import pytest

from retrodp.engine.compile import CompiledRelease, compile_plan, keyed
from retrodp.engine.resolve import resolve
from retrodp.errors import KeyDestroyedError
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.contract import Mechanism
from retrodp.noise.key import KeyTree
from tests.contracts.mechanisms import Recording
from tests.statistics.test_items import batch
from tests.support.plans import HORIZON, MODELS, Kind, Model, plan

METHODS = ("fresh", "ladder", "minhash", "signed")
TREE = KeyTree.from_root(bytes(range(32)), b"distinct", HORIZON)
VALUES = [f"p{number % 40}" for number in range(300)]

every = pytest.mark.parametrize(
    ("method", "model", "kind"),
    [
        (method, model, kind)
        for method in METHODS
        for model in MODELS
        for kind in ("ids", "persons")
    ],
)


@cache
def released(method: str, model: Model, kind: Kind, name: str = "r") -> CompiledRelease:
    text = f'[release.{name}]\nkind = "distinct"\nof = "product"\nmethod = "{method}"\n'
    made = plan(kind, model, releases=text + "expect = [1, 100]\n", epsilon=1)
    (release,) = keyed(compile_plan(made, resolve(made)), TREE)
    return release


def mechanism(release: CompiledRelease) -> Mechanism:
    found = release.mechanism
    assert not hasattr(found, "advance")
    return found


@every
def test_a_round_is_a_pure_function_of_totals_and_key(
    method: str, model: Model, kind: Kind
) -> None:
    release = released(method, model, kind)
    totals = release.statistic.encode(batch(VALUES))
    one = mechanism(release)
    first = one.release(3, totals, TREE).to_bytes()
    one.release(5, {}, TREE)
    another = pickle.loads(pickle.dumps(one))
    backwards = dict(reversed(totals.items()))
    assert copy.deepcopy(one).release(3, totals, TREE).to_bytes() == first
    assert another.release(3, backwards, TREE).to_bytes() == first
    assert Answer.from_bytes(first).to_bytes() == first
    with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
        one.seen = 1  # type: ignore[attr-defined]


@every
def test_noise_is_asked_for_by_public_labels_alone(method: str, model: Model, kind: Kind) -> None:
    release = released(method, model, kind)
    empty, full = Recording(TREE), Recording(TREE)
    mechanism(release).release(2, {}, empty)
    mechanism(release).release(2, release.statistic.encode(batch(VALUES)), full)
    assert empty.labels == full.labels != set()


@every
def test_releases_of_equal_shape_share_no_noise(method: str, model: Model, kind: Kind) -> None:
    one, two = (mechanism(released(method, model, kind, name)) for name in ("r", "s"))
    own, other = Recording(TREE), Recording(TREE)
    one.release(2, {}, own)
    two.release(2, {}, other)
    assert own.labels & other.labels == set()


@every
def test_past_rounds_cannot_be_made_again(method: str, model: Model, kind: Kind) -> None:
    one = mechanism(released(method, model, kind))
    with pytest.raises(KeyDestroyedError):
        one.release(HORIZON, {}, TREE.destroyed())


@every
def test_facts_are_public_and_complete(method: str, model: Model, kind: Kind) -> None:
    facts = mechanism(released(method, model, kind)).describe()
    assert json.loads(json.dumps(facts)) == facts
    assert facts["method"] == method
    assert facts["error_max"] <= facts["error_all_max"]
    assert ("tau" in facts) == (method != "fresh")


def test_twin_a_mechanism_that_keeps_a_tally_is_noticed() -> None:
    tally: list[int] = []

    class Remembering:
        def release(self, round_: int, exact: dict[bytes, int], keys: KeyTree) -> Answer:
            tally.append(len(exact))
            answer = mechanism(released("fresh", "zcdp", "ids")).release(round_, exact, keys)
            return replace(answer, values=(max(tally),))

    one = Remembering()
    first = one.release(3, {b"a": 1}, TREE).to_bytes()
    one.release(5, {b"a": 1, b"b": 1}, TREE)
    assert one.release(3, {b"a": 1}, TREE).to_bytes() != first
