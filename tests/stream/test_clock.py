# ruff: noqa: DTZ001  # local times are the matter
from __future__ import annotations

import datetime as dt
from itertools import pairwise
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrodp.errors import DataError, PlanError, StoreCorruptError, UsageError
from retrodp.plan import Plan
from retrodp.plan.zone import tzdata_version, zone
from retrodp.stream.clock import NOT_A_TIME, Clock

HOUR = 3600 * 10**6
DAYS_OF_CHANGE = [
    # zone, first local day, hours of the days from there
    ("Europe/Copenhagen", "2024-03-30", [24, 23, 24]),
    ("Europe/Copenhagen", "2024-10-26", [24, 25, 24]),
    ("Europe/London", "2011-03-26", [24, 23, 24]),
    ("America/New_York", "2024-03-09", [24, 23, 24]),
    ("America/New_York", "2024-11-02", [24, 25, 24]),
    ("Australia/Sydney", "2024-04-06", [24, 25, 24]),
    ("Australia/Sydney", "2024-10-05", [24, 23, 24]),
    ("Asia/Kolkata", "2024-03-30", [24, 24, 24]),
    ("Australia/Lord_Howe", "2024-04-06", [24, 24.5, 24]),
    ("Australia/Lord_Howe", "2024-10-05", [24, 23.5, 24]),
    ("America/Sao_Paulo", "2018-11-03", [24, 23, 24]),  # midnight of the 4th never happened
    ("America/Sao_Paulo", "2018-02-16", [24, 25, 24]),  # 23:00 to 24:00 of the 17th happened twice
    ("Asia/Beirut", "2022-03-26", [24, 23, 24]),  # midnight of the 27th never happened
    ("America/Havana", "2023-11-04", [24, 25, 24]),  # midnight of the 5th happened twice
    ("Africa/Casablanca", "2024-03-09", [24, 25, 24]),
]


def micros(text: str) -> int:
    """Independent of the code under test: the standard library's own arithmetic."""
    instant = dt.datetime.fromisoformat(text)
    return round(instant.timestamp()) * 10**6


def days(name: str, start: str, horizon: int, round_: str = "1d") -> Clock:
    return Clock.of(start=start, round=round_, timezone=name, horizon=horizon)


@pytest.mark.parametrize(("name", "start", "hours"), DAYS_OF_CHANGE)
def test_days_are_as_long_as_the_calendar_says(name: str, start: str, hours: list[float]) -> None:
    clock = days(name, start, 3)
    assert [(end - begin) / HOUR for begin, end in pairwise(clock.boundaries)] == hours


@pytest.mark.parametrize(("name", "start", "hours"), DAYS_OF_CHANGE)
def test_a_day_begins_at_the_first_instant_of_its_date(
    name: str, start: str, hours: list[float]
) -> None:
    """By looking at the clock every half hour of UTC, with no arithmetic on local time."""
    first = dt.date.fromisoformat(start)
    at = dt.datetime.combine(first, dt.time(), dt.UTC) - dt.timedelta(days=2)
    begins: dict[dt.date, int] = {}
    for _ in range(6 * 48):
        begins.setdefault(at.astimezone(zone(name)).date(), int(at.timestamp()) * 10**6)
        at += dt.timedelta(minutes=30)
    expected = [begins[first + dt.timedelta(days=later)] for later in range(4)]
    assert list(days(name, start, 3).boundaries) == expected


