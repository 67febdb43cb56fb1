"""Public reports about deletions that inserted, refunded, revived or were not possible."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.plans import HORIZON, Kind, counting, plan
from tests.support.rows import Row, add, delete, ingest
from tests.support.stores import new_store, published, read_files


def releases(path: Path, rows: list[Row], *, kind: Kind = "ids") -> dict[int, dict[str, bytes]]:
    with new_store(path, plan(kind)) as store:
        ingest(store, rows)
        store.close_through(HORIZON)
    return published(path)


def test_adding_and_deleting_ten_thousand_times_refunds_and_leaves_nothing(ram: Path) -> None:
    """The same bytes as if the record had lived once, and no more of it on disk."""
    churn = []
    for number in range(10_000):
        churn.append(replace(add("a", 1 + number // 2000), second=2 * number))
        churn.append(replace(delete("a", 1 + number // 2000), second=2 * number + 1))
    sizes, spent = {}, {}
    for name, rows in (("churned", [*churn, add("a", 6)]), ("plain", [add("a", 6)])):
        with new_store(ram / name, plan()) as store:
            ingest(store, rows)
            store.close_through(HORIZON)
            spent[name] = store.resolved.budget
        sizes[name] = len(read_files(ram / name)["/ledger.sqlite"])
    assert published(ram / "churned") == published(ram / "plain")
    assert spent["churned"] == spent["plain"]
    assert sizes["churned"] <= sizes["plain"]


def test_ten_thousand_copies_of_a_point_come_and_go(ram: Path) -> None:
    rows = []
    for round_ in range(1, HORIZON):
        rows += [Row(round=round_, n=10_000)]
        rows += [Row(op="delete", round=round_ + 1, stamp=round_, n=10_000)]
    assert (
        releases(ram / "churned", rows, kind="points")[6]
        == (releases(ram / "never", [], kind="points")[6])
    )


NEVER = {
    "unknown": [delete("never", 2)],
    "double": [add("a", 1), delete("a", 2), delete("a", 2), delete("a", 3)],
    "early": [delete("a", 1), add("a", 2), delete("a", 3)],
    "early in the same round": [
        delete("a", 1),
        replace(add("a", 1), second=1),
        replace(delete("a", 1), second=2),
    ],
    "added twice": [add("a", 1), replace(add("a", 1), second=1), delete("a", 2)],
    "added twice in two rounds": [add("a", 1), add("a", 2), delete("a", 3)],
}


@pytest.mark.parametrize("name", NEVER)
def test_deletions_of_nothing_insert_nothing_and_never_go_negative(ram: Path, name: str) -> None:
    rows = NEVER[name] + [add("b", 1)]
    assert releases(ram / "store", rows)[4] == releases(ram / "plain", [add("b", 1)])[4]


def test_deletions_of_absent_copies_never_go_negative(ram: Path) -> None:
    rows = [
        Row(op="delete", round=1, stamp=1, n=5),
        Row(round=2, stamp=1),
        Row(op="delete", round=3, stamp=2),
        Row(op="delete", round=3, stamp=1, n=7),
        Row(round=4, stamp=1),
    ]
    counts = []
    with new_store(ram / "store", counting("points")) as store:
        ingest(store, rows)
        for _ in range(HORIZON):
            store.close_round()
            counts.append(store.ledger.survivor_count())
    assert counts == [0, 1, 0, 1, 1, 1]


@pytest.mark.parametrize("kind", ["ids", "persons"])
def test_a_record_of_the_first_round_can_be_deleted_in_the_last(ram: Path, kind: Kind) -> None:
    rows = [add("old", 1), add("young", HORIZON), add("other", 1)]
    with_deletion = releases(ram / "deleted", [*rows, delete("old", HORIZON)], kind=kind)
    never = releases(ram / "never", rows[1:], kind=kind)
    assert with_deletion[HORIZON] == never[HORIZON]
    assert with_deletion[HORIZON - 1] != never[HORIZON - 1]


@pytest.mark.parametrize("seed", range(5))
def test_events_delivered_one_to_three_times_in_random_order_count_once(
    ram: Path, seed: int
) -> None:
    drawn = random.Random(seed)
    events = [add(f"id{number}", 1 + number % 4, amount=number / 2) for number in range(30)]
    events += [delete(f"id{number}", 3 + number % 3) for number in range(0, 30, 4)]
    events += [Row(op="replace", id=f"id{number}", round=5) for number in range(1, 30, 6)]
    delivered = [event for event in events for _ in range(drawn.randint(1, 3))]
    drawn.shuffle(delivered)
    with new_store(ram / "many", plan()) as store:
        for begin in range(0, len(delivered), 7):
            ingest(store, delivered[begin : begin + 7])
        store.close_through(HORIZON)
    assert published(ram / "many") == releases(ram / "once", events)


def test_a_redelivered_addition_of_a_closed_round_revives_nothing(ram: Path) -> None:
    rows = [add("a", 1), delete("a", 2)]
    with new_store(ram / "store", plan()) as store:
        ingest(store, rows)
        store.close_through(2)
        again = ingest(store, rows)
        store.close_through(HORIZON)
        assert again.tally.ignored == {"round_closed": 2}
        assert store.ledger.survivor_count() == 0


def test_a_daily_total_after_a_late_deletion_is_that_of_a_rebuild(ram: Path) -> None:
    """Not the total of yesterday plus the difference of today."""
    rows = [add("a", 1), add("b", 1), add("c", 2), Row(id="d", round=3, stamp=2)]
    late = [delete("b", 4), delete("d", 5)]
    rebuilt = [add("a", 1), add("c", 2)]
    assert releases(ram / "late", rows + late)[5] == releases(ram / "rebuilt", rebuilt)[5]


def test_a_label_disappears_with_its_only_contributor(ram: Path) -> None:
    rows = [add(f"x{number}", 1, product="rare") for number in range(30)]
    gone = [delete(f"x{number}", 2) for number in range(30)]
    made = releases(ram / "store", rows + gone)
    assert b"rare" in made[1]["by_product"]
    assert b"rare" not in made[2]["by_product"]
