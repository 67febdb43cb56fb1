"""Releases that remember: what is kept of them, when it goes, and who is told."""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from retrodp.engine.check import check
from retrodp.engine.compile import CompiledRelease
from retrodp.engine.forget import Forgotten
from retrodp.engine.restore import restore_into
from retrodp.engine.store import Store
from retrodp.engine.verify import verify
from retrodp.errors import PlanError, StoreCorruptError
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.contract import Adaptive, Retroactive, Seen, Stateful
from retrodp.mechanisms.flippancy import Flips
from retrodp.noise.key import NoiseKeys
from retrodp.noise.processes import AnyFactor
from retrodp.plan.plan import Plan
from retrodp.privacy.loss import PrivacyLoss
from tests.engine.test_restore import place, real_store
from tests.support.plans import HORIZON, Kind, plan
from tests.support.rows import START, Row, add, delete, ingest
from tests.support.stores import crashed, new_store, published, read_files

BOTH = """
[release.lines]
kind = "count"
[release.buyers]
kind = "distinct"
of = "product"
method = "flippancy"
"""


def remembering(kind: Kind = "ids", *, releases: str = BOTH, horizon: int = HORIZON) -> Plan:
    text = plan(kind, releases=releases, horizon=horizon, epsilon=30).text
    return Plan.loads(text.replace("[columns]", 'forgetting = "partial"\n\n[columns]'))


def life(index: int, first: int, last: int) -> list[Row]:
    """A product that only one record has, added and deleted again."""
    own = add(f"id {index}", first, who=f"customer {index}", product=f"product {index}")
    return [own, delete(f"id {index}", last, who=f"customer {index}")]


ROWS = [*life(1, 1, 3), *life(2, 1, 6), *life(3, 2, 4), *life(4, 3, 6), *life(5, 3, 4)]


def filled(path: Path, rounds: int, rows: Sequence[Row] = ROWS, kind: Kind = "ids") -> Store:
    store = new_store(path, remembering(kind))
    ingest(store, rows)
    store.close_through(rounds)
    return store


def kept(store: Store) -> list[tuple[str, int]]:
    rows = store.ledger._database.rows("SELECT release, round FROM states ORDER BY 1, 2")
    return [(str(name), int(round_)) for name, round_ in rows]


def flips(store: Store, round_: int) -> list[int]:
    found = store.ledger.states.read("buyers", round_)
    assert found is not None
    return sorted(Flips.from_bytes(found.state).counts.tolist())


# What is kept.


def test_the_states_after_the_last_two_rounds_are_kept_and_no_more(ram: Path) -> None:
    with filled(ram / "store", 1) as store:
        assert kept(store) == [("buyers", 1)]
        store.close_through(4)
        assert kept(store) == [("buyers", 3), ("buyers", 4)]
        assert flips(store, 3) == [1, 1, 1, 1, 2]
        assert flips(store, 4) == [1, 1, 2, 2, 2]


def test_a_store_without_memory_has_no_table_of_states(ram: Path) -> None:
    with new_store(ram / "store", plan(releases='[release.lines]\nkind = "count"')) as store:
        store.close_through(2)
        assert store.ledger.states.read("lines", 2) is None
        tables = store.ledger._database.rows("SELECT name FROM sqlite_master")
    assert ("states",) not in tables


@pytest.mark.parametrize("rounds", range(1, HORIZON + 1))
def test_the_last_step_of_every_round_verifies(ram: Path, rounds: int) -> None:
    with filled(ram / "store", rounds) as store:
        verified = verify(store)
    assert verified.passed
    assert verified.document["releases_equal"] is True
    assert verified.document["keep_what_is_forgotten"] == ["buyers"]
    assert "buyers keep the influence" in verified.document["what_it_means"]


def test_a_state_that_was_tampered_with_does_not_verify(ram: Path) -> None:
    with filled(ram / "store", 4):
        pass
    connection = sqlite3.connect(ram / "store" / "ledger.sqlite")
    connection.execute(
        "UPDATE states SET state = (SELECT state FROM states WHERE round = 3) WHERE round = 4"
    )
    connection.commit()
    connection.close()
    with Store.open(ram / "store") as store:
        verified = verify(store)
    assert not verified.passed
    assert verified.document["differing_rows"] == {"buyers": []}


def test_a_missing_state_stops_the_next_close_and_changes_nothing(ram: Path) -> None:
    with filled(ram / "store", 2):
        pass
    connection = sqlite3.connect(ram / "store" / "ledger.sqlite")
    connection.execute("DELETE FROM states")
    connection.commit()
    connection.close()
    with Store.open(ram / "store") as store:
        with pytest.raises(StoreCorruptError, match="lacks the state"):
            store.close_round()
        assert store.round == 2
        assert published(ram / "store").keys() == {1, 2}


