"""The matrix of a query: one canonical form, whatever file it came from, or a refusal that helps."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from retrodp.errors import PlanError
from retrodp.plan import kinds
from retrodp.plan.matrix import canonical, coordinates_of, digest, weights_of
from retrodp.plan.plan import Plan
from tests.support.vectors import plan

COLUMNS = {column.name: column for column in plan().columns}
ROWS: list[list[object]] = [
    ["gift", "coordinate", "region", "weight"],
    [True, "b", "north", 0.1],
    ["", "a", "south", "2"],
    [False, "a", "north", Decimal("-1.50")],
]
CANONICAL = (
    ("region", "gift", "coordinate", "weight"),
    ("north", False, "a", "-1.5"),
    ("north", True, "b", "0.1"),
    ("south", "", "a", "2"),
)


def test_rows_have_one_order_and_weights_one_spelling() -> None:
    assert canonical(ROWS, COLUMNS, "m") == CANONICAL
    assert canonical([ROWS[0], *ROWS[:0:-1]], COLUMNS, "m") == CANONICAL
    assert canonical(CANONICAL, COLUMNS, "m") == CANONICAL


def test_an_empty_cell_is_null() -> None:
    weights = weights_of(CANONICAL, [COLUMNS["region"], COLUMNS["gift"]])
    assert weights["south", None] == {"a": Fraction(2)}
    assert weights["north", True] == {"b": Fraction(1, 10)}


def test_the_digest_is_of_the_contents() -> None:
    other = [list(row) for row in ROWS]
    other[1][3] = 0.2
    assert digest(canonical(ROWS, COLUMNS, "m")) != digest(canonical(other, COLUMNS, "m"))
    assert digest(CANONICAL) == digest(canonical(ROWS, COLUMNS, "m"))


def test_coordinates_are_sorted_by_their_bytes() -> None:
    assert coordinates_of((("x",), ("1", "ä", "1"), ("1", "z", "1"), ("1", "a", "1"))) == (
        *("a", "z", "ä"),
    )


HEAD: list[Any] = ["region", "coordinate", "weight"]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("weights.csv", "is 'weights.csv'"),
        ([HEAD], "no rows"),
        ([["region", "weight"], ["north", 1]], "no columns coordinate"),
        ([["coordinate", "weight"], ["a", 1]], "names no column"),
        ([["region", "region", "coordinate", "weight"], ["north", "north", "a", 1]], "twice"),
        ([["regoin", "coordinate", "weight"], ["north", "a", 1]], "Did you mean 'region'"),
        ([["x", "coordinate", "weight"], [1, "a", 1]], "write linear"),
        ([HEAD, ["north", "a"]], "row 2 has 2 cells"),
        ([HEAD, ["west", "a", 1]], "not one of the planned values"),
        ([HEAD, ["", "a", 1]], "not one of the planned values|missing"),
        ([HEAD, ["north", "a", 1], ["north", "a", 2]], "row 3 gives a weight that another"),
        ([HEAD, ["north", "a", "1/3"]], "an exact decimal"),
        ([HEAD, ["north", "a", "nan"]], "a finite number"),
        ([HEAD, ["north", "a", True]], "a finite number"),
        ([HEAD, ["north", "", 1]], "names no coordinate"),
        ([HEAD, ["north", None, 1]], "names no coordinate"),
        ([HEAD, ["north", "a" * 201, 1]], "201 characters"),
    ],
)
def test_what_is_no_matrix_is_refused_with_the_row(rows: object, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        canonical(rows, COLUMNS, "release.m.matrix")


AGES = Plan.loads(
    plan().text.replace(
        "[columns]", '[columns]\nage = { type = "integer", min = 0, max = 90, step = 5 }'
    )
)


def test_whole_numbers_are_matched_exactly_and_never_clamped() -> None:
    columns = {column.name: column for column in AGES.columns}
    head = ["age", "coordinate", "weight"]
    found = canonical([head, [35, "a", 1], ["40", "a", 2]], columns, "m")
    assert canonical(found, columns, "m") == found
    assert weights_of(found, [columns["age"]]) == {(7,): {"a": 1}, (8,): {"a": 2}}
    for wrong in (95, 37, "37", -5):
        with pytest.raises(PlanError, match="grid"):
            canonical([head, [wrong, "a", 1]], columns, "m")


TEXT = plan().text.split("[release.matrix]")[0]
FILE = '\n[release.m]\nkind = "query"\nmatrix = "{}"\n'
CSV = "region,coordinate,weight\nnorth,a,0.5\nsouth,b,-2\n"


def written(directory: Path, name: str) -> Path:
    path = directory / name
    if name.endswith("parquet"):
        columns = {"region": ["south", "north"], "coordinate": ["b", "a"], "weight": [-2.0, 0.5]}
        pq.write_table(pa.table(columns), path)
    else:
        path.write_text(CSV, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["weights.csv", "weights.parquet"])
def test_a_file_beside_the_plan_becomes_part_of_it(tmp_path: Path, name: str) -> None:
    written(tmp_path, name)
    path = tmp_path / "plan.toml"
    path.write_text(TEXT + FILE.format(name), encoding="utf-8")
    read = Plan.load(path)
    (tmp_path / name).unlink()
    again = Plan.loads(read.text)
    assert again == read
    assert Plan.from_dict(read.to_dict()) == read
    statistic = again.release("m").statistic
    assert isinstance(statistic, kinds.Query)
    assert statistic.matrix == (
        *(("region", "coordinate", "weight"), ("north", "a", "0.5"), ("south", "b", "-2")),
    )


def test_a_plan_that_is_no_file_names_no_other() -> None:
    with pytest.raises(PlanError, match="its rows"):
        Plan.loads(TEXT + FILE.format("weights.csv"))


@pytest.mark.parametrize("name", ["missing.csv", "missing.parquet", "broken.parquet"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"nothing")
    path = tmp_path / "plan.toml"
    path.write_text(TEXT + FILE.format(name), encoding="utf-8")
    with pytest.raises(PlanError, match=name):
        Plan.load(path)
