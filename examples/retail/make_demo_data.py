"""Make the shipped demo data from the public Online Retail files.

    python examples/retail/make_demo_data.py DIRECTORY [OUTPUT.parquet]

DIRECTORY holds `online_retail_lines.csv.gz` and `online_retail_cancellations.csv.gz`. The output
is a stream of updates in the order in which they happened; `README.md` beside this file says what
was decided. The same input and the same version of PyArrow give the same bytes.
"""

from __future__ import annotations

import csv
import gzip
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

LINES = "online_retail_lines.csv.gz"
CANCELLATIONS = "online_retail_cancellations.csv.gz"
OUTPUT = Path(__file__).parents[2] / "src" / "retrodp" / "demo" / "retail.parquet"
NOTES = b"retrodp.demo"
CENT = Decimal("0.01")

SCHEMA = pa.schema(
    [
        pa.field("op", pa.string(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("at", pa.timestamp("s"), nullable=False),  # local time of the shop
        pa.field("time", pa.timestamp("s")),
        pa.field("customer", pa.string()),
        pa.field("product", pa.string()),
        pa.field("country", pa.string()),
        pa.field("amount", pa.decimal128(9, 2)),
    ]
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an invoice, as the shop wrote it."""

    number: int
    invoice: str
    product: str
    units: int
    at: str
    price: Decimal
    customer: str | None
    country: str

    @property
    def is_cancellation(self) -> bool:
        return self.invoice.startswith("C")

    @property
    def is_adjustment(self) -> bool:
        """A correction of bad debts, the only lines with a negative price."""
        return self.invoice.startswith("A")

    @property
    def is_order(self) -> bool:
        return self.units > 0 and not self.is_cancellation and not self.is_adjustment

    def worth(self, units: int) -> Decimal:
        return (units * self.price).quantize(CENT, ROUND_HALF_UP)


@dataclass(frozen=True, slots=True)
class Update:
    """One row of the output; a deletion names nothing but its line."""

    op: str
    line: Line
    at: str
    units: int = 0

    def row(self) -> dict[str, object]:
        row: dict[str, object] = {"op": self.op, "id": str(self.line.number), "at": self.at}
        if self.op == "delete":
            return row
        return row | {
            "time": self.line.at if self.op == "replace" else None,
            "customer": self.line.customer,
            "product": self.line.product,
            "country": self.line.country,
            "amount": self.line.worth(self.units),
        }


def rows_of(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def lines_of(directory: Path) -> dict[int, Line]:
    return {
        int(row["line"]): Line(
            number=int(row["line"]),
            invoice=row["InvoiceNo"],
            product=row["StockCode"],
            units=int(row["Quantity"]),
            at=row["InvoiceDate"],
            price=Decimal(row["UnitPrice"]),
            customer=row["CustomerID"] or None,
            country=row["Country"],
        )
        for row in rows_of(directory / LINES)
    }


def updates_of(directory: Path) -> tuple[list[Update], dict[str, int]]:
    """All updates in the order they happened, and how many lines did what."""
    lines = lines_of(directory)
    taken_back: defaultdict[int, Counter[str]] = defaultdict(Counter)
    linked = set()
    for row in rows_of(directory / CANCELLATIONS):
        cancellation = lines[int(row["cancel_line"])]
        taken_back[int(row["original_line"])][cancellation.at] += int(row["units"])
        linked.add(cancellation.number)
    updates: list[Update] = []
    same_minute = 0
    for line in lines.values():
        if line.is_order:
            # What is taken back in the minute of the order was never sold.
            left = line.units - taken_back[line.number].pop(line.at, 0)
            same_minute += left < line.units
            if left:
                updates.append(Update("add", line, line.at, left))
            for at, units in sorted(taken_back[line.number].items()):
                left -= units
                updates.append(Update("replace" if left else "delete", line, at, left))
    updates.sort(key=lambda update: (update.at, update.line.number))
    ops = Counter(update.op for update in updates)
    counts = {
        "source_lines": len(lines),
        "updates": len(updates),
        "additions": ops["add"],
        "replacements": ops["replace"],
        "deletions": ops["delete"],
        "lines_taken_back_in_their_own_minute": same_minute,
        "left_out_cancellations_without_their_order": sum(
            line.is_cancellation and line.number not in linked for line in lines.values()
        ),
        "left_out_stock_write_offs": sum(
            line.units <= 0 and not line.is_cancellation for line in lines.values()
        ),
        "left_out_bad_debt_adjustments": sum(line.is_adjustment for line in lines.values()),
        "additions_without_customer": sum(
            update.op == "add" and update.line.customer is None for update in updates
        ),
    }
    return updates, counts


def write(updates: list[Update], counts: dict[str, int], output: Path) -> None:
    rows = [update.row() for update in updates]
    columns = {}
    for field in SCHEMA:
        values = pa.array([row.get(field.name) for row in rows], type=_as_written(field.type))
        columns[field.name] = values.cast(field.type)
    notes = {NOTES: json.dumps(counts).encode()}
    table = pa.table(columns, schema=SCHEMA).replace_schema_metadata(notes)
    dictionaries = ["op", "time", "customer", "product", "country", "amount"]
    pq.write_table(
        table,
        output,
        compression="zstd",
        compression_level=19,
        use_dictionary=dictionaries,
        column_encoding={"id": "DELTA_BYTE_ARRAY", "at": "DELTA_BINARY_PACKED"},
        store_decimal_as_integer=True,
        write_statistics=False,
        row_group_size=len(rows),
    )


def _as_written(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_timestamp(kind) else kind


def main(arguments: list[str]) -> None:
    if not arguments:
        sys.exit(__doc__)
    output = Path(arguments[1]) if len(arguments) > 1 else OUTPUT
    updates, counts = updates_of(Path(arguments[0]))
    write(updates, counts, output)
    for name, number in counts.items():
        print(f"{name:45} {number:>9,}")
    print(f"{output}: {output.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
