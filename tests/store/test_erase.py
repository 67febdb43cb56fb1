"""What was deleted is in no file of the store after erasing."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from retrodp.errors import StoreCorruptError, UsageError
from retrodp.store import erase, scan
from retrodp.store.ledger import Ledger
from retrodp.stream.update import Changes, Op, Record
from tests.store.rows import arrivals, close_round, contents, new_ledger, pack, run, update


def many(count: int) -> list[Record]:
    """Records with random ids, persons and payloads that occur nowhere else."""
    draw = random.Random(5)

    def token() -> str:
        return f"{draw.getrandbits(80):020x}"

    return [Record("", token(), 1 + n % 9, token(), pack([token(), n])) for n in range(count)]


def needles(records: list[Record]) -> list[bytes]:
    return [
        needle
        for record in records
        for needle in (record.id.encode(), (record.person or "").encode(), record.payload)
    ]


def forgotten_in_a_store_of(directory: Path, count: int, gone: int) -> tuple[Ledger, list[bytes]]:
    """A ledger that took `count` records in small batches and then lost `gone` of them."""
    ledger = new_ledger(directory)
    records = many(count)
    with ledger.transaction():
        for start in range(0, count, 100):
            ledger.apply_changes(Changes([], records[start : start + 100], 0))
    ended = random.Random(6).sample(records, gone)
    ledger.apply_changes(Changes(ended, [], 0))
    return ledger, needles(ended)


@pytest.mark.parametrize(("count", "gone"), [(100_000, 100), (30_000, 15_000)])
def test_after_erasing_no_byte_of_what_was_deleted_is_in_any_file(
    tmp_path: Path, count: int, gone: int
) -> None:
    ledger, wanted = forgotten_in_a_store_of(tmp_path, count, gone)
    ledger.erase()
    files = scan.files_of(tmp_path)
    assert {file.name for file in files} == {"ledger.sqlite", "ledger.sqlite-wal"}
    assert scan.scan(files, wanted, store=tmp_path) == []
    ledger.close()
    assert scan.scan(scan.files_of(tmp_path), wanted, store=tmp_path) == []
    assert Ledger.open(tmp_path / "ledger.sqlite").survivor_count() == count - gone


def test_without_erasing_some_are_found_even_with_secure_delete_and_an_empty_log(
    tmp_path: Path,
) -> None:
    ledger, wanted = forgotten_in_a_store_of(tmp_path, 30_000, 15_000)
    assert ledger._database.value("PRAGMA secure_delete") == 1
    erase.drain_log(ledger._database, tmp_path / "ledger.sqlite")
    hits = scan.scan(scan.files_of(tmp_path), wanted, store=tmp_path)
    assert hits


def test_before_the_log_is_emptied_it_holds_what_was_deleted(tmp_path: Path) -> None:
    ledger, gone = forgotten_in_a_store_of(tmp_path, 2000, 100)
    hits = scan.scan(scan.files_of(tmp_path), gone, store=tmp_path)
    assert "ledger.sqlite-wal" in {hit.file for hit in hits}
    ledger.erase()
    assert scan.scan(scan.files_of(tmp_path), gone, store=tmp_path) == []


def test_waiting_rows_totals_and_forgets_are_erased_as_well(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    kept = [update(f"kept-record-{number}") for number in range(500)]
    marks = ["forgotten-id-88", "forgotten-person-88", "forgotten-value-88"]
    identifier, person, value = marks
    run(ledger, [*kept, update(identifier, person=person, value=value)])
    ledger.waiting.enqueue(
        arrivals(2, [update(identifier, op=Op.DELETE), update("unmet", op=Op.DELETE)])
    )
    ledger.forgets.add("person", person)
    ledger.pending.keep(1, value.encode())
    close_round(ledger)
    ledger.forgets.clear()
    ledger.pending.clear()
    ledger.erase()
    wanted = [mark.encode() for mark in marks]
    assert scan.scan(scan.files_of(tmp_path), wanted, store=tmp_path) == []
    assert ledger.mentions(ids=[identifier], persons=[person], values=[value]) == []
    assert ledger.survivor_count() == 500


def test_the_old_file_and_the_log_are_overwritten_with_zeros(tmp_path: Path) -> None:
    ledger, _ = forgotten_in_a_store_of(tmp_path, 2000, 100)
    path, log = tmp_path / "ledger.sqlite", tmp_path / "ledger.sqlite-wal"
    # A hard link keeps the old file's bytes in sight after it was replaced.
    os.link(path, tmp_path / "old")
    with log.open("rb", buffering=0) as open_log:
        assert open_log.read(4) != bytes(4)
        size = log.stat().st_size
        seen: list[bytes] = []
        checkpoint = erase._checkpoint

        def watched(database: object, mode: str) -> None:
            if mode == "TRUNCATE":
                open_log.seek(0)
                seen.append(open_log.read())
            checkpoint(database, mode)  # type: ignore[arg-type]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(erase, "_checkpoint", watched)
            ledger.erase()
    old = (tmp_path / "old").read_bytes()
    assert seen == [bytes(size)]
    assert len(old) > 100_000
    assert old == bytes(len(old))


def test_erasing_keeps_contents_facts_and_integrity(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    run(ledger, [update(f"{number}") for number in range(300)], [update("7", op=Op.DELETE)])
    ledger.waiting.enqueue(arrivals(3, [update("waits")]))
    ledger.pending.keep(2, b"answer")
    before = contents(ledger)
    assert ledger.facts.erase_due
    ledger.erase()
    ledger.check_integrity()
    assert contents(ledger) == before
    assert (ledger.facts.round, ledger.facts.erase_due) == (2, False)
    assert ledger.pending.read() == (2, b"answer")
    assert ledger.waiting.of_round(3) == [update("waits")]
    assert ledger._database.value("PRAGMA journal_mode") == "wal"
    ledger.close()
    again = Ledger.open(tmp_path / "ledger.sqlite")
    assert contents(again) == before


def test_erasing_inside_a_transaction_is_refused(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    with ledger.transaction(), pytest.raises(UsageError):
        ledger.erase()


def test_closing_leaves_one_file(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    run(ledger, [update("a")])
    ledger.close()
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.sqlite"]


def test_sqlite_writes_no_file_outside_the_store(tmp_path: Path) -> None:
    elsewhere = tmp_path / "tmp"
    elsewhere.mkdir()
    before = elsewhere.stat().st_mtime_ns
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SQLITE_TMPDIR", str(elsewhere))
        patch.setenv("TMPDIR", str(elsewhere))
        ledger, _ = forgotten_in_a_store_of(tmp_path / "store", 20_000, 100)
        ledger.erase()
        ledger.close()
    # A file made and unlinked there would have changed the directory's time.
    assert elsewhere.stat().st_mtime_ns == before


def test_shredding_writes_zeros_and_removes(tmp_path: Path) -> None:
    path = tmp_path / "rejected.csv"
    path.write_bytes(b"secret" * 500_000)
    with path.open("rb") as before:
        erase.shred(path)
        assert before.read() == bytes(3_000_000)
    assert not path.exists()
    erase.shred(path)


def test_shredding_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "link").symlink_to("precious")
    with pytest.raises(OSError):
        erase.shred(tmp_path / "link")
    assert (tmp_path / "precious").read_bytes() == b"precious"


def test_a_failed_rewrite_leaves_the_ledger_usable(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    run(ledger, [update("a")], [update("a", op=Op.DELETE)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(erase, "_sync_file", raise_corrupt)
        with pytest.raises(StoreCorruptError):
            ledger.erase()
    assert ledger.facts.erase_due
    assert not (tmp_path / "ledger.sqlite.fresh").exists()
    ledger.erase()
    assert not ledger.facts.erase_due


def raise_corrupt(path: Path) -> None:
    raise StoreCorruptError("as if the disk failed")
