"""Intervals of every kind cover the truth at their level over many keys, for one small data set.

One law for all kinds, as plans make them. A published number is covered in a round with probability
`LEVEL` at least: it fails where so many keys miss it as a sound number does with probability 1e-9 at
most. Power: an interval of Gaussian noise that is too narrow by a quarter covers in 86 per cent, and
passes 1,000 keys with a probability below 1 in 10,000; the twins show it. Kinds that are slow to ask
have 400 keys, and find intervals that cover in 80 per cent with the same probability. Whatever claims a
standard deviation errs by that, up to a tenth, all its numbers together.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy.stats import binom, norm

from retrodp.engine.compile import CompiledRelease, compile_plan
from retrodp.engine.resolve import resolve
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.lived import lived
from retrodp.noise.key import KeyTree
from retrodp.plan.plan import Plan
from retrodp.stream.batch import Batch
from retrodp.stream.update import Record

ALPHA = 1e-9
LEVEL = 0.95
KEYS, SLOW_KEYS, FEWER = 1_000, 400, 60
HORIZON, ROUND = 4, 3
MOST = {keys: int(binom.isf(ALPHA, keys, 1 - LEVEL)) for keys in (KEYS, SLOW_KEYS)}
MODELS = ("zcdp", "pure")

PLAN = """
[stream]
start = 2024-01-01
round = "1d"
horizon = 4
[columns]
region = {{ type = "category", values = ["north", "south"], nullable = false }}
gift = {{ type = "boolean", nullable = false }}
amount = {{ type = "number", min = 0, max = 20, step = 0.5, nullable = true }}
age = {{ type = "integer", min = 0, max = 10 }}
[privacy]
model = "{model}"
epsilon = 4
delta = 1e-6
[release.r]
{release}
"""

Row = tuple[str, bool, int | None, int]


def rows(size: int) -> list[Row]:
    """Records of a fixed rule: region, gift, amount in half units, age."""
    made: list[Row] = []
    for number in range(size):
        amount = None if number % 11 == 10 else (number * number) % 41 if number % 3 else 8
        made.append(("north" if number % 4 else "south", number % 5 < 2, amount, number % 11))
    return made


Truth = dict[str, Fraction]


def amounts(some: Sequence[Row]) -> list[Fraction]:
    return [Fraction(amount, 2) for _, _, amount, _ in some if amount is not None]


def of_region(some: Sequence[Row], region: str) -> list[Row]:
    return [row for row in some if row[0] == region]


def by_region(measure: Callable[[list[Row]], Fraction]) -> Callable[[list[Row]], Truth]:
    return lambda some: {region: measure(of_region(some, region)) for region in ("north", "south")}


def total(some: list[Row]) -> Fraction:
    return sum(amounts(some), Fraction(0))


def mean(some: list[Row]) -> Fraction:
    return total(some) / len(amounts(some))


def quantile(some: list[Row], share: Fraction) -> Fraction:
    values = sorted(amounts(some))
    return values[math.ceil(share * len(values)) - 1]


def quartiles(some: list[Row]) -> Truth:
    return {
        f'["{region}",{share}]': quantile(of_region(some, region), Fraction(share))
        for region in ("north", "south")
        for share in ("0.25", "0.5", "0.75")
    }


EDGES = ("2", "4", "6.5", "10", "20")


def cumulative(some: list[Row]) -> Truth:
    return {edge: Fraction(sum(one <= Fraction(edge) for one in amounts(some))) for edge in EDGES}


def ranges(some: list[Row]) -> Truth:
    ends = [Fraction(end) for end in EDGES]
    return {
        f"[{texts[0]}, {texts[1]})": Fraction(sum(low <= one < high for one in amounts(some)))
        for texts, (low, high) in zip(pairwise(EDGES), pairwise(ends), strict=True)
    }


def tables(some: list[Row]) -> Truth:
    found: Counter[str] = Counter()
    for region, gift, _, _ in some:
        pairs = [["region", region]], [["gift", gift]], [["region", region], ["gift", gift]]
        found.update(json.dumps(cell, separators=(",", ":")) for cell in pairs)
    return {cell: Fraction(many) for cell, many in found.items()}


def matrix(some: list[Row]) -> Truth:
    north, south = (len(of_region(some, region)) for region in ("north", "south"))
    return {"a": Fraction(3, 2) * north, "b": Fraction(2 * south - north)}


def scores(some: list[Row]) -> Truth:
    net = sum(
        (2 * Fraction(amount, 2) - 3 for _, _, amount, _ in some if amount is not None), Fraction(0)
    )
    return {"net": net, "gifts": Fraction(sum(gift for _, gift, _, _ in some))}


def moments(some: list[Row]) -> Truth:
    pairs = [(Fraction(row[2], 2), Fraction(row[3])) for row in some if row[2] is not None]
    n = Fraction(len(pairs))
    columns = {"amount": [one for one, _ in pairs], "age": [two for _, two in pairs]}
    found = {'["count"]': n}
    for name, values in columns.items():
        found[f'["sum","{name}"]'] = sum(values, Fraction(0))
        found[f'["mean","{name}"]'] = sum(values, Fraction(0)) / n
    for one, two in (("amount", "amount"), ("amount", "age"), ("age", "age")):
        product = sum((a * b for a, b in zip(columns[one], columns[two], strict=True)), Fraction(0))
        found[f'["product","{one}","{two}"]'] = product
        means = found[f'["mean","{one}"]'] * found[f'["mean","{two}"]']
        found[f'["covariance","{one}","{two}"]'] = product / n - means
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind as a plan writes it, its exact numbers, and whether its intervals are tight."""

    text: str
    truth: Callable[[list[Row]], Truth]
    size: int = 600
    tight: bool = False


