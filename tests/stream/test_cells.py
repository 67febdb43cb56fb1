"""Arrow columns read like lists of their cells, however few objects are made of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrodp.errors import SourceError
from retrodp.plan.columns import Column
from retrodp.stream.cells import ArrowCells, cells_of_arrow, picked
from retrodp.stream.clock import Clock
from retrodp.stream.fields import read_column, read_ids, read_times
from retrodp.stream.sources import Layout, read_file

ZONES = ("UTC", "Europe/London", "America/Sao_Paulo", "Australia/Lord_Howe", "Africa/Monrovia")
HOUR = 3_600_000_000


def cells(array: pa.Array) -> ArrowCells:
    found = cells_of_arrow(array)
    assert isinstance(found, ArrowCells)
    return found


def clock(zone: str) -> Clock:
    return Clock.of(start="2000-01-01", round="1d", timezone=zone, horizon=100)


COLUMNS = [
    pa.array(["tea", None, "", "tea", "ü"]),
    pa.array(["tea", None, "tea"], pa.large_string()),
    pa.array(["tea", None, "tea"], pa.string_view()),
    pa.array([3, None, 3, -1], pa.int16()),
    pa.array([True, None, False]),
    pa.array([1.5, None, -0.0]),
    pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)),
    pa.array([dt.date(2011, 12, 9), None]),
    pa.array([dt.datetime(2011, 12, 9, 8, 26), None], pa.timestamp("ms")),  # noqa: DTZ001  # local
    pa.array(["tea", None, "tea"]).dictionary_encode(),
    pa.array([None, None], pa.string()),
    pa.array([], pa.string()),
    pa.array([None, None]),
    pa.array([b"tea", None]),
]


@pytest.mark.parametrize("array", COLUMNS, ids=lambda array: str(array.type))
def test_a_column_reads_like_the_list_of_its_cells(array: pa.Array) -> None:
    expected = array.to_pylist()
    found = cells(array)
    distinct, codes, _ = found.coded()
    assert found == expected
    assert list(found) == [found[row] for row in range(len(expected))] == expected
    assert [distinct[code] for code in codes.tolist()] == expected
    rows = np.arange(len(expected) - 1, -1, -1)
    assert picked(found, rows) == picked(expected, rows) == expected[::-1]


def test_a_slice_of_a_column_has_its_own_cells() -> None:
    array = pa.array(["a", None, "b", "c", None]).slice(1, 3)
    assert cells(array) == [None, "b", "c"]
    assert cells(pa.array([5, None, 7], pa.timestamp("us")).slice(1)).instants() is not None


def test_lists_are_no_cells() -> None:
    assert cells_of_arrow(pa.array([[1], None])) is None


def test_times_are_cut_to_microseconds() -> None:
    found = cells(pa.array([1_999, -1, None], pa.timestamp("ns", "UTC"))).instants()
    assert found is not None
    assert (found.micros.tolist(), found.null.tolist()) == ([1, 0, 0], [False, False, True])


@pytest.mark.parametrize("zone", ZONES)
@settings(deadline=None, max_examples=40)
@given(
    hours=st.lists(st.integers(-400_000, 600_000), min_size=1, max_size=20),
    within=st.integers(0, HOUR - 1),
)
def test_local_times_of_a_column_are_read_as_one_by_one(
    zone: str, hours: list[int], within: int
) -> None:
    micros = np.array([hour * HOUR + within for hour in hours], np.int64)
    plain = pa.array(micros, pa.timestamp("us")).to_pylist()
    assert all_of(cells(pa.array(micros, pa.timestamp("us"))), zone) == all_of(plain, zone)


# Monrovia moved its clocks by 44 minutes and a half, Lord Howe moves them by half an hour.
YEARS = {"UTC": 2010, "Europe/London": 2010, "America/Sao_Paulo": 2018}
YEARS |= {"Australia/Lord_Howe": 2010, "Africa/Monrovia": 1972}


@pytest.mark.parametrize(("zone", "year"), YEARS.items())
def test_hours_in_which_clocks_change_are_read_as_one_by_one(zone: str, year: int) -> None:
    start = dt.datetime(year, 1, 1)  # noqa: DTZ001  # local
    local = [start + dt.timedelta(minutes=30 * step + 7) for step in range(17_520)]
    found = all_of(cells(pa.array(local, pa.timestamp("s"))), zone)
    assert found == all_of(local, zone)
    changes = found[2].count(True) + found[3].count(True)
    assert (changes > 0) == (zone != "UTC")


def all_of(given: Sequence[object], zone: str) -> tuple[list[object], ...]:
    read = read_times(given, clock(zone))
    assert not read.reasons
    times = read.values
    fields = (times.micros, times.null, times.ambiguous, times.nonexistent, times.date_only)
    return tuple(field.tolist() for field in fields)


def test_an_instant_with_a_zone_needs_no_calendar() -> None:
    local = [dt.datetime(2018, 11, 4, 0, 30, tzinfo=ZoneInfo("America/Sao_Paulo")), None]
    array = pa.array(local, pa.timestamp("us", "America/Sao_Paulo"))
    assert all_of(cells(array), "Europe/London") == all_of(local, "Europe/London")


def test_times_of_no_calendar_lie_in_no_round() -> None:
    extremes = [-(2**63) // 1000, 2**62]
    read = read_times(cells(pa.array(extremes, pa.timestamp("us"))), clock("Europe/London"))
    assert clock("Europe/London").rounds_at(read.values.micros).tolist() == [0, 101]


def test_a_column_of_a_plan_and_ids_are_read_as_from_a_list() -> None:
    column = Column(name="size", type="category", from_="size", values=("small",), other=True)
    texts = ["small", "great", None, "small"]
    array = cells(pa.array(texts))
    assert read_column(array, column).values.cells == read_column(texts, column).values.cells
    assert read_ids(array) == read_ids(texts)


@pytest.mark.parametrize("coded", [False, True])
def test_text_that_is_not_utf8_refuses_the_file(tmp_path: Path, *, coded: bool) -> None:
    broken = pa.array([b"tea", b"\xff"]).view(pa.string())
    if coded:
        broken = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), broken)
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": broken}), path)
    layout = Layout(required=("id",), optional=(), contents=())
    with pytest.raises(SourceError, match="not UTF-8 text"):
        list(read_file(path, layout))
