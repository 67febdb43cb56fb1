"""Public reports about days that begin at 01:00, missing days and late data."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from retrodp.plan.plan import Plan
from retrodp.stream.sources import read_frame
from tests.support.plans import HORIZON, counting, plan
from tests.support.rows import Row, add, ingest
from tests.support.stores import new_store, published

# The day of a clock change in the middle of six days.
CHANGES = [
    ("Europe/Copenhagen", "2024-03-31", 23),
    ("Europe/Copenhagen", "2024-10-27", 25),
    ("America/New_York", "2024-03-10", 23),
    ("America/New_York", "2024-11-03", 25),
    ("Australia/Sydney", "2024-10-06", 23),
    ("Australia/Sydney", "2024-04-07", 25),
    ("Australia/Lord_Howe", "2024-10-06", 23.5),
    ("Australia/Lord_Howe", "2024-04-07", 24.5),
    ("Asia/Kolkata", "2024-03-31", 24),
]


@pytest.mark.parametrize(("name", "day", "hours"), CHANGES)
def test_daily_counts_follow_the_local_day_across_a_clock_change(
    ram: Path, name: str, day: str, hours: float
) -> None:
    """One record in each half hour of the day before, the day itself and the day after."""
    middle = dt.date.fromisoformat(day)
    start = middle - dt.timedelta(days=2)
    text = counting().text.replace("start = 2024-01-01", f"start = {start.isoformat()}")
    daily = text.replace('round = "1d"', f'round = "1d"\ntimezone = "{name}"')
    made = Plan.loads(daily.replace('kind = "count"', 'kind = "count"\nwindow = "1d"'))
    zone = ZoneInfo(name)
    begin = dt.datetime.combine(middle - dt.timedelta(days=1), dt.time(), zone)
    end = dt.datetime.combine(middle + dt.timedelta(days=2), dt.time(), zone)
    now, rows, moments = begin.astimezone(dt.UTC), [], 0
    while now < end.astimezone(dt.UTC):
        rows.append({**add(f"id{moments}", 1).cells(ids=True), "at": now.isoformat()})
        now += dt.timedelta(minutes=30)
        moments += 1
    counts = []
    with new_store(ram / "store", made) as store:
        store.ingest(read_frame(pa.Table.from_pylist(rows), store.layout()))
        for _ in range(HORIZON):
            store.close_round()
            counts.append(store.ledger.read_totals("lines").get(b"", 0))
    assert counts == [0, 48, 2 * hours, 48, 0, 0]


def test_days_without_data_are_published_like_any_other(ram: Path) -> None:
    with new_store(ram / "store", plan()) as store:
        ingest(store, [add("a", 1), add("b", 5)])
        store.close_through(HORIZON)
    made = published(ram / "store")
    assert list(made) == list(range(1, HORIZON + 1))
    assert {frozenset(answers) for answers in made.values()} == {frozenset(made[1])}


def test_the_data_do_not_decide_how_many_rounds_are_published(ram: Path) -> None:
    sizes = []
    for name, rows in (("early", [add("a", 1)]), ("late", [add("a", 6)]), ("none", [])):
        with new_store(ram / name, plan()) as store:
            ingest(store, rows)
            store.close_through(3)
        sizes.append(len(published(ram / name)))
    assert sizes == [3, 3, 3]


def test_a_late_record_with_its_original_time_counts_on_its_own_day(ram: Path) -> None:
    """A back-fill gives, from its arrival on, what an arrival in time would have given."""
    in_time, late = add("a", 2), Row(id="a", round=4, stamp=2)
    made = {}
    for name, row in (("in_time", in_time), ("late", late)):
        with new_store(ram / name, plan()) as store:
            ingest(store, [row, add("b", 1)])
            store.close_through(HORIZON)
        made[name] = published(ram / name)
    assert made["late"][3] != made["in_time"][3]
    assert [made["late"][round_] for round_ in (4, 5, 6)] == (
        [made["in_time"][round_] for round_ in (4, 5, 6)]
    )


def test_an_arrival_in_a_closed_round_is_not_taken_and_changes_nothing(ram: Path) -> None:
    with new_store(ram / "with", plan()) as store:
        store.close_through(3)
        taken = ingest(store, [add("late", 2)])
        store.close_through(HORIZON)
    with new_store(ram / "without", plan()) as store:
        store.close_through(HORIZON)
    assert taken.tally.ignored == {"round_closed": 1}
    assert published(ram / "with") == published(ram / "without")


def test_updates_for_later_rounds_wait_for_them(ram: Path) -> None:
    with new_store(ram / "store", counting()) as store:
        ingest(store, [add("a", 1), add("b", 3)])
        counts = []
        for _ in range(3):
            store.close_round()
            counts.append(store.ledger.survivor_count())
    assert counts == [1, 1, 2]
