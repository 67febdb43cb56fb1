"""Sketches: the error of second moments beside the predicted one, and how fast updates go in."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.tables import Table
from benchmarks.timing import rate
from retrodp.engine.compile import CompiledRelease, compile_plan
from retrodp.engine.resolve import resolve
from retrodp.mechanisms.second_moment import SecondMoment
from retrodp.noise.key import KeyTree
from retrodp.plan.plan import Plan
from retrodp.statistics.buckets import stored
from retrodp.statistics.contract import PURPOSE, Keyed
from retrodp.statistics.sketch import SketchedItems
from retrodp.stream.batch import Batch

HORIZON, ROUND, KEYS = 365, 200, 400
UPDATES = 500_000
METHODS: dict[str, dict[str, str | int]] = {
    "median of 5 rows of 1,024": {},
    "mean of 1 row of 16,384": {"method": "mean", "rows": 1, "buckets": 16_384},
    "dense, 5 rows of 256": {"method": "dense", "rows": 5, "buckets": 256},
    "accuracy 0.2": {"accuracy": "1/5"},
}


def release(**table: str | int) -> CompiledRelease:
    """One release of a plan of a year, epsilon 4."""
    plan = Plan.from_dict(
        {
            "stream": {"start": "2024-01-01", "round": "1d", "horizon": HORIZON},
            "columns": {"item": "text"},
            "privacy": {"model": "zcdp", "epsilon": "4", "delta": "1e-6"},
            "release": {"r": {"of": "item", **table}},
        }
    )
    (found,) = compile_plan(plan, resolve(plan))
    return found


def errors() -> Table:
    """Second moments of even and of steep data under many keys."""
    table = Table(
        name="sketch-error",
        title="Second moments: found over predicted error",
        note=f"{HORIZON} rounds, epsilon 4, delta 1e-6, {KEYS} keys, 500 items; even: 200 records "
        "each; steep: 20,000 / i. Errors as a part of the moment. The prediction is for the worst "
        "data; steep data are easier, because an item never meets itself.",
        headings=["method", "data", "predicted", "found", "ratio", "intervals that hold"],
    )
    data = {
        "even": np.full(500, 200),
        "steep": 20_000 // np.arange(1, 501),
    }
    for title, keys in METHODS.items():
        made = release(kind="second_moment", **keys)
        mechanism, statistic = made.mechanism, made.statistic
        assert isinstance(mechanism, SecondMoment)
        assert isinstance(statistic, SketchedItems)
        for name, counts in data.items():
            truth, held = int((counts**2).sum()), 0
            found = []
            for number in range(KEYS):
                tree = KeyTree.from_root(number.to_bytes(32, "big"), b"sketch", HORIZON)
                hashed = statistic.keyed(tree.lasting_key(release="r", purpose=PURPOSE))
                totals = stored(hashed.sums([b"%d" % i for i in range(500)], counts))
                (figure,) = mechanism.release(ROUND, totals, tree).figures()
                assert figure.value is not None
                found.append(figure.value - truth)
                held += figure.bounds.low <= truth <= figure.bounds.high
            error = math.sqrt(float(np.mean(np.square(np.array(found, dtype=float)))))
            predicted = mechanism.stddev_at(truth, ROUND)
            table.add(
                title,
                name,
                round(predicted / truth, 4),
                round(error / truth, 4),
                round(error / predicted, 3),
                f"{held / KEYS:.1%}",
            )
    return table


def speed() -> Table:
    """Updates a second into the exact counters, from texts."""
    table = Table(
        name="sketch-speed",
        title="Updates into sketches",
        note=f"Batches of {UPDATES:,} records of one text column, processor time, one core; "
        "making labels and hashing them included.",
        headings=["sketch", "different values", "updates a second"],
    )
    kinds = {
        "second moment, 5 x 1,024": release(kind="second_moment"),
        "heavy hitters, 6 levels of 7 x 4,096": release(kind="heavy_hitters", top=20),
    }
    for different in (4_000, UPDATES):
        values: list[object] = [f"it{number % different}" for number in range(UPDATES)]
        batch = Batch(UPDATES, {"item": values}, np.ones(UPDATES, dtype=np.int64))
        for title, made in kinds.items():
            statistic = made.statistic
            assert isinstance(statistic, Keyed)
            keyed = statistic.keyed(bytes(32))
            assert isinstance(keyed, type(statistic))
            found = rate(partial(keyed.encode, batch), UPDATES)
            table.add(title, different, round(found.best))
    return table


def tables() -> Iterator[Table]:
    """All of them."""
    yield errors()
    yield speed()
