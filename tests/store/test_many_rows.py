"""Rows are written and found many at a time, with the effect of one at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrodp.store.database import Database
from retrodp.store.survivors import in_groups
from retrodp.stream.update import Changes, Record
from tests.store.rows import arrivals, contents, new_ledger, pack, run, update


@pytest.mark.parametrize("count", [0, 1, 2, 319, 320, 321, 1000])
def test_any_number_of_rows_is_inserted_and_counted(tmp_path: Path, count: int) -> None:
    database = Database(str(tmp_path / "x.sqlite"), name="A file")
    database.execute("CREATE TABLE t(k INTEGER PRIMARY KEY, v TEXT) WITHOUT ROWID")
    rows = [(number, f"v{number}") for number in range(count)]
    assert database.inserted("t", rows) == count
    assert database.rows("SELECT k, v FROM t") == rows
    assert database.inserted("t", rows[::2], rest="ON CONFLICT DO NOTHING") == 0
    again = "ON CONFLICT DO UPDATE SET v = v || excluded.v"
    assert database.inserted("t", rows[:1] * 3, rest=again) == min(count, 1) * 3
    assert database.value("SELECT v FROM t WHERE k = 0") == ("v0" * 4 if count else None)


def test_rows_that_wait_already_are_told_from_new_ones_in_any_mixture(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    first = [update(f"{number}", at=number % 7) for number in range(500)]
    second = [update(f"{number}", at=number % 7) for number in range(300, 800)]
    assert ledger.waiting.enqueue(arrivals(1, first)) == 500
    assert ledger.waiting.enqueue(arrivals(1, [*second, *second])) == 300
    assert ledger.waiting.of_round(1) == sorted([*first, *second[200:]])


def test_survivors_are_the_same_however_they_were_put_in(tmp_path: Path) -> None:
    updates = [update(f"{number:03d}", stamp=1 + number % 3, person="al") for number in range(700)]
    one, other = new_ledger(tmp_path / "a"), new_ledger(tmp_path / "b")
    run(one, updates[::-1])
    run(other, updates[:650], updates[650:])
    assert contents(one) == contents(other)
    assert one.survivor_count() == 700


def test_records_of_more_persons_than_fit_one_statement_are_found(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    run(ledger, [update(f"{number}", person=f"p{number}") for number in range(1300)])
    asked = [f"p{number}" for number in range(0, 3000, 2)]
    found = ledger.records_of_persons([*asked, *asked])
    assert sorted(int(record.id) for record in found) == list(range(0, 1300, 2))
    assert sum(len(some) for some, _ in in_groups(asked)) == 1500


@pytest.mark.parametrize("ids", [True, False])
def test_a_person_is_mentioned_as_often_as_rows_name_her(tmp_path: Path, *, ids: bool) -> None:
    ledger = new_ledger(tmp_path, ids=ids)
    if ids:
        records = [
            Record("al", "1", 1, "al", b"\x90"),  # once, though both columns name her
            Record("al", "2", 1, None, b"\x90"),
            Record("", "3", 1, "al", b"\x90"),
            Record("", "4", 1, "all", b"\x90"),
        ]
    else:
        records = [Record("", "", 1, person, pack([person])) for person in ("al", "all")]
    ledger.apply_changes(Changes([], records, 0))
    told = ledger.mentions(persons=["b", "al", "al"])
    table, count = ("records", 3) if ids else ("multiset", 1)
    assert [(one.index, one.table, one.count) for one in told] == [
        (1, table, count),
        (2, table, count),
    ]


def test_a_total_named_as_gone_leaves_no_row_and_others_stay(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ledger.add_totals("r", {b"%d" % number: 1 for number in range(1000)})
    move = {b"%d" % number: -1 if number % 2 else 1 for number in range(1000)}
    ledger.add_totals("r", move, gone=[key for key, value in move.items() if value < 0])
    assert ledger.read_totals("r") == {b"%d" % number: 2 for number in sorted(range(0, 1000, 2))}
