"""`--allow-code`: without it a plan runs no code, with it only what the store was created with."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from retrodp.cli.app import run
from tests.support.plans import plan

MODULE = "allowed_in_a_test"
FUNCTION = """
from pathlib import Path
from retrodp import private

Path("ran").touch()

@private(epsilon="0.1", low=0, high=9)
def size(values, coins):
    return len(values)
"""
RELEASE = f"""
[release.size]
kind = "sample"
of = "amount"
function = "{MODULE}:size"
rate = 0.1
window = "2d"
"""
UPDATES = "id,at,who,product,country,amount,gift\n1,2024-01-01T10:00:00,ann,tea,DE,3,false\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    Path(f"{MODULE}.py").write_text(FUNCTION)
    Path("plan.toml").write_text(plan(releases=RELEASE, epsilon=1).text)
    Path("updates.csv").write_text(UPDATES)
    yield tmp_path
    sys.modules.pop(MODULE, None)


RUN = ["run", "plan.toml", "updates.csv", "--store", "s", "--through", "2024-01-02"]


@pytest.mark.parametrize("command", [["check", "plan.toml"], RUN])
def test_without_the_flag_no_code_runs(
    place: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command) == 2
    assert "--allow-code" in capsys.readouterr().err
    assert not Path("ran").exists()
    assert not Path("s").exists()


@pytest.mark.parametrize("place_of_flag", [0, 1, 99])
def test_the_flag_is_taken_before_and_after_the_command(place: Path, place_of_flag: int) -> None:
    command = [*RUN]
    command.insert(place_of_flag, "--allow-code")
    assert run(command) == 0
    assert Path("ran").exists()
    assert run(["close", "--store", "s", "--through", "2024-01-03"]) == 2
    assert run(["close", "--store", "s", "--through", "2024-01-03", "--allow-code"]) == 0
    assert run(["show", "--store", "s"]) == 0  # published answers need no code


def test_changed_code_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*RUN, "--allow-code"]) == 0
    sys.modules.pop(MODULE)
    Path(f"{MODULE}.py").write_text(FUNCTION.replace("len(values)", "9"))
    assert run(["close", "--store", "s", "--allow-code"]) == 4
    assert "not the one that the store was created with" in capsys.readouterr().err
