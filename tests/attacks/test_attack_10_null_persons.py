"""Attack 10: null as a person lets strangers share one bound."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from retrodp.stream.sources import read_frame
from tests.support.plans import MAX_RECORDS, plan
from tests.support.rows import Row, add
from tests.support.stores import new_store


def rows_of(count: int, who: str | None) -> list[dict[str, Any]]:
    made: list[Row] = [add(f"id{number}", 1, product=f"p{number}") for number in range(count)]
    return [replace(row).cells(ids=True) | {"who": who} for row in made]


def test_a_row_without_a_person_is_refused_and_takes_no_place(ram: Path) -> None:
    with new_store(ram / "store", plan("persons")) as store:
        table = pa.Table.from_pylist(rows_of(50, None) + rows_of(2, "ann"))
        taken = store.ingest(read_frame(table, store.layout()))
        store.close_round()
        assert (taken.tally.refused, taken.tally.accepted) == (50, 2)
        assert store.ledger.survivor_count() == 2
        assert store.ignored == 0


def test_twin_one_name_for_all_strangers_keeps_only_a_few_of_them(ram: Path) -> None:
    with new_store(ram / "store", plan("persons")) as store:
        table = pa.Table.from_pylist(rows_of(50, "unknown"))
        store.ingest(read_frame(table, store.layout()))
        store.close_round()
        assert store.ledger.survivor_count() == MAX_RECORDS
        assert store.ignored == 50 - MAX_RECORDS
