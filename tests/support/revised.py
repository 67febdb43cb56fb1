"""Plans with revised releases of every kind, shape and limit, and what they should hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from retrodp.plan.plan import Plan
from retrodp.stream.update import Record
from tests.support.plans import Kind, Model, plan

REVISED = """
[release.cases]
kind = "count"
revised = true
[release.cases_recent]
kind = "count"
revised = true
last = "3d"
[release.gifts]
kind = "count"
revised = true
where = "gift"
factor = "binary"
[release.money]
kind = "sum"
of = "amount"
by = "country"
revised = true
[release.by_product]
kind = "histogram"
by = "product"
revised = true
share = 8
[release.by_country]
kind = "histogram"
by = ["country", "gift"]
revised = true
last = "2d"
[release.so_far]
kind = "count"
revised = true
shape = "cumulative"
[release.money_so_far]
kind = "sum"
of = "amount"
revised = true
shape = "cumulative"
last = "4d"
[release.product_so_far]
kind = "histogram"
by = "product"
revised = true
shape = "cumulative"
share = 8
"""


def revised(kind: Kind = "ids", model: Model = "zcdp", *, epsilon: int = 400) -> Plan:
    """All of them under one budget, of no use in life."""
    return plan(kind, model, releases=REVISED, epsilon=epsilon)


def one(text: str, *, epsilon: int = 1, horizon: int = 6) -> Plan:
    """A plan with one revised release, named r."""
    return plan(releases=f"[release.r]\nrevised = true\n{text}", epsilon=epsilon, horizon=horizon)


def by_stamp(records: Iterable[Record]) -> Counter[int]:
    """Surviving records of each stamp: the revised past, counted again."""
    found: Counter[int] = Counter()
    for record in records:
        found[record.stamp] += record.count
    return found
