"""The daily command over the borders of epochs, and the one that goes on after the last round."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from tests.cli.running import PLAN, Desk, retrodp, set_clock

OPEN = PLAN.replace("horizon = 5", 'horizon = "open"').replace(
    "[columns]", "[stream.epochs]\nfirst = 2\nnumber = 3\n\n[columns]", 1
)
ROWS = (
    "add,a,2024-01-01T08:00,ann,DE,1.5",
    "add,b,2024-01-02T09:00,bob,FR,2",
    "add,c,2024-01-04T09:00,cyd,PL,2",
    "add,d,2024-01-08T09:00,dan,DE,2",
)
NEXT = PLAN.replace("start = 2024-01-01", "start = 2024-01-06").replace(
    "epsilon = 1000", "epsilon = 500"
)


@pytest.fixture
def open_desk(tmp_path: Path) -> Desk:
    return Desk.in_new(tmp_path / "open", OPEN)


@pytest.fixture
def over(tmp_path: Path) -> Desk:
    """A store whose five rounds are closed."""
    desk = Desk.in_new(tmp_path / "over")
    assert desk.run(desk.rows("1.csv", *ROWS[:3]), "--through", "2024-01-05").code == 0
    return desk


def exported(desk: Desk) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(desk.on_store("export").raw.decode())))


def test_the_daily_command_simply_goes_on_over_every_border(
    open_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = open_desk.rows("all.csv", *ROWS)
    for day in range(2, 12):
        set_clock(monkeypatch, f"2024-01-{day:02}T04:15")
        assert open_desk.run(rows).code == 0
        status = open_desk.on_store("status", json=True).document
        assert (status["round"], status["rounds_due"]) == (day - 1, 0)
        assert status["next_close"] == f"2024-01-{day + 1:02}T00:00:00+00:00"
        assert open_desk.on_store("verify").code == 0
    found = [row for row in exported(open_desk) if row["release"] == "records"]
    assert [row["value"] for row in found] == ["1", "2", "2", "3", "3", "3", "3", "4", "4", "4"]
    assert [row["round"] for row in found] == [str(round_) for round_ in range(1, 11)]
    assert found[-1]["round_start"] == "2024-01-10T00:00:00+00:00"
    shown = open_desk.on_store("show")
    assert "Round 10 of 14 (epoch 3 of at most 3, each twice as long)" in shown.out
    assert "All epochs together spend epsilon 1000 and delta 1e-6: one budget." in shown.out


def test_at_a_border_nothing_says_that_the_horizon_is_over(
    open_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock(monkeypatch, "2024-01-03T12:00")
    assert open_desk.run(open_desk.rows("1.csv", *ROWS)).code == 0
    status = open_desk.on_store("status")
    assert "Round 2 of 2 is closed." in status.out
    assert "Round 3 is open and ends 2024-01-04" in status.out
    shown = open_desk.on_store("show", json=True).document
    assert shown["gaps"]["open"] == 3
    assert shown["gaps"]["goes_on"] is True
    assert "horizon is over" not in open_desk.on_store("show").out


def test_check_says_what_each_epoch_may_spend(open_desk: Desk) -> None:
    outcome = retrodp("check", open_desk.plan)
    assert outcome.code == 0
    assert "All epochs together, up to 3 of them, spend epsilon 1000" in outcome.out
    assert "epoch 3: 8 rounds, to round 14, has 33.33% of it" in outcome.out
    document = retrodp("check", open_desk.plan, "--json").document
    assert [own["share"] for own in document["epochs"]] == ["1/3"] * 3


def test_a_successor_plan_goes_on_and_both_budgets_are_printed(over: Desk) -> None:
    plan = over.write("next.toml", NEXT)
    checked = retrodp("check", plan, "--after", over.store)
    assert "All epochs together spend epsilon 1500 and delta 2e-6" in checked.out
    refused = over.on_store("continue", plan)
    assert (refused.code, "--yes" in refused.said) == (2, True)
    outcome = over.on_store("continue", plan, yes=True)
    assert outcome.code == 0
    assert "Epoch 2 has begun: rounds 6 to 10, from 3 surviving records." in outcome.out
    assert "Spent before: epsilon 1000, delta 1e-06." in outcome.out
    assert "This epoch: epsilon 500, delta 1e-06." in outcome.out
    assert "All epochs together spend epsilon 1500 and delta 2e-6" in outcome.out
    again = over.on_store("continue", plan, yes=True)
    assert (again.code, "nothing was changed" in again.out) == (0, True)

    rows = over.rows("2.csv", *ROWS[3:])
    assert retrodp("run", plan, rows, "--store", over.store, "--through", "2024-01-08").code == 0
    assert over.published() == dict(enumerate("12233334", start=1))
    assert over.on_store("verify").code == 0
    for command in ("status", "show"):
        assert "epsilon 1500" in over.on_store(command).out
    wrong = retrodp("run", over.plan, rows, "--store", over.store)
    assert wrong.code == 4


def test_a_plan_that_starts_elsewhere_is_refused_before_anything_is_asked(over: Desk) -> None:
    plan = over.write("next.toml", NEXT.replace("2024-01-06", "2024-01-07"))
    outcome = over.on_store("continue", plan, yes=True, json=True)
    assert (outcome.code, outcome.document["code"]) == (4, "plan_changed")
    assert over.on_store("status", json=True).document["epoch"] == 1


def test_a_store_with_rounds_to_come_says_how_many(over: Desk, tmp_path: Path) -> None:
    desk = Desk.in_new(tmp_path / "young")
    assert desk.run(desk.rows("1.csv", *ROWS[:1]), "--through", "2024-01-02").code == 0
    outcome = desk.on_store("continue", desk.write("next.toml", NEXT), yes=True, json=True)
    assert outcome.code == 2
    assert "3 rounds" in outcome.document["what"]


def test_what_forbids_a_successor_is_said_before_anybody_is_asked_to_agree(
    tmp_path: Path,
) -> None:
    desk = Desk.in_new(tmp_path / "young")
    assert desk.run(desk.rows("1.csv", *ROWS[:1]), "--through", "2024-01-02").code == 0
    outcome = desk.on_store("continue", desk.write("next.toml", NEXT))
    assert (outcome.code, "--yes" in outcome.said) == (2, False)
    assert "3 rounds" in outcome.said


def test_an_open_horizon_needs_no_plan_after_it_and_check_says_so(
    open_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock(monkeypatch, "2024-01-03T12:00")
    assert open_desk.run(open_desk.rows("1.csv", *ROWS)).code == 0
    plan = open_desk.write("next.toml", NEXT)
    outcome = retrodp("check", plan, "--after", open_desk.store)
    assert outcome.code == 2
    assert "goes on by itself" in outcome.said
