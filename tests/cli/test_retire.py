"""The end of a store: no key, no further round, on request no record; releases stay."""

from __future__ import annotations

import json

import pytest

from retrodp.engine import ending
from retrodp.engine.store import Store
from retrodp.errors import StoreRetiredError
from retrodp.store.keyfile import PlainKeyFile
from tests.cli.running import Desk, set_clock

ROWS = (
    "add,a,2024-01-01T08:00,annabella,DE,1.5",
    "add,b,2024-01-02T09:00,bob-the-tall,FR,2",
    "add,c,2024-01-04T09:00,cat-the-third,PL,2",
)


@pytest.fixture
def running(desk: Desk) -> Desk:
    """A store after round 3, with one update that waits."""
    assert desk.run(desk.rows("1.csv", *ROWS)).code == 0
    return desk


def key_of(desk: Desk) -> PlainKeyFile:
    return PlainKeyFile(desk.directory / "store.key")


def test_retiring_destroys_the_key_and_keeps_the_releases(running: Desk) -> None:
    before, old = running.on_store("export").raw, key_of(running).path.read_bytes()
    outcome = running.on_store("retire", yes=True, json=True)
    assert (outcome.code, outcome.document["retired"]) == (0, True)
    tree = key_of(running).read().tree
    assert (tree.cover, tree.lasting, tree.round) == ((), b"", 6)
    secrets = [piece for *_, piece in json.loads(old)["cover"]]
    assert secrets
    assert not [piece for piece in secrets if piece in key_of(running).path.read_text()]
    assert running.on_store("export").raw == before
    assert running.on_store("show").code == 0


@pytest.mark.parametrize("command", ["run", "ingest", "close"])
def test_a_retired_store_takes_nothing_in_and_closes_nothing(running: Desk, command: str) -> None:
    assert running.on_store("retire", yes=True).code == 0
    file = running.rows("2.csv", ROWS[2])
    arguments = {"run": (running.plan, file), "ingest": (file,), "close": ()}[command]
    outcome = running.on_store(command, *arguments, json=True)
    assert (outcome.code, outcome.document["code"]) == (4, "retired")
    assert outcome.document["do"]
    assert running.published() == {1: "1", 2: "2", 3: "2"}


def test_verify_still_scans_a_retired_store(running: Desk) -> None:
    assert running.on_store("retire", yes=True).code == 0
    outcome = running.on_store("verify", json=True)
    assert (outcome.code, outcome.document["releases_equal"]) == (0, None)
    assert outcome.document["key"]["derives_rounds_from"] is None


def test_records_stay_unless_they_are_to_be_erased(running: Desk) -> None:
    document = running.on_store("retire", yes=True, json=True).document
    assert (document["survivors"], document["waiting"], document["ledger_erased"]) == (2, 1, False)
    status = running.on_store("status", json=True).document
    assert (status["retired"], status["next_close"], status["rounds_due"]) == (True, None, 0)
    assert "was retired" in running.on_store("status").out


def test_erasing_the_ledger_leaves_no_byte_of_a_record(running: Desk) -> None:
    outcome = running.on_store("retire", yes=True, erase_ledger=True, json=True)
    assert (outcome.document["survivors"], outcome.document["waiting"]) == (0, 0)
    names = running.write("names.txt", '{"person": "annabella"}\n{"person": "cat-the-third"}\n')
    verified = running.on_store("verify", forgotten=names, json=True)
    assert verified.code == 0
    assert [entry["left_in"] for entry in verified.document["forgotten"]] == [[], []]
    files = [path for path in running.store.rglob("*") if path.is_file()]
    assert not [path for path in files if b"annabella" in path.read_bytes()]
    assert running.published() == {1: "1", 2: "2", 3: "2"}


def test_what_waits_to_be_forgotten_is_forgotten_at_once(running: Desk) -> None:
    """No round will close any more that could carry the request."""
    assert running.on_store("forget", "--person", "annabella").code == 0
    assert running.on_store("retire", yes=True, json=True).document["survivors"] == 1
    names = running.write("names.txt", '{"person": "annabella"}\n')
    assert running.on_store("verify", forgotten=names).code == 0


def test_a_request_after_retiring_is_carried_out_at_once(running: Desk) -> None:
    assert running.on_store("retire", yes=True).code == 0
    outcome = running.on_store("forget", "--id", "a", "--close", json=True)
    (receipt,) = outcome.document["receipts"]
    assert (outcome.code, receipt["from_round"], receipt["erased"]) == (0, None, True)
    assert running.on_store("status", json=True).document["survivors"] == 1


def test_retiring_twice_does_no_harm(running: Desk) -> None:
    assert running.on_store("retire", yes=True).code == 0
    outcome = running.on_store("retire", yes=True, erase_ledger=True, json=True)
    assert (outcome.code, outcome.document["survivors"]) == (0, 0)


def test_a_store_whose_horizon_is_over_can_be_retired(
    running: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock(monkeypatch, "2024-02-01T12:00")
    assert running.on_store("close").code == 0
    assert running.on_store("retire", yes=True).code == 0
    outcome = running.run(running.rows("2.csv", ROWS[2]), json=True)
    assert outcome.document["code"] == "retired"


def test_nobody_is_asked_without_a_terminal(running: Desk) -> None:
    outcome = running.on_store("retire", json=True)
    assert outcome.code == 2
    assert "--yes" in outcome.document["do"]
    assert running.on_store("status", json=True).document["retired"] is False


def test_an_old_copy_of_the_key_is_destroyed_when_it_comes_back(running: Desk) -> None:
    old = key_of(running).path.read_bytes()
    assert running.on_store("retire", yes=True).code == 0
    key_of(running).path.write_bytes(old)
    with Store.open(running.store) as store, pytest.raises(StoreRetiredError):
        store.close_round()
    assert key_of(running).read().tree.cover == ()


def test_an_interrupted_retirement_is_completed(
    running: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(PlainKeyFile, "rewrite", killed)
        assert running.on_store("retire", yes=True).code == 130
    assert key_of(running).read().tree.cover
    assert running.on_store("status", json=True).document["retired"] is True
    assert key_of(running).read().tree.cover == ()


def test_twin_a_store_that_only_says_it_is_retired_keeps_a_working_key(
    running: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ending, "destroy_key", lambda _: None)
    assert running.on_store("retire", yes=True).code == 0
    assert len(key_of(running).read().tree.round_key(5)) == 32
