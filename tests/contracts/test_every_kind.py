"""What every mechanism promises, for a release of every kind and method that the registry has.

The lists of the other contract tests are written by hand and try every factor, law and unit; this one
follows from the registry, so that nothing new escapes. Mechanisms that remember have tests of their own.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError
from functools import cache

import pytest

from retrodp.audit.coins import Seed
from retrodp.audit.compiled import COMPILED
from retrodp.audit.histories import exact_rounds
from retrodp.audit.pairs import uniting_pair
from retrodp.audit.retroactivity import EPSILON, HORIZON, Subject, subject_of
from retrodp.audit.revised import REVISED
from retrodp.audit.subjects import Filling, compiled_fillings, fillings
from retrodp.engine.compile import keyed
from retrodp.engine.states import remembering
from retrodp.errors import HorizonExceededError, PlanError
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.contract import Mechanism
from retrodp.noise.key import KeyTree
from retrodp.plan.kinds import KINDS
from tests.contracts.mechanisms import Recording

TREE = KeyTree.from_root(bytes(range(32)), b"every kind", HORIZON)
ROUNDS = range(1, HORIZON + 1)
REMEMBERING = {"distinct flippancy", "distinct recompute", "masked distinct, recompute"}
REMEMBERING |= {"online_kmeans", "online_kmedian"}


def chosen() -> dict[str, Filling]:
    """The first filling of every kind and method, every shape of a revised count, the compilers."""
    found: dict[str, Filling] = {}
    for filling in fillings():
        kind, _, rest = filling.title.partition(", ")
        if rest == "auto":
            found.setdefault(kind.partition(" by ")[0], filling)
        elif kind == "count" and rest in REVISED:
            found[filling.title] = filling
    return found | {filling.title: filling for filling in compiled_fillings()}


EVERY = chosen()
every = pytest.mark.parametrize("title", sorted(set(EVERY) - REMEMBERING))


def subject_of_many(title: str, number: int) -> Subject:
    """Compilers search for the epsilon of their coins, and find none where noise hardly matters."""
    epsilon = 1 if title in COMPILED else EPSILON
    return subject_of([EVERY[title]] * number, model="zcdp", stream="ids", epsilon=epsilon)


@cache
def subject(title: str) -> Subject:
    return subject_of_many(title, 1)


def made(title: str) -> Mechanism:
    (release,) = subject(title).compiled()
    assert not remembering([release])
    mechanism = release.mechanism
    assert not hasattr(mechanism, "advance")
    return mechanism


@cache
def totals(title: str) -> dict[bytes, int]:
    """Of the last round of a history with additions, deletions and replacements."""
    plan, releases = subject(title).plan, keyed(subject(title).compiled(), TREE)
    found: dict[bytes, int] = {}
    for number in range(20):  # of many a history the last days have nothing for a condition
        history = uniting_pair(plan, Seed("5" * 32).coins("contracts", title, number)).one
        found = found or dict(exact_rounds(plan, releases, history, TREE)[-1].totals["r0"])
    return found


def all_rounds(mechanism: Mechanism, exact: dict[bytes, int]) -> list[bytes]:
    return [mechanism.release(round_, exact, TREE).to_bytes() for round_ in ROUNDS]


def test_every_kind_is_here() -> None:
    assert {filling.table["kind"] for filling in EVERY.values()} == {
        name for name, kind in KINDS.items() if kind is not None
    }
    compiled = {title: subject(title).compiled() for title in EVERY}
    assert {title for title, releases in compiled.items() if remembering(releases)} == REMEMBERING
    # Those that watch points arrive have no total of what survives.
    assert {title for title in EVERY if not totals(title)} == {"online_kmeans", "online_kmedian"}


@every
def test_bytes_depend_on_key_plan_round_and_totals_alone(title: str) -> None:
    exact, mechanism = totals(title), made(title)
    first = all_rounds(mechanism, exact)
    backwards = [mechanism.release(r, exact, TREE).to_bytes() for r in reversed(ROUNDS)]
    other_order = dict(reversed(exact.items()))
    assert backwards[::-1] == first
    assert all_rounds(pickle.loads(pickle.dumps(mechanism)), other_order) == first
    late = TREE.advanced(5)
    assert [mechanism.release(r, exact, late).to_bytes() for r in ROUNDS[4:]] == first[4:]
    assert [Answer.from_bytes(one).to_bytes() for one in first] == first


@every
def test_keys_are_asked_for_by_public_labels_alone(title: str) -> None:
    few, many = Recording(TREE), Recording(TREE)
    made(title).release(3, {}, few)
    made(title).release(3, totals(title), many)
    assert few.labels == many.labels != set()


@every
def test_two_releases_of_one_shape_share_no_key(title: str) -> None:
    labels = []
    for release in subject_of_many(title, 2).compiled():
        asked = Recording(TREE)
        mechanism = release.mechanism
        assert not hasattr(mechanism, "advance")
        mechanism.release(3, {}, asked)
        labels.append(asked.labels)
    assert labels[0].isdisjoint(labels[1])


@every
def test_it_is_frozen_and_exactly_retroactive_and_describes_no_data(title: str) -> None:
    mechanism = made(title)
    assert mechanism.retroactive == "exact"
    assert json.loads(json.dumps(mechanism.describe()))
    with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
        mechanism.memory = {}  # type: ignore[attr-defined]
    with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
        mechanism.name = "other"  # type: ignore[misc]


@every
def test_rounds_outside_the_horizon_are_refused(title: str) -> None:
    mechanism, exact = made(title), totals(title)
    long_key = KeyTree.from_root(bytes(32), b"longer", HORIZON + 5)
    assert mechanism.release(HORIZON, exact, TREE).round == HORIZON
    for keys in (TREE, long_key):
        with pytest.raises(HorizonExceededError):
            mechanism.release(HORIZON + 1, exact, keys)
    for round_ in (0, -1, 2.0, True):
        with pytest.raises(PlanError):
            mechanism.release(round_, exact, TREE)  # type: ignore[arg-type]
