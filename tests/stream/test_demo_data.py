"""The shipped data are what their notes say, and the script makes them by its stated rules."""

from __future__ import annotations

import gzip
import runpy
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from retrodp import demo
from retrodp.plan.plan import Plan
from retrodp.stream import lives
from retrodp.stream.clock import Clock
from retrodp.stream.intake import Intake, Tally
from retrodp.stream.sources import read_file
from retrodp.stream.update import Changes, Op, QueuedUpdate

SCRIPT = Path(__file__).parents[2] / "examples" / "retail" / "make_demo_data.py"


class Taken(NamedTuple):
    tally: Tally
    rounds: list[int]
    updates: list[QueuedUpdate]
    changes: Changes


@pytest.fixture(scope="module")
def taken() -> Taken:
    plan = Plan.load(demo.plan_path())
    intake = Intake(plan, Clock.of_stream(plan.stream))
    tally, rounds, updates = Tally(), list[int](), list[QueuedUpdate]()
    for raw in read_file(demo.data_path(), intake.layout()):
        batch = intake.take(raw, first_open=1)
        tally += batch.tally
        rounds += np.asarray(batch.arrivals.round).tolist()
        updates += batch.arrivals.queued()
    return Taken(tally, rounds, updates, lives.apply_round({}, updates))


def test_every_row_is_taken(taken: Taken) -> None:
    updates = demo.counts()["updates"]
    clamped = taken.tally.clamped
    assert taken.tally == Tally(read=updates, accepted=updates, clamped=clamped)
    assert clamped.keys() == {"amount"}
    assert clamped["amount"] / updates == pytest.approx(0.002, rel=0.1)


def test_the_notes_count_what_is_there(taken: Taken) -> None:
    ops = Counter(update.op for update in taken.updates)
    counts = demo.counts()
    named = [counts[name] for name in ("additions", "deletions", "replacements")]
    assert [ops[op] for op in (Op.ADD, Op.DELETE, Op.REPLACE)] == named


def test_no_update_is_idle_and_none_is_tied(taken: Taken) -> None:
    counts = demo.counts()
    assert len(taken.changes.begun) == counts["additions"] - counts["deletions"]
    assert (taken.changes.ignored, taken.changes.same_time) == (0, 0)


def test_rows_come_in_the_order_of_their_rounds_to_the_last(taken: Taken) -> None:
    assert taken.rounds == sorted(taken.rounds)
    assert taken.rounds[-1] == demo.LAST_ROUND == Plan.load(demo.plan_path()).stream.horizon


def test_replaced_lines_stay_on_the_day_of_their_order(taken: Taken) -> None:
    ordered = {update.id: update.stamp for update in taken.updates if update.op == Op.ADD}
    replaced = [update for update in taken.updates if update.op == Op.REPLACE]
    assert [update.stamp for update in replaced] == [ordered[update.id] for update in replaced]


@pytest.mark.parametrize("customer", demo.FORGET_CUSTOMERS)
def test_customers_to_forget_have_many_lines_and_no_late_update(
    taken: Taken, customer: str
) -> None:
    lines = {update.id for update in taken.updates if update.person == customer}
    rounds = [
        round_
        for round_, update in zip(taken.rounds, taken.updates, strict=True)
        if update.id in lines
    ]
    assert len(lines) > 1_000
    assert max(rounds) <= demo.LAST_ROUND - 2


def test_the_file_is_small_and_its_licence_ships_with_it() -> None:
    assert demo.data_path().stat().st_size <= 3_000_000
    assert "CC0" in demo.demo_path("DATA-LICENSE.txt").read_text(encoding="utf-8")


LINES = """\
line,InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country
1,10,A,x,6,2010-12-01T08:00:00,2.55,7,EIRE
2,10,B,x,2,2010-12-01T08:00:00,1.00,7,EIRE
3,11,C,x,4,2010-12-01T09:00:00,0.125,,EIRE
4,C12,A,x,-2,2010-12-02T08:00:00,2.55,7,EIRE
5,C13,A,x,-3,2010-12-03T08:00:00,2.55,7,EIRE
6,C13,A,x,-1,2010-12-03T08:00:00,2.55,7,EIRE
7,C14,B,x,-1,2010-12-01T08:00:00,1.00,7,EIRE
8,C15,Z,x,-1,2010-12-01T08:00:00,1.00,7,EIRE
9,16,Y,x,-9,2010-12-01T08:00:00,0.0,,EIRE
10,A17,Y,x,1,2010-12-01T08:00:00,-9.0,,EIRE
11,C18,C,x,-1,2010-12-04T08:00:00,0.125,,EIRE
"""
CANCELLATIONS = "cancel_line,original_line,units\n4,1,2\n6,1,1\n5,1,3\n7,2,1\n11,3,1\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, Any]], dict[str, int]]:
    directory = tmp_path_factory.mktemp("retail")
    (directory / "online_retail_lines.csv.gz").write_bytes(gzip.compress(LINES.encode()))
    links = gzip.compress(CANCELLATIONS.encode())
    (directory / "online_retail_cancellations.csv.gz").write_bytes(links)
    updates, counts = runpy.run_path(str(SCRIPT))["updates_of"](directory)
    rows = [{name: str(cell) for name, cell in update.row().items()} for update in updates]
    return rows, counts


def told(rows: list[dict[str, Any]], id_: str) -> list[tuple[str, str, str | None]]:
    return [(row["op"], row["at"][:10], row.get("amount")) for row in rows if row["id"] == id_]


def test_cancellations_of_one_line_add_up_and_those_of_one_minute_are_one(made: Any) -> None:
    assert told(made[0], "1") == [
        ("add", "2010-12-01", "15.30"),
        ("replace", "2010-12-02", "10.20"),
        ("delete", "2010-12-03", None),
    ]


def test_what_is_taken_back_in_its_own_minute_was_never_sold(made: Any) -> None:
    assert told(made[0], "2") == [("add", "2010-12-01", "1.00")]
    assert made[1]["lines_taken_back_in_their_own_minute"] == 1


def test_amounts_are_rounded_to_the_penny_ties_up(made: Any) -> None:
    assert [amount for _, _, amount in told(made[0], "3")] == ["0.50", "0.38"]


def test_what_is_no_order_line_is_left_out_and_counted(made: Any) -> None:
    assert {row["id"] for row in made[0]} == {"1", "2", "3"}
    left_out = [number for name, number in made[1].items() if name.startswith("left_out")]
    assert left_out == [1, 1, 1]
