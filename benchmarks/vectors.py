"""Errors of cube, query and gram on a year of a shop's order lines, beside what was predicted.

The retail demo with three columns more, made from its own: a band of the line's amount, whether the
customer is known, the hour of the order. 374 rounds, epsilon 1, delta 1e-9, everything in one store.
Exact totals of some rounds come from a store that lives through the demo's updates; every mechanism
then publishes them under several keys.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks import shop
from benchmarks.shop import HORIZON
from benchmarks.tables import Table
from retrodp.demo import data_path
from retrodp.engine.compile import CompiledRelease, compile_plan
from retrodp.engine.resolve import resolve
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.contract import Stateful
from retrodp.mechanisms.cube import MarginalTables
from retrodp.noise.key import KeyTree
from retrodp.noise.prf import Coordinates
from retrodp.plan.plan import Plan
from retrodp.postprocess.covariance import Gram
from retrodp.stream.sources import read_frame

ROUNDS = (60, 150, 250, 374)
KEYS = 60
EUROPE = ("Belgium", "EIRE", "France", "Germany", "Netherlands", "Portugal", "Spain")
OVERSEAS = ("Australia", "Canada", "Israel", "Japan", "Singapore", "USA")

COLUMNS = """
band = { type = "category", values = ["to 5", "to 20", "to 100", "over 100"], nullable = false }
known = { type = "boolean", nullable = false }
hour = { type = "integer", min = 0, max = 23 }
price = { type = "number", min = 0, max = 50, step = 0.01, from = "amount" }
"""
RELEASES = """
[release.tables]
kind = "cube"
by = ["country", "band", "known"]
[release.groups]
kind = "query"
matrix = [["country", "coordinate", "weight"], {rows}]
[release.moments]
kind = "gram"
of = ["price", "hour"]
norm = 55
"""


def matrix_rows() -> str:
    """All lines, Europe, overseas, and a parcel's postage in thirds of a pound, by country."""
    rows = []
    for country in ("United Kingdom", *EUROPE, *OVERSEAS):
        postage = {True: 1, False: 2}[country == "United Kingdom" or country in EUROPE]
        rows += [f'["{country}", "listed", 1]', f'["{country}", "postage", {postage}]']
        if country in EUROPE:
            rows.append(f'["{country}", "europe", 1]')
        if country in OVERSEAS:
            rows.append(f'["{country}", "overseas", 1]')
    return ", ".join(rows)


@cache
def plan() -> Plan:
    """The demo's stream with our columns and releases."""
    return shop.plan_of(RELEASES.format(rows=matrix_rows()), columns=COLUMNS)


def frame() -> pa.Table:
    """The demo's updates with the columns that are made from its own."""
    table = pq.read_table(data_path())
    bands = [_band(amount) for amount in table["amount"].to_pylist()]
    table = table.append_column("band", pa.array(bands, pa.string()))
    table = table.append_column("known", pc.is_valid(table["customer"]))
    return table.append_column("hour", pc.hour(table["at"]))


def _band(amount: Decimal | None) -> str | None:
    if amount is None:
        return None
    tops = {"to 5": 5, "to 20": 20, "to 100": 100}
    return next((band for band, top in tops.items() if amount <= top), "over 100")


@cache
def compiled() -> tuple[CompiledRelease, ...]:
    """Statistics and mechanisms."""
    return compile_plan(plan(), resolve(plan()))


@cache
def exact() -> shop.Totals:
    """Totals of the chosen rounds, by release."""
    return shop.totals(plan(), ROUNDS, lambda layout: read_frame(frame(), layout))


def answers(name: str) -> Iterator[tuple[int, KeyTree, Answer]]:
    """(round, keys, answer) of a release."""
    (mechanism,) = (one.mechanism for one in compiled() if one.name == name)
    assert not isinstance(mechanism, Stateful)
    for number in range(KEYS):
        keys = KeyTree.from_root(bytes(32), b"benchmark %d" % number, HORIZON)
        for round_, totals in exact().items():
            yield round_, keys, mechanism.release(round_, totals[name], keys)


