"""Attack 22: what is left of the forgotten in gaps, sequences, journals and temporary files."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from retrodp.engine.forget import Forgotten
from retrodp.engine.verify import verify
from tests.support.plans import KINDS, Kind, plan
from tests.support.rows import Row, add, delete, ingest
from tests.support.stores import new_store, read_files

WHOLE_STORE = {
    ".key",
    "/ledger.sqlite",
    "/lock",
    "/plan.resolved.json",
    "/plan.toml",
    "/releases.sqlite",
}


def schema(path: Path) -> list[tuple[str, str, str]]:
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    connection.close()
    return rows


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["ledger.sqlite", "releases.sqlite"])
def test_no_table_counts_what_was_once_there(ram: Path, kind: Kind, name: str) -> None:
    with new_store(ram / "store", plan(kind)):
        pass
    tables = [(table, sql) for what, table, sql in schema(ram / "store" / name) if what == "table"]
    assert len(tables) >= 3
    numbered = [table for table, sql in tables if "WITHOUT ROWID" not in sql]
    assert set(numbered) <= {"queue"}  # whose row number is a key that the ledger gives
    assert all("INTEGER NOT NULL PRIMARY KEY" in dict(tables)[table] for table in numbered)
    assert [table for table, sql in tables if "AUTOINCREMENT" in sql] == []
    assert "sqlite_sequence" not in {table for table, _ in tables}


def test_a_settled_store_has_no_journal_log_or_temporary_file(ram: Path) -> None:
    with new_store(ram / "store", plan()) as store:
        ingest(store, [add("a", 1), delete("a", 2)])
        store.close_through(3)
    assert set(read_files(ram / "store")) == WHOLE_STORE


def test_sorting_never_writes_a_temporary_file(ram: Path) -> None:
    with new_store(ram / "store", plan()) as store:
        [[value]] = store.ledger._database.rows("PRAGMA temp_store")
        [[deleting]] = store.ledger._database.rows("PRAGMA secure_delete")
    assert (value, deleting) == (2, 1)


def test_survivors_alone_decide_the_rows_of_the_ledger(ram: Path) -> None:
    """Two histories that unite leave the same rows in every table."""

    def rows(name: str, history: list[Row]) -> dict[str, list[object]]:
        with new_store(ram / name, plan()) as store:
            ingest(store, history)
            store.close_through(4)
        path = ram / name / "ledger.sqlite"
        connection = sqlite3.connect(path)
        tables = [table for what, table, _ in schema(path) if what == "table"]
        found = {
            table: connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()
            for table in tables
        }
        connection.close()
        return found

    plain = [add("a", 1), add("b", 2)]
    detour = [add("z", 1), delete("z", 2), delete("never", 1), add("y", 3), delete("y", 4)]
    assert rows("plain", plain) == rows("detour", [*detour, *plain])


def test_a_certificate_names_nobody_without_the_salt_of_the_receipt(ram: Path) -> None:
    hashes = []
    with new_store(ram / "store", plan()) as store:
        for _ in range(2):
            document = verify(store, [Forgotten("id", "order-4711")]).document
            hashes.append(document["forgotten"][0]["hash"])
        text = (ram / "store" / "certificate.json").read_text()
    assert hashes[0] != hashes[1]
    assert "order-4711" not in text
    assert "salt" not in json.loads(text)["forgotten"][0]


def test_twin_row_numbers_leave_a_gap() -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE naive(id TEXT)")
    connection.executemany("INSERT INTO naive VALUES (?)", [("a",), ("b",), ("c",)])
    connection.execute("DELETE FROM naive WHERE id = 'b'")
    numbers = [number for (number,) in connection.execute("SELECT rowid FROM naive")]
    connection.close()
    assert numbers == [1, 3]