KINDS: Mapping[str, Kind] = {
    "count": Kind(text='kind = "count"', truth=lambda some: {"": Fraction(len(some))}, tight=True),
    "count of a window": Kind(
        text='kind = "count"\nwindow = "1d"',
        truth=lambda some: {"": Fraction(len(some))},
        tight=True,
    ),
    "count where": Kind(
        text='kind = "count"\nwhere = "gift and amount >= 4"',
        truth=lambda some: {
            "": Fraction(sum(gift and (amount or 0) >= 8 for _, gift, amount, _ in some))
        },
        tight=True,
    ),
    "sum": Kind(
        text='kind = "sum"\nof = "amount"\nby = "region"', truth=by_region(total), tight=True
    ),
    "mean": Kind(text='kind = "mean"\nof = "amount"\nby = "region"', truth=by_region(mean)),
    "mean of few": Kind(
        text='kind = "mean"\nof = "amount"\nby = "region"', truth=by_region(mean), size=24
    ),
    "mean of very few": Kind(
        text='kind = "mean"\nof = "amount"\nby = "region"', truth=by_region(mean), size=5
    ),
    "histogram": Kind(
        text='kind = "histogram"\nby = "region"',
        truth=by_region(lambda some: Fraction(len(some))),
        tight=True,
    ),
    "quantiles": Kind(
        text='kind = "quantiles"\nof = "amount"\nat = [0.25, 0.5, 0.75]\nby = "region"',
        truth=quartiles,
    ),
    "quantiles of few": Kind(
        text='kind = "quantiles"\nof = "amount"\nat = [0.25, 0.5, 0.75]\nby = "region"',
        truth=quartiles,
        size=40,
    ),
    "cdf": Kind(
        text=f'kind = "cdf"\nof = "amount"\nedges = [{", ".join(EDGES)}]', truth=cumulative
    ),
    "range": Kind(
        text=f'kind = "range"\nof = "amount"\nedges = [{", ".join(EDGES)}]',
        truth=ranges,
        tight=True,
    ),
    "cube": Kind(text='kind = "cube"\nby = ["region", "gift"]', truth=tables),
    "query by matrix": Kind(
        text='kind = "query"\nmatrix = [["region", "coordinate", "weight"], '
        '["north", "a", 1.5], ["north", "b", -1], ["south", "b", 2]]',
        truth=matrix,
        tight=True,
    ),
    "query by expressions": Kind(
        text='kind = "query"\nlinear = { net = "2 * amount - 3", gifts = "[gift]" }',
        truth=scores,
        tight=True,
    ),
    "gram": Kind(text='kind = "gram"\nof = ["amount", "age"]\nnorm = 25', truth=moments),
}

every = pytest.mark.parametrize("kind", KINDS)
models = pytest.mark.parametrize("model", MODELS)


@cache
def planned(kind: str, model: str) -> tuple[CompiledRelease, dict[bytes, int]]:
    """The release of a plan, and the exact totals of the records."""
    plan = Plan.loads(PLAN.format(model=model, release=KINDS[kind].text))
    (release,) = compile_plan(plan, resolve(plan))
    made = [
        Record("", str(number), ROUND, None, msgspec.msgpack.encode(row), 1)
        for number, row in enumerate(rows(KINDS[kind].size))
    ]
    batch = Batch.of_records(made, [column.name for column in plan.columns])
    return release, release.statistic.encode(batch)


