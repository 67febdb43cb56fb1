"""A first plan from a file's columns: valid TOML, nothing of the values, open where only people know."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrodp.plan.draft import OPEN, FileColumn, Kind, draft, guess_fields
from retrodp.plan.plan import Plan
from tests.cli.running import Outcome, retrodp

CSV = (
    "op,id,at,customer,StockCode,quantity,price,gift,born,seen\n"
    "add,1,2026-01-01T10:00,zorro,85123A,6,2.55,true,1990-01-01,2026-01-01T10:00\n"
    "add,2,2026-01-01T11:00,zelda,00017,-7,3,false,1991-01-01,2026-01-01T10:00\n"
)
ANSWERS = {
    "start": "2026-01-01",
    "horizon": "30",
    "epsilon": "1.0",
    "delta": "1e-9",
    "min": "0",
    "max": "100",
    "step": "0.01",
}


def drafted(directory: Path, text: str = CSV, *options: object) -> tuple[Outcome, str]:
    file, plan = directory / "rows.csv", directory / "plan.toml"
    file.write_text(text)
    outcome = retrodp("new", plan, "--from", file, *options)
    return outcome, plan.read_text() if plan.exists() else ""


def filled_in(text: str) -> str:
    """The draft with every open value replaced by a good one, key by key."""
    lines = []
    for line in text.split("\n"):
        for key, value in ANSWERS.items():
            start = line.find(f'{key} = "{OPEN}')
            if start >= 0:
                end = line.index('"', start + len(key) + 4) + 1
                line = f"{line[:start]}{key} = {value}{line[end:]}"  # noqa: PLW2901
        lines.append(line)
    return "\n".join(lines)


def test_a_draft_has_the_columns_with_the_types_of_their_form(tmp_path: Path) -> None:
    outcome, text = drafted(tmp_path, CSV, "--json")
    assert outcome.code == 0
    document = outcome.document
    assert document["columns"] == {
        "customer": "text",
        "StockCode": "text",
        "quantity": "integer",
        "price": "number",
        "gift": "boolean",
        "born": "date",
    }
    assert document["fields"] == {"id": "id", "op": "op", "at": "at"}
    assert document["left_out"] == ["seen"]
    assert set(document["fill_in"]) == {
        *("stream.start", "stream.horizon", "privacy.epsilon", "privacy.delta"),
        *("columns.quantity.min", "columns.quantity.max"),
        *("columns.price.min", "columns.price.max", "columns.price.step"),
    }
    assert tomllib.loads(text)["columns"].keys() == document["columns"].keys()


def test_a_draft_holds_nothing_of_the_values(tmp_path: Path) -> None:
    outcome, text = drafted(tmp_path)
    told = [word for word in ("zorro", "zelda", "85123A", "00017", "2.55", "1990") if word in text]
    assert told == []
    assert "zorro" not in outcome.out


def test_drafts_of_files_that_differ_in_their_values_alone_are_equal(tmp_path: Path) -> None:
    other = CSV.replace("zorro", "anna").replace("2.55", "99999.5").replace(",6,", ",1000000,")
    texts = []
    for number, text in enumerate((CSV, other)):
        (tmp_path / str(number)).mkdir()
        texts.append(drafted(tmp_path / str(number), text)[1])
    assert texts[0] == texts[1] != ""


def test_check_refuses_a_draft_and_says_what_is_to_be_filled_in(tmp_path: Path) -> None:
    drafted(tmp_path)
    outcome = retrodp("check", tmp_path / "plan.toml")
    assert outcome.code == 2
    assert f"'{OPEN}" in outcome.said


def test_a_draft_that_was_filled_in_is_a_plan_and_runs(tmp_path: Path) -> None:
    _, text = drafted(tmp_path)
    (tmp_path / "plan.toml").write_text(filled_in(text))
    assert retrodp("check", tmp_path / "plan.toml").code == 0
    run = ("run", tmp_path / "plan.toml", tmp_path / "rows.csv", "--store", tmp_path / "store")
    outcome = retrodp(*run, "--through", "2026-01-01")
    assert outcome.code == 0
    assert "2 accepted" in outcome.out


@pytest.mark.parametrize("key", [*ANSWERS])
def test_every_open_value_alone_is_refused(tmp_path: Path, key: str) -> None:
    _, text = drafted(tmp_path)
    good = ANSWERS[key]
    broken = filled_in(text).replace(f"{key} = {good}", f'{key} = "{OPEN}something"')
    (tmp_path / "plan.toml").write_text(broken)
    outcome = retrodp("check", tmp_path / "plan.toml")
    assert outcome.code == 2
    assert f".{key} is '{OPEN}" in outcome.said


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text("mine")
    outcome, text = drafted(tmp_path)
    assert (outcome.code, text) == (2, "mine")
    assert "never overwritten" in outcome.said


def test_reserved_fields_are_taken_from_the_columns_that_are_named(tmp_path: Path) -> None:
    text = "InvoiceNo,InvoiceDate,Customer ID,n\nA1,2026-01-01 10:00,17,4\n"
    options = ("--id", "InvoiceNo", "--at", "InvoiceDate", "--person", "Customer ID")
    outcome, text = drafted(tmp_path, text, *options)
    assert outcome.code == 0
    plan = Plan.loads(filled_in(text))
    assert plan.reserved["id"] == "InvoiceNo"
    assert plan.reserved["at"] == "InvoiceDate"
    assert plan.stream.person == "Customer ID"
    assert plan.column("Customer ID").type == "text"
    # The file's own column n is data, under another name: n is a field of every update.
    assert plan.column("n_").from_ == "n"


def test_a_date_for_an_arrival_gets_an_order_within_the_day(tmp_path: Path) -> None:
    _, text = drafted(tmp_path, "id,date\n1,2026-01-01\n")
    plan = Plan.loads(filled_in(text))
    assert plan.stream.date_only_at
    assert plan.reserved["at"] == "date"


def test_a_file_without_ids_makes_a_stream_without_ids(tmp_path: Path) -> None:
    _, text = drafted(tmp_path, "time,n,page\n2026-01-01,3,home\n", "--no-ids")
    plan = Plan.loads(filled_in(text))
    assert (plan.stream.ids, plan.stream.unit) == (False, "operation")
    assert (plan.reserved["at"], plan.reserved["n"]) == ("time", "n")


def test_what_no_column_looks_like_stays_open(tmp_path: Path) -> None:
    outcome, _ = drafted(tmp_path, "x\n1\n", "--json")
    assert {"columns.id", "columns.at"} <= {*outcome.document["fill_in"]}
    assert retrodp("check", tmp_path / "plan.toml").code == 2


@pytest.mark.parametrize(
    "options", [("--id", "nosuch"), ("--id", "x", "--at", "x"), ("--person", "nosuch")]
)
def test_a_column_that_is_not_there_is_wrong_use(tmp_path: Path, options: tuple[str, ...]) -> None:
    outcome, text = drafted(tmp_path, "x,y\n1,2\n", *options)
    assert (outcome.code, text) == (2, "")


def test_parquet_and_arrow_tell_their_types_without_a_row(tmp_path: Path) -> None:
    schema = pa.schema(
        {
            "id": pa.int64(),
            "at": pa.timestamp("us"),
            "amount": pa.float32(),
            "pieces": pa.int16(),
            "name": pa.dictionary(pa.int32(), pa.string()),
            "price": pa.decimal128(9, 2),
            "day": pa.date32(),
            "gift": pa.bool_(),
        }
    )
    pq.write_table(schema.empty_table(), tmp_path / "rows.parquet")
    with pa.ipc.new_file(tmp_path / "rows.arrow", schema) as writer:
        writer.write_table(schema.empty_table())
    found = [
        retrodp(
            *("new", tmp_path / f"{form}.toml", "--from", tmp_path / f"rows.{form}", "--json")
        ).document["columns"]
        for form in ("parquet", "arrow")
    ]
    assert (
        found[0]
        == found[1]
        == {
            "amount": "number",
            "pieces": "integer",
            "name": "text",
            "price": "number",
            "day": "date",
            "gift": "boolean",
        }
    )


@pytest.mark.parametrize("text", ["", "a,a\n1,2\n"])
def test_a_file_without_usable_columns_is_refused(tmp_path: Path, text: str) -> None:
    outcome, plan = drafted(tmp_path, text)
    assert (outcome.code, plan) == (2, "")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for name in ("no.csv", "no.parquet", "no.arrow"):
        outcome = retrodp("new", tmp_path / "plan.toml", "--from", tmp_path / name)
        assert outcome.code == 2


def test_on_a_terminal_it_asks_and_an_empty_answer_leaves_a_key_open(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("key,when,price\n1,2026-01-01T08:00,2.5\n")
    answers = ["key", "when", "2026-01-01", "30", "0", "500", "", "1.0", "1e-9"]
    plan = tmp_path / "plan.toml"
    outcome = retrodp(
        *("new", plan, "--from", tmp_path / "rows.csv"),
        stdin="\n".join(answers) + "\n",
        terminal=True,
    )
    assert outcome.code == 0
    tables = tomllib.loads(plan.read_text())
    assert tables["columns"]["id"] == {"from": "key"}
    assert (tables["stream"]["horizon"], tables["privacy"]["delta"]) == (30, 1e-9)
    assert tables["columns"]["price"]["max"] == 500
    assert tables["columns"]["price"]["step"].startswith(OPEN)
    assert "columns.price.step" in outcome.out


NAMES = st.lists(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=0, max_size=8),
    unique=True,
    min_size=1,
    max_size=6,
)
KINDS: st.SearchStrategy[Kind] = st.sampled_from(
    ["text", "integer", "number", "boolean", "date", "time"]
)


@given(names=NAMES, data=st.data(), ids=st.booleans(), source=st.text(max_size=12))
def test_any_columns_give_toml_that_is_a_plan_once_filled_in(
    *, names: list[str], data: st.DataObject, ids: bool, source: str
) -> None:
    columns = [FileColumn(name, data.draw(KINDS)) for name in names]
    fields = guess_fields(names, {}, ids=ids)
    written = draft(columns, fields, source=source)
    tables = tomllib.loads(written.text)
    assert tables["release"]["records"] == {"kind": "count"}
    text = filled_in(written.text)
    for field in {"id", "at"} - {*fields.names}:
        text = text.replace(
            f'{field} = "{OPEN}', f'{field} = {{ from = "the column of {field}" }} # "'
        )
    plan = Plan.loads(text)
    assert len(plan.columns) == len(written.columns)
    assert {column.from_ for column in plan.columns} <= {*names}
