"""The store from Python: add, delete, close, and what the order of the calls means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from retrodp.engine.check import check
from retrodp.engine.store import Store
from retrodp.engine.verify import verify
from retrodp.errors import HorizonExceededError, SourceError, UsageError
from tests.support.plans import counting, plan
from tests.support.rows import add, delete, ingest
from tests.support.stores import new_store, published

RECORD: dict[str, list[Any]] = {
    "id": ["x"],
    "who": ["ann"],
    "product": ["tea"],
    "country": ["DE"],
    "amount": [1.5],
    "gift": [False],
}


def frame(**changes: list[Any]) -> pa.Table:
    return pa.table(RECORD | changes)


@pytest.fixture
def store(ram: Path) -> Any:
    with new_store(ram / "store", counting()) as opened:
        yield opened


def survivors(store: Store) -> list[str]:
    return sorted(record.id for batch in store.ledger.survivors() for record in batch)


def test_a_record_added_and_deleted_in_one_round_is_gone(store: Store) -> None:
    store.add(frame())
    store.delete(["x"])
    store.close_round()
    assert survivors(store) == []


def test_a_record_deleted_and_added_again_in_one_round_survives(store: Store) -> None:
    store.add(frame())
    store.close_round()
    store.delete(["x"])
    store.add(frame(product=["ink"]))
    store.close_round()
    assert survivors(store) == ["x"]


def test_a_deletion_after_rows_of_a_file_acts_on_them(store: Store) -> None:
    ingest(store, [add("x", 1)])
    store.delete(["x"])
    store.close_round()
    assert survivors(store) == []


def test_a_deletion_after_reopening_acts_on_what_waited(ram: Path) -> None:
    with new_store(ram / "store", counting()) as store:
        store.add(frame())
    with Store.open(ram / "store") as store:
        store.delete(["x"])
        store.close_round()
        assert survivors(store) == []


def test_calls_never_leave_the_open_round(store: Store) -> None:
    end = "2024-01-01T23:59:59.999999+00:00"
    store.add(frame(at=[end]))
    for _ in range(3):
        store.delete(["x"])
    store.close_round()
    assert store.ledger.waiting.count() == 0


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame])
def test_every_kind_of_frame_gives_the_same_bytes(ram: Path, make: Any) -> None:
    files = {}
    for name, frame_of in (("arrow", pa.table), ("other", make)):
        with new_store(ram / name, plan()) as store:
            store.add(frame_of(RECORD))
            store.close_round()
        files[name] = published(ram / name)
    assert files["arrow"] == files["other"]


def test_how_rows_are_cut_into_frames_changes_nothing(ram: Path) -> None:
    rows = [add(f"id{number}", 1 + number % 3, amount=number / 2) for number in range(12)]
    rows += [delete("id4", 3), delete("id5", 3)]
    for name, cut in (("whole", 14), ("pieces", 1)):
        with new_store(ram / name, plan()) as store:
            for begin in range(0, len(rows), cut):
                ingest(store, rows[begin : begin + cut][::-1])
            store.close_through(6)
    assert published(ram / "whole") == published(ram / "pieces")


def test_a_source_that_is_refused_leaves_nothing(store: Store) -> None:
    with pytest.raises(SourceError):
        store.add(pa.table({"identifier": ["x"]}))
    assert store.ledger.waiting.count() == 0


def test_after_the_last_round_nothing_is_added_or_closed(store: Store) -> None:
    store.close_through(6)
    for act in (lambda: store.add(frame()), lambda: store.delete(["x"]), store.close_round):
        with pytest.raises(HorizonExceededError):
            act()
    assert store.ingest([]).tally.accepted == 0


def test_a_release_that_the_plan_has_not_is_named(store: Store) -> None:
    with pytest.raises(UsageError, match="nothing"):
        _ = store.close_round()["nothing"]


def test_closing_the_same_round_again_changes_nothing(ram: Path) -> None:
    with new_store(ram / "store", plan()) as store:
        ingest(store, [add("a", 1)])
        assert store.close_through(3) == 3
        before = published(ram / "store")
        assert store.close_through(3) == 0
        assert published(ram / "store") == before


def test_an_empty_round_is_published_like_any_other(ram: Path) -> None:
    with new_store(ram / "store", plan()) as store:
        release = store.close_round()
        assert set(release.answers) == {one.name for one in store.releases}
    assert list(published(ram / "store")) == [1]


def test_a_store_shows_no_data_and_no_key(store: Store) -> None:
    store.add(frame(id=["a-very-secret-id"], who=["a-very-secret-person"]))
    said = repr(store) + repr(store.key) + repr(store.ledger) + repr(store.files)
    assert "secret" not in said
    assert store.key.tree.lasting.hex() not in said


@pytest.mark.parametrize("take", [Store.create, Store.create_for_tests])
def test_a_path_in_the_place_of_a_plan_is_refused_with_what_reads_it(take: Any, ram: Path) -> None:
    with pytest.raises(UsageError, match=r"plan cannot be of type str.*Plan\.load"):
        take(ram / "mine", "plan.toml")
    assert not (ram / "mine").exists()


def test_checking_and_opening_refuse_a_path_as_a_plan_likewise(store: Store) -> None:
    with pytest.raises(UsageError, match=r"plan cannot be of type PosixPath"):
        check(Path("plan.toml"))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"plan cannot be of type str"):
        Store.open(store.files.directory, plan="plan.toml")  # type: ignore[arg-type]


def test_forgetting_nobody_speaks_of_no_option(store: Store) -> None:
    with pytest.raises(UsageError, match=r"^Nothing to forget was named\. Name ids or persons\.$"):
        store.forget([])


def test_a_text_is_one_id_and_one_person_to_forget(store: Store) -> None:
    requests = [
        *(receipt.forgotten for receipt in store.forget("order 12")),
        *(receipt.forgotten for receipt in store.forget(persons="ann")),
    ]
    assert [(own.kind, own.value) for own in requests] == [("id", "order 12"), ("person", "ann")]


def test_what_cannot_be_named_or_verified_is_refused_and_not_quoted(store: Store) -> None:
    with pytest.raises(UsageError, match=r"^id cannot be of type int\."):
        store.forget([4711])  # type: ignore[list-item]
    with pytest.raises(UsageError, match=r"^forgotten cannot be of type str\."):
        verify(store, ["4711"])  # type: ignore[list-item]
    with pytest.raises(UsageError, match=r"^store cannot be of type str\."):
        verify("my-store")  # type: ignore[arg-type]
