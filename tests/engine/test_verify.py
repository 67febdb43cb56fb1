"""Verification recomputes the current round from the survivors, and shows nothing of it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from retrodp.engine.store import Store
from retrodp.engine.verify import openable_rounds, verify
from retrodp.noise.key import KeyTree
from tests.support.mechanisms import pure
from tests.support.plans import HORIZON, KINDS, Kind, plan
from tests.support.rows import Row, add, delete, ingest
from tests.support.stores import ROOT, fingerprints, new_store, read_files
from tests.support.torn import unlinked


def filled(path: Path, kind: Kind = "ids", *, rounds: int = 3) -> Store:
    store = new_store(path, plan(kind))
    rows = [add(f"id{number}", 1 + number % 2, who=f"p{number}") for number in range(20)]
    ingest(store, rows if kind != "points" else [Row(round=row.round) for row in rows])
    store.close_through(rounds)
    return store


def changed(path: Path, name: str, statement: str) -> None:
    connection = sqlite3.connect(path / name)
    connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rounds", range(1, HORIZON + 1))
def test_every_round_verifies_right_after_its_close(ram: Path, kind: Kind, rounds: int) -> None:
    with filled(ram / "store", kind, rounds=rounds) as store:
        verified = verify(store)
    assert verified.passed
    assert verified.document["releases_equal"] is True


def test_before_the_first_close_there_is_nothing_to_compare(ram: Path) -> None:
    with new_store(ram / "store", plan()) as store:
        assert verify(store).document["releases_equal"] is None


def test_verifying_moves_no_mark_and_changes_no_file_but_the_certificate(ram: Path) -> None:
    with filled(ram / "store") as store:
        before = fingerprints(ram / "store")
        verify(store)
        after = fingerprints(ram / "store")
    assert after.pop("/certificate.json")
    assert after == before


def test_waiting_updates_of_every_kind_are_no_part_of_the_last_close(ram: Path) -> None:
    with filled(ram / "store") as store:
        ingest(store, [delete("id1", 4), add("new", 4), Row(op="replace", id="id2", round=4)])
        store.forget(["id3"], persons=["p4"])
        verified = verify(store)
    assert verified.document["releases_equal"] is True
    assert verified.passed


def test_tampered_survivors_are_told_by_release_and_row_and_never_by_value(ram: Path) -> None:
    path = ram / "store"
    with filled(path):
        pass
    unlinked(path / "ledger.sqlite", ["id1", "id2", "id3"])
    with Store.open(path) as store:
        verified = verify(store)
        [noisy] = (
            pure(store.releases[0])
            .release(3, {b"": 17}, KeyTree.from_root(ROOT, b"test-fixed", HORIZON))
            .values
        )
    assert not verified.passed
    assert verified.document["releases_equal"] is False
    assert verified.document["differing_rows"]["lines"] == [1]
    numbers = json.dumps(verified.document["differing_rows"]) + verified.document["what_it_means"]
    assert str(noisy) not in numbers.replace("[1]", "")


def test_a_published_round_that_was_changed_is_named(ram: Path) -> None:
    path = ram / "store"
    with filled(path):
        pass
    changed(path, "releases.sqlite", "DROP TRIGGER releases_UPDATE")
    changed(
        path,
        "releases.sqlite",
        "UPDATE releases SET answer = CAST(replace(answer, ':2', ':1') AS BLOB) WHERE round = 2",
    )
    with Store.open(path) as store:
        verified = verify(store)
    assert verified.document["changed_rounds"] == [2]
    assert not verified.passed


def test_few_past_rounds_can_still_be_opened_and_the_certificate_counts_them(ram: Path) -> None:
    with filled(ram / "store", rounds=5) as store:
        opened = openable_rounds(store)
        statement = verify(store).document["key"]
    assert statement["derives_rounds_from"] == 5
    assert statement["past_rounds_still_open"] == opened
    assert opened["lines_binary"] == 1  # round 4 of 6 is one node, used to the end
    assert max(opened.values()) <= 2


def test_the_certificate_names_every_file_that_was_scanned(ram: Path) -> None:
    with filled(ram / "store") as store:
        (ram / "store" / "stray").write_text("")
        scanned = verify(store).document["files_scanned"]
    present = [name.removeprefix("/") for name in read_files(ram / "store")]
    there = {f"store{name}" if name.startswith(".") else name for name in present}
    assert there - {"certificate.json"} <= set(scanned)
