"""Pack the events of the register into the file beside this script.

    python examples/gov_register/pack.py DIRECTORY

DIRECTORY holds `dotgov_events.csv.gz`. Cities are left out, nothing else is changed. The same input
and the same version of PyArrow give the same bytes.
"""

from __future__ import annotations

import csv
import gzip
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

SOURCE = "dotgov_events.csv.gz"
OUTPUT = Path(__file__).with_name("register.parquet")
COLUMNS = ("seen_at", "op", "domain", "type", "organization", "state")


def packed(directory: Path) -> pa.Table:
    with gzip.open(directory / SOURCE, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = {name: pa.array([row[name] for row in rows], pa.string()) for name in COLUMNS}
    columns["seen_at"] = columns["seen_at"].cast(pa.timestamp("s", tz="UTC"))
    return pa.table(columns)


def main(arguments: list[str]) -> None:
    if len(arguments) != 1:
        sys.exit(__doc__)
    table = packed(Path(arguments[0]))
    pq.write_table(
        table,
        OUTPUT,
        compression="zstd",
        compression_level=19,
        use_dictionary=["op", "domain", "type", "organization", "state"],
        column_encoding={"seen_at": "DELTA_BINARY_PACKED"},
        write_statistics=False,
        row_group_size=table.num_rows,
    )
    print(f"{table.num_rows:,} events, {OUTPUT.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
