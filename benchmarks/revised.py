"""Revised series: error against publishing again, and what a round costs.

Errors are worst deviations at rho = 1/2 (and epsilon = 1), computed from the laws that a store would
draw; the peers of `revised_error` are the ways to publish a revised series without a factor over
rounds, at the same budget for all rounds together.
"""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from benchmarks.tables import Table
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.revised import RevisedSeries
from retrodp.mechanisms.stamped import series_noise, stored
from retrodp.noise.factors.axis import MOST_STAMPS, best_root, best_walk
from retrodp.noise.factors.blocks import block_length
from retrodp.noise.factors.contract import Factor
from retrodp.noise.factors.delannoy import best_delannoy
from retrodp.noise.factors.haar import best_haar
from retrodp.noise.key import KeyTree
from retrodp.noise.process import NoiseProcess
from retrodp.noise.product import ProductFactor, ProductProcess
from retrodp.statistics.revised import seven_bits

RHO, EPSILON = Fraction(1, 2), 1
QUARTER = 90
SIZES = ((365, 1), (365, 100), (365, 10_000), (1000, 1), (1000, 100), (1000, 10_000))


def per_stamp_error(horizon: int, rounds: int, law: str) -> float:
    """Worst deviation of a stamp's value."""
    covered = min(horizon, rounds + block_length(horizon, rounds) - 1)
    factor: Factor = best_haar(covered) if law == "gaussian" else best_delannoy(covered)
    return math.sqrt(_process(factor, law).max_variance)


def cumulative_error(horizon: int, law: str) -> float:
    """Worst deviation of the sum up to a stamp."""
    return math.sqrt(_product(horizon, horizon, law).max_variance)


def _process(factor: Factor, law: str) -> NoiseProcess:
    if law == "gaussian":
        return NoiseProcess(factor=factor, law="gaussian", scale=factor.window_l2sq / (2 * RHO))
    return NoiseProcess(factor=factor, law="laplace", scale=Fraction(factor.window_l1, EPSILON))


def _product(horizon: int, rounds: int, law: str) -> ProductProcess:
    if law == "gaussian":
        axis = best_root(horizon) if horizon <= MOST_STAMPS else best_walk(horizon)
        factor = ProductFactor(arrival=best_haar(horizon), axis=axis, rounds=rounds)
        scale = factor.window_l2sq / (2 * RHO)
        return ProductProcess(factor=factor, law="gaussian", scale=scale)
    factor = ProductFactor(arrival=best_delannoy(horizon), axis=best_walk(horizon), rounds=rounds)
    return ProductProcess(factor=factor, law="laplace", scale=Fraction(factor.window_l1, EPSILON))


def errors() -> Table:
    """Worst deviations, beside those of publishing again every round."""
    table = Table(
        name="revised_error",
        title="Revised series: worst error, beside publishing again every round",
        note=(
            "Worst deviation of any number of any round, for one record and all rounds together, at "
            "rho = 1/2 (zcdp) or epsilon = 1 (pure). *Again, a number a stamp*: fresh noise on every "
            "stamp in every round, T rounds composed. *Again, a tree over stamps*: a fresh binary "
            "tree over stamps every round. *Sums of stamps*: adding up this package's numbers by "
            "stamp over all stamps. *Binary x binary*: the product of two binary trees."
        ),
        headings=(
            *("T", "model", "by stamp", "last 90", "again, a number a stamp", "cumulative"),
            *("tree over stamps", "sums of stamps", "again, a tree over stamps"),
        ),
    )
    for horizon in (365, 1000):
        for law, model in (("gaussian", "zcdp"), ("laplace", "pure")):
            levels, bits = horizon.bit_length(), _most_bits(horizon)
            by_stamp = per_stamp_error(horizon, horizon, law)
            if law == "gaussian":
                fresh = math.sqrt(horizon)
                binary = by_stamp * math.sqrt(levels * bits)
                tree = math.sqrt(horizon * levels * bits)
            else:
                fresh = math.sqrt(2) * horizon
                binary = by_stamp * levels * math.sqrt(bits)
                tree = math.sqrt(2) * horizon * levels * math.sqrt(bits)
            table.add(
                horizon,
                model,
                by_stamp,
                per_stamp_error(horizon, QUARTER, law),
                fresh,
                cumulative_error(horizon, law),
                binary,
                by_stamp * math.sqrt(horizon),
                tree,
            )
    return table


def _most_bits(horizon: int) -> int:
    return max(number.bit_count() for number in range(1, horizon + 1))


def costs(sizes: tuple[tuple[int, int], ...] = SIZES) -> Iterator[Table]:
    """Seconds and bytes of the last, largest round."""
    table = Table(
        name="revised_cost",
        title="Revised series: what a round near the end costs",
        note=(
            "One of the last eight rounds, that of most nodes: nearly all T stamps of every bin. Counts are Poisson of mean 30 a stamp and "
            "bin. *Seconds*: from exact totals to the bytes of the release, processor time of one "
            "round; *bytes a number* as stored. *Store*: all T rounds, from this round's bytes "
            "a number."
        ),
        headings=(
            *("T", "bins", "shape", "last", "seconds", "numbers", "bytes a number"),
            *("MB this round", "MB all rounds"),
        ),
    )
    for horizon, bins in sizes:
        for shape in ("per_stamp", "cumulative"):
            for rounds in (horizon, QUARTER):
                _measure(table, horizon, bins, shape, rounds)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    table.note += f" Most memory of the whole run: {peak:,.0f} MB."
    yield table


def series_of(horizon: int, bins: int, shape: str, rounds: int) -> RevisedSeries:
    """A series at rho = 1/2 as a plan would make it."""
    length = block_length(horizon, rounds)
    if shape == "cumulative":
        process: ProductProcess | NoiseProcess = _product(horizon, rounds, "gaussian")
    else:
        process = _process(best_haar(min(horizon, rounds + length - 1)), "gaussian")
    noise = CalibratedNoise.of(
        "r", process, step=Fraction(1), amount=1, split=(1,), level=Fraction(19, 20)
    )
    kept = stored(noise, horizon=horizon, rounds=rounds, length=length)
    labels = tuple(f"bin {number:05d}" for number in range(bins)) if bins > 1 else None
    return RevisedSeries(series=series_noise(noise, kept), bins=labels)


def _measure(table: Table, horizon: int, bins: int, shape: str, rounds: int) -> None:
    mechanism = series_of(horizon, bins, shape, rounds)
    keys = KeyTree.from_root(bytes(32), b"benchmark", horizon)
    round_ = max(range(horizon - 7, horizon + 1), key=lambda one: len(mechanism.factor.nodes(one)))
    first = 1 if shape == "cumulative" else max(1, round_ - rounds + 1)
    counts = np.random.default_rng(1).poisson(30, (round_ - first + 1, bins)).tolist()
    coded = [seven_bits(number) for number in range(bins)]
    exact = {
        seven_bits(stamp) + code: count
        for stamp, row in enumerate(counts, start=first)
        for code, count in zip(coded, row, strict=True)
        if count
    }
    begin = time.process_time()
    answer = mechanism.release(round_, exact, keys)
    size = len(answer.to_bytes())
    seconds = time.process_time() - begin
    numbers = len(answer)
    pairs = rounds * horizon - rounds * (rounds - 1) // 2
    last = None if rounds == horizon else rounds
    table.add(
        *(horizon, bins, shape, last, seconds, numbers, size / numbers),
        *(size / 1e6, size / numbers * pairs * bins / 1e6),
    )
