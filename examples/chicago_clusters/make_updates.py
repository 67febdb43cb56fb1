"""Turn the places of complaints into updates for retrodp.

    python examples/chicago_clusters/make_updates.py OUTPUT.parquet [--days N] [--without-withdrawn]

One record a complaint; one that turns out to repeat another is taken back on the day on which the
city closed it as a duplicate. With `--without-withdrawn` those are left out from the beginning.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

DATA = Path(__file__).with_name("places.parquet")
START = date(2013, 1, 1)
DAYS = 730
KILOMETRES = pa.decimal128(5, 2)
SCHEMA = pa.schema(
    [
        pa.field("op", pa.string(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("at", pa.date32(), nullable=False),
        pa.field("east", KILOMETRES),
        pa.field("north", KILOMETRES),
    ]
)


def table(*, days: int = DAYS, without_withdrawn: bool = False) -> pa.Table:
    """Additions and deletions of the first days, in the order of the days, as retrodp reads them."""
    end = START + timedelta(days=days)
    listed = [row for row in pq.read_table(DATA).to_pylist() if START <= row["created"] < end]
    gone = {
        row["request"]: row["withdrawn"]
        for row in listed
        if row["withdrawn"] is not None and row["withdrawn"] < end
    }
    rows = [
        {"op": "add", "id": row["request"], "at": row["created"]}
        | {"east": row["east"], "north": row["north"]}
        for row in listed
        if not (without_withdrawn and row["request"] in gone)
    ]
    if not without_withdrawn:
        rows += [{"op": "delete", "id": request, "at": day} for request, day in gone.items()]
    rows.sort(key=lambda row: (row["at"], row["op"]))
    return pa.Table.from_pylist(rows, schema=SCHEMA)


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
