"""Errors and intervals of query, cube, gram and mean over many keys.

Every statement about coverage has alpha = 1e-9 or less (6.2 standard deviations) for each number that
is published, over independent keys; a scale that is off by a fifth is noticed (see the twins).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.cube import MarginalTables
from retrodp.mechanisms.gram import NoisyMoments
from retrodp.mechanisms.mean import MeanOfBins
from retrodp.noise.key import KeyTree
from retrodp.statistics.marginals import Marginal
from retrodp.statistics.means import COUNT, SUM, coordinate
from retrodp.statistics.moments import PRODUCTS, SUMS
from retrodp.statistics.moments import coordinate as moment
from tests.contracts.released import Released
from tests.support.vectors import HORIZON, MODELS, Model

KEYS = {"cube": 700, "gram": 200, "mean": 500}
FEWER = 100  # where all rounds are asked
SIGMAS = 6.2
LEVEL = 0.95
ROUND = 3
Floats = NDArray[np.float64]
Totals = Mapping[bytes, int]

by_model = pytest.mark.parametrize("model", MODELS)


def keys(number: int) -> KeyTree:
    return KeyTree.from_root(number.to_bytes(32, "big"), b"vectors", HORIZON)


def slack(count: int) -> float:
    return SIGMAS * math.sqrt(LEVEL * (1 - LEVEL) / count)


def mechanism(kind: str, model: Model) -> MarginalTables | NoisyMoments | MeanOfBins:
    made = Released(kind=kind, model=model, unit="record").make().mechanism
    assert isinstance(made, MarginalTables | NoisyMoments | MeanOfBins)
    return made


@cache
def answers(kind: str, model: Model, size: int) -> tuple[Answer, ...]:
    """Answers of one round under many keys, for totals of so many records."""
    made, totals = mechanism(kind, model), exact(kind, model, size)
    return tuple(made.release(ROUND, totals, keys(number)) for number in range(KEYS[kind]))


@cache
def exact(kind: str, model: Model, size: int) -> Totals:
    """Totals of records with the same contents, or a cube's cells of different sizes."""
    match mechanism(kind, model):
        case MarginalTables() as made:
            return dict(cube_cells(made, size))
        case NoisyMoments() as made:
            # x = 1, y = 0.5 in size of the records and x = -0.5, y = 0 in as many others.
            sums = {"x": size * (2 - 1), "y": size}
            products = {("x", "x"): size * (4 + 1), ("x", "y"): size * 2, ("y", "y"): size}
            found = {moment("count"): 2 * size}
            found |= {moment(SUMS, name): total for name, total in sums.items()}
            return found | {moment(PRODUCTS, *pair): total for pair, total in products.items()}
        case MeanOfBins() as made:
            assert made.bins is not None
            found = {}
            for label in made.bins:
                found[coordinate(COUNT, label.encode())] = size
                found[coordinate(SUM, label.encode())] = 2 * size
            return found


def cube_cells(made: MarginalTables, size: int) -> Iterator[tuple[bytes, int]]:
    """Consistent cells: the sums of a table over both columns."""
    full = max(made.statistic.public, key=lambda one: len(one.columns))
    sizes = {cell: size * number for number, cell in enumerate(full.cells())}
    for marginal in made.statistic.public:
        for cell in marginal.cells():
            yield (
                marginal.key(cell).encode(),
                sum(many for other, many in sizes.items() if _within(marginal, full, cell, other)),
            )


def _within(
    marginal: Marginal, full: Marginal, cell: tuple[object, ...], other: tuple[object, ...]
) -> bool:
    values = dict(zip(full.names, other, strict=True))
    return all(values[name] == value for name, value in zip(marginal.names, cell, strict=True))


def truths(kind: str, model: Model, size: int) -> dict[str, Fraction]:
    """What each published number would be without noise, in units."""
    totals = exact(kind, model, size)
    match mechanism(kind, model):
        case MarginalTables():
            return {label.decode(): Fraction(total) for label, total in totals.items()}
        case NoisyMoments():
            half, n = Fraction(1, 2), 2 * size
            found = {'["count"]': Fraction(n)}
            for place, total in totals.items():
                what, _, label = place.decode().partition("\n")
                if what != "count":
                    found[label] = total * (half if what == "sum" else half**2)
            names = ("x", "y")
            means = {name: found[f'["sum","{name}"]'] / n for name in names}
            found |= {f'["mean","{name}"]': mean for name, mean in means.items()}
            for label in [label for label in found if label.startswith('["product"')]:
                _, one, two = json.loads(label)
                found[f'["covariance","{one}","{two}"]'] = (
                    found[label] / n - means[one] * means[two]
                )
            return found
        case MeanOfBins() as made:
            assert made.bins is not None
            centre = made.statistic.centre
            return {label: Fraction(centre + 2, 2) for label in made.bins}


