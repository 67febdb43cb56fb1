"""`retrodp report`: a page, in one file, without a key."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.cli.running import PLAN, Desk, retrodp

ROWS = ("add,a,2024-01-01T08:00,ann,DE,1.5", "add,b,2024-01-02T09:00,bob,FR,2")


@pytest.fixture
def running(desk: Desk) -> Desk:
    assert desk.run(desk.rows("1.csv", *ROWS)).code == 0
    return desk


def test_it_writes_a_page_without_key_and_ledger_and_says_what_is_in_it(
    running: Desk, tmp_path: Path
) -> None:
    Path(f"{running.store}.key").unlink()
    (running.store / "ledger.sqlite").unlink()
    page = tmp_path / "page.html"
    told = retrodp("report", "--store", running.store, "-o", page)
    assert told.code == 0
    assert f"in {page}" in told.out
    assert " charts and " in told.out
    assert page.read_bytes().startswith(b"<!DOCTYPE html>")


def test_the_same_twice_writes_the_same_and_json_describes_it(
    running: Desk, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    arguments = ["report", "--store", running.store, "-o", page, "--title", "Tea & <jam>", "--json"]
    first, second = retrodp(*arguments), retrodp(*arguments)
    document = json.loads(first.out)
    assert json.loads(second.out) == document
    assert document["format"] == 1
    assert document["round"] == 3
    assert document["sha256"] == hashlib.sha256(page.read_bytes()).hexdigest()
    assert b"<h1>Tea &amp; &lt;jam&gt;</h1>" in page.read_bytes()


def test_rounds_that_are_late_are_named(desk: Desk, tmp_path: Path) -> None:
    assert desk.run(desk.rows("1.csv", *ROWS), "--through", "2024-01-02").code == 0
    page = tmp_path / "page.html"
    assert retrodp("report", "--store", desk.store, "-o", page).code == 0
    assert "Round 3 is over by the calendar and not published yet" in page.read_text("utf-8")


def test_a_place_that_cannot_be_written_and_a_store_that_is_none_are_wrong_use(
    running: Desk, tmp_path: Path
) -> None:
    nowhere = retrodp("report", "--store", running.store, "-o", tmp_path / "no" / "page.html")
    assert (nowhere.code, "could not be written" in nowhere.err) == (2, True)
    none = retrodp("report", "--store", tmp_path, "-o", tmp_path / "page.html")
    assert (none.code, "holds no store" in none.err) == (2, True)


@pytest.mark.usefixtures("desk")  # for its clock
def test_budgets_of_epochs_add_up_and_their_rounds_are_told_apart(tmp_path: Path) -> None:
    short = PLAN.replace("horizon = 5", "horizon = 3")
    ended = Desk.in_new(tmp_path / "ended", short)
    assert ended.run(ended.rows("1.csv", *ROWS), "--through", "2024-01-03").code == 0
    successor = PLAN.replace("start = 2024-01-01", "start = 2024-01-04").replace(
        "epsilon = 1000", "epsilon = 500"
    )
    then = ended.write("then.toml", successor.replace("[release.records]", "[release.all]"))
    assert retrodp("continue", then, "--store", ended.store, "--yes").code == 0
    page = tmp_path / "page.html"
    assert retrodp("report", "--store", ended.store, "-o", page).code == 0
    text = page.read_text("utf-8")
    assert "<dd>ε 1500<small>, δ 2e-6</small></dd>" in text
    assert "An earlier epoch, rounds up to 3: epsilon 1000 and delta 1e-6." in text
    assert "Rounds up to 3 belong to earlier epochs" in text
    assert "(zCDP with rho" not in text
