from __future__ import annotations

import csv
import io
import itertools
import json
import os
import shutil
import stat
import tempfile
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrodp.errors import UsageError
from retrodp.mechanisms.answer import Answer
from retrodp.views.export import (
    COLUMNS,
    Selection,
    answer_rows,
    arrow_schema,
    csv_lines,
    jsonl_lines,
    rows,
    to_arrow,
    write,
    write_file,
)
from retrodp.views.published import Published
from tests.views import stores

LABELS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
ODD = ["[null]", '[""]', '["[x"]', "[true]", 'say "a, b"', "two\nlines", "cr\r", "=1+1", " ", "é😀"]
INT64 = st.integers(-(2**63), 2**63 - 1)


def csv_of(published: Published, selection: Selection | None = None) -> bytes:
    handle = io.BytesIO()
    write(published, handle, format="csv", selection=selection or Selection())
    return handle.getvalue()


def parsed(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode(), newline=""), strict=True))


def test_the_csv_of_a_store_is_this(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store", 1) as published:
        lines = csv_of(published).decode().splitlines()
        noise = published.entries["by_country"]["noise"]
    half, half_all, stddev = noise["half"][0], noise["half_all"][0], noise["stddev"][0]
    start = "1,2011-03-25T00:00:00+00:00"
    assert lines[:4] == [
        "round,round_start,release,key,value,stddev,low,high,low_all,high_all",
        f"{start},by_country,France,40,{stddev},{40 - half},{40 + half},{40 - half_all},{40 + half_all}",
        f"{start},by_country,Germany,-3,{stddev},{-3 - half},{-3 + half},{-3 - half_all},{-3 + half_all}",
        f"{start},by_country,other,25,{stddev},{25 - half},{25 + half},{25 - half_all},{25 + half_all}",
    ]


def test_rows_are_sorted_by_round_release_and_key(tmp_path: Path) -> None:
    bins = dict.fromkeys(["ÿ", "z", "\U0001f600", "\uffff", "Z", "a"], 900)
    days = [stores.usual(round_, bins) for round_ in (1, 2)]
    with Published.open(stores.store_of(tmp_path / "store", days)) as published:
        order = [(row.round, row.release.encode(), row.key.encode()) for row in rows(published)]
    assert order == sorted(order)
    assert len(order) == 2 * (3 + 6 + 1 + 1)


@given(st.lists(LABELS, unique=True, max_size=20))
def test_the_keys_of_an_answer_are_sorted_by_their_bytes(labels: list[str]) -> None:
    answer = stores.answer("by_product", 1, [900] * len(labels), labels)
    found = [row.key.encode() for row in answer_rows(answer, "")]
    assert found == sorted(label.encode() for label in labels)


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(LABELS, INT64, max_size=8))
def test_csv_gives_back_every_label_and_value(bins: dict[str, int]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        day = stores.usual(1, bins)
        with Published.open(stores.store_of(Path(directory) / "store", [day])) as published:
            table = parsed(csv_of(published))
    found = {row[3]: int(row[4]) for row in table if row[2] == "by_product"}
    assert found == bins


def test_null_empty_and_other_odd_labels_survive_csv(tmp_path: Path) -> None:
    day = stores.usual(1, dict.fromkeys(ODD, 900))
    with Published.open(stores.store_of(tmp_path / "store", [day])) as published:
        found = [row[3] for row in parsed(csv_of(published)) if row[2] == "by_product"]
    assert found == sorted(ODD)


def test_csv_is_quoted_only_where_rfc_4180_needs_it(tmp_path: Path) -> None:
    day = stores.usual(1, dict.fromkeys(["plain label", 'a"b', "a,b", "a\rb", "a\nb"], 900))
    with Published.open(stores.store_of(tmp_path / "store", [day])) as published:
        text = csv_of(published, Selection(releases=("by_product",))).decode()
    head = ",by_product,"
    keys = [part.split(",900,")[0] for part in text.split(head)[1:]]
    assert keys == ['"a\nb"', '"a\rb"', '"a""b"', '"a,b"', "plain label"]


def test_the_key_of_a_scalar_is_empty(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store", 1) as published:
        keys = {row.key for row in rows(published) if row.release in {"lines", "revenue"}}
    assert keys == {""}


def test_a_sum_is_an_exact_decimal_also_below_zero(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store", 1) as published:
        [row] = rows(published, Selection(releases=("revenue",)))
        half = published.entries["revenue"]["noise"]["half"][0]
    step = Fraction(1, 20)
    assert row.value == "-617.3"
    assert [Fraction(row.low), Fraction(row.high)] == [
        (-12346 - half) * step,
        (-12346 + half) * step,
    ]


@given(INT64, st.sampled_from(["1", "1/20", "1/100", "1/1000000", "5", "25/10"]))
def test_values_and_ends_are_exact_at_any_size(value: int, step: str) -> None:
    answer = Answer(
        release="x",
        round=1,
        keys=None,
        values=(value,),
        step=Fraction(step),
        stddev="1.5",
        half=7,
        half_all=2**40,
        level=Fraction(19, 20),
    )
    [row] = answer_rows(answer, "")
    ends = [value, value - 7, value + 7, value - 2**40, value + 2**40]
    assert [Fraction(text) for text in (row.value, *row[6:10])] == [
        end * Fraction(step) for end in ends
    ]


def test_a_stddev_is_printed_without_exponent() -> None:
    answer = Answer(
        release="x",
        round=1,
        keys=None,
        values=(1,),
        step=Fraction(1),
        stddev="1.23457e+06",
        half=1,
        half_all=1,
        level=Fraction(19, 20),
    )
    assert next(answer_rows(answer, "")).stddev == "1234570"


def test_a_sparse_release_without_bins_has_no_rows(tmp_path: Path) -> None:
    with Published.open(stores.store_of(tmp_path / "store", [stores.usual(1, {})])) as published:
        selection = Selection(releases=("by_product",))
        assert csv_of(published, selection) == (",".join(COLUMNS) + "\n").encode()
        assert to_arrow(published, selection).num_rows == 0


def test_two_stores_with_the_same_rounds_give_the_same_bytes(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "one", 5) as one, stores.opened(tmp_path / "two", 5) as two:
        assert csv_of(one) == csv_of(two)
        assert list(jsonl_lines(one)) == list(jsonl_lines(two))


def test_a_later_round_only_adds_lines_at_the_end(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "one", 2) as one, stores.opened(tmp_path / "two", 3) as two:
        assert csv_of(two).startswith(csv_of(one))


def test_the_export_of_a_moved_store_has_the_same_bytes(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store") as published:
        before = csv_of(published)
    shutil.copytree(tmp_path / "store", tmp_path / "elsewhere")
    with Published.open(tmp_path / "elsewhere") as moved:
        assert csv_of(moved) == before


def test_a_text_handle_gets_the_same_text(tmp_path: Path) -> None:
    handle = io.StringIO()
    with stores.opened(tmp_path / "store") as published:
        count = write(published, handle, format="csv")
        assert handle.getvalue().encode() == csv_of(published)
        assert count == len(list(rows(published)))


def test_the_latest_round_alone_can_be_exported(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store", 4) as published:
        assert {row.round for row in rows(published, Selection.latest(published))} == {4}


def test_the_latest_round_of_an_empty_store_has_no_rows(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store", 0) as published:
        assert list(rows(published, Selection.latest(published))) == []


def test_a_range_of_rounds_includes_both_ends(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store", 5) as published:
        found = {row.round for row in rows(published, Selection(first=2, last=4))}
    assert found == {2, 3, 4}


def test_a_range_may_reach_beyond_what_is_published(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store", 3) as published:
        found = {row.round for row in rows(published, Selection(first=3, last=9))}
    assert found == {3}


def test_a_release_that_the_plan_has_not_writes_nothing(tmp_path: Path) -> None:
    handle = io.BytesIO()
    with stores.opened(tmp_path / "store") as published, pytest.raises(UsageError):
        write(published, handle, format="csv", selection=Selection(releases=("x",)))
    assert handle.getvalue() == b""


def test_an_unknown_format_is_wrong_use(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store") as published, pytest.raises(UsageError, match="jsonl"):
        write(published, io.BytesIO(), format="xls")  # type: ignore[arg-type]


def test_json_lines_hold_the_same_rows_with_exact_numbers(tmp_path: Path) -> None:
    day = stores.usual(1, dict.fromkeys(ODD, 2**63 - 1))
    with Published.open(stores.store_of(tmp_path / "store", [day])) as published:
        found = [json.loads(line, parse_float=Decimal) for line in jsonl_lines(published)]
        expected = [
            dict(zip(COLUMNS, (*row[:4], *map(Decimal, row[4:10])), strict=True))
            for row in rows(published)
        ]
    assert found == expected
    assert all(list(line) == list(COLUMNS) for line in found)


def parquet_of(published: Published, path: Path) -> Path:
    write_file(published, path, format="parquet")
    return path


def test_parquet_holds_the_same_rows_as_exact_decimals(tmp_path: Path) -> None:
    day = stores.usual(1, dict.fromkeys(ODD, -(2**63)))
    with Published.open(stores.store_of(tmp_path / "store", [day])) as published:
        table = pq.read_table(parquet_of(published, tmp_path / "x.parquet"))
        expected = list(rows(published))
    assert table.column("key").to_pylist() == [row.key for row in expected]
    assert table.column("value").to_pylist() == [Decimal(row.value) for row in expected]
    assert table.column("low_all").to_pylist() == [Decimal(row.low_all) for row in expected]
    assert table.column("stddev").to_pylist() == [float(row.stddev) for row in expected]
    starts = [start.isoformat() for start in table.column("round_start").to_pylist()]
    assert starts == [row.round_start for row in expected]


def test_the_types_of_a_table_follow_from_the_plan_alone(tmp_path: Path) -> None:
    with (
        stores.opened(tmp_path / "one", 0) as empty,
        stores.opened(tmp_path / "two", 3) as full,
    ):
        assert to_arrow(empty).schema.equals(to_arrow(full).schema, check_metadata=True)
        assert arrow_schema(full).field("value").type == pa.decimal128(38, 2)


def test_pandas_reads_the_parquet_file(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store") as published:
        frame = pd.read_parquet(parquet_of(published, tmp_path / "x.parquet"))
        expected = [float(row.value) for row in rows(published)]
    assert frame["value"].astype(float).tolist() == expected
    assert str(frame["round_start"].dtype) == "datetime64[us, Europe/London]"


def test_polars_reads_the_parquet_file(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store") as published:
        frame = pl.read_parquet(parquet_of(published, tmp_path / "x.parquet"))
        expected = [Decimal(row.value) for row in rows(published)]
    assert frame["value"].to_list() == expected
    assert frame.filter(pl.col("release") == "lines").height == 3


def test_a_table_of_a_test_store_says_test(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store", test=True) as published:
        path = parquet_of(published, tmp_path / "x.parquet")
    assert pq.read_schema(path).metadata[b"retrodp.test"] == b"TEST"


def test_parquet_is_not_written_to_standard_output(tmp_path: Path) -> None:
    with (
        stores.opened(tmp_path / "store") as published,
        open(1, "wb", closefd=False) as standard_output,
        pytest.raises(UsageError, match="-o FILE"),
    ):
        write(published, standard_output, format="parquet")


def test_parquet_is_not_written_to_a_text_file(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store") as published, pytest.raises(UsageError):
        write(published, io.StringIO(), format="parquet")


def test_parquet_can_go_to_memory_and_leaves_it_open(tmp_path: Path) -> None:
    handle = io.BytesIO()
    with stores.opened(tmp_path / "store") as published:
        count = write(published, handle, format="parquet")
    assert pq.read_table(io.BytesIO(handle.getvalue())).num_rows == count


def test_a_file_holds_the_bytes_of_the_stream(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store") as published:
        write_file(published, tmp_path / "out.csv", format="csv")
        assert (tmp_path / "out.csv").read_bytes() == csv_of(published)


def test_a_file_gets_the_mode_that_the_umask_gives(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with stores.opened(tmp_path / "store") as published:
            write_file(published, tmp_path / "out.csv", format="csv")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out.csv").stat().st_mode) == 0o640


def test_a_failed_export_leaves_the_old_file(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_text("old")
    with stores.opened(tmp_path / "store") as published, pytest.raises(UsageError):
        write_file(published, out, format="csv", selection=Selection(releases=("x",)))
    assert (out.read_text(), sorted(path.name for path in tmp_path.iterdir())) == (
        "old",
        ["out.csv", "store"],
    )


@pytest.mark.parametrize("name", ["store/releases.sqlite", "store/inside/new.csv", "link"])
def test_nothing_is_written_into_the_directory_of_a_store(tmp_path: Path, name: str) -> None:
    directory = stores.store(tmp_path / "store")
    (tmp_path / "link").symlink_to(directory / "releases.sqlite")
    before = (directory / "releases.sqlite").read_bytes()
    with Published.open(directory) as published, pytest.raises(UsageError, match="engine's own"):
        write_file(published, tmp_path / name, format="csv")
    assert (directory / "releases.sqlite").read_bytes() == before


def test_an_export_is_streamed(tmp_path: Path) -> None:
    with stores.opened(tmp_path / "store") as published:
        lines = csv_lines(published)
        assert list(itertools.islice(lines, 1)) == [",".join(COLUMNS) + "\n"]