def coverage(found: tuple[Answer, ...], truth: dict[str, Fraction]) -> dict[str, float]:
    hits = dict.fromkeys(truth, 0)
    for answer in found:
        for figure in answer.figures():
            true = truth[figure.key] / answer.step
            hits[figure.key] += figure.bounds.low <= true <= figure.bounds.high
    return {key: many / len(found) for key, many in hits.items()}


KINDS: list[tuple[str, int, Model]] = [
    *(("cube", 50, "zcdp"), ("cube", 50, "pure")),
    *(("gram", 3, "zcdp"), ("gram", 400, "zcdp"), ("gram", 400, "pure")),
    *(("mean", 1, "zcdp"), ("mean", 30, "zcdp"), ("mean", 1000, "zcdp"), ("mean", 100, "pure")),
]


@pytest.mark.parametrize(("kind", "size", "model"), KINDS)
def test_the_interval_of_a_round_covers_at_its_level(kind: str, size: int, model: Model) -> None:
    found = coverage(answers(kind, model, size), truths(kind, model, size))
    assert min(found.values()) >= LEVEL - slack(KEYS[kind])


@pytest.mark.parametrize(
    ("kind", "size", "model"), [("cube", 50, "zcdp"), ("gram", 400, "pure"), ("mean", 100, "zcdp")]
)
def test_the_interval_of_all_rounds_covers_them_at_once(kind: str, size: int, model: Model) -> None:
    made, totals, truth = (
        mechanism(kind, model),
        exact(kind, model, size),
        truths(kind, model, size),
    )
    hits = dict.fromkeys(truth, 0)
    for number in range(FEWER):
        tree = keys(number)
        inside = dict.fromkeys(truth, True)
        for round_ in range(1, HORIZON + 1):
            answer = made.release(round_, totals, tree)
            for figure in answer.figures():
                true = truth[figure.key] / answer.step
                inside[figure.key] &= figure.bounds.low_all <= true <= figure.bounds.high_all
        for key, all_rounds in inside.items():
            hits[key] += all_rounds
    assert min(hits.values()) / FEWER >= LEVEL - slack(FEWER)


def spreads(found: tuple[Answer, ...]) -> tuple[dict[str, float], dict[str, float]]:
    """Measured and stated standard deviation by key, in units."""
    values: dict[str, list[float]] = {}
    stated: dict[str, float] = {}
    for answer in found:
        for figure in answer.figures():
            if figure.bounds.stddev:
                assert figure.value is not None
                values.setdefault(figure.key, []).append(float(figure.value * answer.step))
                stated[figure.key] = float(figure.bounds.stddev)
    return {key: float(np.std(own)) for key, own in values.items()}, stated


@by_model
@pytest.mark.parametrize(("kind", "size"), [("cube", 50), ("gram", 400)])
def test_predicted_errors_are_the_measured_ones(kind: str, size: int, model: Model) -> None:
    measured, stated = spreads(answers(kind, model, size))
    ratios = [measured[key] / stated[key] for key in stated]
    assert len(ratios) >= 6
    assert 0.9 < float(np.mean(ratios)) < 1.1
    # One number alone: 200 keys tell a deviation to 5 (Gaussian) or 8 (Laplace) per cent.
    assert 0.65 < min(ratios) <= max(ratios) < 1.5


@by_model
def test_consistency_lowers_the_error_as_predicted(model: Model) -> None:
    made = mechanism("cube", model)
    assert isinstance(made, MarginalTables)
    assert made.public is not None
    raw = float(made.public.stddev[ROUND - 1])
    measured, stated = spreads(answers("cube", model, 50))
    assert max(stated.values()) < 0.83 * raw
    assert max(measured.values()) < 0.92 * raw


def test_twin_intervals_of_smaller_noise_miss_too_often() -> None:
    made = mechanism("cube", "zcdp")
    assert isinstance(made, MarginalTables)
    assert made.band is not None
    reach = tuple(own * Fraction(2, 3) for own in made.band.reach)
    narrow = replace(made, band=replace(made.band, reach=reach))
    totals = exact("cube", "zcdp", 50)
    found = tuple(narrow.release(ROUND, totals, keys(number)) for number in range(KEYS["cube"]))
    covered = coverage(found, truths("cube", "zcdp", 50))
    assert min(covered.values()) < LEVEL - slack(KEYS["cube"])


def test_twin_a_mean_that_knows_of_one_error_only_misses_too_often() -> None:
    made = mechanism("mean", "zcdp")
    assert isinstance(made, MeanOfBins)
    blind = replace(made, total=replace(made.total, half=(0,) * HORIZON))
    totals = exact("mean", "zcdp", 1000)
    found = tuple(blind.release(ROUND, totals, keys(number)) for number in range(KEYS["mean"]))
    covered = coverage(found, truths("mean", "zcdp", 1000))
    assert min(covered.values()) < LEVEL - slack(KEYS["mean"])
