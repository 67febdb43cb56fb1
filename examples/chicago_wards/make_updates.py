"""Turn the city's list of complaints into updates for retrodp.

    python examples/chicago_wards/make_updates.py OUTPUT.parquet [--days N] [--without-withdrawn]

One record a complaint; one that turns out to be reported before is taken back on the day on which
the city closed it as a duplicate. With `--without-withdrawn` those are left out from the beginning.
`README.md` beside this file says what was decided.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

DATA = Path(__file__).with_name("complaints.parquet")
START = date(2011, 1, 1)
DAYS = 209 * 7
DUPLICATE = "Completed - Dup"
SCHEMA = pa.schema(
    [
        pa.field("op", pa.string(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("at", pa.date32(), nullable=False),
        pa.field("ward", pa.string()),
        pa.field("nature", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class Complaint:
    """One line of the city's list.

    Attributes:
        request: Its number; 371 numbers stand on several lines.
        created: Day on which it was made.
        withdrawn: Day on which it was closed as a duplicate; None if it was not.
        ward: Number of the ward as a text; None where there is none.
        nature: What it is about; None where that is not known.
    """

    request: str
    created: date
    withdrawn: date | None
    ward: str | None
    nature: str | None


def complaints() -> list[Complaint]:
    """The list, as the city publishes it."""
    return [
        Complaint(
            request=row["request"],
            created=row["created"],
            withdrawn=row["completed"] if row["status"] == DUPLICATE else None,
            ward=row["ward"],
            nature=row["nature"],
        )
        for row in pq.read_table(DATA).to_pylist()
    ]


def rows(*, days: int = DAYS, without_withdrawn: bool = False) -> Iterator[dict[str, object]]:
    """Additions and deletions of the first days, in the order of the days."""
    end = START + timedelta(days=days)
    listed = complaints()
    withdrawn = {one.request: one.withdrawn for one in listed if one.withdrawn is not None}
    withdrawn = {request: day for request, day in withdrawn.items() if day < end}
    made: list[tuple[date, int, dict[str, object]]] = []
    for one in listed:
        if not (without_withdrawn and one.request in withdrawn):
            begun = max(one.created, START)
            text = {"id": one.request, "ward": one.ward, "nature": one.nature}
            made.append((begun, 0, {"op": "add", "at": begun, **text}))
    if not without_withdrawn:
        for request, day in withdrawn.items():
            made.append((day, 1, {"op": "delete", "at": day, "id": request}))
    made.sort(key=lambda entry: entry[:2])
    return (row for at, _, row in made if at < end)


def table(*, days: int = DAYS, without_withdrawn: bool = False) -> pa.Table:
    """As a file that retrodp reads."""
    found = list(rows(days=days, without_withdrawn=without_withdrawn))
    return pa.Table.from_pylist(found, schema=SCHEMA)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--days", type=int, default=DAYS, help="only the first days")
    parser.add_argument(
        "--without-withdrawn", action="store_true", help="as if they had never been made"
    )
    chosen = parser.parse_args(arguments)
    made = table(days=chosen.days, without_withdrawn=chosen.without_withdrawn)
    pq.write_table(made, chosen.output, compression="zstd")
    ops = Counter(made["op"].to_pylist())
    print(f"{made.num_rows:,} updates: {ops['add']:,} complaints, {ops['delete']:,} taken back")


if __name__ == "__main__":
    main(sys.argv[1:])
