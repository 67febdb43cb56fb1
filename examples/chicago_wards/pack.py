"""Pack the city's list of complaints into the file beside this script.

    python examples/chicago_wards/pack.py DIRECTORY

DIRECTORY holds `chicago311_sanitation.csv.gz`. Addresses and places are left out, all but the ward;
nothing else is changed. The same input and the same version of PyArrow give the same bytes.
"""

from __future__ import annotations

import csv
import gzip
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

SOURCE = "chicago311_sanitation.csv.gz"
OUTPUT = Path(__file__).with_name("complaints.parquet")
COLUMNS = ("request", "created", "completed", "status", "nature", "ward")
DAYS = ("created", "completed")


def packed(directory: Path) -> pa.Table:
    with gzip.open(directory / SOURCE, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = {name: pa.array([row[name] or None for row in rows], pa.string()) for name in COLUMNS}
    return pa.table(columns | {name: columns[name].cast(pa.date32()) for name in DAYS})


def main(arguments: list[str]) -> None:
    if len(arguments) != 1:
        sys.exit(__doc__)
    table = packed(Path(arguments[0]))
    pq.write_table(
        table,
        OUTPUT,
        compression="zstd",
        compression_level=19,
        use_dictionary=["created", "completed", "status", "nature", "ward"],
        column_encoding={"request": "DELTA_BYTE_ARRAY"},
        write_statistics=False,
        row_group_size=table.num_rows,
    )
    print(f"{table.num_rows:,} complaints, {OUTPUT.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
