"""Needles are found wherever they stand."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from retrodp.errors import UsageError
from retrodp.store import scan
from retrodp.store.scan import Hit


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
