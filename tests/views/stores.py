"""Small published stores for the tests of views: real plan, real releases file, chosen values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path

from retrodp.engine.resolve import resolve
from retrodp.mechanisms.answer import Answer
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from retrodp.store.releases import Releases
from retrodp.views.published import PLAN_FILE, RELEASES_FILE, Published

# Clocks go forward in round 3 (27 March 2011).
PLAN = """
[stream]
start = 2011-03-25
round = "1d"
timezone = "Europe/London"
horizon = 10

[columns]
product = "text"
country = { type = "category", values = ["France", "Germany"], other = true }
amount = { type = "number", min = -5, max = 5, step = 0.05 }

[privacy]
model = "zcdp"
epsilon = 1.0
delta = 1e-9

[release.lines]
kind = "count"
window = "7d"

[release.revenue]
kind = "sum"
of = "amount"
where = "country == 'Germany'"

[release.by_country]
kind = "histogram"
by = "country"

[release.by_product]
kind = "histogram"
by = "product"
share = 3
"""
SPARSE, SUM = "by_product", "revenue"


@cache
def resolved() -> ResolvedPlan:
    return resolve(Plan.loads(PLAN))


def answer(
    release: str, round_: int, values: Sequence[int], keys: Sequence[str] | None = None
) -> Answer:
    return answer_under(resolved(), release, round_, values, keys)


def answer_under(
    under: ResolvedPlan,
    release: str,
    round_: int,
    values: Sequence[int],
    keys: Sequence[str] | None = None,
) -> Answer:
    entry = under.release(release)
    noise = entry["noise"]
    return Answer(
        release=release,
        round=round_,
        keys=None if keys is None else tuple(keys),
        values=tuple(values),
        step=Fraction(noise["step"]),
        stddev=noise["stddev"][round_ - 1],
        half=noise["half"][round_ - 1],
        half_all=noise["half_all"][round_ - 1],
        level=Fraction(noise["level"]),
        threshold=entry.get("threshold"),
    )


def usual(round_: int, products: Mapping[str, int] | None = None) -> list[Answer]:
    """One answer of each release; `products` are the bins of the sparse one."""
    bins = {"Tea": 900 + round_, "Jam": 700} if products is None else products
    return [
        answer("lines", round_, [1000 * round_ + 7]),
        answer(SUM, round_, [-12345 - round_]),
        answer("by_country", round_, [40, -3, 25], ["France", "Germany", "other"]),
        answer(SPARSE, round_, [bins[key] for key in sorted(bins)], sorted(bins)),
    ]


def create(directory: Path, *, test: bool = False) -> Releases:
    directory.mkdir(parents=True)
    (directory / PLAN_FILE).write_bytes(resolved().to_json())
    return Releases.create(directory / RELEASES_FILE, store_id="5" * 32, test=test)


def publish(releases: Releases, answers: Sequence[Answer]) -> None:
    releases.publish(answers[0].round, {one.release: one.to_bytes() for one in answers})


def store(directory: Path, rounds: int = 3, *, test: bool = False) -> Path:
    """A store whose first rounds are published."""
    return store_of(directory, [usual(round_) for round_ in range(1, rounds + 1)], test=test)


def store_of(directory: Path, rounds: Sequence[Sequence[Answer]], *, test: bool = False) -> Path:
    releases = create(directory, test=test)
    for answers in rounds:
        publish(releases, answers)
    releases.close()
    return directory


def opened(directory: Path, rounds: int = 3, *, test: bool = False) -> Published:
    return Published.open(store(directory, rounds, test=test))
