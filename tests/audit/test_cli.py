"""The commands: one document, one table, and an exit code that says whether anything is accused."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from retrodp.audit import cases, faults, game, privacy, retroactivity, suite
from retrodp.audit.report import Row, document
from retrodp.audit.subjects import STREAMS, Filling, fillings
from retrodp.cli.app import run
from tests.audit.sizes import PLAYS, SEED

ROW = {"mechanism", "model", "factor", "test", "claim", "measured", "confidence", "verdict"}

ONES = ("count, auto", "sum, auto")


@cache
def outlined(*titles: str) -> list[cases.Outline]:
    return [one for one in cases.outlines(deep=False) if one.title in titles]


@cache
def few() -> list[Filling]:
    return [one for one in fillings() if one.title in retroactivity.CONTROL_TITLES]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits of a few seconds: a handful of releases, one fault."""
    tiny = replace(privacy.SMOKE, runs=4_000, windows=1, scales=())
    monkeypatch.setattr(privacy, "SMOKE", tiny)
    monkeypatch.setattr(game, "SMOKE", replace(PLAYS, plays=2_000, hunts=5, hidden=1_000))
    monkeypatch.setattr(faults, "FAULTS", faults.FAULTS[:1])
    monkeypatch.setattr(privacy, "outlines", lambda **_: outlined("count, auto"))
    monkeypatch.setattr(suite, "fillings", few)
    monkeypatch.setattr(suite, "compiled_fillings", list)
    monkeypatch.setattr(retroactivity, "fillings", few)
    size = retroactivity.Size(pairs=1, controls=1, streams={"zcdp": (), "pure": STREAMS[:1]})
    monkeypatch.setattr(retroactivity, "SMOKE", size)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("what", ["privacy", "retroactivity"])
def test_json_is_one_document_with_a_row_a_test(
    what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["audit", what, "--json", "--seed", SEED.hex])
    found = json.loads(capsys.readouterr().out)
    assert found["format"] == 1
    assert found["seed"] == SEED.hex
    assert found["passed"] == (code == 0)
    assert all(set(row) >= ROW for row in found["rows"])
    assert sum(found["counts"].values()) == len(found["rows"]) > 0
    assert found["counts"]["accused"] == 0


@pytest.mark.usefixtures("small")
def test_people_get_tables_and_the_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", "privacy"]) == 0
    printed = capsys.readouterr().out
    assert "neighbouring streams" in printed
    assert "adaptive game" in printed
    assert "planted faults" in printed
    assert "Again: --seed" in printed
    assert "No lower bound exceeds its claim in 2 plans" in printed
    assert "Power: 1 of 1 planted fault caught" in printed
    assert "accuse something sound with a probability of at most 0.002" in printed


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("what", ["privacy", "retroactivity"])
def test_what_cannot_be_made_here_is_left_out_aloud_and_changes_no_exit_code(
    what: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "sklearn" else real(name)
    )
    seed = ["--seed", SEED.hex]
    with monkeypatch.context() as everything_there:
        everything_there.setattr(importlib.util, "find_spec", real)
        code = run(["audit", what, *seed])
    assert "LEFT OUT" not in capsys.readouterr().out
    assert run(["audit", what, *seed]) == code
    printed = capsys.readouterr().out
    assert "1 left out" in printed
    assert "LEFT OUT: kmeans: Install it where retrodp is installed" in printed


@pytest.mark.usefixtures("small")
def test_the_same_seed_gives_the_same_document(capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for _ in range(2):
        run(["audit", "privacy", "--json", "--seed", SEED.hex])
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]


@pytest.mark.usefixtures("small")
def test_an_accusation_is_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real: Callable[..., list[Row]] = privacy.audit

    def accusing(*arguments: Any, **named: Any) -> list[Row]:
        return [replace(row, verdict="accused") for row in real(*arguments, **named)]

    monkeypatch.setattr(privacy, "audit", accusing)
    assert run(["audit", "privacy", "--seed", SEED.hex]) == 1
    assert "ACCUSED: count, auto" in capsys.readouterr().out


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("what", ["privacy", "retroactivity"])
def test_one_kind_alone_has_the_rows_of_that_kind_alone(
    what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["audit", what, "--only", "count", "--json", "--seed", SEED.hex])
    found = json.loads(capsys.readouterr().out)
    assert found["counts"]["accused"] == 0
    sound = [row for row in found["rows"] if not row["test"].startswith("planted fault")]
    assert sound
    assert {row["mechanism"] for row in sound} == {"count, auto"}
    assert found["only"] == "count"
    assert found["command"].endswith("--only count --json")


def test_a_row_is_the_same_whether_its_kind_is_audited_alone_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tiny = replace(privacy.SMOKE, runs=2_000, windows=1, scales=())
    monkeypatch.setattr(privacy, "outlines", lambda **_: outlined(*ONES))
    chosen = privacy.chosen_outlines(tiny, only="sum")
    alone = privacy.audit(SEED, tiny, chosen=chosen)
    whole = privacy.audit(SEED, tiny, chosen=privacy.chosen_outlines(tiny))
    counted = [row.details.get("counted") for row in alone if row.test == "neighbouring streams"]
    same = [
        row.details.get("counted")
        for row in whole
        if row.test == "neighbouring streams" and row.mechanism == "sum, auto"
    ]
    assert counted == same
    assert len(counted) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["privacy", "--only", "cuont"], "no kind 'cuont'"),
        (["privacy", "--only", "sample"], "runs on no release of kind 'sample'"),
    ],
)
def test_a_kind_that_is_not_audited_is_wrong_use(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit", *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("small")
def test_progress_says_how_much_is_left() -> None:
    said: list[str] = []
    suite.run("privacy", SEED, said.append, deep=False)
    assert "privacy, case 1 of 2: zcdp, count, auto" in said
    assert any(one.startswith("game 1 of 30") for one in said)
    assert any(one.startswith("planted fault 1 of 1") for one in said)


def test_a_seed_that_is_none_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", "privacy", "--seed", "x"]) == 2
    assert "no seed" in capsys.readouterr().err


def test_a_missed_fault_fails_the_audit_too() -> None:
    row = Row(
        mechanism="m",
        model="pure",
        factor="binary",
        test="planted fault",
        claim="",
        measured="",
        confidence=1.0,
        verdict="missed",
    )
    assert document([row], seed=SEED.hex, deep=False)["passed"] is False
    assert document([replace(row, verdict="as stated")], seed=SEED.hex, deep=False)["passed"]


def test_other_commands_start_without_the_audits() -> None:
    code = "import sys, retrodp.cli.app; print([m for m in sys.modules if m.startswith('retrodp.audit')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
