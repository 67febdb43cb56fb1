"""The file of refused rows."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from retrodp.stream.rejected import RefusedRow, write_rejected

ROWS = [RefusedRow("a,b.csv", 3, "amount", "not a number"), RefusedRow("a,b.csv", 9, "", "odd")]


def test_the_file_says_where_and_why(tmp_path: Path) -> None:
    path = tmp_path / "rejected.csv"
    assert write_rejected(path, ROWS) == 2
    with path.open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["file", "line", "field", "reason"],
            ["a,b.csv", "3", "amount", "not a number"],
            ["a,b.csv", "9", "", "odd"],
        ]


def test_an_interrupted_write_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    def interrupted() -> Iterator[RefusedRow]:
        yield ROWS[0]
        raise KeyboardInterrupt

    path = tmp_path / "rejected.csv"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        write_rejected(path, interrupted())
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["rejected.csv"]
