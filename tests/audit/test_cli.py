"""The commands: one document, one table, and an exit code that says whether anything is accused."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from retrodp.audit import cases, faults, game, privacy, retroactivity
from retrodp.audit.report import Row, document
from retrodp.audit.subjects import STREAMS, fillings
from retrodp.cli.app import run
from tests.audit.sizes import PLAYS, SEED

ROW = {"mechanism", "model", "factor", "test", "claim", "measured", "confidence", "verdict"}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits of a few seconds: a handful of releases, one fault."""
    tiny = replace(privacy.SMOKE, runs=4_000, windows=1, scales=())
    monkeypatch.setattr(privacy, "SMOKE", tiny)
    monkeypatch.setattr(game, "SMOKE", replace(PLAYS, plays=2_000, hunts=5, hidden=1_000))
    monkeypatch.setattr(faults, "FAULTS", faults.FAULTS[:1])
    outlined = [one for one in cases.outlines(deep=False) if one.title == "count, auto"]
    monkeypatch.setattr(privacy, "outlines", lambda **_: outlined)
    few = [one for one in fillings() if one.title in retroactivity.CONTROL_TITLES]
    monkeypatch.setattr(retroactivity, "fillings", lambda: few)
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
    assert "LEFT OUT: kmeans: Install the extra: pip install 'retrodp[cluster]'." in printed


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

    def accusing(*arguments: Any) -> list[Row]:
        return [replace(row, verdict="accused") for row in real(*arguments)]

    monkeypatch.setattr(privacy, "audit", accusing)
    assert run(["audit", "privacy", "--seed", SEED.hex]) == 1
    assert "ACCUSED: count, auto" in capsys.readouterr().out


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
