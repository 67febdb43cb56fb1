"""The daily job: `run`, or `ingest` and `close`, and what twice the same does."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.running import HEADER, PLAN, Desk, Outcome, retrodp, set_clock

FIRST = ("add,a,2024-01-01T08:00,ann,DE,1.5", "add,b,2024-01-01T09:00,bob,FR,2")
SECOND = ("delete,a,2024-01-02T08:00,,,", "add,c,2024-01-03T08:00,cat,PL,3")
LATER = ("add,d,2024-01-04T08:00,dan,DE,4", "add,e,2024-01-05T08:00,eve,DE,5")


def dump(path: Path) -> list[str]:
    with sqlite3.connect(path) as database:
        return list(database.iterdump())


def contents(desk: Desk) -> tuple[list[str], list[str], bytes]:
    """Everything that a second run must leave as it is."""
    export = desk.on_store("export")
    assert export.code == 0
    ledger, releases = (desk.store / name for name in ("ledger.sqlite", "releases.sqlite"))
    return dump(ledger), dump(releases), export.raw


def test_run_takes_files_in_and_closes_what_is_over(desk: Desk) -> None:
    files = desk.rows("1.csv", *FIRST), desk.rows("2.csv", *SECOND, *LATER)
    outcome = desk.run(*files)
    assert outcome.code == 0
    assert "6 rows read: 6 accepted (6 new), 0 ignored, 0 refused." in outcome.out
    assert "3 rounds closed; round 3 of 5 is the last. 2 updates wait." in outcome.out
    assert desk.published() == {1: "2", 2: "1", 3: "2"}
    assert desk.published("by_country", "other") == {1: "0", 2: "0", 3: "1"}


def test_the_same_run_again_changes_nothing(desk: Desk) -> None:
    files = desk.rows("1.csv", *FIRST), desk.rows("2.csv", *SECOND, *LATER)
    assert desk.run(*files).code == 0
    before = contents(desk)
    again = desk.run(*files)
    assert again.code == 0
    assert contents(desk) == before
    assert "4 ignored" in again.out
    assert "Ignored: 4 rows of rounds that are closed already." in again.out
    assert "0 rounds closed" in again.out


POINTS = PLAN.replace('person = "who"', "ids = false")
POINT_HEADER = "op,at,n,who,country,amount\n"


def test_the_same_run_again_changes_nothing_without_ids_either(desk: Desk) -> None:
    desk.plan.write_text(POINTS)
    rows = ("add,2024-01-01,2,ann,DE,1", "add,2024-01-04,3,bob,FR,1", "add,2024-01-05,1,bob,FR,1")
    file = desk.rows("1.csv", *rows, header=POINT_HEADER)
    assert desk.run(file).code == 0
    before = contents(desk)
    again = desk.run(file)
    assert again.code == 0
    assert contents(desk) == before
    assert "1 source left out: taken in before, and waiting for the close." in again.out


def test_waiting_copies_are_counted_once_when_their_round_closes(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.plan.write_text(POINTS)
    rows = ("add,2024-01-01,2,ann,DE,1", "add,2024-01-04,3,bob,FR,1")
    file = desk.rows("1.csv", *rows, header=POINT_HEADER)
    for moment in ("2024-01-04T12:00", "2024-01-05T12:00", "2024-01-06T12:00"):
        set_clock(monkeypatch, moment)
        assert desk.run(file).code == 0
    assert desk.published() == {1: "2", 2: "2", 3: "2", 4: "5", 5: "5"}


def test_ingest_and_close_are_run_in_two_steps(desk: Desk, ram: Path) -> None:
    files = desk.rows("1.csv", *FIRST), desk.rows("2.csv", *SECOND)
    together = desk.run(*files, json=True).document
    two = Desk.in_new(ram / "two")
    assert two.run(two.rows("none.csv"), through="2023-12-31").code == 0
    ingested = two.on_store("ingest", *files, json=True).document
    assert ingested["ingested"]["accepted"] == together["ingested"]["accepted"] == 4
    closed = two.on_store("close", json=True).document
    assert closed["rounds_closed"] == together["rounds_closed"] == 3
    assert two.published() == desk.published()


def test_an_empty_round_is_published_too(desk: Desk) -> None:
    assert desk.run(desk.rows("none.csv")).code == 0
    assert desk.published() == {1: "0", 2: "0", 3: "0"}


def test_a_dry_run_judges_the_rows_and_takes_none(desk: Desk) -> None:
    assert desk.run(desk.rows("1.csv", *FIRST)).code == 0
    before = contents(desk)
    file = desk.rows("2.csv", *LATER, "add,x,2024-01-04T08:00,ann,DE,many")
    outcome = desk.on_store("ingest", file, dry_run=True, json=True)
    assert outcome.code == 3
    assert outcome.document["dry_run"] is True
    assert outcome.document["ingested"]["accepted"] == 2
    assert outcome.document["ingested"]["refused"] == 1
    assert contents(desk) == before


def test_sources_come_by_pattern_from_standard_input_and_packed(desk: Desk) -> None:
    desk.rows("in-1.csv", FIRST[0])
    desk.rows("in-2.csv", FIRST[1])
    (desk.directory / "packed.csv.gz").write_bytes(gzip.compress(f"{HEADER}{SECOND[1]}\n".encode()))
    table = pa.Table.from_pylist(
        [{"id": "p", "at": "2024-01-03T10:00", "who": "pat", "country": "DE", "amount": 1.0}]
    )
    pq.write_table(table, desk.directory / "more.parquet")
    outcome = retrodp(
        *("run", desk.plan, desk.directory / "in-*.csv", "-", desk.directory / "packed.csv.gz"),
        *(desk.directory / "more.parquet", "--store", desk.store, "--json"),
        stdin=f"{HEADER}add,i,2024-01-02T08:00,ida,FR,1\n",
    )
    assert outcome.code == 0
    assert outcome.document["ingested"]["sources"] == 5
    assert desk.published() == {1: "2", 2: "3", 3: "5"}


def test_json_lines_on_standard_input_need_their_format(desk: Desk) -> None:
    line = b'{"id": "a", "at": "2024-01-01T08:00", "who": "ann", "country": "DE", "amount": 1}\n'
    command = ("run", desk.plan, "-", "--store", desk.store)
    assert retrodp(*command, stdin=line).code == 2
    assert retrodp(*command, "--format", "jsonl", stdin=line).code == 0
    assert desk.published() == {1: "1", 2: "1", 3: "1"}


def test_columns_that_the_plan_does_not_have_are_named(desk: Desk) -> None:
    file = desk.rows("1.csv", f"{FIRST[0]},secret", header=HEADER.replace("\n", ",phone\n"))
    outcome = desk.run(file)
    assert outcome.code == 0
    assert "Columns not in the plan, ignored: phone" in outcome.said
    assert "secret" not in outcome.said
    assert desk.on_store("ingest", file, json=True).document["ingested"]["extra_columns"] == [
        "phone"
    ]


def test_values_outside_the_bounds_are_moved_and_counted(desk: Desk) -> None:
    outcome = desk.run(desk.rows("1.csv", "add,a,2024-01-01T08:00,ann,DE,1000"))
    assert outcome.code == 0
    assert "1 value of amount was moved to a bound." in outcome.out
    assert "1000" not in outcome.out


def through(desk: Desk, date: str) -> Outcome:
    return desk.run(desk.rows("1.csv", *FIRST), through=date, json=True)


def test_through_closes_the_round_of_that_date(desk: Desk) -> None:
    outcome = through(desk, "2024-01-02")
    assert (outcome.code, outcome.document["round"]) == (0, 2)


def test_through_may_name_the_round_that_is_not_over(desk: Desk) -> None:
    outcome = through(desk, "2024-01-04")
    assert (outcome.code, outcome.document["round"]) == (0, 4)


def test_through_a_closed_round_has_nothing_to_do(desk: Desk) -> None:
    assert through(desk, "2024-01-03").code == 0
    outcome = through(desk, "2024-01-02")
    assert (outcome.code, outcome.document["rounds_closed"]) == (0, 0)


def test_through_a_date_to_come_is_refused_before_anything_is_taken(desk: Desk) -> None:
    outcome = through(desk, "2024-01-05")
    assert (outcome.code, outcome.document["code"]) == (4, "future_date")
    assert desk.on_store("status", json=True).document["waiting"] == 0


def test_through_a_date_after_the_horizon_is_refused(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock(monkeypatch, "2024-03-01T12:00")
    outcome = through(desk, "2024-02-01")
    assert (outcome.code, outcome.document["code"]) == (4, "horizon")


def test_without_through_the_calendar_decides_and_never_goes_beyond_the_horizon(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock(monkeypatch, "2024-03-01T12:00")
    outcome = desk.run(desk.rows("1.csv", *FIRST), json=True)
    assert (outcome.code, outcome.document["round"]) == (0, 5)
    again = desk.run(desk.rows("1.csv", *FIRST), json=True)
    assert (again.code, again.document["rounds_closed"]) == (0, 0)


def test_the_data_never_decide_which_rounds_are_closed(desk: Desk, ram: Path) -> None:
    other = Desk.in_new(ram / "other")
    rounds = [
        one.run(one.rows("1.csv", *rows), json=True).document["round"]
        for one, rows in ((desk, FIRST), (other, LATER))
    ]
    assert rounds == [3, 3]


@pytest.mark.parametrize("date", ["soon", "2024-13-01", ""])
def test_what_is_no_date_is_wrong_use(desk: Desk, date: str) -> None:
    outcome = through(desk, date)
    assert (outcome.code, outcome.document["code"]) == (2, "usage")


def test_one_row_is_not_several(desk: Desk) -> None:
    said = desk.run(desk.rows("1.csv", FIRST[0]), through="2024-01-01").out
    assert "1 row read: 1 accepted (1 new)" in said
    assert "1 round closed; round 1 of 5 is the last." in said
