"""Plans with the kinds that publish many numbers of a record's vector, and records for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from typing import Literal

import msgspec

from retrodp.plan.columns import Canonical
from retrodp.plan.plan import Plan
from retrodp.stream.batch import Batch
from retrodp.stream.update import Record

Model = Literal["zcdp", "pure"]
MODELS: tuple[Model, ...] = ("zcdp", "pure")

HORIZON = 5
MAX_RECORDS, MAX_PER_BIN = 3, 2

RECORD = ""
PERSON_ROUND = f"""
unit = "person_round"
person = "who"
max_records = {MAX_RECORDS}
max_per_bin = {{ by = ["region"], max = {MAX_PER_BIN} }}
"""

# x and y have steps of a half: 2, 3 and 4 steps are met below.
_PLAN = """
[stream]
start = 2024-01-01
round = "1d"
horizon = {horizon}
{unit}
[columns]
who = "text"
word = "text"
region = {{ type = "category", values = ["north", "south"], nullable = false }}
gift = "boolean"
x = {{ type = "number", min = -1, max = 2, step = 0.5 }}
y = {{ type = "number", min = 0, max = 1.5, step = 0.5, nullable = true }}

[privacy]
model = "{model}"
epsilon = {epsilon}
delta = 1e-6
{releases}
"""

MATRIX = """
[release.matrix]
kind = "query"
matrix = [
    ["region", "gift", "coordinate", "weight"],
    ["north", true, "land", 1.5], ["north", true, "[gifts]", 1], ["north", true, "sea", -2],
    ["south", true, "land", 1], ["south", "", "land", 0.5], ["south", false, "sea", 2.5],
]
"""
LINEAR = """
[release.linear]
kind = "query"
linear = { net = "2 * x - y", northern = "x * [region == 'north' and gift]", gifts = "[gift]" }
"""
CLIPPED = """
[release.clipped]
kind = "query"
linear = { a = "x", b = "y * [gift]", c = "[region == 'north']" }
norm = 1.7
"""
CUBE = """
[release.cube]
kind = "cube"
by = ["region", "gift"]
"""
OPEN_CUBE = """
[release.open_cube]
kind = "cube"
by = ["region", "gift", "word"]
marginals = [["region"], ["gift"], ["region", "gift"], ["word"], ["region", "word"]]
max_bins = 1000
"""
GRAM = """
[release.gram]
kind = "gram"
of = ["x", "y"]
norm = 2
"""
MEAN = """
[release.mean]
kind = "mean"
of = "x"
by = "region"
"""
ALL = {
    "matrix": MATRIX,
    "linear": LINEAR,
    "clipped": CLIPPED,
    "cube": CUBE,
    "open_cube": OPEN_CUBE,
    "gram": GRAM,
    "mean": MEAN,
}


@cache
def plan(
    *releases: str,
    model: Model = "zcdp",
    unit: str = RECORD,
    horizon: int = HORIZON,
    epsilon: int | str = 1,
) -> Plan:
    """A plan with these releases, given as TOML."""
    return Plan.loads(
        _PLAN.format(
            horizon=horizon,
            unit=unit,
            model=model,
            epsilon=epsilon,
            releases="\n".join(releases or ALL.values()),
        )
    )


Values = tuple[Canonical, ...]


def records() -> Iterator[Values]:
    """Every canonical record of a few values each: extremes, zero, null."""
    return product(
        ("ann",),
        ("tea", None),
        ("north", "south"),
        (True, False, None),
        (-2, 0, 3, 4),
        (0, 3, None),
    )


def batch(values: Sequence[Values], plan_: Plan) -> Batch:
    """Some records as a statistic sees them."""
    made = [Record("", "", 1, None, msgspec.msgpack.encode(one), 1) for one in values]
    return Batch.of_records(made, [column.name for column in plan_.columns])
