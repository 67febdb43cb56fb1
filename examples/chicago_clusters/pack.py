"""Pack the city's list of complaints into the file beside this script.

    python examples/chicago_clusters/pack.py DIRECTORY

DIRECTORY holds `chicago311_sanitation.csv.gz`. Latitude and longitude become kilometres east and
north of a corner outside the city, to ten metres; addresses are left out. The same input and the
same version of PyArrow give the same bytes.
"""

from __future__ import annotations

import csv
import gzip
import math
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

SOURCE = "chicago311_sanitation.csv.gz"
OUTPUT = Path(__file__).with_name("places.parquet")
CORNER = (41.62, -87.96)  # latitude and longitude
DEGREE = 111.2  # kilometres in a degree of latitude
DUPLICATE = "Completed - Dup"
KILOMETRES = pa.decimal128(5, 2)


def east_north(latitude: str, longitude: str) -> tuple[Decimal, Decimal] | None:
    """Kilometres from the corner; None where the list has no place."""
    if not latitude or not longitude:
        return None
    north = (float(latitude) - CORNER[0]) * DEGREE
    east = (float(longitude) - CORNER[1]) * DEGREE * math.cos(math.radians(41.84))
    return Decimal(f"{east:.2f}"), Decimal(f"{north:.2f}")


def packed(directory: Path) -> pa.Table:
    with gzip.open(directory / SOURCE, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    placed = [(row, east_north(row["lat"], row["lon"])) for row in rows]
    kept = [(row, place) for row, place in placed if place is not None]
    withdrawn = [row["completed"] if row["status"] == DUPLICATE else None for row, _ in kept]
    return pa.table(
        {
            "request": pa.array([row["request"] for row, _ in kept], pa.string()),
            "created": pa.array([row["created"] for row, _ in kept]).cast(pa.date32()),
            "withdrawn": pa.array([day or None for day in withdrawn], pa.string()).cast(
                pa.date32()
            ),
            "east": pa.array([place[0] for _, place in kept], KILOMETRES),
            "north": pa.array([place[1] for _, place in kept], KILOMETRES),
        }
    )


def main(arguments: list[str]) -> None:
    if len(arguments) != 1:
        sys.exit(__doc__)
    table = packed(Path(arguments[0]))
    pq.write_table(
        table,
        OUTPUT,
        compression="zstd",
        compression_level=19,
        row_group_size=table.num_rows,
        store_schema=False,
    )
    print(f"{table.num_rows:,} lines, {OUTPUT.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
