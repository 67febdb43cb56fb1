"""Attack 4: whoever holds the key and the publications subtracts the noise of the past."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrodp.engine.verify import openable_rounds, verify
from retrodp.errors import KeyDestroyedError
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.calibrate import choose_factor
from retrodp.mechanisms.contract import Mechanism
from retrodp.noise.key import KeyTree
from tests.support.answers import values_of
from tests.support.mechanisms import pure
from tests.support.plans import counting
from tests.support.rows import add, ingest
from tests.support.stores import ROOT, new_store, published


def opened(path: Path, tree: KeyTree, mechanism: Mechanism) -> dict[int, int]:
    """Exact counts of past rounds that a key opens."""
    found: dict[int, int] = {}
    for round_, answers in published(path).items():
        try:
            noise = mechanism.release(round_, {}, tree)
        except KeyDestroyedError:
            continue
        [noisy] = values_of(Answer.from_bytes(answers["lines"]))
        found[round_] = noisy - values_of(noise)[0]
    return found


def test_a_key_opens_the_current_round_and_few_before(ram: Path) -> None:
    plan = counting(horizon=30)
    with new_store(ram / "store", plan) as store:
        ingest(store, [add(f"id{number}", number) for number in range(1, 31)])
        store.close_through(20)
        exact = opened(ram / "store", store.key.tree, pure(store.releases[0]))
        admitted = openable_rounds(store)["lines"]
        assert verify(store).document["key"]["past_rounds_still_open"] == {"lines": admitted}
    assert exact.pop(20) == 20  # the current round stays open so that it can be verified
    assert len(exact) == admitted <= 3


@pytest.mark.parametrize(("factor", "most"), [("haar", 5), ("delannoy", 1)])
def test_at_round_300_of_365_hardly_any_past_round_is_open(factor: str, most: int) -> None:
    made = choose_factor(factor, horizon=365, law="gaussian")
    still = [
        round_
        for round_ in range(1, 300)
        if all(made.last(node) >= 300 for node, _ in made.nodes(round_))
    ]
    assert len(still) <= most


def test_after_the_last_round_and_a_forget_nothing_can_be_opened(ram: Path) -> None:
    with new_store(ram / "store", counting()) as store:
        ingest(store, [add("a", 1)])
        store.close_through(6)
        store.forget(["a"])
        assert opened(ram / "store", store.key.tree, pure(store.releases[0])) == {}


def test_twin_a_fixed_root_opens_every_round_for_ever(ram: Path) -> None:
    with new_store(ram / "store", counting()) as store:
        ingest(store, [add(f"id{number}", number) for number in range(1, 7)])
        store.close_through(6)
        kept = KeyTree.from_root(ROOT, b"test-fixed", 6)
        exact = opened(ram / "store", kept, pure(store.releases[0]))
    assert exact == {round_: round_ for round_ in range(1, 7)}
