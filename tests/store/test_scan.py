"""Needles are found wherever they stand, and short ids only where rows hold them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from retrodp.errors import UsageError
from retrodp.store import scan
from retrodp.store.scan import Hit
from retrodp.stream.update import Changes, Record
from tests.store.rows import arrivals, new_ledger, update


def counted(content: bytes, needle: bytes) -> int:
    """Every place, overlapping ones too, by the plainest means."""
    return sum(content.startswith(needle, place) for place in range(len(content)))


@pytest.mark.parametrize("chunk", [1, 3, 16, 64, 1 << 20])
def test_every_place_is_found_whatever_the_chunks(tmp_path: Path, chunk: int) -> None:
    draw = random.Random(3)
    content = bytes(draw.choice(b"ab\x00") for _ in range(3000))
    wanted = [content[n : n + size] for n, size in ((5, 4), (1000, 6), (2990, 10), (0, 9), (7, 4))]
    wanted += [b"aaaa", b"\x00\x00\x00\x00", b"not there"]
    (tmp_path / "f").write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "_CHUNK_BYTES", chunk)
        hits = scan.scan([tmp_path / "f"], wanted, store=tmp_path)
    found = {hit.needle: hit.count for hit in hits}
    plain = {n: counted(content, needle) for n, needle in enumerate(wanted)}
    assert found == {n: count for n, count in plain.items() if count}
    assert len(found) >= 5


def test_needles_at_both_ends_and_across_chunks_are_found(tmp_path: Path) -> None:
    needle = "Zoë-4711".encode()
    content = needle + bytes(scan._CHUNK_BYTES - len(needle) - 3) + needle + bytes(77) + needle
    (tmp_path / "f").write_bytes(content)
    assert scan.scan([tmp_path / "f"], [needle], store=tmp_path) == [
        Hit(file="f", needle=0, count=3)
    ]


def test_a_needle_asked_for_twice_is_told_twice(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"--needle--")
    hits = scan.scan([tmp_path / "f"], [b"needle", b"other", b"needle"], store=tmp_path)
    assert [hit.needle for hit in hits] == [0, 2]


def test_short_needles_are_refused_and_none_is_no_work(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        scan.scan([], [b"long enough", b"17"], store=tmp_path)
    assert scan.scan([tmp_path / "missing"], [], store=tmp_path) == []


def test_files_are_those_of_the_store_and_of_its_neighbours(tmp_path: Path) -> None:
    store = tmp_path / "shop"
    (store / "deep").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    inside = [store / "ledger.sqlite", store / "deep" / "x"]
    beside = [tmp_path / "shop.key", tmp_path / "shop.mark.new", tmp_path / "shop.rejected.csv"]
    key = [tmp_path / "elsewhere" / "k", tmp_path / "elsewhere" / "k.new"]
    others = [tmp_path / "shopping", tmp_path / "other.key", tmp_path / "elsewhere" / "kk"]
    for path in [*inside, *beside, *key, *others]:
        path.write_bytes(b"x")
    (store / "link").symlink_to(tmp_path / "shopping")
    assert scan.files_of(store) == sorted([*inside, *beside])
    assert scan.files_of(store, key[0]) == sorted([*inside, *beside, *key])


def test_hits_name_files_relative_to_the_store(tmp_path: Path) -> None:
    store = tmp_path / "shop"
    store.mkdir()
    (store / "a").write_bytes(b"needle")
    (tmp_path / "shop.rejected.csv").write_bytes(b"needle needle")
    hits = scan.scan(scan.files_of(store), [b"needle"], store=store)
    assert hits == [
        Hit(file="a", needle=0, count=1),
        Hit(file="../shop.rejected.csv", needle=0, count=2),
    ]


LONG = "a namespace or person of more than fifty-eight bytes, two of type"


@pytest.mark.parametrize("space", ["", "ann", LONG])
@pytest.mark.parametrize("identifier", ["7", "17", "017", "a longer identifier", LONG])
@pytest.mark.parametrize(("stamp", "size"), [(0, 0), (1, 3), (300, 100), (70_000, 9000)])
def test_rows_of_an_id_are_found_by_their_shape(
    tmp_path: Path, space: str, identifier: str, stamp: int, size: int
) -> None:
    ledger = new_ledger(tmp_path)
    payload = b"\x91\xc5" + size.to_bytes(2, "big") + bytes(size)
    ledger.apply_changes(Changes([], [Record(space, identifier, stamp, "bob", payload)], 0))
    ledger.close()
    hits = scan.scan_ids(scan.files_of(tmp_path), [("", "no"), (space, identifier)], store=tmp_path)
    assert [(hit.file, hit.needle) for hit in hits] == [("ledger.sqlite", 1)]
    # The row and its entry in the index by name.
    assert hits[0].count == 2


@pytest.mark.parametrize("round_", [1, 200, 40_000])
def test_waiting_rows_of_an_id_are_found_by_their_shape(tmp_path: Path, round_: int) -> None:
    ledger = new_ledger(tmp_path)
    ledger.enqueue(arrivals(round_, [update("17", at=1_291_161_600_000_000, person="ann")]))
    ledger.close()
    hits = scan.scan_ids(scan.files_of(tmp_path), [("", "17")], store=tmp_path)
    assert hits == [Hit(file="ledger.sqlite", needle=0, count=1)]


def test_digits_that_are_no_id_are_not_told(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    draw = random.Random(4)
    records = [
        Record("", f"{number}", draw.randrange(400), f"{draw.randrange(9999)}", draw.randbytes(30))
        for number in range(20_000)
        if number not in {7, 17, 170}
    ]
    ledger.apply_changes(Changes([], records, 0))
    ledger.close()
    files = scan.files_of(tmp_path)
    asked = [("", "7"), ("", "17"), ("", "170"), ("", "18")]
    hits = scan.scan_ids(files, asked, store=tmp_path)
    assert files[0].read_bytes().count(b"17") > 1000
    assert [(hit.needle, hit.count) for hit in hits] == [(3, 2)]


def test_a_freed_row_of_a_short_id_is_found_until_it_is_erased(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    record = Record("", "17", 1, None, b"\x90")
    ledger.apply_changes(Changes([], [record], 0))
    ledger.apply_changes(Changes([record], [], 0))
    files = scan.files_of(tmp_path)
    assert scan.scan_ids(files, [("", "17")], store=tmp_path)
    ledger.erase()
    assert scan.scan_ids(scan.files_of(tmp_path), [("", "17")], store=tmp_path) == []
