"""Plans that hold every kind of release, for three kinds of streams and both privacy models."""

from __future__ import annotations

from functools import cache
from typing import Literal

from retrodp.plan.plan import Plan

Kind = Literal["ids", "points", "persons"]
Model = Literal["zcdp", "pure"]
KINDS: tuple[Kind, ...] = ("ids", "points", "persons")
MODELS: tuple[Model, ...] = ("zcdp", "pure")

HORIZON = 6
MAX_RECORDS, MAX_PER_BIN = 3, 2

_STREAMS = {
    "ids": 'person = "who"',
    "points": 'ids = false\nperson = "who"',
    "persons": f'unit = "person_round"\nperson = "who"\nmax_records = {MAX_RECORDS}\n'
    f'max_per_bin = {{ by = ["product"], max = {MAX_PER_BIN} }}',
}

# The usual budget is of no use in life: noise so small that bins of few records are released.
_PLAN = """
[stream]
start = 2024-01-01
round = "1d"
horizon = {horizon}
{stream}

[columns]
who = "text"
product = "text"
country = {{ type = "category", values = ["DE", "FR"], other = true }}
amount = {{ type = "number", min = -5, max = 20, step = 0.5, nullable = true }}
gift = "boolean"

[privacy]
model = "{model}"
epsilon = {epsilon}
delta = 1e-3
{releases}
"""

RELEASES = """
[release.lines]
kind = "count"
[release.lines_binary]
kind = "count"
factor = "binary"
[release.lines_haar]
kind = "count"
factor = "haar"
[release.lines_delannoy]
kind = "count"
factor = "delannoy"
[release.recent]
kind = "count"
window = "2d"
[release.recent_binary]
kind = "count"
window = "3d"
factor = "binary"
[release.german_gifts]
kind = "count"
where = "country == 'DE' and gift"
[release.money]
kind = "sum"
of = "amount"
where = "amount > 1"
[release.recent_money]
kind = "sum"
of = "amount"
by = "country"
window = "3d"
[release.mean_money]
kind = "mean"
of = "amount"
by = "country"
where = "not gift"
[release.by_country]
kind = "histogram"
by = ["country", "gift"]
[release.by_product]
kind = "histogram"
by = "product"
share = 12
[release.recent_pairs]
kind = "histogram"
by = ["product", "country"]
window = "4d"
share = 12
"""


@cache
def plan(
    kind: Kind = "ids",
    model: Model = "zcdp",
    *,
    horizon: int = HORIZON,
    releases: str = RELEASES,
    epsilon: int = 150,
) -> Plan:
    """A plan from 2024-01-01 UTC in days; every release of `RELEASES` unless told otherwise."""
    return Plan.loads(
        _PLAN.format(
            horizon=horizon,
            stream=_STREAMS[kind],
            model=model,
            releases=releases,
            epsilon=epsilon,
        )
    )


def counting(kind: Kind = "ids", *, horizon: int = HORIZON) -> Plan:
    """The plan with one count only and a budget of life: cheap to resolve and to close."""
    one = '[release.lines]\nkind = "count"'
    return plan(kind, horizon=horizon, releases=one, epsilon=1)


@cache
def opened(
    kind: Kind = "ids",
    model: Model = "zcdp",
    *,
    releases: str = RELEASES,
    epochs: str = "first = 4",
    epsilon: int = 150,
) -> Plan:
    """The same with an open horizon, in epochs as the table says."""
    text = plan(kind, model, releases=releases, epsilon=epsilon).text
    text = text.replace(f"horizon = {HORIZON}\n", 'horizon = "open"\n')
    return Plan.loads(text.replace("[columns]", f"[stream.epochs]\n{epochs}\n[columns]"))


@cache
def dense() -> Plan:
    """Dense factors, whose noise stays derivable to the horizon, so that a plan has to say so."""
    text = plan(releases=_DENSE, epsilon=30).text
    return Plan.loads(text.replace("[privacy]", "[privacy]\nforward_secrecy = false"))


_DENSE = """
[release.lines]
kind = "count"
factor = "dense"
[release.by_country]
kind = "histogram"
by = "country"
factor = "dense"
[release.by_product]
kind = "histogram"
by = "product"
factor = "dense"
max_bins = 1000
share = 12
[release.recent]
kind = "count"
window = "2d"
factor = "dense"
"""
