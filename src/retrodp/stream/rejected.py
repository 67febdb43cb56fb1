"""The file of refused rows: where a row stood and why it was refused, and nothing of what it said.

Promise: the file appears whole or not at all, and holds no value and no id. Knows no plan.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

HEADER = ("file", "line", "field", "reason")


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """One refused row.

    Attributes:
        file: Label of the source.
        line: First line of the row in a text file; row number from 1 elsewhere.
        field: Name of the field that is wrong, as the file calls it; "" for the whole row.
        reason: Why, in words that quote no value.
    """

    file: str
    line: int
    field: str
    reason: str


def write_rejected(path: Path, rows: Iterable[RefusedRow]) -> int:
    """Write the refused rows as CSV, replacing an older file.

    Args:
        path: Where the file shall stand; its directory must exist.
        rows: Refused rows in the order to write them.

    Returns:
        How many rows were written.
    """
    temporary = path.with_name(path.name + ".tmp")
    written = 0
    try:
        with temporary.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(HEADER)
            for row in rows:
                writer.writerow((row.file, row.line, row.field, row.reason))
                written += 1
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return written
