"""The packs of the survivors follow from the survivors, whatever was changed on the way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrodp.errors import StoreCorruptError
from retrodp.store import cuts
from retrodp.store.ledger import Ledger
from retrodp.stream.queued import Updates
from retrodp.stream.update import Changes, Record
from tests.store.rows import new_ledger, pack
from tests.support.stores import memory_directory
from tests.support.uniting import few

NAMES = [f"n{number:02}" for number in range(60)]


def record(name: str, stamp: int, space: str = "") -> Record:
    return Record(space, name, stamp, f"p{len(name)}", pack([name[-1], stamp, None]))


def tables(ledger: Ledger) -> list[object]:
    names = ledger._database.rows("SELECT * FROM names ORDER BY space, id")
    return [*ledger._database.rows("SELECT * FROM packs ORDER BY stamp, space, id"), *names]


@pytest.fixture(autouse=True)
def small_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some four lives a pack, so that few lives meet many borders."""
    monkeypatch.setattr(cuts, "_SHIFT", np.uint32(30))


@few(40)
@given(
    steps=st.lists(
        st.lists(st.tuples(st.sampled_from(NAMES), st.integers(1, 2)), max_size=25), max_size=6
    ),
    size=st.integers(1, 9),
)
def test_any_way_to_the_same_lives_leaves_the_same_rows(
    steps: list[list[tuple[str, int]]], size: int
) -> None:
    with memory_directory() as directory:
        ledger = new_ledger(directory / "one")
        lives: dict[str, Record] = {}
        for step in steps:  # each name of a step begins or, if it runs, ends
            named = dict(step)
            ended = [lives.pop(name) for name in named if name in lives]
            gone = {one.id for one in ended}
            begun = [record(name, stamp) for name, stamp in named.items() if name not in gone]
            lives.update((one.id, one) for one in begun)
            ledger.apply_changes(Changes(ended, begun, 0))
        expected = sorted(lives.values(), key=lambda one: (one.stamp, one.id))
        assert [one for batch in ledger.survivors(size) for one in batch] == expected
        assert ledger.survivor_count() == len(expected)
        assert ledger.running([("", name) for name in NAMES]) == {
            ("", name): one for name, one in lives.items()
        }
        straight = new_ledger(directory / "two")
        additions = Updates.of_records(expected[::-1]).in_order()
        assert straight.begin_all(additions) is additions
        assert tables(ledger) == tables(straight)


@pytest.mark.parametrize("stamp", [1, 2])
def test_lives_that_run_keep_their_own_additions_out(tmp_path: Path, stamp: int) -> None:
    running, others = NAMES[::7], [name for name in NAMES if name not in NAMES[::7]]
    ledger, straight = new_ledger(tmp_path / "one"), new_ledger(tmp_path / "two")
    for one in (ledger, straight):
        one.apply_changes(Changes([], [record(name, 1) for name in running], 0))
    begun = ledger.begin_all(Updates.of_records([record(name, stamp) for name in sorted(NAMES)]))
    assert begun.id == sorted(others)
    straight.apply_changes(Changes([], [record(name, stamp) for name in others], 0))
    assert tables(ledger) == tables(straight)


def test_a_name_without_its_life_is_damage(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ledger.apply_changes(Changes([], [record(name, 1) for name in NAMES], 0))
    ledger._database.execute("INSERT INTO names VALUES ('', 'n99', 1)")
    with pytest.raises(StoreCorruptError):
        ledger.begin_all(Updates.of_records([record("n99", 2)]))


@pytest.mark.parametrize(
    "wrong",
    [
        record("n99", 1),
        record("n05", 2),
        record("n05", 1)._replace(person="else"),
        record("n05", 1)._replace(payload=pack(["else", 1, None])),
    ],
)
def test_who_ends_what_is_not_there_as_given_changes_nothing(tmp_path: Path, wrong: Record) -> None:
    ledger = new_ledger(tmp_path)
    ledger.apply_changes(Changes([], [record(name, 1) for name in NAMES], 0))
    before = tables(ledger)
    with pytest.raises(StoreCorruptError):
        ledger.apply_changes(Changes([record("n01", 1), wrong], [], 0))
    assert tables(ledger) == before


@pytest.mark.parametrize("odd", ["nul\0nul", 'quote"', "back\\slash", "𝔸", "ü\x1f"])
def test_a_name_of_any_characters_is_found_again(tmp_path: Path, odd: str) -> None:
    ledger = new_ledger(tmp_path)
    lives = [record(name, 1) for name in [*NAMES, odd]]
    assert len(ledger.begin_all(Updates.of_records(lives).in_order())) == len(lives)
    asked = [("", one.id) for one in lives]
    assert ledger.running(asked).keys() == set(asked)
    assert ledger.records_of_id(odd) == [record(odd, 1)]
    assert not len(ledger.begin_all(Updates.of_records([record(odd, 2)])))


def test_an_index_that_lost_a_name_is_damage(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ledger.apply_changes(Changes([], [record(name, 1) for name in NAMES], 0))
    ledger._database.execute("DELETE FROM names WHERE id = 'n07'")
    with pytest.raises(StoreCorruptError, match="damaged"):
        ledger.check_integrity()


def test_cuts_are_about_as_frequent_as_they_should_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for make in ("{:016x}", "order-{}-of-many", "{}", "é{}"):
        names = [make.format(number) for number in range(200_000)]
        # Binomial: 781 expected, standard deviation 28.
        assert 600 < cuts.cuts(names).sum() < 970
