"""The ledger keeps survivors, what waits and totals, as a function of what survives."""

from __future__ import annotations

import itertools
import os
import random
from pathlib import Path

import pytest

from retrodp.errors import (
    CapacityError,
    DataError,
    RoundClosedError,
    StoreCorruptError,
    StoreLockedError,
    UsageError,
)
from retrodp.store.forgets import Forget
from retrodp.store.ledger import Ledger
from retrodp.stream.update import Changes, Op, Record
from tests.store.rows import arrivals, close_round, contents, new_ledger, pack, run, update

LARGEST = 2**63 - 1


def test_a_new_ledger_is_empty_and_knows_its_store(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    assert (ledger.facts.store_id, ledger.facts.fingerprint, ledger.facts.round) == ("5e", "f1", 0)
    assert (ledger.facts.ids, ledger.facts.test, ledger.facts.erase_due) == (True, True, False)
    assert (ledger.survivor_count(), ledger.waiting.count(), list(ledger.survivors())) == (0, 0, [])
    assert (ledger.forgets.waiting(), ledger.read_totals("x")) == ([], {})
    assert ledger.pending.read() is None


def test_everything_survives_closing_and_opening(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    run(ledger, [update("a", person="ann"), update("b")])
    ledger.waiting.enqueue(arrivals(2, [update("c")]))
    ledger.pending.keep(1, b"release")
    ledger.forgets.add("person", "ann")
    before = contents(ledger)
    ledger.close()
    again = Ledger.open(tmp_path / "ledger.sqlite")
    assert contents(again) == before
    assert (again.facts.round, again.waiting.count()) == (1, 1)
    assert again.pending.read() == (1, b"release")
    assert again.forgets.waiting() == [Forget(kind="person", value="ann")]


def test_files_are_for_the_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        ledger = new_ledger(tmp_path)
        run(ledger, [update("a")])
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
        ledger.erase()
    finally:
        os.umask(before)
    assert modes == {"ledger.sqlite": 0o600, "ledger.sqlite-wal": 0o600}
    assert (tmp_path / "ledger.sqlite").stat().st_mode & 0o777 == 0o600


def test_identical_rows_collapse_with_ids(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    row = update("a", person="ann")
    assert ledger.waiting.enqueue(arrivals(1, [row, row, update("b")])) == 2
    assert ledger.waiting.enqueue(arrivals(1, [update("b"), row])) == 0
    assert ledger.waiting.of_round(1) == [row, update("b")]


@pytest.mark.parametrize(
    "other",
    [
        update("a", at=11),
        update("a", op=Op.DELETE),
        update("a", op=Op.REPLACE),
        update("a", stamp=2),
        update("a", value="mug"),
        update("a", space="ann"),
        update("a", person="ann"),
        update("a", person=""),
    ],
)
def test_rows_that_differ_anywhere_both_wait(tmp_path: Path, other: object) -> None:
    ledger = new_ledger(tmp_path)
    assert isinstance(other, tuple)
    row = update("a")
    ledger.waiting.enqueue(arrivals(1, [row, other]))  # type: ignore[list-item]
    assert set(ledger.waiting.of_round(1)) == {row, other}


def test_without_ids_equal_rows_add_up(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path, ids=False)
    assert ledger.waiting.enqueue(arrivals(1, [update("", count=2), update("", count=3)])) == 2
    ledger.waiting.enqueue(arrivals(1, [update("", count=4)]))
    assert ledger.waiting.of_round(1) == [update("", count=9)]
    assert ledger.waiting.count() == 9


def test_waiting_updates_are_sorted_as_they_apply(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    rows = [
        update(identifier, at=at, op=op, value=value, space=space, person=person)
        for identifier in ("", "a", "b", "é", "z", "𝔸", "￿")
        for at in (-5, 3)
        for op in Op
        for value in ("x", "yy")
        for space in ("", "ann")
        for person in (None, "", "bob")
    ]
    random.Random(1).shuffle(rows)
    ledger.waiting.enqueue(arrivals(1, rows))
    waiting = ledger.waiting.of_round(1)
    assert [row[:6] for row in waiting] == sorted(row[:6] for row in set(rows))
    assert set(waiting) == set(rows)


def test_rows_of_a_closed_round_are_refused_whole(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    run(ledger, [update("a")])
    late = arrivals(1, [update("b")])
    with pytest.raises(RoundClosedError):
        ledger.waiting.enqueue(late)
    assert ledger.waiting.count() == 0


def test_rounds_close_one_after_the_other(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    with pytest.raises(RoundClosedError):
        ledger.facts.advance(2)
    ledger.facts.advance(1)
    with pytest.raises(RoundClosedError):
        ledger.facts.advance(1)
    assert ledger.facts.round == 1


def test_histories_that_unite_leave_equal_ledgers(tmp_path: Path) -> None:
    left, right = new_ledger(tmp_path / "left"), new_ledger(tmp_path / "right")
    kept = [update(f"k{number}", person=f"p{number % 3}") for number in range(20)]
    run(
        left,
        [*kept[:10], update("gone", person="ann"), update("old", value="mug")],
        [*kept[10:], update("gone", op=Op.DELETE, at=1), update("never", op=Op.DELETE)],
        [update("old", op=Op.REPLACE, value="new", at=2)],
    )
    run(
        right,
        [kept[number] for number in range(19, -1, -1)],
        [update("old", op=Op.ADD, value="new", at=7)],
        [update("k3", at=9), update("x"), update("x", op=Op.DELETE, at=12)],
    )
    assert contents(left) == contents(right)
    assert left.survivor_count() == 21


def test_streams_without_ids_that_unite_leave_equal_ledgers(tmp_path: Path) -> None:
    left, right = new_ledger(tmp_path / "left", ids=False), new_ledger(tmp_path / "r", ids=False)
    run(
        left,
        [update("", count=5), update("", value="mug")],
        [update("", count=3, op=Op.DELETE), update("", value="mug", op=Op.DELETE)],
    )
    run(right, [], [update("", count=1)], [update("", count=1)])
    assert contents(left) == contents(right)
    assert left.survivor_count() == 2


def test_the_counts_of_the_paper_example_come_out(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path, ids=False)
    taken = [
        [update("", value="a", stamp=1)],
        [update("", value="b", stamp=2, count=2)],
        [update("", value="b", stamp=2, op=Op.DELETE)],
        [update("", value="b", stamp=1, op=Op.DELETE)],
        [update("", value="b", stamp=2, op=Op.DELETE)],
        [update("", value="b", stamp=2, op=Op.DELETE)],
    ]
    counts = []
    for updates in taken:
        run(ledger, updates)
        counts.append(ledger.survivor_count())
    assert counts == [1, 3, 2, 2, 1, 1]


def test_survivors_come_in_order_whatever_the_batch(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    run(ledger, [update(f"{number}", space=f"{number % 3}") for number in range(50)])
    orders = [
        [(record.space, record.id) for batch in ledger.survivors(size) for record in batch]
        for size in (1, 7, 50, 1000)
    ]
    assert orders[0] == sorted(orders[0])
    assert orders == [orders[0]] * 4
    assert max(map(len, ledger.survivors(7))) == 7


def test_records_are_found_by_stamp_person_and_id(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ann, bob = update("1", space="ann", person="ann"), update("1", space="bob", person="bob")
    run(ledger, [ann, bob], [update("2", stamp=2), update("1", stamp=1)])

    def ids(records: list[Record]) -> list[tuple[str, str]]:
        return [(record.space, record.id) for record in records]

    assert ids(ledger.records_of_id("1")) == [("", "1"), ("ann", "1"), ("bob", "1")]
    assert ids(ledger.records_of_persons(["ann"])) == [("ann", "1")]
    assert ids(ledger.records_with_stamp(2)) == [("", "2")]
    assert ledger.records_of_id("3") == ledger.records_of_persons(["3"]) == []
    assert ledger.records_of_persons([""]) == []


def test_running_lives_are_those_that_the_round_names(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    run(ledger, [update("a"), update("b"), update("c", space="ann")])
    ledger.waiting.enqueue(
        arrivals(2, [update("a", op=Op.DELETE), update("c"), update("d"), update("a", at=3)])
    )
    assert list(ledger.running_for_round(2)) == [("", "a")]
    assert ledger.running_for_round(3) == {}


def test_running_points_are_those_that_the_round_names(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path, ids=False)
    run(ledger, [update("", value="a", count=3), update("", value="b")])
    ledger.waiting.enqueue(arrivals(2, [update("", value="a", op=Op.DELETE)]))
    point = (1, pack(["a", None]))
    assert ledger.running_points(2) == {point: Record("", "", *point[:1], None, point[1], 3)}
    with pytest.raises(UsageError):
        ledger.running_for_round(2)


@pytest.mark.parametrize(
    "changes",
    [
        Changes([Record("", "zz", 1, None, b"\x90")], [], 0),
        Changes([Record("", "a", 2, None, pack(["tea", None]))], [], 0),
        Changes([], [Record("", "a", 9, None, b"\x90")], 0),
        Changes([], [Record("", "n", 9, None, b"\x90")] * 2, 0),
    ],
)
def test_changes_that_do_not_fit_change_nothing(tmp_path: Path, changes: Changes) -> None:
    ledger = new_ledger(tmp_path)
    run(ledger, [update("a"), update("b")])
    before = contents(ledger)
    with pytest.raises(StoreCorruptError):
        ledger.apply_changes(changes)
    assert contents(ledger) == before


def test_more_copies_cannot_end_than_survive(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path, ids=False)
    run(ledger, [update("", count=3)])
    payload = pack(["tea", None])
    with pytest.raises(StoreCorruptError):
        ledger.apply_changes(Changes([Record("", "", 1, None, payload, 4)], [], 0))
    ledger.apply_changes(Changes([Record("", "", 1, None, payload, c) for c in (1, 2)], [], 0))
    assert contents(ledger)[0] == []  # type: ignore[index]


def test_a_total_that_returns_to_zero_leaves_no_row(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ledger.add_totals("r", {b"a": 5, b"b": -2, b"c": 0})
    ledger.add_totals("s", {b"a": 7})
    ledger.add_totals("r", {b"a": -5, b"b": 3})
    assert (ledger.read_totals("r"), ledger.read_totals("s")) == ({b"b": 1}, {b"a": 7})
    ledger.replace_totals("r", {b"z": 1, b"y": 0})
    assert (ledger.read_totals("r"), ledger.read_totals("s")) == ({b"z": 1}, {b"a": 7})


@pytest.mark.parametrize(("start", "step"), [(LARGEST, 1), (-(2**63), -1), (0, 2**63)])
def test_a_total_beyond_64_bits_is_refused_before_anything_is_kept(
    tmp_path: Path, start: int, step: int
) -> None:
    ledger = new_ledger(tmp_path)
    ledger.add_totals("r", {b"a": start})
    with pytest.raises(CapacityError), ledger.transaction():
        ledger.add_totals("r", {b"0": 1, b"a": step})
    assert ledger.read_totals("r") == ({b"a": start} if start else {})


def test_totals_at_the_64_bit_boundary_are_exact(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ledger.add_totals("r", {b"a": LARGEST - 1, b"b": -LARGEST, b"c": 2**53})
    ledger.add_totals("r", {b"a": 1, b"b": -1, b"c": 1})
    assert ledger.read_totals("r") == {b"a": LARGEST, b"b": -(2**63), b"c": 2**53 + 1}


def test_copies_beyond_64_bits_are_refused(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path, ids=False)
    ledger.waiting.enqueue(arrivals(1, [update("", count=LARGEST)]))
    with pytest.raises(CapacityError):
        ledger.waiting.enqueue(arrivals(1, [update("", value="z"), update("")]))
    assert ledger.waiting.count() == LARGEST
    close_round(ledger)
    ledger.waiting.enqueue(arrivals(2, [update("")]))
    with pytest.raises(CapacityError):
        close_round(ledger)
    assert (ledger.facts.round, ledger.survivor_count()) == (1, LARGEST)


@pytest.mark.parametrize("count", [0, -1])
def test_a_count_below_one_is_refused(tmp_path: Path, count: int) -> None:
    ledger = new_ledger(tmp_path, ids=False)
    with pytest.raises(CapacityError):
        ledger.waiting.enqueue(arrivals(1, [update("", count=count)]))


def test_text_that_is_not_unicode_is_refused_without_quoting_it(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    with pytest.raises(DataError) as caught:
        ledger.waiting.enqueue(arrivals(1, [update("ok"), update("secret\ud800")]))
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__
    assert ledger.waiting.count() == 0


def close_and_fail(ledger: Ledger) -> None:
    with ledger.transaction():
        ledger.pending.keep(2, b"x")
        ledger.forgets.add("id", "a")
        ledger.waiting.remove_round(2)
        ledger.add_totals("by_payload", {b"q": 1})
        ledger.facts.advance(2)
        raise ZeroDivisionError


def test_an_exception_rolls_everything_back(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    run(ledger, [update("a")])
    ledger.waiting.enqueue(arrivals(2, [update("b")]))
    before = contents(ledger)
    with pytest.raises(ZeroDivisionError):
        close_and_fail(ledger)
    assert contents(ledger) == before
    assert (ledger.facts.round, ledger.waiting.count(), ledger.pending.read()) == (1, 1, None)
    assert ledger.forgets.waiting() == []


def test_transactions_do_not_nest(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    with ledger.transaction(), pytest.raises(UsageError), ledger.transaction():
        pass
    with ledger.transaction():
        ledger.facts.note("x", "1")
    assert ledger.facts.read("x") == "1"


def test_forgets_are_a_set(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ledger.forgets.add("id", "7")
    ledger.forgets.add("id", "7")
    ledger.forgets.add("id", "7", space="ann")
    ledger.forgets.add("id", "7", space="")
    ledger.forgets.add("person", "ann")
    assert len(ledger.forgets.waiting()) == 4
    assert set(ledger.forgets.waiting()) == {
        Forget(kind="id", value="7"),
        Forget(kind="id", value="7", space="ann"),
        Forget(kind="id", value="7", space=""),
        Forget(kind="person", value="ann"),
    }
    assert not ledger.facts.erase_due
    ledger.forgets.clear()
    assert (ledger.forgets.waiting(), ledger.facts.erase_due) == ([], True)


def test_waiting_rows_of_an_id_or_a_person_can_be_dropped(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ledger.waiting.enqueue(
        arrivals(
            3,
            [
                update("1", space="ann", person="ann"),
                update("1", space="ann", op=Op.DELETE),
                update("1", space="bob", person="bob"),
                update("2"),
            ],
        )
    )
    assert ledger.waiting.drop_id("1", "bob") == 1
    assert ledger.waiting.drop_person("") == 0
    assert ledger.waiting.drop_person("ann") == 2
    assert ledger.waiting.of_round(3) == [update("2")]
    assert ledger.waiting.drop_id("2") == 1
    assert (ledger.waiting.rounds(), ledger.facts.erase_due) == ({}, True)


@pytest.mark.parametrize(
    ("updates", "due"),
    [
        ([], False),
        ([update("a")], False),
        ([update("never", op=Op.DELETE)], True),
        ([update("a", op=Op.REPLACE)], True),
    ],
)
def test_erasing_is_due_after_a_deletion_row_whether_or_not_it_met_anything(
    tmp_path: Path, updates: list[object], due: object
) -> None:
    ledger = new_ledger(tmp_path)
    run(ledger, updates)  # type: ignore[arg-type]
    assert ledger.facts.erase_due == due


def test_one_release_is_pending_at_most(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ledger.pending.keep(1, b"a")
    ledger.pending.keep(2, b"b")
    assert ledger.pending.read() == (2, b"b")
    ledger.pending.clear()
    assert ledger.pending.read() is None


def test_everything_can_be_forgotten_at_once(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    run(ledger, [update("a", person="ann")])
    ledger.waiting.enqueue(arrivals(2, [update("b")]))
    ledger.forget_everything()
    assert contents(ledger) == ([], {})
    assert (ledger.waiting.count(), ledger.facts.round, ledger.facts.store_id) == (0, 1, "5e")


def test_a_second_ledger_object_on_the_file_is_refused(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ledger.facts.note("x", "1")
    with pytest.raises(StoreLockedError):
        Ledger.open(tmp_path / "ledger.sqlite")


def test_a_ledger_is_never_created_over_a_file(tmp_path: Path) -> None:
    new_ledger(tmp_path).close()
    before = (tmp_path / "ledger.sqlite").read_bytes()
    with pytest.raises(UsageError):
        new_ledger(tmp_path)
    assert (tmp_path / "ledger.sqlite").read_bytes() == before


def damaged(path: Path, how: str) -> None:
    content = bytearray(path.read_bytes())
    match how:
        case "text":
            content[:] = b"id,at\n1,2\n" * 500
        case "empty":
            content.clear()
        case "cut":
            del content[len(content) // 2 :]
        case "format":
            content[60:64] = b"\x00\x00\x00\x09"
        case "other application":
            content[68:72] = b"\x00\x00\x00\x09"
        case "page":
            content[4096 * 2 : 4096 * 2 + 64] = b"\xff" * 64
    path.write_bytes(content)


@pytest.mark.parametrize("how", ["text", "empty", "cut", "format", "other application", "page"])
def test_a_damaged_or_foreign_file_is_refused(tmp_path: Path, how: str) -> None:
    ledger = new_ledger(tmp_path)
    run(ledger, [update(f"{number}") for number in range(500)])
    ledger.close()
    damaged(tmp_path / "ledger.sqlite", how)
    with pytest.raises(StoreCorruptError):
        Ledger.open(tmp_path / "ledger.sqlite")


def test_a_missing_ledger_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreCorruptError):
        Ledger.open(tmp_path / "ledger.sqlite")
    assert list(tmp_path.iterdir()) == []


def test_a_closed_ledger_says_so(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ledger.close()
    with pytest.raises(UsageError):
        ledger.survivor_count()


def test_the_order_and_batches_of_arrival_leave_no_trace(tmp_path: Path) -> None:
    rows = [update(f"{n % 7}", at=n % 3, op=Op(n % 3), value=f"{n % 2}") for n in range(40)]
    results = []
    for number, size in enumerate((1, 5, 40)):
        ledger = new_ledger(tmp_path / str(number))
        shuffled = rows[:]
        random.Random(number).shuffle(shuffled)
        for start in range(0, 40, size):
            ledger.waiting.enqueue(arrivals(1, shuffled[start : start + size]))
        close_round(ledger)
        results.append((contents(ledger), ledger.waiting.count()))
    assert all(left == right for left, right in itertools.pairwise(results))
    assert results[0][1] == 0