def rms(errors: list[float]) -> float:
    return math.sqrt(sum(error**2 for error in errors) / len(errors))


class Seen:
    """Errors, stated deviations and hits by group."""

    def __init__(self) -> None:
        self.errors: defaultdict[str, list[float]] = defaultdict(list)
        self.stated: defaultdict[str, list[float]] = defaultdict(list)
        self.hits: defaultdict[str, list[bool]] = defaultdict(list)
        self.widths: defaultdict[str, list[float]] = defaultdict(list)

    def take(self, group: str, figure: Any, step: Fraction, truth: Fraction) -> None:
        """One published number."""
        low, high = figure.bounds.low * step, figure.bounds.high * step
        if figure.value is not None:
            self.errors[group].append(float(figure.value * step - truth))
        if figure.bounds.stddev:
            self.stated[group].append(float(figure.bounds.stddev))
        self.hits[group].append(low <= truth <= high)
        self.widths[group].append(float(high - low) / 2)


def tables() -> Table:
    """The cube, with and without consistency."""
    table = Table(
        name="cube",
        title="A cube every round: errors in order lines",
        note=(
            f"Country (42 values), band of the amount (4), customer known (2): all marginals of one "
            f"and two columns. {len(ROUNDS)} rounds, {KEYS} keys. *Raw*: the same noisy cells "
            "before least squares. *95 %*: half width, and how often it held the exact count."
        ),
        headings=["table", "cells", "raw rms", "predicted", "measured", "95 %", "held"],
    )
    (made,) = (one.mechanism for one in compiled() if one.name == "tables")
    assert isinstance(made, MarginalTables)
    raw, seen = raw_errors(made), Seen()
    for round_, _, answer in answers("tables"):
        totals = exact()[round_]["tables"]
        for figure in answer.figures():
            group = " and ".join(name for name, _ in json.loads(figure.key))
            seen.take(group, figure, answer.step, Fraction(totals.get(figure.key.encode(), 0)))
    for marginal in made.statistic.marginals:
        group = " and ".join(marginal.names)
        table.add(
            group,
            len(list(marginal.cells())),
            rms(raw[group]),
            rms(seen.stated[group]),
            rms(seen.errors[group]),
            float(np.mean(seen.widths[group])),
            float(np.mean(seen.hits[group])),
        )
    return table


def raw_errors(made: MarginalTables) -> dict[str, list[float]]:
    """Noise of the cells before least squares, by table."""
    assert made.public is not None
    sizes = [len(list(marginal.cells())) for marginal in made.statistic.public]
    found: defaultdict[str, list[float]] = defaultdict(list)
    for number in range(KEYS):
        keys = KeyTree.from_root(bytes(32), b"benchmark %d" % number, HORIZON)
        for round_ in ROUNDS:
            noise = made.public.draw(round_, keys, Coordinates.of_indices(sum(sizes)))
            pieces = np.split(noise, np.cumsum(sizes)[:-1])
            for marginal, piece in zip(made.statistic.public, pieces, strict=True):
                found[" and ".join(marginal.names)] += piece.astype(float).tolist()
    return found


def queries() -> Table:
    """A matrix charged by its norm, and the same numbers otherwise."""
    resolved = resolve(plan())
    entry = resolved.release("groups")
    (release,) = (one for one in compiled() if one.name == "groups")
    (component,) = release.statistic.components
    assert component.norms is not None
    seen = Seen()
    for round_, _, answer in answers("groups"):
        totals = exact()[round_]["groups"]
        for figure in answer.figures():
            truth = totals.get(figure.key.encode(), 0) * component.step
            seen.take(figure.key, figure, answer.step, Fraction(truth))
    joint = max(float(text) for text in entry["noise"]["stddev"])
    norm = math.sqrt(component.norms.l2_squared)
    one = joint / norm  # of a count that had the whole budget of the release
    table = Table(
        name="query",
        title="A matrix of four coordinates every round: errors in units of each",
        note=(
            "Four weighted sums over country: lines in fourteen listed countries, in Europe, "
            f"overseas, and postage. Largest norm of a column {norm:.3g}. *Apart*: each coordinate "
            "with a quarter of the budget and its own largest weight. *Cells*: noisy counts of the "
            "countries, added up."
        ),
        headings=["coordinate", "predicted", "measured", "held", "apart", "cells"],
    )
    weights: defaultdict[str, list[float]] = defaultdict(list)
    for row in release.statistic.weights.values():  # type: ignore[attr-defined]
        for name, weight in row.items():
            weights[name].append(float(weight))
    for name in sorted(weights):
        apart = one * 2 * max(weights[name])
        cells = one * math.sqrt(sum(weight**2 for weight in weights[name]))
        table.add(
            name,
            rms(seen.stated[name]),
            rms(seen.errors[name]),
            float(np.mean(seen.hits[name])),
            apart,
            cells,
        )
    return table