# Replay, restarts, crashes.


def answers(path: Path, rows: Sequence[Sequence[Row]], *, reopen: bool) -> dict[int, Any]:
    store = new_store(path, remembering())
    for part in rows:
        ingest(store, part)
    for _ in range(HORIZON):
        store.close_round()
        if reopen:
            store.close()
            store = Store.open(path)
    store.close()
    return published(path)


def test_batches_and_restarts_change_no_byte(ram: Path) -> None:
    one = answers(ram / "one", [ROWS], reopen=False)
    split = [[row] for row in ROWS[::-1]]
    assert answers(ram / "two", split, reopen=True) == one


def test_a_crash_between_rounds_loses_no_memory(ram: Path) -> None:
    undisturbed = answers(ram / "one", [ROWS], reopen=False)
    store = filled(ram / "two", 3)
    with crashed(store, ram / "again") as again:
        again.close_through(HORIZON)
    assert published(ram / "again") == undisturbed


def test_a_close_that_fails_leaves_the_state_of_the_round_before(
    ram: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(ram / "store", 3) as store:
        before = store.ledger.states.read("buyers", 3)
        with monkeypatch.context() as broken:
            broken.setattr(store.ledger.facts, "advance", lambda _: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                store.close_round()
        assert kept(store) == [("buyers", 2), ("buyers", 3)]
        assert store.ledger.states.read("buyers", 3) == before
        store.close_through(HORIZON)
    assert published(ram / "store") == answers(ram / "other", [ROWS], reopen=False)


def test_histories_that_unite_part_in_this_release_alone(ram: Path) -> None:
    flapping = [
        *life(1, 1, 2),
        *life(9, 1, 2),
        *(
            row
            for index in (1, 2, 3)
            for row in (
                replace(add(f"again {index}", 3, product=f"product {index}"), second=index),
                delete(f"again {index}", 4),
            )
        ),
    ]
    one = answers(ram / "one", [[*flapping, add("kept", 4)]], reopen=False)
    two = answers(ram / "two", [[add("kept", 4)]], reopen=False)
    assert [one[r]["lines"] == two[r]["lines"] for r in (4, 5, 6)] == [True] * 3
    assert all(one[r]["buyers"] != two[r]["buyers"] for r in (4, 5, 6))


# Forgetting.


def test_no_file_holds_a_forgotten_value_though_its_influence_stays(ram: Path) -> None:
    with filled(ram / "store", 2) as store:
        store.forget(["id 3"])
        store.close_round()
        # Its product flipped twice, and that is known for good.
        assert flips(store, 3).count(2) == 2
    with Store.open(ram / "store") as store:
        asked = [Forgotten("id", "id 3"), Forgotten("value", "product 3")]
        verified = verify(store, asked)
    assert verified.passed
    assert [entry["left_in"] for entry in verified.document["forgotten"]] == [[], []]
    content = b"".join(read_files(ram / "store").values())
    assert b"product 3" not in content
    assert b"product 2" in content


def test_twin_a_state_with_labels_in_clear_is_found(ram: Path) -> None:
    with filled(ram / "store", 2) as store:
        store.forget(["id 3"])
        store.close_round()
        store.ledger._database.execute(
            "UPDATE states SET state = CAST(state || 'product 3' AS BLOB) WHERE round = 3"
        )
        verified = verify(store, [Forgotten("value", "product 3")])
    (entry,) = verified.document["forgotten"]
    assert entry["left_in"] == ["ledger.sqlite, states"]
    assert not verified.passed


def test_receipts_say_which_release_keeps_the_influence(ram: Path) -> None:
    with filled(ram / "store", 2) as store:
        (receipt,) = store.forget(["id 3"])
    document = receipt.to_json()
    assert document["kept_by"] == ["buyers"]
    assert "every release but buyers" in document["what_it_means"]


@pytest.mark.parametrize("erase", [False, True])
def test_retiring_takes_out_every_state(ram: Path, erase: bool) -> None:  # noqa: FBT001
    with filled(ram / "store", 3) as store:
        store.retire(erase_ledger=erase)
        assert kept(store) == []


def test_a_forget_after_the_last_round_takes_out_every_state(ram: Path) -> None:
    with filled(ram / "store", HORIZON) as store:
        assert kept(store) == [("buyers", HORIZON - 1), ("buyers", HORIZON)]
        store.forget(["id 2"])
        assert kept(store) == []
        assert verify(store).document["releases_equal"] is None


def test_a_new_epoch_begins_anew_from_the_survivors(ram: Path) -> None:
    old = remembering()
    with real_store(ram / "old", old) as store:
        ingest(store, ROWS)
        store.close_through(3)
        assert flips(store, 3) == [1, 1, 1, 1, 2]
    start = (START + dt.timedelta(days=3)).date().isoformat()
    text = old.text.replace("start = 2024-01-01", f"start = {start}")
    restore_into(place(ram / "new"), Plan.loads(text), backup=place(ram / "old"), last_round=4)
    with Store.open(ram / "new") as store:
        assert store.round == 0
        store.close_round()
        assert set(flips(store, 1)) == {1}  # what the survivors tell, and nothing older
        assert verify(store).passed


# The plan says so.


def test_a_plan_must_say_that_it_forgets_in_part(ram: Path) -> None:
    complete = Plan.loads(remembering().text.replace('"partial"', '"complete"'))
    with pytest.raises(PlanError, match=r"release\.buyers is not retroactive") as caught:
        check(complete)
    assert 'forgetting = "partial"' in str(caught.value)
    assert 'method = "fresh"' in str(caught.value)
    with pytest.raises(PlanError):
        Store.create_for_tests(ram / "store", complete)
    assert not (ram / "store").exists()


def test_check_says_what_is_kept() -> None:
    document = check(remembering())
    assert document["retroactivity"] == {"lines": "exact", "buyers": "no"}
    assert any(note.startswith("buyers: not ") for note in document["notes"])


def test_a_plan_that_forgets_everything_is_told_that_partial_is_not_needed() -> None:
    alone = remembering(releases='[release.lines]\nkind = "count"')
    assert any("is not needed" in note for note in check(alone)["notes"])


# What begins in a round, for mechanisms that watch.


@dataclass(frozen=True)
class Newcomers:
    """Publishes, without noise, how many records of each name have begun so far: for these tests."""

    noise: CalibratedNoise

    name = "lines"
    retroactive: Retroactive = "no"
    adaptive: Adaptive = "no"
    step = Fraction(1)
    instead = "a count"
    watches = True

    @property
    def factor(self) -> AnyFactor:
        return self.noise.process.factor

    def begin(self) -> bytes:
        return b"0"

    def advance(
        self, round_: int, seen: Seen, keys: NoiseKeys, state: bytes
    ) -> tuple[Answer, bytes]:
        del keys
        total = int(state) + sum(seen.begun.values())
        return self.noise.answer(round_, None, [total]), b"%d" % total

    def cost(self) -> tuple[PrivacyLoss, ...]:
        return ()

    def describe(self) -> dict[str, Any]:
        return {}


def watching(path: Path, kind: Kind) -> Store:
    store = new_store(path, remembering(kind, releases='[release.lines]\nkind = "count"'))
    (release,) = store.releases
    mechanism = Newcomers(release.mechanism.noise)  # type: ignore[union-attr]
    assert isinstance(mechanism, Stateful)
    store._parts.compiled = (replace(release, mechanism=mechanism),)
    return store


def begun(store: Store, round_: int) -> int:
    found = store.ledger.states.read("lines", round_)
    assert found is not None
    return int(found.state)


def test_what_begins_is_seen_once_and_deletions_take_nothing_back(ram: Path) -> None:
    with watching(ram / "store", "ids") as store:
        rows = [
            add("a", 1),
            add("b", 1),
            delete("a", 2),
            add("c", 2),
            add("d", 3),
            delete("d", 3, second=5),
        ]
        ingest(store, rows)
        seen = []
        for round_ in (1, 2, 3):
            store.close_round()
            seen.append(begun(store, round_))
            assert verify(store).passed
    assert seen == [2, 3, 3]


def test_what_is_forgotten_in_its_first_round_is_never_seen(ram: Path) -> None:
    with watching(ram / "store", "ids") as store:
        store.close_round()
        ingest(store, [add("x", 2), add("y", 2)])
        store.forget(["never there"])
        store.close_round()
        assert begun(store, 2) == 2
        store.forget(["z"])
        ingest(store, [add("z", 3), add("w", 3)])
        store.close_round()
        assert begun(store, 3) == 3


def test_copies_without_ids_are_seen_by_their_number(ram: Path) -> None:
    with watching(ram / "store", "points") as store:
        ingest(store, [Row(round=1, n=2), Row(round=2, n=5), Row(op="delete", round=2, n=1)])
        store.close_through(2)
        assert begun(store, 2) == 2 + 4
        assert verify(store).passed


def test_of_what_began_nothing_is_kept_beyond_the_next_close(ram: Path) -> None:
    with watching(ram / "store", "ids") as store:
        ingest(store, [add("a", 1)])
        store.close_through(2)
        one, two = (store.ledger.states.read("lines", round_) for round_ in (1, 2))
    assert one is not None
    assert two is not None
    assert one.begun == {}
    assert two.begun == {}


def test_only_mechanisms_with_a_state_are_taken_for_such(ram: Path) -> None:
    with filled(ram / "store", 1) as store:
        found: list[CompiledRelease] = [*store.releases]
    assert [isinstance(own.mechanism, Stateful) for own in found] == [False, True]
