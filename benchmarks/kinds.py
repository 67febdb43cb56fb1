"""Errors and intervals of counts, sums, means, bins, cumulative counts, ranges and windows.

    python -m benchmarks kinds

The retail demo, 374 rounds, epsilon 1, delta 1e-9, all releases in one plan. Exact totals of some
rounds come from a store that lives through the demo's updates; every mechanism then publishes them
under several keys, and each number is held against the exact one.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache
from itertools import accumulate
from pathlib import Path

from benchmarks import shop
from benchmarks.shop import HORIZON
from benchmarks.tables import Table
from retrodp.engine.compile import CompiledRelease, compile_plan
from retrodp.engine.resolve import resolve
from retrodp.mechanisms.contract import Stateful
from retrodp.mechanisms.counter import Counter
from retrodp.mechanisms.mean import MeanOfBins
from retrodp.noise.key import KeyTree
from retrodp.plan.plan import Plan
from retrodp.statistics.means import COUNT, SUM, coordinate

RESULTS = Path(__file__).parent / "results"
KEYS, MORE_KEYS = 20, 400  # more where a release is a single number
ROUNDS = (30, 100, 200, 300, 374)

RELEASES = """
[release.lines]
kind = "count"
[release.lines_per_day]
kind = "count"
window = "1d"
[release.lines_per_week]
kind = "count"
window = "7d"
[release.lines_per_30_days]
kind = "count"
window = "30d"
[release.dear_lines]
kind = "count"
where = "amount >= 100 and country != 'United Kingdom'"
[release.revenue]
kind = "sum"
of = "amount"
by = "country"
[release.by_country]
kind = "histogram"
by = "country"
[release.value]
kind = "mean"
of = "amount"
by = "country"
[release.up_to]
kind = "cdf"
of = "amount"
edges = [1, 2, 5, 10, 15, 20, 50, 100, 200, 500]
[release.between]
kind = "range"
of = "amount"
edges = [0, 1, 2, 5, 10, 15, 20, 50, 100, 200, 500.01]
"""

Exact = Mapping[bytes, int]
Truth = dict[str, Fraction]


@cache
def plan() -> Plan:
    """The demo's stream with our releases."""
    return shop.plan_of(RELEASES)


@cache
def compiled() -> tuple[CompiledRelease, ...]:
    """Statistics and mechanisms."""
    return compile_plan(plan(), resolve(plan()))


@cache
def exact() -> shop.Totals:
    """Totals of the chosen rounds, by release."""
    return shop.totals(plan(), ROUNDS)


def truth_of(release: CompiledRelease, totals: Exact) -> Truth:
    """Every number without noise, in units; 0 where there is nothing."""
    mechanism = release.mechanism
    if isinstance(mechanism, MeanOfBins):
        return dict(_means(mechanism, totals))
    if release.name == "up_to":
        edges = json.loads(RELEASES.split("edges = ")[1].partition("\n")[0])
        sums = accumulate(totals.get(b"%d" % cell, 0) for cell in range(len(edges)))
        return {str(edge): Fraction(total) for edge, total in zip(edges, sums, strict=True)}
    return {label.decode(): total * mechanism.step for label, total in totals.items()}


def _means(mechanism: MeanOfBins, totals: Exact) -> Iterator[tuple[str, Fraction]]:
    for label in mechanism.bins or ("",):
        count = totals.get(coordinate(COUNT, label.encode()), 0)
        if count:
            total = totals.get(coordinate(SUM, label.encode()), 0)
            mean = Fraction(total, count) + mechanism.statistic.centre
            yield label, mean * mechanism.total.step


def kinds() -> Table:
    """Predicted and measured errors, and how often intervals held."""
    table = Table(
        name="kinds",
        title="Every kind every round: errors on a year of a shop's order lines",
        note=(
            f"{HORIZON} rounds, epsilon 1 shared by ten releases, rounds "
            f"{', '.join(map(str, ROUNDS))}, {KEYS} keys ({MORE_KEYS} for a single number); root mean "
            "square over all numbers of a release. *Predicted*: of the stated standard deviations. *95 %*: half width of the "
            "interval of a round, root mean square; *held*: how often it had the exact number, and "
            "*all*: the interval of all rounds. Means of countries with lines; errors of those that "
            "claim a standard deviation."
        ),
        headings=["release", "numbers", "predicted", "measured", "95 %", "held", "all"],
    )
    for release in compiled():
        assert not isinstance(release.mechanism, Stateful)
        found: defaultdict[str, list[float]] = defaultdict(list)
        numbers = 0
        for number in range(MORE_KEYS if _is_scalar(release) else KEYS):
            keys = KeyTree.from_root(bytes(32), b"benchmark %d" % number, HORIZON)
            for round_, totals in exact().items():
                truth = truth_of(release, totals[release.name])
                answer = release.mechanism.release(round_, totals[release.name], keys)
                figures = answer.figures()
                numbers = len(figures)
                for figure in figures:
                    if release.name == "value" and figure.key not in truth:
                        continue
                    own = truth.get(figure.key, Fraction(0)) / answer.step
                    step, bounds = float(answer.step), figure.bounds
                    found["held"].append(bounds.low <= own <= bounds.high)
                    found["all"].append(bounds.low_all <= own <= bounds.high_all)
                    if figure.value is not None and bounds.stddev:
                        found["measured"].append(float(figure.value - own) * step)
                        found["predicted"].append(float(bounds.stddev))
                        found["width"].append((bounds.high - bounds.low) / 2 * step)
        table.add(
            release.name,
            numbers,
            *(_rms(found[name]) for name in ("predicted", "measured", "width")),
            *(sum(found[name]) / len(found[name]) for name in ("held", "all")),
        )
    return table


def _is_scalar(release: CompiledRelease) -> bool:
    return isinstance(release.mechanism, Counter)


def windows() -> Table:
    """Half widths of a count by window, for each factor that a plan may name."""
    table = Table(
        name="windows",
        title="A count of a window: half width of the 95 % interval, in records",
        note=(
            "365 daily rounds, epsilon 1, delta 1e-9 for this count alone; the worst round. *fresh* "
            "is what auto takes where it is best."
        ),
        headings=["window", "auto", "taken", "haar", "binary"],
    )
    for window in (1, 7, 14, 30, 60, 90, 180, None):
        row: list[str | float] = []
        for factor in ("auto", "haar", "binary"):
            text = _COUNT.format(factor=factor, window=f'window = "{window}d"' if window else "")
            wanted = Plan.loads(text)
            (release,) = compile_plan(wanted, resolve(wanted))
            facts = release.mechanism.describe()
            row.append(float(facts["error_max"]))
            if factor == "auto":
                row.append(str(facts["factor"]))
        table.add("so far" if window is None else f"{window} days", *row)
    return table


_COUNT = """
[stream]
start = 2026-01-01
round = "1d"
horizon = 365
[columns]
word = "text"
[privacy]
epsilon = 1
delta = 1e-9
[release.lines]
kind = "count"
factor = "{factor}"
{window}
"""


def _rms(errors: list[float]) -> float:
    return math.sqrt(sum(error**2 for error in errors) / len(errors)) if errors else math.nan


def tables() -> Iterator[Table]:
    """Both."""
    yield windows()
    yield kinds()
