"""The shipped real data and plan of `retrodp demo`: a year of a gift shop's order lines.

Promise: public data (CC0, see `DATA-LICENSE.txt`), the same in every installation.
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Literal, TypeAlias

import pyarrow.parquet as pq

File: TypeAlias = Literal["retail.parquet", "plan.toml", "DATA-LICENSE.txt"]

FORGET_CUSTOMERS = ("14096", "14156")
"""Two customers with 5,111 and 1,412 lines, whose last updates arrive in rounds 370 and 365."""

LAST_ROUND = 374
"""Round of the last update: 2011-12-09."""


def demo_path(name: File) -> Path:
    """Where a file of the demo stands in this installation."""
    return Path(str(files(__name__) / name))


def data_path() -> Path:
    """The updates, in the order in which they happened; `examples/retail` says how it was made."""
    return demo_path("retail.parquet")


def plan_path() -> Path:
    """The plan of the demo."""
    return demo_path("plan.toml")


def counts() -> dict[str, int]:
    """How many lines of the source became what, and how many were left out; public."""
    metadata: dict[bytes, bytes] = pq.read_metadata(data_path()).metadata
    noted: dict[str, int] = json.loads(metadata[b"retrodp.demo"])
    return noted