def moments() -> tuple[Table, Table]:
    """Errors of moments, and of a ridge regression that is made of them."""
    seen = Seen()
    slopes: list[list[float]] = []
    for round_, _, answer in answers("moments"):
        truth = true_moments(exact()[round_]["moments"])
        for figure in answer.figures():
            seen.take(figure.key, figure, answer.step, truth[figure.key])
        slopes.append([*slopes_of(answer), *true_slopes(truth)])
    table = Table(
        name="gram",
        title="Moments of price and hour every round",
        note=f"Clipped to a norm of 55. {len(ROUNDS)} rounds, {KEYS} keys; last round's exact value.",
        headings=["number", "exact", "predicted", "measured", "95 %", "held"],
    )
    last = true_moments(exact()[ROUNDS[-1]]["moments"])
    for key in sorted(last):
        stated = rms(seen.stated[key]) if seen.stated[key] else None
        errors, width = rms(seen.errors[key]), float(np.mean(seen.widths[key]))
        held = float(np.mean(seen.hits[key]))
        table.add(" ".join(json.loads(key)), float(last[key]), stated, errors, width, held)
    found = np.array(slopes)
    ridge = Table(
        name="ridge",
        title="A ridge regression of price on hour, from the published moments",
        note="Penalty: three standard deviations of a product's noise.",
        headings=["", "exact", "rms error"],
    )
    for place, name in enumerate(("intercept", "slope")):
        ridge.add(
            name, float(found[-1, place + 2]), rms(list(found[:, place] - found[:, place + 2]))
        )
    return table, ridge


def true_moments(totals: dict[bytes, int]) -> dict[str, Fraction]:
    """Every number of the release without noise, in units."""
    (release,) = (one for one in compiled() if one.name == "moments")
    steps = {one.name: one.step for one in release.statistic.components}
    found = {}
    for place, total in totals.items():
        what, _, label = place.partition(b"\n")
        found[label.decode()] = total * steps[what.decode()]
    n = found['["count"]']
    means = {json.loads(key)[1]: value / n for key, value in found.items() if "sum" in key}
    for key in [key for key in found if key.startswith('["product"')]:
        _, one, two = json.loads(key)
        found[f'["covariance","{one}","{two}"]'] = found[key] / n - means[one] * means[two]
    return found | {f'["mean","{name}"]': mean for name, mean in means.items()}


def slopes_of(answer: Answer) -> list[float]:
    """Intercept and slope from what was published."""
    assert answer.keys is not None
    values = {
        tuple(json.loads(figure.key)): float((figure.value or 0) * answer.step)
        for figure in answer.figures()
    }
    noise = {figure.key: figure.bounds.stddev for figure in answer.figures()}
    penalty = 3 * float(noise['["product","hour","hour"]'])
    intercept, slopes = Gram.of(values).ridge("price", ["hour"], penalty=penalty)
    return [intercept, slopes["hour"]]


def true_slopes(truth: dict[str, Fraction]) -> list[float]:
    """The same without noise and penalty."""
    values = {tuple(json.loads(key)): float(value) for key, value in truth.items()}
    intercept, slopes = Gram.of(values).ridge("price", ["hour"], penalty=0.0)
    return [intercept, slopes["hour"]]


def vectors() -> Iterator[Table]:
    """All of them."""
    yield tables()
    yield queries()
    yield from moments()
