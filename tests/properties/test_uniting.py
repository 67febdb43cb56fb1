"""Histories that unite give the same bytes from then on; a mechanism with memory does not."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given

from retrodp.engine.compile import CompiledRelease
from retrodp.engine.store import Store
from retrodp.mechanisms.answer import Answer
from retrodp.noise.key import NoiseKeys
from tests.support.answers import raised
from tests.support.plans import MODELS, Model, dense, plan
from tests.support.rows import add, delete
from tests.support.stores import memory_directory
from tests.support.uniting import Forget, Pair, Planting, difference, few, lived, pairs

RUN = few(15)


@pytest.mark.parametrize("model", MODELS)
@RUN
@given(pair=pairs(ids=True))
def test_uniting_streams_with_ids_publish_the_same_bytes(model: Model, pair: Pair) -> None:
    assert difference(plan("ids", model), pair) is None


@pytest.mark.parametrize("model", MODELS)
@RUN
@given(pair=pairs(ids=False))
def test_uniting_streams_of_points_publish_the_same_bytes(model: Model, pair: Pair) -> None:
    assert difference(plan("points", model), pair) is None


# A record that lived and died before the meeting, against one that never was.
PLAIN = Pair(
    meet=4,
    one=(add("a", 1), add("x", 2), delete("x", 3), add("b", 4)),
    two=(add("a", 1), add("b", 4)),
)
# The dead record was the largest value, had a bin of its own, and left by another door.
FORGOTTEN = Pair(
    meet=3,
    one=(add("a", 1), add("x", 1, who="eve", product="rare", amount=20.0), Forget(2, "id", "x")),
    two=(add("a", 1),),
)
# A retroactive insertion against a plain one.
LATE = Pair(
    meet=3,
    one=(add("a", 1),),
    two=(replace(add("a", 3), stamp=1),),
)
PAIRS = [PLAIN, FORGOTTEN, LATE]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", ["ids", "persons"])
@pytest.mark.parametrize("pair", PAIRS, ids=["plain", "forgotten", "late"])
def test_chosen_pairs_unite_under_every_unit(kind: Any, model: Model, pair: Pair) -> None:
    assert difference(plan(kind, model), pair) is None


@pytest.mark.parametrize("pair", PAIRS, ids=["plain", "forgotten", "late"])
def test_chosen_pairs_unite_under_dense_factors(pair: Pair) -> None:
    assert difference(dense(), pair) is None


def test_before_they_meet_different_histories_differ() -> None:
    """Otherwise equality after the meeting would mean nothing."""
    with memory_directory() as directory:
        one, _ = lived(directory / "one", plan(), PLAIN.one)
        two, _ = lived(directory / "two", plan(), PLAIN.two)
    assert one[1] == two[1]
    assert one[2] != two[2]


@dataclass
class _Planted:
    """A mechanism that was tampered with; stands in the place of the real one."""

    inner: Any
    seen: dict[bytes, int] = field(default_factory=dict)
    updates: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class _NoiseOfUpdates(_Planted):
    """Noise keyed by how often something changed, so that every deletion draws anew."""

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        self.updates += self.seen != dict(exact)
        self.seen = dict(exact)
        answer: Answer = self.inner.release(round_, exact, keys)
        return raised(answer, hashlib.sha256(str(self.updates).encode()).digest()[0])


class _LargestSoFar(_Planted):
    """Values that never fall: a cache of the largest."""

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        most = {label: max(total, self.seen.get(label, 0)) for label, total in exact.items()}
        self.seen |= most
        answer: Answer = self.inner.release(round_, self.seen, keys)
        return answer


class _LabelsEverSeen(_Planted):
    """Bins that stay in the list once they were there."""

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        self.seen |= dict.fromkeys(exact, 0)
        answer: Answer = self.inner.release(round_, exact, keys)
        return raised(answer, len(self.seen))


def planting(kind: type[_Planted]) -> Planting:
    def plant(store: Store) -> None:
        store._parts.compiled = tuple(
            CompiledRelease(
                statistic=release.statistic,
                mechanism=kind(release.mechanism),
                window=release.window,
            )
            for release in store.releases
        )

    return plant


@pytest.mark.parametrize("kind", [_NoiseOfUpdates, _LargestSoFar, _LabelsEverSeen])
def test_twin_a_mechanism_with_memory_is_caught(kind: type[_Planted]) -> None:
    found = [difference(plan(), pair, planting(kind)) for pair in PAIRS]
    assert any(one is not None for one in found)


def test_a_planted_mechanism_without_memory_is_not_caught() -> None:
    """The harness itself finds no fault with what it wraps."""

    class Honest(_Planted):
        def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
            answer: Answer = self.inner.release(round_, exact, keys)
            return answer

    assert difference(plan(), PLAIN, planting(Honest)) is None