@pytest.mark.parametrize(
    ("name", "start"), [("Europe/Copenhagen", "2024-03-30"), ("America/New_York", "2024-11-02")]
)
def test_quarters_of_a_day_begin_at_local_0_6_12_18(name: str, start: str) -> None:
    clock = days(name, start, 12, "6h")
    local = [clock.text_of(instant)[11:16] for instant in clock.boundaries]
    assert local == ["00:00", "06:00", "12:00", "18:00"] * 3 + ["00:00"]
    lengths = {(end - begin) // HOUR for begin, end in pairwise(clock.boundaries)}
    assert lengths in ({5, 6}, {6, 7})


def test_hours_elapse_whatever_the_clocks_show() -> None:
    clock = days("Europe/Copenhagen", "2024-03-31", 30, "1h")
    assert {end - begin for begin, end in pairwise(clock.boundaries)} == {HOUR}
    odd = days("Asia/Kolkata", "2024-03-31T07:45:30", 2, "1h")
    assert odd.boundaries[0] == micros("2024-03-31T07:45:30+05:30")


def test_weeks_and_months_follow_the_calendar() -> None:
    weeks = days("Europe/London", "2011-03-23", 2, "1w")
    assert [weeks.text_of(instant) for instant in weeks.boundaries] == [
        "2011-03-23T00:00:00+00:00",
        "2011-03-30T00:00:00+01:00",
        "2011-04-06T00:00:00+01:00",
    ]
    months = days("Europe/London", "2023-11-28", 4, "1mo")
    assert [months.text_of(instant)[:10] for instant in months.boundaries] == [
        "2023-11-28",
        "2023-12-28",
        "2024-01-28",
        "2024-02-28",
        "2024-03-28",
    ]


def test_a_day_that_a_zone_skipped_has_no_round() -> None:
    clock = days("Pacific/Apia", "2011-12-29", 2)
    assert [clock.text_of(instant)[:10] for instant in clock.boundaries] == [
        "2011-12-29",
        "2011-12-31",
        "2012-01-01",
    ]


def test_the_first_round_may_be_given_as_an_instant() -> None:
    given_ = days("Europe/Copenhagen", "2024-05-31T22:00:00Z", 3)
    assert given_ == days("Europe/Copenhagen", "2024-06-01", 3)
    shifted = days("America/Sao_Paulo", "2018-11-04T03:00:00Z", 3)
    assert shifted == days("America/Sao_Paulo", "2018-11-04", 3)


@pytest.mark.parametrize(
    ("round_", "start"),
    [("1d", "2024-05-31T00:00:00Z"), ("6h", "2024-05-31T01:00:00"), ("1w", "2024-05-31T12:00")],
)
def test_a_start_inside_a_round_is_refused(round_: str, start: str) -> None:
    with pytest.raises(PlanError, match=r"stream\.start"):
        days("Europe/Copenhagen", start, 3, round_)


def test_a_round_of_another_length_is_refused() -> None:
    with pytest.raises(PlanError, match=r"stream\.round"):
        days("UTC", "2024-01-01", 3, "2d")


def test_a_horizon_beyond_the_calendar_is_refused() -> None:
    with pytest.raises(PlanError, match="9999"):
        days("UTC", "9999-12-01", 40)


def test_the_round_of_an_instant_is_bounded_by_before_and_after() -> None:
    clock = Clock.from_boundaries([100, 200, 300])
    instants = [-1, 99, 100, 199, 200, 299, 300, 10**18]
    assert [clock.round_of(instant) for instant in instants] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert clock.rounds_of(instants) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert clock.rounds_of([]) == []
    assert (clock.horizon, clock.start_of(2), clock.end_of(2)) == (2, 200, 300)


def test_a_round_has_ended_when_the_next_begins() -> None:
    clock = Clock.from_boundaries([100, 200, 300])
    nows = [0, 100, 199, 200, 299, 300, 10**18]
    assert [clock.last_ended(now) for now in nows] == [0, 0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("boundaries", [[], [1], [1, 1], [2, 1], [1, 2, 2]])
def test_boundaries_that_do_not_increase_are_refused(boundaries: list[int]) -> None:
    with pytest.raises(StoreCorruptError):
        Clock.from_boundaries(boundaries)


def test_a_resolved_clock_is_the_one_that_was_computed() -> None:
    clock = days("Europe/Copenhagen", "2024-03-30", 5)
    again = Clock.from_boundaries(list(clock.boundaries), timezone="Europe/Copenhagen")
    assert again == clock


def test_the_clock_of_a_plan() -> None:
    plan = Plan.from_dict(
        {
            "stream": {
                "start": "2024-03-30",
                "round": "1d",
                "horizon": 3,
                "timezone": "Asia/Beirut",
            },
            "privacy": {"epsilon": 1, "delta": "1e-6"},
            "release": {"records": {"kind": "count"}},
        }
    )
    assert Clock.of_stream(plan.stream) == days("Asia/Beirut", "2024-03-30", 3)


COPENHAGEN = days("Europe/Copenhagen", "2024-01-01", 366)


@pytest.mark.parametrize(
    ("value", "instant"),
    [
        ("2024-06-01T12:00:00Z", "2024-06-01T12:00:00+00:00"),
        ("2024-06-01t12:00:00z", "2024-06-01T12:00:00+00:00"),
        ("2024-06-01 12:00", "2024-06-01T12:00:00+02:00"),
        ("2024-06-01T12:00:00-05:30", "2024-06-01T12:00:00-05:30"),
        ("2024-06-01T12:00:00+0530", "2024-06-01T12:00:00+05:30"),
        ("2024-06-01T12:00:00+05", "2024-06-01T12:00:00+05:00"),
        ("2024-06-01", "2024-06-01T00:00:00+02:00"),
        ("2024-03-31T02:30:00", "2024-03-31T03:30:00+02:00"),  # never happened
        ("2024-10-27T02:30:00", "2024-10-27T02:30:00+02:00"),  # the first of two
        (dt.datetime(2024, 6, 1, 12), "2024-06-01T12:00:00+02:00"),
        (dt.datetime(2024, 6, 1, 12, tzinfo=dt.UTC), "2024-06-01T12:00:00+00:00"),
        (dt.date(2024, 6, 1), "2024-06-01T00:00:00+02:00"),
        (pd.Timestamp("2024-06-01 12:00"), "2024-06-01T12:00:00+02:00"),
        (pd.Timestamp("2024-06-01 12:00", tz="Asia/Kolkata"), "2024-06-01T12:00:00+05:30"),
    ],
)
def test_times_are_read_with_offset_or_in_the_plans_zone(value: Any, instant: str) -> None:
    assert COPENHAGEN.parse(value) == micros(instant)
    assert COPENHAGEN.parse_many([value]).micros == [micros(instant)]


def test_microseconds_are_kept_and_finer_digits_cut_off() -> None:
    assert COPENHAGEN.parse("1970-01-01T00:00:00.000001Z") == 1
    assert COPENHAGEN.parse("1970-01-01T00:00:01.123456789Z") == 1_123_456
    assert COPENHAGEN.parse("1969-12-31T23:59:59.999999Z") == -1


NO_TIMES: list[object] = [
    "soon",
    "2024-13-01",
    "2024-02-30",
    "2024-06-01T25:00",
    "2024-06-01T12:00:60Z",
    "2024-06-01x12:00",
    "20240601",
    "2024-W05-1",
    "1.6.2024",
    "2024-06-01T12:00+99:99",
    " 2024-06-01",
    "٢٠٢٤-06-01",
    1717243200,
    1.5,
    True,
    [1],
]


@pytest.mark.parametrize("value", NO_TIMES, ids=repr)
def test_what_is_no_time_is_refused_without_quoting_it(value: Any) -> None:
    moments = COPENHAGEN.parse_many([value, "2024-06-01"])
    assert moments.micros[0] is None
    assert moments.reasons == [NOT_A_TIME, None]
    with pytest.raises(DataError) as caught:
        COPENHAGEN.parse(value)
    assert str(value) not in str(caught.value)


def test_null_times_are_null_and_not_refused() -> None:
    moments = COPENHAGEN.parse_many([None, "", pd.NaT, pd.NA])
    assert (moments.micros, moments.reasons, moments.date_only) == ([None] * 4, None, None)


def test_dates_without_times_are_marked() -> None:
    moments = COPENHAGEN.parse_many(["2024-06-01", "2024-06-01T00:00", dt.date(2024, 6, 1)])
    assert moments.date_only == [True, False, True]
    assert COPENHAGEN.parse_many(["2024-06-01T00:00"]).date_only is None


def test_odd_local_times_are_counted_row_by_row() -> None:
    moments = COPENHAGEN.parse_many(
        ["2024-03-31 02:30", "2024-03-31 02:30", "2024-10-27 02:30", "2024-10-27T02:30+01:00"]
    )
    assert (moments.nonexistent, moments.ambiguous) == (2, 1)
    assert moments.nonexistent_rows == [True, True, False, False]
    assert moments.ambiguous_rows == [False, False, True, False]


def test_a_clock_change_of_half_an_hour_is_seen_inside_the_hour() -> None:
    clock = days("Australia/Lord_Howe", "2024-10-05", 3)
    moments = clock.parse_many(["2024-10-06 02:15", "2024-10-06 02:45", "2024-10-06 01:59"])
    assert moments.nonexistent == 1
    assert moments.micros == [
        micros("2024-10-06T02:45:00+11:00"),
        micros("2024-10-06T02:45:00+11:00"),
        micros("2024-10-06T01:59:00+10:30"),
    ]


def test_a_midnight_that_never_happened_belongs_to_its_date() -> None:
    clock = days("America/Sao_Paulo", "2018-11-03", 3)
    moments = clock.parse_many(["2018-11-04", "2018-11-03T23:59:59", "2018-11-04T00:30"])
    assert clock.rounds_of([instant or 0 for instant in moments.micros]) == [2, 1, 2]
    assert moments.nonexistent == 2


@pytest.mark.parametrize(
    ("value", "round_"),
    [
        ("2023-12-31", 0),
        ("2024-01-01", 1),
        ("2024-10-27", 301),
        (dt.date(2024, 12, 31), 366),
        ("2025-01-01", 367),
        ("9999-12-31", 367),
        ("2024-01-01T23:59:59", 1),
        ("2024-01-01T23:00:00Z", 2),
    ],
)
def test_through_a_date_means_its_round(value: Any, round_: int) -> None:
    assert COPENHAGEN.round_for_date(value) == round_


def test_through_a_date_means_its_last_round() -> None:
    quarters = days("Europe/Copenhagen", "2024-03-31", 8, "6h")
    assert quarters.round_for_date("2024-03-31") == 4
    assert quarters.round_for_date("2024-03-31T07:00") == 2
    weeks = days("UTC", "2024-01-01", 3, "1w")
    assert [weeks.round_for_date(f"2024-01-{day:02}") for day in (1, 7, 8)] == [1, 1, 2]


def test_through_something_else_is_wrong_use() -> None:
    with pytest.raises(UsageError, match="someday"):
        COPENHAGEN.round_for_date("someday")


ZONES = st.sampled_from(sorted({name for name, _, _ in DAYS_OF_CHANGE} | {"UTC", "Asia/Kathmandu"}))


@settings(deadline=None)
@given(
    name=ZONES,
    local=st.datetimes(dt.datetime(1990, 1, 1), dt.datetime(2030, 1, 1)),
)
def test_reading_agrees_with_the_standard_library(name: str, local: dt.datetime) -> None:
    clock = days(name, "2024-01-01", 1)
    moments = clock.parse_many([local.isoformat(), local, local.isoformat(sep=" ")])
    expected = local.replace(tzinfo=zone(name), fold=0).astimezone(dt.UTC)
    since = expected - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    assert moments.micros == [since // dt.timedelta(microseconds=1)] * 3
    later = local.replace(tzinfo=zone(name), fold=1).astimezone(dt.UTC)
    assert moments.ambiguous == 3 * (later > expected)
    assert moments.nonexistent == 3 * (later < expected)


@settings(deadline=None)
@given(name=ZONES, instant=st.integers(0, 2 * 10**15))
def test_what_is_written_is_read_back(name: str, instant: int) -> None:
    clock = days(name, "2024-01-01", 1)
    assert clock.parse(clock.text_of(instant)) == instant


def test_the_version_of_the_zone_data_is_known() -> None:
    assert tzdata_version().startswith("20")
