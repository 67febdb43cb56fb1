"""Forget a customer, and compare with the history in which she never bought anything.

    python two_histories.py UPDATES [DAYS]

Both histories run under one fixed test key, so that their releases can be compared byte for byte; a
real store draws a key of its own.
"""

from __future__ import annotations

import datetime as dt
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from retrodp import Plan, Store, code_allowed
from retrodp.stream.sources import read_frame

START = dt.datetime(2010, 12, 1)  # noqa: DTZ001  the file has local times
AFTER = 3  # rounds after the forget
CUSTOMER = "17850"


def updates(path: str | Path, days: int) -> pa.Table:
    """The shop's updates of the first days."""
    table = pq.read_table(path)
    return table.filter(pc.less(table["at"], pa.scalar(START + dt.timedelta(days=days))))


def without(table: pa.Table, customer: str) -> pa.Table:
    """The same shop without one customer."""
    return table.filter(pc.fill_null(pc.not_equal(table["customer"], customer), True))


def released(
    directory: Path, plan: Plan, table: pa.Table, days: int, forget: str | None = None
) -> list[tuple[bytes, ...]]:
    """Bytes of every round's releases; a customer is forgotten before the last rounds."""
    with Store.create_for_tests(directory, plan) as store:
        store.ingest(read_frame(table, store.layout()))
        rounds: list[Any] = []
        for round_ in range(1, days + 1):
            if forget is not None and round_ == days - AFTER + 1:
                store.forget(persons=[forget])
            rounds.append(store.close_round())
        return [tuple(answer.to_bytes() for answer in round_.answers.values()) for round_ in rounds]


def compare(plan: Plan, table: pa.Table, days: int, customer: str) -> list[bool]:
    """Which rounds of the two histories publish the same bytes."""
    with tempfile.TemporaryDirectory() as folder, code_allowed():
        lived = released(Path(folder) / "lived", plan, table, days, forget=customer)
        never = released(Path(folder) / "never", plan, without(table, customer), days)
    return [one == other for one, other in zip(lived, never, strict=True)]


def main() -> None:
    days = int(sys.argv[2]) if len(sys.argv) > 2 else 14
    plan = Plan.load(Path(__file__).parent / "plan.toml")
    same = compare(plan, updates(sys.argv[1], days), days, CUSTOMER)
    print(f"Customer {CUSTOMER} is forgotten before round {days - AFTER + 1}.")
    for round_, equal in enumerate(same, 1):
        print(f"round {round_:2d}: {'the same bytes' if equal else 'other bytes'}")


if __name__ == "__main__":
    main()
