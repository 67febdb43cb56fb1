"""Attack 8: memory of deleted ids keeps two neighbouring streams apart for ever."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from retrodp.plan.plan import Plan
from tests.support.plans import counting
from tests.support.rows import Row, add, delete, ingest
from tests.support.stores import new_store

MEMORY = Plan.loads(
    counting(horizon=8).text.replace("[columns]", 'remember_deleted = "2d"\n[columns]')
)
LAST = 8


def survivors(path: Path, rows: list[Row], *, plan: Plan = MEMORY) -> list[list[str]]:
    """Ids that survive after each round."""
    found = []
    with new_store(path, plan) as store:
        ingest(store, rows)
        for _ in range(LAST):
            store.close_round()
            found.append(sorted(one.id for batch in store.ledger.survivors() for one in batch))
    return found


def test_a_redelivered_addition_does_not_revive_a_deleted_record(ram: Path) -> None:
    rows = [add("a", 1), delete("a", 2), add("a", 3), add("a", 7)]
    assert survivors(ram / "store", rows) == [["a"], [], [], [], [], [], ["a"], ["a"]]


def test_twin_without_memory_a_redelivery_revives(ram: Path) -> None:
    rows = [add("a", 1), delete("a", 2), add("a", 3)]
    assert survivors(ram / "store", rows, plan=counting(horizon=LAST))[2] == ["a"]


def test_a_deletion_that_met_nothing_starts_the_memory_too(ram: Path) -> None:
    """So one inserted addition changes its own life and no other, for ever."""
    later = [delete("a", 2), add("a", 3), delete("a", 4), add("a", 5), add("b", 5)]
    without = survivors(ram / "without", later)
    with_it = survivors(ram / "with", [add("a", 1), *later])
    assert with_it[0] == ["a"]
    assert without[0] == []
    assert with_it[1:] == without[1:]


@pytest.mark.parametrize("by_person", [True, False])
def test_a_forget_remembers_alike_whether_or_not_it_met_a_life(
    ram: Path,
    by_person: bool,  # noqa: FBT001  two kinds of request
) -> None:
    """So one inserted addition changes its own life and no other, for ever."""
    worlds = []
    for name, rows in (("with", [add("a", 1)]), ("without", [])):
        with new_store(ram / name, MEMORY) as store:
            ingest(store, [*rows, add("a", 3), add("a", 6)])
            found = []
            for round_ in range(1, LAST + 1):
                if round_ == 2:
                    # Only what arrives later is sent again, as the sender knows of no request.
                    store.forget([] if by_person else ["a"], persons=["ann"] if by_person else [])
                    ingest(store, [add("a", 3), add("a", 6)])
                store.close_round()
                found.append([one.id for batch in store.ledger.survivors() for one in batch])
            worlds.append(found)
    assert worlds[0][0] == ["a"]
    assert worlds[1][0] == []
    assert worlds[0][1:] == worlds[1][1:]


def test_one_inserted_deletion_moves_at_most_two_windows(ram: Path) -> None:
    """It can end one life early and let another begin or not: never more."""
    rows = [add("a", 1), add("a", 4), delete("a", 7)]
    moved = {}
    for round_ in range(1, LAST + 1):
        one = survivors(ram / f"with{round_}", [*rows, replace(delete("a", round_), second=9)])
        two = survivors(ram / f"without{round_}", rows)
        differs = [left != right for left, right in zip(one, two, strict=True)]
        starts = sum(
            now and not before for before, now in zip([False, *differs], differs, strict=False)
        )
        moved[round_] = starts
    assert max(moved.values()) <= 2
    assert any(moved.values())


@pytest.mark.parametrize("request_first", [True, False])
def test_memory_holds_no_id(ram: Path, request_first: bool) -> None:  # noqa: FBT001  two orders
    with new_store(ram / "store", MEMORY) as store:
        ingest(store, [add("a-very-secret-id", 1)])
        store.close_round()
        if request_first:
            store.forget(["a-very-secret-id"])
        else:
            ingest(store, [delete("a-very-secret-id", 2)])
        store.close_round()
        store.settle()
        files = [file for file in (ram / "store").iterdir() if file.is_file()]
        assert [file.name for file in files if b"a-very-secret-id" in file.read_bytes()] == []
