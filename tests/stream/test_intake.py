"""The rules of form, one claim per rule."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pandas as pd
import pyarrow as pa
import pytest

from retrodp.plan.plan import Plan
from retrodp.stream import fields
from retrodp.stream.clock import Clock
from retrodp.stream.frames import NOT_A_SCALAR
from retrodp.stream.intake import (
    AFTER_ARRIVAL,
    AFTER_HORIZON,
    BEFORE_START,
    DATE_ONLY,
    NO_REPLACE,
    ONLY_DELETES,
    Intake,
    Taken,
    Tally,
)
from retrodp.stream.rejected import RefusedRow
from retrodp.stream.sources import RawBatch, read_frame
from retrodp.stream.update import Op
from tests.stream.plans import PERSON_UNIT, intake

DEFAULTS: dict[str, object] = {
    "id": "a",
    "at": "2020-03-30T12:00:00",
    "who": "W",
    "kind": "tea",
    "amount": "1.5",
}


def batch(*rows: dict[str, object]) -> RawBatch:
    """Rows with the defaults above; a file of as many lines, header first."""
    full = [DEFAULTS | row for row in rows]
    names = dict.fromkeys(name for row in full for name in row)
    columns = {name: [row.get(name) for row in full] for name in names}
    return RawBatch(file="f", lines=range(2, len(rows) + 2), columns=columns)


def take(*rows: dict[str, object], by: Intake | None = None, first_open: int = 1) -> Taken:
    return (by or intake()).take(batch(*rows), first_open=first_open)


def refusal(*rows: dict[str, object], by: Intake | None = None) -> tuple[str, str]:
    """Field and reason of the only refusal."""
    (refused,) = take(*rows, by=by).refused
    return refused.field, refused.reason


def contents(taken: Taken) -> list[Any]:
    return [msgspec.msgpack.decode(payload) for payload in taken.arrivals.payload if payload]


def test_a_row_becomes_an_update_of_its_round() -> None:
    taken = take({})
    (update,) = taken.arrivals.queued()
    assert update == ("", "a", 1585566000_000000, 2, update.payload, 4, Op.ADD, None, 1)
    assert list(taken.arrivals.round) == [4]
    assert contents(taken) == [["W", "tea", 3]]
    assert taken.tally == Tally(read=1, accepted=1)


@pytest.mark.parametrize(
    ("op", "expected"),
    [(None, Op.ADD), ("add", Op.ADD), ("delete", Op.DELETE), ("replace", Op.REPLACE)],
)
def test_op_is_add_unless_told(op: str | None, expected: Op) -> None:
    assert list(take({"op": op}).arrivals.op) == [expected]


@pytest.mark.parametrize("op", ["", "ADD", "update", 1, True, NOT_A_SCALAR])
def test_an_unknown_op_is_refused(op: object) -> None:
    assert refusal({"op": op}) == ("op", fields.UNKNOWN_OP)


def test_ranks_follow_same_time() -> None:
    ops: list[dict[str, object]] = [{"op": "add"}, {"op": "delete"}, {"op": "replace"}]
    assert list(take(*ops).arrivals.rank) == [2, 0, 1]
    assert list(take(*ops, by=intake('same_time = "add_first"')).arrivals.rank) == [0, 2, 1]


@pytest.mark.parametrize("id_", [None, "", float("nan")])
def test_a_missing_id_is_refused(id_: object) -> None:
    assert refusal({"id": id_}) == ("id", fields.MISSING)


@pytest.mark.parametrize("id_", [True, 1.0, b"a", "\ud800", NOT_A_SCALAR])
def test_an_id_of_a_wrong_type_is_refused(id_: object) -> None:
    assert refusal({"id": id_}) == ("id", fields.NOT_AN_ID)


def test_ids_are_nfc_text_and_numbers_their_digits() -> None:
    rows: list[dict[str, object]] = [{"id": "e\u0301"}, {"id": "\u00e9"}, {"id": 7}, {"id": "7"}]
    assert take(*rows).arrivals.id == ["\u00e9", "\u00e9", "7", "7"]


def test_at_is_required_unless_the_caller_has_one() -> None:
    assert refusal({"at": None}) == ("at", fields.MISSING)
    taken = intake().take(batch({"at": None}, {}), first_open=1, default_at=1585303200_000000)
    assert list(taken.arrivals.round) == [1, 4]
    assert "at" not in intake().layout(has_default_at=True).required


@pytest.mark.parametrize(
    "at", ["yesterday", "2020-02-30T00:00:00", 5, NOT_A_SCALAR, "2020-03-30T25:00"]
)
def test_an_at_that_is_no_time_is_refused(at: object) -> None:
    field, reason = refusal({"at": at})
    assert field == "at"
    assert "ISO 8601" in reason


@pytest.mark.parametrize(
    ("at", "reason"),
    [
        ("2020-03-26T23:59:59", BEFORE_START),
        ("2020-04-06T00:00:00", AFTER_HORIZON),
        ("2020-04-05T23:00:00Z", AFTER_HORIZON),
    ],
)
def test_an_at_outside_the_horizon_is_refused(at: str, reason: str) -> None:
    assert refusal({"at": at}) == ("at", reason)


def test_the_first_and_the_last_instant_of_the_horizon_are_inside() -> None:
    rows: list[dict[str, object]] = [
        {"at": "2020-03-27T00:00:00"},
        {"at": "2020-04-05T23:59:59.999999"},
    ]
    assert list(take(*rows).arrivals.round) == [1, 10]


def test_a_closed_round_takes_nothing_and_says_so() -> None:
    taken = take({}, {"at": "2020-03-31T00:00:00"}, {"op": "delete"}, first_open=5)
    assert list(taken.arrivals.round) == [5]
    assert taken.refused == []
    assert taken.tally == Tally(read=3, accepted=1, ignored={"round_closed": 2})


def test_after_the_last_round_everything_is_closed() -> None:
    assert take({}, first_open=11).tally == Tally(read=1, ignored={"round_closed": 1})


def test_a_malformed_row_is_refused_whether_its_round_is_closed_or_not() -> None:
    row: dict[str, object] = {"amount": "much"}
    assert take(row).refused == take(row, first_open=9).refused


def test_time_gives_the_stamp() -> None:
    rows: list[dict[str, object]] = [
        {"time": "2020-03-27T10:00:00"},
        {"time": None},
        {"time": "2020-03-28", "op": "replace"},
    ]
    assert list(take(*rows).arrivals.stamp) == [1, 4, 2]


@pytest.mark.parametrize(
    ("time", "reason"), [("2020-03-31T00:00:00", AFTER_ARRIVAL), ("2020-03-01", BEFORE_START)]
)
@pytest.mark.parametrize("op", ["add", "replace"])
def test_a_time_after_the_arrival_or_before_the_start_is_refused(
    op: str, time: str, reason: str
) -> None:
    assert refusal({"op": op, "time": time}) == ("time", reason)


def test_a_time_later_on_the_day_of_arrival_is_the_same_round() -> None:
    assert list(take({"time": "2020-03-30T23:00:00"}).arrivals.stamp) == [4]


def test_a_deletion_needs_only_op_id_and_at() -> None:
    row = {"op": "delete", "time": "nonsense", "who": NOT_A_SCALAR, "amount": "much"}
    (update,) = take(row).arrivals.queued()
    assert (update.payload, update.stamp, update.person) == (b"", 0, None)


def test_a_source_of_deletions_refuses_its_additions() -> None:
    raw = RawBatch(
        file="f",
        lines=[2, 3],
        columns={"op": ["delete", "add"], "id": ["a", "b"], "at": [DEFAULTS["at"]] * 2},
    )
    taken = intake().take(raw, first_open=1)
    assert taken.arrivals.id == ["a"]
    assert taken.refused == [RefusedRow("f", 3, "who", ONLY_DELETES)]


def test_a_date_without_a_time_needs_same_time_in_the_plan() -> None:
    rows: list[dict[str, object]] = [{"at": "2020-03-30"}, {"at": date(2020, 3, 31)}]
    assert {(row.field, row.reason) for row in take(*rows).refused} == {("at", DATE_ONLY)}
    taken = take(*rows, {}, by=intake('same_time = "delete_first"'))
    assert list(taken.arrivals.round) == [4, 5, 4]
    assert taken.tally == Tally(read=3, accepted=3, date_only=2)


def test_odd_local_times_of_accepted_rows_are_counted() -> None:
    skipped = "2020-03-29T01:30:00"
    taken = take({"at": skipped}, {"at": skipped, "amount": "much"}, {"time": skipped}, {})
    assert taken.tally == Tally(read=4, accepted=3, refused=1, nonexistent=2)


def test_an_ambiguous_local_time_is_its_first_occurrence() -> None:
    taken = take({"at": "2020-10-25T01:30:00"}, by=intake(start="2020-10-24"))
    assert list(taken.arrivals.at) == [1603585800_000000]
    assert taken.tally == Tally(read=1, accepted=1, ambiguous=1)


def test_clamped_values_of_accepted_rows_are_counted_by_column() -> None:
    taken = take(
        {"amount": 99},
        {"amount": 50},
        {"amount": -9},
        {"amount": -5},
        {"amount": 99, "id": ""},
        {"amount": 3},
    )
    assert [row[2] for row in contents(taken)] == [100, 100, -10, -10, 6]
    assert taken.tally == Tally(read=6, accepted=5, refused=1, clamped={"amount": 2})


@pytest.mark.parametrize(
    "amount", [None, "", "nan", float("nan"), float("inf"), True, NOT_A_SCALAR]
)
def test_a_wrong_amount_is_refused_by_the_column_of_the_file(amount: object) -> None:
    price = "[columns.price]\ntype = 'number'\nmin = 0\nmax = 1\nstep = 1\nfrom = 'Price'"
    renamed = intake(columns=price)
    taken = take({"Price": amount}, by=renamed)
    assert [row.field for row in taken.refused] == ["Price"]


def test_one_and_true_in_one_column_are_not_confused() -> None:
    taken = take({"amount": 1}, {"amount": True}, {"amount": 1.0}, {"amount": Decimal(1)})
    assert taken.arrivals.id == ["a"] * 3
    assert [row.line for row in taken.refused] == [3]


def test_reserved_columns_may_have_other_names() -> None:
    by = intake(columns='id = { from = "Invoice" }\nat = { from = "When" }')
    assert by.layout().required == ("Invoice", "When")
    taken = take(
        {"Invoice": "z", "When": "2020-03-27T10:00:00"}, {"Invoice": None, "When": None}, by=by
    )
    assert taken.arrivals.id == ["z"]
    assert [row.field for row in taken.refused] == ["Invoice"]


def test_only_the_first_reason_against_a_row_is_told() -> None:
    taken = take({"op": "x", "id": None, "at": None, "amount": None}, {"id": None, "amount": None})
    assert [row.field for row in taken.refused] == ["op", "id"]
    assert taken.tally == Tally(read=2, refused=2)


def test_refused_rows_hold_no_value_and_no_id() -> None:
    """Attack 22: nothing of a row reaches the file of refused rows."""
    canary = "canary-7391"
    rows: list[dict[str, object]] = [
        {"op": canary, "id": canary},
        {"id": canary, "at": canary},
        {"id": canary, "time": canary},
        {"id": canary, "amount": canary, "who": canary},
    ]
    refused = take(*rows).refused
    assert len(refused) == 4
    assert canary not in repr(refused)


def test_rows_that_could_not_be_cut_are_refused_in_their_place() -> None:
    whole = batch({}, {"id": None})
    torn = RefusedRow("f", 1, "", "torn")
    raw = RawBatch(file="f", lines=whole.lines, columns=whole.columns, refused=(torn,))
    taken = intake().take(raw, first_open=1)
    assert [row.line for row in taken.refused] == [1, 3]
    assert taken.tally == Tally(read=3, accepted=1, refused=2)


def test_an_empty_batch_is_nothing() -> None:
    taken = intake().take(RawBatch(file="f", lines=[], columns={}), first_open=1)
    assert len(taken.arrivals) == 0
    assert taken.tally == Tally()


def test_a_person_column_under_the_record_unit_may_be_null() -> None:
    by = intake('person = "who"')
    taken = take({"who": None}, {}, {"op": "delete"}, by=by)
    assert taken.arrivals.person == [None, "W", None]
    assert taken.arrivals.space == ["", "", ""]


def test_under_a_person_unit_ids_live_in_the_namespace_of_the_person() -> None:
    taken = take({}, {"who": "V"}, {"op": "delete", "who": "V"}, by=intake(PERSON_UNIT))
    assert taken.arrivals.space == taken.arrivals.person == ["W", "V", "V"]


@pytest.mark.parametrize("op", ["add", "replace", "delete"])
def test_under_a_person_unit_a_row_without_a_person_is_refused(op: str) -> None:
    """Attack 10: strangers do not share one bound."""
    assert refusal({"op": op, "who": None}, by=intake(PERSON_UNIT)) == ("who", fields.MISSING)


@pytest.mark.parametrize("nobody", [None, "", float("nan")])
def test_a_row_without_a_person_is_a_person_of_its_own_where_the_plan_says_so(
    nobody: object,
) -> None:
    """Attack 10, the other way out: the namespace without a name, whose ids share no bound."""
    text = intake(PERSON_UNIT).plan.text
    plan = Plan.loads(text.replace('who = "text"', 'who = { type = "text", nullable = true }'))
    by = Intake(plan, Clock.of_stream(plan.stream))
    taken = take({"who": nobody}, {}, {"op": "delete", "who": nobody}, by=by)
    assert taken.refused == []
    assert taken.arrivals.space == ["", "W", ""]
    assert taken.arrivals.person == [None, "W", None]


def test_under_a_person_unit_every_source_names_the_person() -> None:
    assert intake(PERSON_UNIT).layout().required == ("id", "at", "who")
    assert intake(PERSON_UNIT).layout().contents == ("kind", "amount")


PAPER = intake("ids = false")


def test_without_ids_a_deletion_names_its_stamp_and_all_columns() -> None:
    rows: list[dict[str, object]] = [
        {"n": 3},
        {"op": "delete", "time": "2020-03-27"},
        {"op": "delete"},
    ]
    taken = take(*rows, by=PAPER)
    assert list(taken.arrivals.stamp) == [4, 1, 4]
    assert taken.arrivals.count == [3, 1, 1]
    assert taken.arrivals.id == ["", "", ""]
    assert contents(taken) == [["W", "tea", 3]] * 3
    assert refusal({"op": "delete", "amount": None}, by=PAPER) == ("amount", fields.MISSING)


def test_without_ids_there_is_no_replace() -> None:
    assert refusal({"op": "replace"}, by=PAPER) == ("op", NO_REPLACE)


@pytest.mark.parametrize("n", [None, 1, "1", 1.0])
def test_n_is_one_unless_told(n: object) -> None:
    assert take({"n": n}, by=PAPER).arrivals.count == [1]


@pytest.mark.parametrize("n", [0, -1, 1.5, "1.5", "", True, float("inf"), 2**40 + 1, NOT_A_SCALAR])
def test_an_n_that_counts_nothing_is_refused(n: object) -> None:
    assert refusal({"n": n}, by=PAPER) == ("n", fields.NOT_A_COUNT)


def test_without_ids_every_source_needs_all_columns() -> None:
    layout = PAPER.layout()
    assert layout.required == ("at", "who", "kind", "amount")
    assert layout.contents == ()


def test_with_ids_n_is_not_read() -> None:
    assert take({"n": 0}).arrivals.count == [1]


def test_tallies_add_up() -> None:
    one = Tally(read=2, accepted=1, ignored={"round_closed": 1}, clamped={"x": 1})
    other = Tally(read=3, refused=3, ambiguous=1, clamped={"x": 2, "y": 1})
    assert one + other == Tally(
        read=5,
        accepted=1,
        refused=3,
        ignored={"round_closed": 1},
        clamped={"x": 3, "y": 1},
        ambiguous=1,
    )


ROWS: dict[str, list[Any]] = {
    "op": ["add", "delete", "replace"],
    "id": ["a", "b", "c"],
    "at": [datetime(2020, 3, 30, 12), datetime(2020, 3, 30, 13), datetime(2020, 3, 31)],  # noqa: DTZ001
    "who": ["W", None, None],
    "kind": ["tea", None, "tin"],
    "amount": [1.5, None, 2.0],
}


@pytest.mark.parametrize(
    "frame",
    [
        pa.table(ROWS),
        pd.DataFrame(ROWS).astype({"amount": "Float64"}),
        pa.table({**ROWS, "amount": pa.array([Decimal("1.50"), None, Decimal(2)])}),
        pa.table({**ROWS, "at": pa.array(ROWS["at"], pa.timestamp("ns"))}),
        pa.table({**ROWS, "at": [str(at).replace(" ", "T") for at in ROWS["at"]]}),
        pa.table({**ROWS, "amount": ["1.5", None, "2"]}),
    ],
)
def test_however_a_value_is_written_the_update_is_the_same(frame: Any) -> None:
    by = intake()
    (raw,) = read_frame(frame, by.layout())
    assert by.take(raw, first_open=1) == by.take(
        RawBatch(file="frame", lines=[1, 2, 3], columns=dict(ROWS)), first_open=1
    )


def test_what_is_taken_does_not_depend_on_the_other_rows() -> None:
    rows: list[dict[str, object]] = [
        {"id": "1"},
        {"id": 2, "amount": "x"},
        {"id": "3", "op": "delete"},
        {"id": "\u00e9", "kind": "tin", "amount": 99},
        {"id": "5", "at": "2020-03-27T00:00:00"},
    ]
    together = take(*rows, first_open=2).arrivals
    alone = [update for row in rows for update in take(row, first_open=2).arrivals.queued()]
    assert list(together.queued()) == alone
