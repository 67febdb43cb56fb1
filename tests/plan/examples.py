"""Plans that the tests vary one key at a time."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from retrodp.plan import Plan

RETAIL = """
[stream]
start = 2010-12-01
round = "1d"
timezone = "Europe/London"
horizon = 374

[columns]
id = { from = "InvoiceNo" }
customer = "text"
product = "text"
country = { type = "category", values = ["United Kingdom", "Germany"], other = true }
amount = { type = "number", min = 0, max = 500, step = 0.01 }
items = { type = "integer", min = -10, max = 1000 }
gift = "boolean"
shipped = "date"

[privacy]
model = "zcdp"
epsilon = 1.0
delta = 1e-9

[release.lines]
kind = "count"

[release.by_country]
kind = "histogram"
by = "country"

[release.by_product]
kind = "histogram"
by = "product"
share = 3

[release.revenue]
kind = "sum"
of = "amount"
where = "country == 'Germany'"
window = "30d"
"""

SMALL: dict[str, Any] = {
    "stream": {"start": "2024-01-01", "round": "1d", "horizon": 30},
    "columns": {
        "person": "text",
        "place": "text",
        "kind": {"type": "category", "values": ["a", "b"]},
        "weight": {"type": "number", "min": -1, "max": 1, "step": "0.5"},
    },
    "privacy": {"epsilon": 1, "delta": 1e-6},
    "release": {"records": {"kind": "count"}},
}


def changed(**changes: object) -> Plan:
    """`SMALL` with values set by dotted path (`__` for the dot)."""
    return Plan.from_dict(changed_tables(**changes))


def changed_tables(**changes: object) -> dict[str, Any]:
    tables = deepcopy(SMALL)
    for path, value in changes.items():
        *outer, last = path.split("__")
        table = tables
        for key in outer:
            table = table.setdefault(key, {})
        table[last] = value
    return tables
