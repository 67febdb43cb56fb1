"""Name the customer in every row of the shop's updates, deletions included.

    python examples/retail_persons/name_persons.py OUTPUT.parquet [--days N]

Under a person unit the ids of a person are her own, so a deletion must say whose record it means.
The shipped updates name a line and nothing else when they delete it; its customer is found in the
addition.
"""

from __future__ import annotations

import argparse
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from retrodp.demo import data_path

START = datetime(2010, 12, 1)  # noqa: DTZ001  local time of the shop, as in the file
DAYS = 374


def updates(*, days: int = DAYS) -> pa.Table:
    """The shop's updates of the first days; no row lacks a customer that its line has."""
    shipped = pq.read_table(data_path())
    shipped = shipped.filter(pc.less(shipped["at"], pa.scalar(START + timedelta(days=days))))
    added = shipped.filter(pc.equal(shipped["op"], "add"))
    customer_of = dict(zip(added["id"].to_pylist(), added["customer"].to_pylist(), strict=True))
    customers = pa.array([customer_of[line] for line in shipped["id"].to_pylist()], pa.string())
    position = shipped.schema.get_field_index("customer")
    return shipped.set_column(position, shipped.schema.field(position), customers)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--days", type=int, default=DAYS, help="only the first days")
    chosen = parser.parse_args(arguments)
    made = updates(days=chosen.days)
    pq.write_table(made, chosen.output, compression="zstd")
    nobody = made["customer"].null_count
    print(f"{made.num_rows:,} updates, {nobody:,} of them of lines without a customer")


if __name__ == "__main__":
    main(sys.argv[1:])
