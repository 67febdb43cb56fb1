"""Back-up and restore as the documents tell it: by the shell, while the store is in use."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from retrodp.store.releases import ReleasesReader
from tests.cli.running import PLAN, Desk, retrodp

PAGE = Path(__file__).parents[2] / "docs" / "keys-and-backups.md"
ROWS = (
    "add,a,2024-01-01T08:00,annabella,DE,1.5",
    "add,b,2024-01-02T09:00,bob-the-tall,FR,2",
    "add,c,2024-01-03T09:00,cat-the-third,PL,2",
    "add,d,2024-01-04T09:00,dan,DE,2",
)
NEXT = PLAN.replace("start = 2024-01-01", "start = 2024-01-03").replace(
    "epsilon = 1000", "epsilon = 500"
)

IN_USE = """
import sys, time
from retrodp.engine.store import Store
with Store.open(sys.argv[1]) as store:
    print("open", flush=True)
    time.sleep(0.3)
    store.close_round()
"""


def script() -> str:
    """The commands of the page that copy a store."""
    (found,) = re.findall(r"```sh\n(# copies of the store.*?)```", PAGE.read_text(), re.DOTALL)
    return str(found)


def back_up(desk: Desk, name: str = "copies") -> Path:
    """Copy the store as the page tells it; returns the directory of the copies."""
    copies = desk.directory / name
    environment = os.environ | {
        "STORE": str(desk.store),
        "COPY": str(copies),
        "KEY_COPY": str(copies / "keys"),
    }
    subprocess.run(["sh", "-eu", "-c", script()], env=environment, check=True, timeout=60)
    return copies


@contextmanager
def in_use(desk: Desk) -> Iterator[None]:
    """Another process that holds the store and closes a round."""
    command = [sys.executable, "-c", IN_USE, str(desk.store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield
    assert process.returncode == 0


def lose(desk: Desk) -> None:
    shutil.rmtree(desk.store)
    (desk.directory / "store.key").unlink()


def put_back(desk: Desk, copies: Path) -> None:
    shutil.copytree(copies / "store", desk.store)
    shutil.copy2(copies / "keys" / "store.key", desk.directory)


@pytest.fixture
def backed_up(desk: Desk) -> Desk:
    """A store after round 2, and a copy of it."""
    assert desk.run(desk.rows("1.csv", *ROWS[:2]), through="2024-01-02").code == 0
    back_up(desk)
    return desk


def test_a_copy_waits_for_the_command_that_is_running(desk: Desk) -> None:
    assert desk.run(desk.rows("1.csv", *ROWS[:2]), through="2024-01-01").code == 0
    with in_use(desk):
        copies = back_up(desk)
    with ReleasesReader(copies / "store" / "releases.sqlite") as copy:
        assert copy.rounds() == [1, 2]
    lose(desk)
    put_back(desk, copies)
    assert desk.on_store("restore", last_round=2).code == 0


def test_a_store_that_was_lost_goes_on_as_it_was(backed_up: Desk) -> None:
    desk = backed_up
    lose(desk)
    put_back(desk, desk.directory / "copies")
    assert desk.on_store("status").code == 4
    outcome = desk.on_store("restore", last_round=2)
    assert outcome.code == 0
    assert "The store goes on after round 2, under its key and budget." in outcome.out
    assert "every update that arrived from 2024-01-03T00:00:00+00:00 on" in outcome.out
    assert "Repeat every forget request" in outcome.out
    assert desk.run(desk.rows("2.csv", *ROWS)).code == 0
    assert desk.published() == {1: "1", 2: "2", 3: "3"}
    assert desk.on_store("verify").code == 0


@pytest.mark.parametrize("last_round", ["3", "unknown"])
def test_a_store_of_which_more_was_published_goes_on_in_a_new_epoch(
    backed_up: Desk, last_round: str
) -> None:
    desk = backed_up
    assert desk.run(desk.rows("2.csv", *ROWS)).code == 0  # round 3 is out
    receipts = desk.on_store("forget", "--person", "annabella", json=True).document["receipts"]
    lose(desk)
    put_back(desk, desk.directory / "copies")
    refused = desk.on_store("restore", last_round=last_round, json=True)
    assert (refused.code, refused.document["code"]) == (4, "store_behind")
    assert "--plan" in refused.document["do"]

    plan, into = desk.write("next.toml", NEXT), desk.directory / "into"
    asked = desk.write("receipts.jsonl", f'{{"person": "{receipts[0]["value"]}"}}\n')
    outcome = desk.on_store(
        "restore", last_round=last_round, plan=plan, into=into, forgotten=asked, yes=True
    )
    assert outcome.code == 0
    assert "all epochs together spend epsilon 1500, delta 2e-06" in outcome.out
    again = Desk(desk.directory, NEXT)
    again.store = into
    assert again.run(desk.rows("2.csv", *ROWS)).code == 3  # rounds 1 and 2 are before its start
    assert again.published() == {1: "2"}
    assert again.on_store("verify", forgotten=asked).code == 0
    assert "All epochs together spend epsilon 1500" in again.on_store("status").out
    assert desk.on_store("status", json=True).document["retired"] is True
    assert desk.on_store("close").code == 4


def test_a_constant_secret_opens_its_back_up(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETRODP_TEST", "0123456789abcdef" * 4)
    key, file = "env:RETRODP_TEST", desk.rows("1.csv", *ROWS)
    assert desk.run(file, through="2024-01-02", key=key).code == 0
    copy = desk.directory / "copy"
    shutil.copytree(desk.store, copy)
    shutil.copy2(desk.directory / "store.mark", desk.directory / "copy.mark")
    assert desk.run(file, key=key).code == 0
    command = ("restore", "--store", copy, "--key", key)
    assert retrodp(*command, "--last-round", 3).code == 4
    new = ("--plan", desk.write("next.toml", NEXT), "--into", desk.directory / "into", "--yes")
    assert retrodp(*command, "--last-round", 3, *new, "--into-key", key).code == 0
    assert (desk.directory / "into.mark").exists()
    assert retrodp("status", "--store", desk.directory / "into", "--key", key).code == 0


def test_restore_is_one_document_with_json(backed_up: Desk) -> None:
    desk = backed_up
    lose(desk)
    put_back(desk, desk.directory / "copies")
    document = desk.on_store("restore", last_round=2, json=True).document
    assert (document["how"], document["round"], document["why"]) == ("as_is", 2, None)
    assert document["budget"]["total"] == {"epsilon": 1000, "delta": 1e-6}


def test_somebody_at_the_terminal_is_asked(backed_up: Desk) -> None:
    desk = backed_up
    command = ("restore", "--store", desk.store)
    unasked = retrodp(*command, "--json")
    assert (unasked.code, unasked.document["code"]) == (2, "usage")
    assert "Last round published anywhere" in retrodp(*command, stdin="2\n", terminal=True).said
    new = (*command, "--plan", desk.write("next.toml", NEXT), "--into", desk.directory / "into")
    declined = retrodp(*new, stdin="unknown\nn\n", terminal=True)
    assert (declined.code, "Nothing was changed." in declined.said) == (2, True)
    assert not (desk.directory / "into").exists()
    assert retrodp(*new, stdin="unknown\ny\n", terminal=True).code == 0


@pytest.mark.parametrize(
    "options",
    [
        ["--last-round", "two"],
        ["--last-round", "-1"],
        ["--last-round", "9"],
        ["--last-round", "2", "--plan", "next.toml"],
        ["--last-round", "2", "--into", "elsewhere"],
        ["--last-round", "2", "--erase-ledger"],
        ["--last-round", "2", "--into-key", "x"],
        ["--last-round", "2", "--forgotten", "nowhere"],
    ],
)
def test_what_makes_no_sense_is_wrong_use(backed_up: Desk, options: list[str]) -> None:
    assert backed_up.on_store("restore", *options).code == 2
    assert backed_up.on_store("status", json=True).document["retired"] is False
