"""Commands that look: each prints for people and, with --json, one document."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from retrodp.views.export import COLUMNS
from tests.cli.running import PLAN, Desk, retrodp

ROWS = (
    "add,a,2024-01-01T08:00,ann,DE,1.5",
    "add,b,2024-01-02T09:00,bob,FR,2",
    "add,c,2024-01-04T09:00,cat,PL,2",
)


@pytest.fixture
def running(desk: Desk) -> Desk:
    """A store after round 3, with one update that waits."""
    assert desk.run(desk.rows("1.csv", *ROWS)).code == 0
    return desk


@pytest.mark.parametrize(
    "command", ["run", "ingest", "close", "forget", "status", "verify", "show", "check", "retire"]
)
def test_json_is_one_document_on_standard_output(running: Desk, command: str) -> None:
    file = running.rows("2.csv", ROWS[2])
    arguments: dict[str, list[object]] = {
        "run": [running.plan, file],
        "ingest": [file],
        "forget": ["--id", "a"],
        "retire": ["--yes"],
    }
    where = [running.plan] if command == "check" else ["--store", running.store]
    outcome = retrodp(command, *arguments.get(command, []), *where, "--json")
    assert outcome.code == 0
    assert outcome.document.get("error") is None
    plain = retrodp(command, *arguments.get(command, []), *where)
    assert plain.code in {0, 4}  # retired a moment ago
    assert not plain.raw.startswith(b"{")


def test_check_says_what_a_plan_costs_and_makes_nothing(desk: Desk) -> None:
    before = sorted(path.name for path in desk.directory.iterdir())
    outcome = retrodp("check", desk.plan, "--json")
    document = outcome.document
    assert [release["name"] for release in document["releases"]] == ["records", "by_country"]
    assert document["budget"]["epsilon"] == 1000
    assert document["retroactivity"] == {"records": "exact", "by_country": "exact"}
    assert sorted(path.name for path in desk.directory.iterdir()) == before


def test_status_says_what_is_open_and_what_waits(running: Desk) -> None:
    document = running.on_store("status", json=True).document
    assert (document["round"], document["horizon"], document["rounds_due"]) == (3, 5, 0)
    assert document["last_close"] == "2024-01-04T00:00:00+00:00"
    assert document["next_close"] == "2024-01-05T00:00:00+00:00"
    assert (document["waiting"], document["waiting_rounds"]) == (1, {"4": 1})
    assert (document["survivors"], document["forgets_waiting"]) == (2, 0)
    assert document["retired"] is False
    assert document["budget"]["total"] == {"epsilon": 1000, "delta": 1e-6}
    said = running.on_store("status").out
    assert "Round 4 is open" in said
    assert "1 update and 0 forget requests wait; 2 records survive." in said


def test_verify_writes_a_certificate(running: Desk) -> None:
    outcome = running.on_store("verify", json=True)
    assert outcome.code == 0
    assert (outcome.document["round"], outcome.document["releases_equal"]) == (3, True)
    stored = json.loads((running.store / "certificate.json").read_text())
    assert outcome.document | stored == outcome.document


def test_show_looks_at_one_round(running: Desk) -> None:
    assert running.on_store("show", json=True).document["round"] == 3
    assert running.on_store("show", round=1, json=True).document["round"] == 1
    assert running.on_store("show", round=9, json=True).code == 4


def test_export_prints_csv_and_json_lines(running: Desk) -> None:
    header, *rows = csv.reader(running.on_store("export").raw.decode().splitlines())
    assert tuple(header) == COLUMNS
    assert len(rows) == 3 * (1 + 4)  # a count, two countries, the others, and none
    assert rows[0][:5] == ["1", "2024-01-01T00:00:00+00:00", "by_country", "DE", "1"]
    lines = running.on_store("export", format="jsonl").raw.splitlines()
    assert [json.loads(line)["release"] for line in lines] == [row[2] for row in rows]


def test_export_selects_rounds_and_releases(running: Desk) -> None:
    def rounds(*arguments: object) -> list[str]:
        rows = running.on_store("export", "--release", "records", *arguments).raw.decode()
        return [row.split(",")[0] for row in rows.splitlines()[1:]]

    assert rounds("--latest") == ["3"]
    assert rounds("--from", 2) == ["2", "3"]
    assert rounds("--to", 2) == ["1", "2"]
    assert running.on_store("export", "--latest", "--to", 2).code == 2
    assert running.on_store("export", "--release", "nosuch").code == 2


def test_parquet_goes_into_a_file_only(running: Desk, ram: Path) -> None:
    refused = running.on_store("export", format="parquet")
    assert refused.code == 2
    assert "-o" in refused.said
    file = ram / "numbers.parquet"
    outcome = running.on_store("export", format="parquet", output=file, json=True)
    assert (outcome.code, outcome.document["rows"]) == (0, 15)
    assert pq.read_table(file).num_rows == 15


def test_an_export_to_a_file_is_the_one_on_standard_output(running: Desk, ram: Path) -> None:
    assert running.on_store("export", output=ram / "numbers.csv").code == 0
    assert (ram / "numbers.csv").read_bytes() == running.on_store("export").raw
    assert running.on_store("export", "--json").code == 2
    assert running.on_store("export", format="xlsx").code == 2


def test_an_export_never_lands_in_the_store(running: Desk) -> None:
    assert running.on_store("export", output=running.store / "x.csv").code == 2
    assert not (running.store / "x.csv").exists()


def test_a_plan_that_check_accepts_runs_under_pure_epsilon_too(desk: Desk) -> None:
    desk.plan.write_text(PLAN.replace("delta = 1e-6", 'model = "pure"'))
    assert retrodp("check", desk.plan).code == 0
    assert desk.run(desk.rows("1.csv", *ROWS)).code == 0
    assert desk.published() == {1: "1", 2: "2", 3: "2"}