def released(kind: str, model: str, number: int, round_: int) -> Answer:
    release, totals = planned(kind, model)
    keys = KeyTree.from_root(number.to_bytes(32, "big"), f"{kind} {model}".encode(), HORIZON)
    return lived(release.mechanism).release(round_, totals, keys)


@cache
def answers(kind: str, model: str) -> tuple[Answer, ...]:
    keys = KEYS if KINDS[kind].tight else SLOW_KEYS
    return tuple(released(kind, model, number, ROUND) for number in range(keys))


def misses(kind: str, found: Sequence[Answer], *, part: float = 1) -> Counter[str]:
    """Answers whose interval, or this part of it around the value, misses the truth, by number."""
    truth = KINDS[kind].truth(rows(KINDS[kind].size))
    missed = Counter(dict.fromkeys(truth, 0))
    for answer in found:
        for figure in answer.figures():
            low, high = figure.bounds.low, figure.bounds.high
            if part != 1 and figure.value is not None:
                value = figure.value
                low, high = (value + math.trunc((end - value) * part) for end in (low, high))
            missed[figure.key] += not low <= truth[figure.key] / answer.step <= high
    return missed


@every
@models
def test_every_interval_covers_its_truth_at_its_level(kind: str, model: str) -> None:
    made = answers(kind, model)
    found = misses(kind, made)
    assert len(found) >= 1
    assert max(found.values()) <= MOST[len(made)]


@every
def test_intervals_that_follow_the_noise_alone_are_no_wider_than_need_be(kind: str) -> None:
    """Tight ones: by less than two steps, whose part of the interval is counted."""
    if not KINDS[kind].tight:
        pytest.skip("its intervals cover several noisy numbers at once")
    narrower = [
        sum(
            abs(truth / answer.step - figure.value) > figure.bounds.high - figure.value - 2
            for answer in answers(kind, "zcdp")
            for figure in answer.figures()
            if figure.key == key and figure.value is not None
        )
        for key, truth in KINDS[kind].truth(rows(KINDS[kind].size)).items()
    ]
    assert min(narrower) >= binom.ppf(ALPHA, KEYS, 1 - LEVEL)


@every
@models
def test_predicted_errors_are_the_measured_ones_up_to_a_tenth(kind: str, model: str) -> None:
    """A mean claims a standard deviation only where its count is certain; a covariance none."""
    truth = KINDS[kind].truth(rows(KINDS[kind].size))
    ratios = [
        float(figure.value * answer.step - truth[figure.key]) / float(figure.bounds.stddev)
        for answer in answers(kind, model)
        for figure in answer.figures()
        if figure.value is not None and figure.bounds.stddev
    ]
    if not ratios:
        pytest.skip("it claims no standard deviation, or not at this size")
    assert 0.9 < float(np.sqrt(np.mean(np.square(ratios)))) < 1.1


@pytest.mark.parametrize("kind", [kind for kind, one in KINDS.items() if one.tight])
def test_twin_an_interval_that_is_too_narrow_by_a_quarter_is_noticed(kind: str) -> None:
    found = misses(kind, answers(kind, "zcdp"), part=0.75)
    assert max(found.values()) > MOST[KEYS]


def test_the_stated_power_is_that_of_the_binomial_law() -> None:
    narrow = 2 * norm.sf(0.75 * norm.isf((1 - LEVEL) / 2))
    assert binom.cdf(MOST[KEYS], KEYS, narrow) < 1e-4
    assert binom.cdf(MOST[SLOW_KEYS], SLOW_KEYS, 0.2) < 1e-4


@every
def test_intervals_for_all_rounds_hold_in_all_of_them(kind: str) -> None:
    truth = KINDS[kind].truth(rows(KINDS[kind].size))
    left: Counter[str] = Counter(dict.fromkeys(truth, 0))
    for number in range(FEWER):
        out: dict[str, bool] = dict.fromkeys(truth, False)
        for round_ in range(1, HORIZON + 1):
            answer = released(kind, "zcdp", KEYS + number, round_)
            for figure in answer.figures():
                exact: Any = truth[figure.key] / answer.step
                out[figure.key] |= not figure.bounds.low_all <= exact <= figure.bounds.high_all
        left.update({key: int(missed) for key, missed in out.items()})
    assert max(left.values()) <= binom.isf(ALPHA, FEWER, 1 - LEVEL)
