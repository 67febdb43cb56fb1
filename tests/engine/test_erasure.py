"""What was forgotten is in no byte of any file but published releases, and verify proves it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retrodp.engine.forget import Forgotten
from retrodp.engine.store import Store
from retrodp.engine.verify import check_certificate, verify
from tests.support.plans import HORIZON, Kind, plan
from tests.support.rows import Contents, Row, add, delete, ingest
from tests.support.stores import new_store, read_files
from tests.support.torn import unlinked

ID, PERSON, VALUE = "order-4711-secret", "Eve Adamczyk-Nowak", "rare-orchid-77"
SECRETS = (ID.encode(), PERSON.encode(), VALUE.encode())
REQUESTS = [Forgotten("id", ID), Forgotten("person", PERSON), Forgotten("value", VALUE)]
HERS = Contents(who=PERSON, product=VALUE)
OTHERS = [add(f"other-{number:03d}", 1 + number % 2, who=f"person{number}") for number in range(90)]


def hers(round_: int, *, stamp: int | None = None) -> Row:
    return Row(id=ID, round=round_, stamp=stamp, contents=HERS)


def where_left(path: Path) -> dict[str, list[bytes]]:
    """Files, published releases apart, in which something forgotten still stands."""
    files = {name: content for name, content in read_files(path).items() if name != RELEASES}
    found = {
        name: [secret for secret in SECRETS if secret in content] for name, content in files.items()
    }
    return {name: secrets for name, secrets in found.items() if secrets}


RELEASES = "/releases.sqlite"


def forget_person(store: Store) -> None:
    store.forget(persons=[PERSON])
    store.close_round()


def forget_id(store: Store) -> None:
    store.forget([ID])
    store.close_round()


def delete_row(store: Store) -> None:
    ingest(store, [delete(ID, store.round + 1, who=PERSON)])
    store.close_round()


def forget_twice_and_the_unknown(store: Store) -> None:
    store.forget([ID, "unknown"], persons=[PERSON])
    store.forget([ID])
    store.close_round()


def forget_while_more_arrives(store: Store) -> None:
    ingest(store, [hers(store.round + 1)])
    store.forget(persons=[PERSON])
    ingest(store, [hers(store.round + 1, stamp=1)])
    store.close_round()


def forget_what_waits_for_later(store: Store) -> None:
    ingest(store, [hers(store.round + 2)])
    store.forget([ID])
    store.close_round()


def replaced(store: Store) -> None:
    harmless = Contents(who="someone", product="tea")
    row = Row(op="replace", id=ID, round=store.round + 1, contents=harmless)
    ingest(store, [row])
    store.close_round()
    forget_id(store)


WAYS: list[Callable[[Store], None]] = [
    forget_person,
    forget_id,
    delete_row,
    forget_twice_and_the_unknown,
    forget_while_more_arrives,
    forget_what_waits_for_later,
    replaced,
]


def with_her(path: Path, kind: Kind = "ids", *, rounds: int = 2) -> Store:
    """An open store in which her record and many others survive."""
    store = new_store(path, plan(kind))
    ingest(store, [*OTHERS, hers(1)])
    store.close_through(rounds)
    store.settle()
    return store


@pytest.mark.parametrize("kind", ["ids", "persons"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_no_byte_is_left_once_the_store_is_settled(
    ram: Path, kind: Kind, way: Callable[[Store], None]
) -> None:
    path = ram / "store"
    with with_her(path, kind) as store:
        assert where_left(path) != {}
        way(store)
        store.settle()
        # While the store is open its log may be full of zeros, but of nothing else.
        assert where_left(path) == {}
        verified = verify(store, REQUESTS)
        assert verified.passed
        assert verified.document["releases_equal"] is True
        assert [entry["left_in"] for entry in verified.document["forgotten"]] == [[], [], []]
    assert where_left(path) == {}


def test_no_byte_of_a_deleted_copy_is_left_in_a_stream_of_points(ram: Path) -> None:
    path = ram / "store"
    with new_store(path, plan("points")) as store:
        copies = Row(round=1, contents=HERS, n=3)
        ingest(store, [*(replace(row, id="") for row in OTHERS), copies])
        store.close_through(2)
        assert where_left(path) != {}
        ingest(store, [Row(op="delete", round=3, stamp=1, contents=HERS, n=3)])
        store.close_round()
    assert where_left(path) == {}
    with Store.open(path) as store:
        assert verify(store, REQUESTS[1:]).passed


def test_a_person_is_forgotten_in_a_stream_of_points(ram: Path) -> None:
    path = ram / "store"
    with new_store(path, plan("points")) as store:
        ingest(store, [Row(round=1, contents=HERS, n=3), Row(round=1)])
        store.close_round()
        store.forget(persons=[PERSON])
        store.close_round()
        assert store.ledger.survivor_count() == 1
    assert where_left(path) == {}


def test_what_only_waited_is_gone_at_the_close(ram: Path) -> None:
    path = ram / "store"
    with new_store(path, plan()) as store:
        ingest(store, [hers(1), hers(4)])
        store.forget(persons=[PERSON])
        store.close_round()
    assert where_left(path) == {}


def test_erasure_takes_place_when_a_forgotten_process_ends_without_it(ram: Path) -> None:
    """The close was done, but the process died before the erasure: the next command does it."""
    path = ram / "store"
    store = with_her(path)
    forget_person(store)
    store._parts.close()
    with Store.open(path):
        pass
    assert where_left(path) == {}


def test_the_file_is_rewritten_whether_or_not_anything_was_forgotten(ram: Path) -> None:
    due = []
    for name, asked in (("known", ID), ("unknown", "never-there")):
        with with_her(ram / name) as store:
            store.forget([asked])
            store.close_round()
            due.append(store.ledger.facts.erase_due)
    assert due == [True, True]


def test_a_published_label_stays_published_and_the_certificate_says_where(ram: Path) -> None:
    path = ram / "store"
    with new_store(path, plan()) as store:
        mine = [replace(hers(1), id=f"{ID}-{number}") for number in range(40)]
        ingest(store, [*OTHERS, *mine])
        store.close_through(2)
        store.forget(persons=[PERSON])
        store.close_round()
        store.settle()
        verified = verify(store, REQUESTS)
    assert VALUE.encode() in read_files(path)[RELEASES]
    assert where_left(path) == {}
    assert verified.passed
    [_, person, value] = verified.document["forgotten"]
    assert person["published_in"] == {}
    assert value["published_in"]["releases.sqlite"] >= 1


def test_before_the_close_the_data_are_found_and_verify_fails(ram: Path) -> None:
    with with_her(ram / "store") as store:
        store.forget(persons=[PERSON])
        verified = verify(store, REQUESTS)
        assert not verified.passed
        assert verified.document["releases_equal"] is True
        assert all(entry["left_in"] for entry in verified.document["forgotten"])


def test_what_others_share_is_not_hers_alone(ram: Path) -> None:
    """A product that others bought is found, because it is theirs."""
    with with_her(ram / "store") as store:
        forget_person(store)
        store.settle()
        verified = verify(store, [Forgotten("person", PERSON), Forgotten("value", "tea")])
    [person, product] = verified.document["forgotten"]
    assert person["left_in"] == []
    assert product["left_in"] != []


@pytest.mark.parametrize("shorter", ["order-47", "Eve Adam", "rare-orc"])
def test_a_forgotten_value_inside_a_longer_survivor_is_no_alarm(ram: Path, shorter: str) -> None:
    with with_her(ram / "store") as store:
        requests = [Forgotten("id", shorter), Forgotten("person", shorter)]
        store.forget([shorter], persons=[shorter])
        store.close_round()
        store.settle()
        assert verify(store, requests).passed


def stray_file(path: Path) -> None:
    (path / "notes.txt").write_bytes(b"remember " + b", ".join(SECRETS))


def rejected_file(path: Path) -> None:
    Path(f"{path}.rejected.csv").write_bytes(b"file,line\n" + b"\n".join(SECRETS))


def old_certificate(path: Path) -> None:
    (path / "old-certificate.json").write_bytes(b'{"ids": ["' + b'", "'.join(SECRETS) + b'"]}')


def _freed(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path / "ledger.sqlite")
    connection.execute("PRAGMA secure_delete = OFF")
    for statement in statements:
        connection.execute(statement, {"id": ID, "who": PERSON, "what": VALUE})
        connection.commit()
    connection.close()


def freed_forget(path: Path) -> None:
    _freed(
        path,
        "INSERT INTO forgets VALUES ('id', x'', :id), ('person', x'', :who), ('value', x'', :what)",
        "DELETE FROM forgets",
    )


def freed_label(path: Path) -> None:
    label = "CAST('[\"' || :what || '\",\"' || :who || '\",\"' || :id || '\"]' AS BLOB)"
    _freed(
        path,
        f"INSERT INTO totals VALUES ('recent_pairs', {label}, 1)",
        f"DELETE FROM totals WHERE key = {label}",
    )


def living_label(path: Path) -> None:
    label = "CAST('[\"' || :what || '\",\"' || :who || '\",\"' || :id || '\"]' AS BLOB)"
    _freed(path, f"INSERT INTO totals VALUES ('recent_pairs', {label}, 1)")


PLANTED: list[Callable[[Path], None]] = [
    stray_file,
    rejected_file,
    old_certificate,
    freed_forget,
    freed_label,
    living_label,
]


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_twin_verify_fails_when_something_is_left(ram: Path, plant: Callable[[Path], None]) -> None:
    path = ram / "store"
    with with_her(path) as store:
        forget_twice_and_the_unknown(store)
    plant(path)
    store = Store.open(path)
    verified = verify(store, REQUESTS)
    store._parts.close()
    assert not verified.passed
    [_, person, value] = verified.document["forgotten"]
    assert person["left_in"] != []
    assert value["left_in"] != []


@pytest.mark.parametrize("kind", ["ids", "persons"])
def test_twin_a_row_that_was_only_unlinked_is_found(ram: Path, kind: Kind) -> None:
    """Deleted in SQL but not erased: every request finds it in the freed bytes."""
    path = ram / "store"
    with with_her(path, kind):
        pass
    unlinked(path / "ledger.sqlite", [ID])
    _freed(path, "DELETE FROM totals WHERE key >= x'00'")
    assert where_left(path) == {"/ledger.sqlite": list(SECRETS)}
    store = Store.open(path)
    entries = verify(store, REQUESTS).document["forgotten"]
    store._parts.close()
    assert [entry["left_in"] for entry in entries] == [["ledger.sqlite"]] * 3


@pytest.mark.parametrize("kind", ["ids", "points"])
def test_after_the_horizon_a_forget_erases_at_once(ram: Path, kind: Kind) -> None:
    path = ram / "store"
    with new_store(path, plan(kind)) as store:
        ingest(store, [*OTHERS[:4], hers(1)])
        store.close_through(HORIZON)
        assert verify(store).document["releases_equal"] is True
        [receipt] = store.forget(persons=[PERSON])
        assert (receipt.erased, receipt.from_round) == (True, None)
        assert where_left(path) == {}
        after = verify(store, REQUESTS[1:])
    with Store.open(path) as store:
        reopened = verify(store, REQUESTS[1:])
    for verified in (after, reopened):
        assert verified.document["releases_equal"] is None
        assert verified.passed
        assert "No key" in verified.document["what_it_means"]
        assert verified.document["key"]["derives_rounds_from"] is None


def test_after_the_horizon_the_totals_are_those_of_the_survivors(ram: Path) -> None:
    for name, rows in (("forgot", [*OTHERS, hers(1)]), ("never", OTHERS)):
        with new_store(ram / name, plan()) as store:
            ingest(store, rows)
            store.close_through(HORIZON)
            store.forget([ID])
    totals = {}
    for name in ("forgot", "never"):
        with Store.open(ram / name) as store:
            totals[name] = {one.name: store.ledger.read_totals(one.name) for one in store.releases}
    assert totals["forgot"] == totals["never"]


def test_a_receipt_is_the_same_whether_or_not_anything_matched(ram: Path) -> None:
    def told(receipt: Any) -> dict[str, Any]:
        document: dict[str, Any] = receipt.to_json()
        return {key: text for key, text in document.items() if key not in {"value", "salt", "hash"}}

    with with_her(ram / "store") as store:
        known, unknown = store.forget([ID, "never-there"])
    assert told(known) == told(unknown)
    assert known.to_json()["hash"] == known.forgotten.digest(known.to_json()["salt"])


def test_the_certificate_recognises_the_receipt_and_hides_the_rest(ram: Path) -> None:
    with with_her(ram / "store") as store:
        [receipt] = store.forget(persons=[PERSON])
        store.close_round()
        store.settle()
        verified = verify(store, [receipt.forgotten])
    [entry] = verified.document["forgotten"]
    assert entry["hash"] == receipt.to_json()["hash"]
    text = (ram / "store" / "certificate.json").read_bytes()
    assert [secret for secret in SECRETS if secret in text] == []
    assert check_certificate(verified.document)
    assert not check_certificate(verified.document | {"round": 1})
