"""`verify --compact`: stores with the same survivors are the same ledger, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrodp.engine.store import Store
from retrodp.plan.plan import Plan
from tests.cli.running import Desk, retrodp, set_clock

LEFT = (
    "add,a,2024-01-01T08:00,eve,DE,1",
    "add,b,2024-01-02T09:00,bob,FR,2",
    "add,c,2024-01-03T10:00,,DE,3",
)
GONE = (
    "add,x,2024-01-01T08:00,mallory,FR,50",
    "delete,x,2024-01-02T08:00,,,",
    "delete,never,2024-01-02T11:00,,,",
    "add,y,2024-01-02T08:00,mallory,FR,60",
    "add,b,2024-01-01T07:00,bob,DE,9",
    "delete,b,2024-01-01T07:30,,,",
    "add,z,2024-01-01T12:00,zoe,DE,7",
)
THROUGH = ("--through", "2024-01-03")


def straight(desk: Desk) -> None:
    assert desk.run(desk.rows("1.csv", *LEFT), *THROUGH).code == 0


def winding(desk: Desk) -> None:
    """The same survivors after deletions, two requests to be forgotten, and many rewrites."""
    first = desk.rows("1.csv", *GONE, *reversed(LEFT))
    assert desk.run(first, "--through", "2024-01-01").code == 0
    assert desk.on_store("verify").code == 0
    assert desk.on_store("forget", "--id", "z").code == 0
    assert desk.on_store("close", "--through", "2024-01-02").code == 0
    assert desk.on_store("forget", "--person", "mallory").code == 0
    assert desk.on_store("close", *THROUGH).code == 0


def ledger(desk: Desk) -> bytes:
    return (desk.store / "ledger.sqlite").read_bytes()


@pytest.fixture
def desks(ram: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Desk, Desk]:
    set_clock(monkeypatch, "2024-01-04T12:00")
    return Desk.in_new(ram / "straight"), Desk.in_new(ram / "winding")


def test_histories_that_unite_leave_the_same_bytes(desks: tuple[Desk, Desk]) -> None:
    for desk, live in zip(desks, (straight, winding), strict=True):
        plan = Plan.loads(desk.plan.read_text(encoding="utf-8"))
        Store.create_for_tests(desk.store, plan).close()
        live(desk)
    one, other = desks
    assert ledger(one) != ledger(other)
    for desk in desks:
        outcome = desk.on_store("verify", compact=True)
        assert outcome.code == 0
        assert "its bytes follow from what it holds alone" in outcome.out
    assert ledger(one) == ledger(other)
    keys = {Path(f"{desk.store}.key").read_bytes() for desk in desks}
    assert len(keys) == 1


def test_of_real_stores_nothing_differs_but_their_names(desks: tuple[Desk, Desk]) -> None:
    names = []
    for desk, live in zip(desks, (straight, winding), strict=True):
        live(desk)
        names.append(desk.on_store("verify", compact=True, json=True).document["store"].encode())
    one, other = desks
    assert len(names[0]) == len(names[1])
    assert names[0] != names[1]
    assert ledger(one).replace(names[0], names[1]) == ledger(other)


def test_looking_afterwards_changes_nothing_and_the_store_goes_on(
    desks: tuple[Desk, Desk],
) -> None:
    _, desk = desks
    winding(desk)
    assert desk.on_store("verify", compact=True).code == 0
    before = ledger(desk)
    for command in ("status", "show", "verify"):
        assert desk.on_store(command).code == 0
    assert desk.on_store("verify", compact=True).code == 0
    assert ledger(desk) == before
    later = desk.rows("2.csv", "add,d,2024-01-04T09:00,,FR,4")
    assert desk.run(later, "--through", "2024-01-04").code == 0
    assert desk.published() == {1: "3", 2: "3", 3: "3", 4: "4"}
    assert desk.on_store("verify").code == 0


def test_what_waits_still_waits(desks: tuple[Desk, Desk]) -> None:
    desk, _ = desks
    straight(desk)
    waiting = desk.rows("2.csv", "add,d,2024-01-04T09:00,,FR,4")
    assert retrodp("ingest", waiting, "--store", desk.store).code == 0
    assert desk.on_store("forget", "--id", "a").code == 0
    assert desk.on_store("verify", compact=True).code == 0
    status = desk.on_store("status", json=True).document
    assert (status["waiting"], status["forgets_waiting"]) == (1, 1)
