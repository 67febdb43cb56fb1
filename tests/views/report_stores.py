"""A published store that holds a release of every kind and method of the registry, with rude labels."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from retrodp.audit.subjects import compiled_fillings, fillings, plan_of
from retrodp.engine.store import Store
from retrodp.plan.plan import Plan
from tests.support.stores import memory_directory, read_files, write_files

RUDE = (
    "</script><script>alert(1)</script>",
    "\"quoted\" & 'single' <b>bold</b>",
    "عربي",
    "🫖 tea",
    "a\u202egpj.exe",
    "x" * 10_000,
    "<!-- ]]> {{ 7 * 7 }}",
    "line\nbreak\x1b[31m\u2028",
)
HORIZON, ROUNDS = 5, 4


@cache
def plan() -> Plan:
    """The first filling of every kind and method, every shape of a revised count, the compilers."""
    chosen: dict[str, Mapping[str, Any]] = {}
    for one in fillings():
        kind, _, rest = one.title.partition(", ")
        if rest == "auto":
            chosen.setdefault(kind, one.table)
        elif kind == "count" and ("revised" in rest or rest == "window"):
            chosen[one.title] = one.table
    chosen |= {one.title: one.table for one in compiled_fillings()}
    tables = {_name(title): table for title, table in chosen.items()}
    return plan_of(tables, model="zcdp", horizon=HORIZON, epsilon=400)


def _name(title: str) -> str:
    return "".join(char if char.isalnum() else "_" for char in title.lower())


def rows(round_: int) -> pd.DataFrame:
    """Additions of one day; nothing in them is random."""
    products = [*RUDE, *(f"p{number}" for number in range(8))]
    numbers = range(240)
    return pd.DataFrame(
        {
            "op": "add",
            "id": [f"{round_}-{number}" for number in numbers],
            "at": f"2024-01-{round_:02d}T12:00:00",
            "who": [f"w{number % 50}" for number in numbers],
            "product": [products[number * number % len(products)] for number in numbers],
            "country": ["DE" if number % 3 else "FR" for number in numbers],
            "amount": [(number * 7 % 50 - 10) / 2 for number in numbers],
            "gift": [number % 4 == 0 for number in numbers],
            "weight": [number * 3 % 11 for number in numbers],
        }
    )


@cache
def _files() -> dict[str, bytes]:
    with memory_directory() as directory:
        with Store.create_for_tests(directory / "store", plan()) as store:
            for round_ in range(1, ROUNDS + 1):
                store.add(rows(round_))
                store.close_round()
        return read_files(directory / "store")


def every_kind(directory: Path) -> Path:
    """The store, in a directory that is made."""
    shutil.rmtree(directory, ignore_errors=True)
    write_files(directory, _files())
    return directory
