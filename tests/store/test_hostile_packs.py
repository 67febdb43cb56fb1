"""What packs and chunks must not keep, and must not tell of how they came about."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrodp.store import chunks, cuts, packed, packs
from retrodp.store.ledger import Ledger
from retrodp.stream.queued import Updates
from retrodp.stream.update import Changes, Op, QueuedUpdate, Record
from tests.store.rows import arrivals, close_round, new_ledger, pack, update
from tests.support.stores import memory_directory
from tests.support.uniting import few

TOKENS = {name: f"id-of-{name}" for name in "abcdefgh"}


def told(name: str, number: int) -> str:
    return f"value-{number}-of-{name}"


def bytes_of(ledger: Ledger, directory: Path) -> bytes:
    ledger.erase()
    return b"".join(path.read_bytes() for path in sorted(directory.iterdir()))


def test_the_value_of_a_dropped_row_is_not_kept_in_rows_that_write_nothing(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    rows = [update("a-first", value="told to nobody"), update("b-other", op=Op.DELETE)]
    ledger.waiting.enqueue(arrivals(1, rows))
    ledger.waiting.drop_id("a-first")
    assert [row.id for row in ledger.waiting.of_round(1)] == ["b-other"]
    assert b"told to nobody" not in bytes_of(ledger, tmp_path)


def test_a_row_that_waits_already_brings_no_value_with_the_rows_beside_it(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    again = update("a-first", value="told to nobody")
    ledger.waiting.enqueue(arrivals(1, [again]))
    ledger.waiting.enqueue(arrivals(1, [again, update("b-other", op=Op.DELETE)]))
    ledger.waiting.drop_id("a-first")
    assert b"told to nobody" not in bytes_of(ledger, tmp_path)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "delete", "replace", "forget", "drop", "close"]),
        st.sampled_from("abcdefgh"),
        st.integers(1, 3),
    ),
    max_size=30,
)


@few(40)
@given(steps=STEPS, rows_at_once=st.integers(1, 5))
def test_no_text_stands_in_a_file_that_no_living_row_has(
    steps: list[tuple[str, str, int]], rows_at_once: int
) -> None:
    with memory_directory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "_ROWS", 3)
        patch.setattr(cuts, "_SHIFT", np.uint32(31))
        ledger = new_ledger(directory)
        batch: list[QueuedUpdate] = []
        number = 0
        for step, name, extra in steps:
            number += 1
            if step in {"add", "replace", "delete"}:
                op = Op[step.upper()]
                text = told(name, number)
                batch.append(update(TOKENS[name], at=number * extra, op=op, value=text))
            if len(batch) >= rows_at_once:
                ledger.waiting.enqueue(arrivals(ledger.facts.round + 1, batch))
                batch = batch[-1:] if extra == 1 else []  # sometimes delivered twice
            if step in {"forget", "drop"}:
                ledger.waiting.drop_id(TOKENS[name])
            if step == "forget":
                ended = ledger.records_of_id(TOKENS[name])
                ledger.apply_changes(Changes(ended, [], 0))
                ledger.add_totals("by_payload", {one.payload: -1 for one in ended})
            if step == "close":
                close_round(ledger)
        living = [record for some in ledger.survivors() for record in some]
        waiting = [
            row for round_ in ledger.waiting.rounds() for row in ledger.waiting.of_round(round_)
        ]
        own = [(one.id.encode(), one.payload) for one in living]
        own += [(one.id.encode(), one.payload) for one in waiting]
        alive = b"".join(name + payload for name, payload in own)
        texts = [told(name, n).encode() for name in TOKENS for n in range(1, number + 1)]
        texts += [name.encode() for name in TOKENS.values()]
        content = bytes_of(ledger, directory)
        assert [text for text in texts if text in content and text not in alive] == []


def lives(names: list[tuple[str, str]]) -> list[Record]:
    return [Record(space, name, 1, space or None, pack([name, None])) for space, name in names]


def test_lives_without_a_namespace_leave_the_same_rows_beside_those_that_have_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuts, "_SHIFT", np.uint32(30))
    names = [("", f"n{number}") for number in range(40)] + [("ann", "x"), ("bob", "x")]
    records = lives(names)
    one, two = new_ledger(tmp_path / "one"), new_ledger(tmp_path / "two")
    one.apply_changes(Changes([], records, 0))
    for record in records:
        two.apply_changes(Changes([], [record], 0))
    rows = "SELECT * FROM packs ORDER BY stamp, space, id"
    assert len(one._database.rows(rows)) > 5
    assert one._database.rows(rows) == two._database.rows(rows)


@pytest.mark.parametrize("ids", [1, 3, 50])
def test_persons_who_number_their_records_alike_share_packs_of_the_usual_size(
    tmp_path: Path, ids: int
) -> None:
    ledger = new_ledger(tmp_path)
    persons = [f"person {number}" for number in range(20_000 // ids)]
    names = [(person, str(number)) for person in persons for number in range(ids)]
    assert len(ledger.begin_all(Updates.of_records(lives(names)).in_order())) == len(names)
    [(number, most)] = ledger._database.rows("SELECT count(*), max(n) FROM packs")
    # 78 cuts expected, standard deviation 9; a gap of 12 means has probability 5e-4 a store of
    # random names, and these are fixed.
    assert 40 < number < 130
    assert most < 12 * cuts.MEAN_ROWS


def test_ending_one_life_of_a_large_round_rewrites_one_pack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = new_ledger(tmp_path)
    records = [
        Record("", f"order-{number:06}", 1, None, pack([str(number), None]))
        for number in range(50_000)
    ]
    ledger.begin_all(Updates.of_records(records))
    written: list[int] = []
    real = packed.encoded_lives

    def noted(some: Updates, begins: Sequence[int]) -> list[bytes]:
        written.append(len(some))
        return real(some, begins)

    monkeypatch.setattr(packs, "encoded_lives", noted)
    ledger.apply_changes(Changes([records[25_000]], [], 0))
    assert sum(written) < 12 * cuts.MEAN_ROWS
    assert ledger.survivor_count() == len(records) - 1


SURVIVORS = st.lists(
    st.tuples(st.sampled_from(["", "", "p"]), st.integers(0, 4), st.none() | st.integers(0, 9)),
    min_size=1,
    max_size=12,
)


def survivors(rows: list[tuple[str, int, int | None]], *, spaces: bool, odd: bool) -> list[Record]:
    made = [
        Record(
            space if spaces else "",
            f"{number:03}",
            7,
            None if not who else f"person {who}",
            pack([str(cell), bool(cell % 2), who]) if cell or not odd else pack(["lone"]),
        )
        for number, (space, cell, who) in enumerate(rows)
    ]
    return sorted(made)


@few(200)
@given(rows=SURVIVORS, spaces=st.booleans(), odd=st.booleans(), data=st.data())
def test_parts_and_what_is_left_of_a_pack_are_written_as_if_nothing_else_had_been_there(
    rows: list[tuple[str, int, int | None]], *, spaces: bool, odd: bool, data: st.DataObject
) -> None:
    records = survivors(rows, spaces=spaces, odd=odd)
    begins = sorted({0, *data.draw(st.lists(st.integers(0, len(records) - 1), max_size=4))})
    whole = packed.encoded_lives(Updates.of_records(records), begins)
    parts = [records[start:end] for start, end in pairwise([*begins, len(records)])]
    alone = [packed.encoded_lives(Updates.of_records(part))[0] for part in parts]
    assert whole == alone
    for part, content in zip(parts, alone, strict=True):
        gone = [one for one in part if data.draw(st.booleans())]
        left = packed.thinned(content, gone)
        if left is not None:
            others = [one for one in part if one not in gone]
            assert left == packed.encoded_lives(Updates.of_records(others))[0]
        else:  # only where it may refuse
            assert len(gone) == len(part) or odd or any(one.space for one in part)


@pytest.mark.parametrize("values", [1, 3, 256, 257, 300, 700])
def test_a_pack_is_thinned_at_every_width_of_its_codes(
    values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "_MOST_LOOKED_AT", 700 * 700)
    records = [
        Record("", f"{number:04}", 7, f"p{number % 5}", pack([f"v{number * 7 % values}", None, 1]))
        for number in range(700)
    ]
    (content,) = packed.encoded_lives(Updates.of_records(records))
    for gone in (records[:1], records[699:], records[250:270], records[::2], records[1:]):
        others = [one for one in records if one not in gone]
        expected = packed.encoded_lives(Updates.of_records(others))
        assert [packed.thinned(content, gone)] == expected


@pytest.mark.parametrize(
    "wrong",
    [
        Record("", "0005", 7, "else", pack(["v5", None, 1])),
        Record("", "0005", 7, "p0", pack(["v6", None, 1])),
        Record("", "0005", 7, "p0", pack(["v5", None, True])),
        Record("", "9999", 7, "p0", pack(["v5", None, 1])),
        Record("p", "0005", 7, "p0", pack(["v5", None, 1])),
    ],
)
def test_nothing_is_left_out_that_is_not_as_given(wrong: Record) -> None:
    records = [
        Record("", f"{number:04}", 7, f"p{number % 5}", pack([f"v{number}", None, 1]))
        for number in range(9)
    ]
    (content,) = packed.encoded_lives(Updates.of_records(records))
    assert packed.thinned(content, [records[5]]) is not None
    assert packed.thinned(content, [wrong]) is None
    assert packed.thinned(content, [records[5], records[5]]) is None


def test_a_pack_of_many_rows_is_not_gone_through_for_each_that_ends(tmp_path: Path) -> None:
    records = [Record("", f"{number:06}", 7, None, pack([number])) for number in range(30_000)]
    (content,) = packed.encoded_lives(Updates.of_records(records))
    assert packed.thinned(content, records[:1]) is not None
    assert packed.thinned(content, records[::2]) is None
    ledger = new_ledger(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packs, "cuts", lambda ids, _: np.zeros(len(ids), np.bool_))
        ledger.apply_changes(Changes([], records, 0))
        ledger.apply_changes(Changes(records[::2], [], 0))
        assert ledger.survivor_count() == 15_000
