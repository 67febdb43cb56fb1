"""A text that a database split over two pages is counted like any other."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrodp.store.scan import scan
from tests.store.rows import arrivals, new_ledger, update

LENGTHS = (8, 23, 60, 300)


@pytest.mark.parametrize("length", LENGTHS)
def test_every_waiting_id_is_found_once_wherever_the_pages_end(tmp_path: Path, length: int) -> None:
    ids = [f"{number:0{length}x}" for number in range(0, 6000 * 7, 7)]
    ledger = new_ledger(tmp_path)
    ledger.enqueue(arrivals(1, [update(name) for name in ids]))
    ledger.close()
    needles = [name.encode() for name in ids]
    content = (tmp_path / "ledger.sqlite").read_bytes()
    hits = scan([tmp_path / "ledger.sqlite"], needles, store=tmp_path)
    assert [hit.count for hit in hits] == [1] * len(ids)
    whole = sum(content.count(needle) for needle in needles)
    assert whole < len(ids), "no id was split, so nothing was shown"


@pytest.mark.parametrize("left", range(1, 23))
def test_a_text_is_found_wherever_it_breaks_off(tmp_path: Path, left: int) -> None:
    # One row whose length moves the border between what stands beside its key and the rest.
    ledger, name = new_ledger(tmp_path), b"0123456789abcdefghijklm"
    found = 0
    for filler in range(440 + left, 600, 23):
        ledger.set_pending(1, bytes(filler) + name + bytes(9000))
        with ledger._database.transaction():
            pass
        ledger.erase()
        [hit] = scan([tmp_path / "ledger.sqlite"], [name], store=tmp_path)
        assert hit.count == 1
        content = (tmp_path / "ledger.sqlite").read_bytes()
        found += name not in content
    assert found <= 1


def test_ids_left_in_freed_pages_are_stray_although_they_are_split(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ledger._database.execute("PRAGMA secure_delete = OFF")
    ids = [f"order-{number:011}" for number in range(0, 9000 * 13, 13)]
    ledger.enqueue(arrivals(1, [update(name) for name in ids]))
    ledger._database.execute("DELETE FROM queue")
    stray = ledger.stray_copies([name.encode() for name in ids])
    ledger.close()
    content = (tmp_path / "ledger.sqlite").read_bytes()
    unseen = [count for name, count in zip(ids, stray, strict=True) if name.encode() not in content]
    # The list of free pages is written over parts of some of them.
    assert sum(unseen) > 0.5 * len(unseen) > 10
