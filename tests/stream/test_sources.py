"""Every format gives the same rows, and a broken source is refused whole."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from retrodp.errors import SourceError
from retrodp.stream import sources
from retrodp.stream.frames import NOT_A_SCALAR
from retrodp.stream.sources import Layout, RawBatch, expand, read_file, read_frame, read_stream

LAYOUT = Layout(required=("id", "at"), optional=("op", "time"), contents=("who", "amount"))
CSV = "op,id,at,note,who,amount\nadd,a,2020-01-01T10:00:00,n,W,1.5\n,b,2020-01-01T11:00:00,,,2\n"
EXPECTED = {
    "op": ["add", None],
    "id": ["a", "b"],
    "at": ["2020-01-01T10:00:00", "2020-01-01T11:00:00"],
    "who": ["W", None],
}
NUMBERS = {**EXPECTED, "note": ["n", None], "amount": [1.5, 2.0]}


def frame_of_pandas() -> Any:
    return pd.DataFrame(NUMBERS)


def frame_of_polars() -> Any:
    return pl.DataFrame(NUMBERS)


def table() -> Any:
    return pa.table(NUMBERS)


def only(batches: Any) -> RawBatch:
    (batch,) = batches
    assert isinstance(batch, RawBatch)
    return batch


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def csv_batch(tmp_path: Path, text: str, layout: Layout = LAYOUT) -> RawBatch:
    return only(read_file(write(tmp_path / "rows.csv", text.encode()), layout))


def write_arrow(path: Path) -> None:
    with pa.ipc.new_file(path, table().schema) as file:
        file.write_table(table())


WRITERS: dict[str, Callable[[Path], object]] = {
    "rows.csv": lambda path: path.write_text(CSV),
    "rows.csv.gz": lambda path: path.write_bytes(gzip.compress(CSV.encode())),
    "rows.csv.zst": lambda path: path.write_bytes(zstandard.compress(CSV.encode())),
    "rows.jsonl": lambda path: path.write_text(json_lines()),
    "rows.ndjson.gz": lambda path: path.write_bytes(gzip.compress(json_lines().encode())),
    "rows.jsonl.zst": lambda path: path.write_bytes(zstandard.compress(json_lines().encode())),
    "rows.parquet": lambda path: pq.write_table(table(), path),
    "rows.arrow": write_arrow,
}


def json_lines() -> str:
    rows = [dict(zip(NUMBERS, row, strict=True)) for row in zip(*NUMBERS.values(), strict=True)]
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize("name", WRITERS)
def test_every_file_format_gives_the_same_cells(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    batch = only(read_file(path, LAYOUT))
    assert {column: batch.columns[column] for column in EXPECTED} == EXPECTED
    assert [float(str(cell)) for cell in batch.columns["amount"]] == [1.5, 2.0]
    assert batch.extra == ("note",)
    assert batch.file == str(path)


FRAMES: list[Callable[[], Any]] = [
    table,
    lambda: table().to_batches()[0],
    lambda: pa.RecordBatchReader.from_batches(table().schema, table().to_batches()),
    frame_of_pandas,
    lambda: frame_of_pandas().astype({"id": "category"}),
    frame_of_polars,
    lambda: frame_of_polars().lazy(),
]


@pytest.mark.parametrize("frame", FRAMES)
def test_every_frame_gives_the_same_cells(frame: Callable[[], Any]) -> None:
    batch = only(read_frame(frame(), LAYOUT))
    assert {**batch.columns, "note": ["n", None]} == NUMBERS
    assert list(batch.lines) == [1, 2]


def test_what_is_no_frame_is_refused() -> None:
    with pytest.raises(SourceError, match="pandas or a polars frame"):
        list(read_frame({"id": [1]}, LAYOUT))


def test_nan_stays_nan_in_numbers_and_is_null_in_text() -> None:
    frame = pd.DataFrame(
        {"id": ["a", "b"], "at": ["t", None], "who": ["x", None], "amount": [1.0, float("nan")]}
    )
    batch = only(read_frame(frame, LAYOUT))
    assert batch.columns["who"] == ["x", None]
    assert repr(batch.columns["amount"]) == "[1.0, nan]"


def test_a_mixed_pandas_column_keeps_its_types() -> None:
    mixed = pd.Series([1, "1", pd.NA, [1]], dtype=object)
    frame = pd.DataFrame({"id": list("abcd"), "at": "t", "who": mixed, "amount": 1})
    assert only(read_frame(frame, LAYOUT)).columns["who"] == [1, "1", None, NOT_A_SCALAR]


def test_nested_cells_are_marked_and_hashable(tmp_path: Path) -> None:
    nested = pa.table({"id": ["a", "b"], "at": ["t", "t"], "who": [[1], None], "amount": [1, 2]})
    assert only(read_frame(nested, LAYOUT)).columns["who"] == [NOT_A_SCALAR, None]
    line = b'{"id": "a", "at": "t", "who": {"x": 1}, "amount": [1]}\n'
    batch = only(read_file(write(tmp_path / "rows.jsonl", line), LAYOUT))
    assert batch.columns["who"] == batch.columns["amount"] == [NOT_A_SCALAR]


def test_nanoseconds_are_cut_to_microseconds() -> None:
    times = pa.array([1_500], pa.timestamp("ns"))
    frame = pa.table({"id": ["a"], "at": times, "who": ["x"], "amount": [1]})
    assert only(read_frame(frame, LAYOUT)).columns["at"] == [datetime(1970, 1, 1, 0, 0, 0, 1)]  # noqa: DTZ001


def test_lines_are_right_after_quoted_newlines(tmp_path: Path) -> None:
    text = 'id,at,who,amount\na,t,"two\nlines",1\n\nb,t,x,2\nc,t,"x\n\ny",3\nd,t,x,4\n'
    batch = csv_batch(tmp_path, text)
    assert list(zip(batch.columns["id"], batch.lines, strict=True)) == [
        ("a", 2),
        ("b", 5),
        ("c", 6),
        ("d", 9),
    ]
    assert batch.first_line == 2


def test_a_ragged_row_is_refused_and_the_rest_taken(tmp_path: Path) -> None:
    batch = csv_batch(tmp_path, "id,at,who,amount\na,t,x,1\nb,t,x\nc,t,x,1,1\nd,t,x,1\n")
    assert batch.columns["id"] == ["a", "d"]
    assert [(row.line, row.field) for row in batch.refused] == [(3, ""), (4, "")]


def test_an_endless_quote_loses_its_row_only(tmp_path: Path) -> None:
    long = "y" * 200_000
    batch = csv_batch(tmp_path, f'id,at,who,amount\na,t,x,1\nb,t,"{long}\nc,t,x,1\n')
    assert batch.columns["id"] == ["a", "c"]
    assert [row.line for row in batch.refused] == [3]


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_byte_order_marks_and_line_ends_are_no_data(tmp_path: Path, ends: str) -> None:
    data = b"\xef\xbb\xbf" + CSV.replace("\n", ends).encode()
    batch = only(read_file(write(tmp_path / "rows.csv", data), LAYOUT))
    assert batch.columns["op"] == ["add", None]


def test_a_byte_order_mark_before_json_is_no_data(tmp_path: Path) -> None:
    data = b"\xef\xbb\xbf" + json_lines().encode()
    assert only(read_file(write(tmp_path / "rows.jsonl", data), LAYOUT)).columns["id"] == ["a", "b"]


def test_a_line_that_is_no_json_object_is_refused(tmp_path: Path) -> None:
    data = b'[1]\n{"id": "a", "at": "t", "who": "x", "amount": 1}\n\n{"id": \nnull\n'
    batch = only(read_file(write(tmp_path / "rows.jsonl", data), LAYOUT))
    assert batch.columns["id"] == ["a"]
    assert [row.line for row in batch.refused] == [1, 4, 5]


def test_a_json_key_may_be_absent_from_a_row(tmp_path: Path) -> None:
    data = b'{"id":"a","at":"t","who":"x","amount":1}\n{"id":"b","at":"t","op":"delete"}\n'
    batch = only(read_file(write(tmp_path / "rows.jsonl", data), LAYOUT))
    assert batch.columns["who"] == ["x", None]
    assert batch.columns["op"] == [None, "delete"]


def test_batches_are_bounded_and_lines_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "BATCH_ROWS", 2)
    rows = "".join(f"{number},t,x,1\n" for number in range(5))
    path = write(tmp_path / "rows.csv", f"id,at,who,amount\n{rows}".encode())
    batches = list(read_file(path, LAYOUT))
    assert [list(batch.lines) for batch in batches] == [[2, 3], [4, 5], [6]]
    frame = pa.table(
        {"id": list("abc"), "at": list("ttt"), "who": list("xxx"), "amount": [1, 2, 3]}
    )
    assert [list(batch.lines) for batch in read_frame(frame, LAYOUT)] == [[1, 2], [3]]
    pq.write_table(frame, tmp_path / "rows.parquet")
    batches = list(read_file(tmp_path / "rows.parquet", LAYOUT))
    assert [batch.columns["id"] for batch in batches] == [["a", "b"], ["c"]]


@pytest.mark.parametrize("column", ["id", "at", "who", "amount"])
def test_a_missing_column_is_named_and_nothing_is_taken(tmp_path: Path, column: str) -> None:
    text = "op,id,at,who,amount\nadd,a,t,x,1\n"
    changed = text.replace(f",{column}", ",other", 1)
    with pytest.raises(SourceError, match=f"the column '{column}' is missing") as caught:
        list(read_file(write(tmp_path / "rows.csv", changed.encode()), LAYOUT))
    assert "nothing of this source was taken" in caught.value.do


@pytest.mark.parametrize("column", ["id", "who"])
def test_a_missing_column_is_named_in_every_format(tmp_path: Path, column: str) -> None:
    frame = table().drop([column])
    pq.write_table(frame, tmp_path / "rows.parquet")
    lines = "".join(json.dumps(row) + "\n" for row in frame.to_pylist())
    (tmp_path / "rows.jsonl").write_text(lines)
    attempts: list[Callable[[], Any]] = [
        lambda: read_frame(frame, LAYOUT),
        lambda: read_frame(frame.to_pandas(), LAYOUT),
        lambda: read_file(tmp_path / "rows.parquet", LAYOUT),
        lambda: read_file(tmp_path / "rows.jsonl", LAYOUT),
    ]
    said = []
    for attempt in attempts:
        with pytest.raises(SourceError) as caught:
            list(attempt())
        said.append(f"the column '{column}' is missing" in caught.value.what)
    assert said == [True] * 4


def test_a_file_of_deletions_needs_no_contents(tmp_path: Path) -> None:
    assert csv_batch(tmp_path, "op,id,at\ndelete,a,t\n").columns["op"] == ["delete"]


def test_a_file_of_additions_needs_all_contents(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="'who' is missing"):
        csv_batch(tmp_path, "id,at\na,t\n")


def test_a_repeated_column_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="'who' appears more than once"):
        csv_batch(tmp_path, "id,at,who,amount,who\na,t,x,1,y\n")


BROKEN = {
    "latin.csv": "id,at,who,amount\na,t,José,1\n".encode("latin-1"),
    "latin.jsonl": '{"id":"a","at":"t","who":"José","amount":1}\n'.encode("latin-1"),
    "utf16.csv": CSV.encode("utf-16"),
    "empty.csv": b"",
    "cut.csv.gz": gzip.compress(CSV.encode())[:-9],
    "cut.csv.zst": zstandard.compress(CSV.encode() * 99)[:-9],
    "plain.csv.gz": CSV.encode(),
    "text.parquet": CSV.encode(),
    "text.arrow": CSV.encode(),
}


@pytest.mark.parametrize("name", BROKEN)
def test_an_unreadable_file_is_refused_without_quoting_it(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, BROKEN[name])
    with pytest.raises(SourceError) as caught:
        list(read_file(path, LAYOUT))
    assert str(path) in caught.value.what
    assert "Jos" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_files_that_are_not_there_or_not_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no file"):
        list(read_file(tmp_path / "none.csv", LAYOUT))
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(SourceError, match="directory"):
        list(read_file(tmp_path / "folder.csv", LAYOUT))


def test_the_format_follows_the_name_or_the_option(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.data", CSV.encode())
    with pytest.raises(SourceError, match="does not tell the format"):
        list(read_file(path, LAYOUT))
    assert only(read_file(path, LAYOUT, format_="csv")).columns["id"] == ["a", "b"]


def test_several_compressed_members_are_one_file(tmp_path: Path) -> None:
    head, row = CSV.encode().split(b"\n", 1)
    data = gzip.compress(head + b"\n") + gzip.compress(row)
    assert only(read_file(write(tmp_path / "rows.csv.gz", data), LAYOUT)).columns["id"] == [
        "a",
        "b",
    ]


def test_standard_input_is_csv_unless_told() -> None:
    stream = io.BytesIO(CSV.encode())
    assert only(read_stream(stream, LAYOUT)).file == "standard input"
    assert not stream.closed
    parquet = io.BytesIO()
    pq.write_table(table(), parquet)
    parquet.seek(0)
    assert only(read_stream(parquet, LAYOUT, format_="parquet")).columns["id"] == ["a", "b"]


def test_patterns_expand_in_order_and_once(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "c[1].csv", "d.txt"):
        (tmp_path / name).touch()
    named = [str(tmp_path / name) for name in ("b.csv", "*.csv", "c[1].csv")]
    names = [Path(path).name for path in expand([*named, "-"])]
    assert names == ["b.csv", "a.csv", "c[1].csv", "-"]


def test_a_pattern_without_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="No file matches"):
        expand([str(tmp_path / "*.csv")])
