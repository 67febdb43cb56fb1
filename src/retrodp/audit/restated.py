"""What each kind must publish, said again: totals, declared noise, and what is made of them.

Promise: written from the documents of the kinds and not from their code: by recursion where they
search, by the formula of minima and maxima where they pool, by solving normal equations where they
use effects. An answer that differs from this in one value is accused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrodp.audit.revised import noise_of, restated
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.cdf import CumulativeCounts
from retrodp.mechanisms.contract import Mechanism
from retrodp.mechanisms.counter import Counter
from retrodp.mechanisms.cube import MarginalTables
from retrodp.mechanisms.gram import NoisyMoments
from retrodp.mechanisms.histogram import Histogram, SparseHistogram
from retrodp.mechanisms.mean import MeanOfBins
from retrodp.mechanisms.quantiles import Quantiles
from retrodp.mechanisms.query import WeightedSums
from retrodp.mechanisms.revised import RevisedSeries
from retrodp.noise.key import NoiseKeys
from retrodp.noise.prf import Coordinates
from retrodp.statistics.marginals import Cube
from retrodp.statistics.means import COUNT, SUM, coordinate
from retrodp.statistics.ordered import cells_by_group

Exact = Mapping[bytes, int]
Published = tuple[tuple[str, ...] | None, tuple[int | None, ...]]
Values = dict[str, int | None]
Matrix = tuple[tuple[Fraction, ...], ...]
Whole = NDArray[Any]
"""Fractions as objects."""

HUNDREDTHS = 100
HALF = Fraction(1, 2)


def expected(  # noqa: C901  one case a kind
    mechanism: Mechanism, round_: int, exact: Exact, keys: NoiseKeys
) -> Published | None:
    """Labels and values that the release must publish; None for a kind not known here."""
    found: Values
    match mechanism:
        case Counter():
            (draw,) = _draws(mechanism.noise, round_, keys, 1)
            return None, (exact.get(b"", 0) + draw,)
        case RevisedSeries() if noise_of(mechanism) is not None:
            return restated(mechanism, round_, exact, keys)
        case MeanOfBins(bins=None):
            return None, _means(mechanism, round_, exact, keys)
        case MeanOfBins(bins=tuple() as bins):
            found = dict(zip(bins, _means(mechanism, round_, exact, keys), strict=True))
        case Histogram():
            bins = tuple(sorted(mechanism.bins, key=str.encode))
            draws = _draws(mechanism.noise, round_, keys, len(bins))
            found = {
                one: exact.get(one.encode(), 0) + draw
                for one, draw in zip(bins, draws, strict=True)
            }
        case SparseHistogram():
            threshold = mechanism.thresholds[round_ - 1]
            found = _open_bins(mechanism.noise, threshold, round_, exact, keys)
        case WeightedSums():
            found = _weighted_sums(mechanism, round_, exact, keys)
        case MarginalTables():
            found = _tables(mechanism, round_, exact, keys)
        case NoisyMoments():
            found = dict(_moments(mechanism, round_, exact, keys))
        case Quantiles():
            found = dict(_quantiles(mechanism, round_, exact, keys))
        case CumulativeCounts():
            found = dict(_cumulative(mechanism, round_, exact, keys))
        case _:
            return None
    order = sorted(found, key=str.encode)
    return tuple(order), tuple(found[key] for key in order)


def _draws(noise: CalibratedNoise, round_: int, keys: NoiseKeys, count: int) -> list[int]:
    drawn: list[int] = noise.draw(round_, keys, Coordinates.of_indices(count)).tolist()
    return drawn


def _open_bins(
    noise: CalibratedNoise, threshold: int, round_: int, exact: Exact, keys: NoiseKeys
) -> Values:
    labels = sorted(label for label, total in exact.items() if total > 0)
    key = keys.lasting_key(release=noise.release, purpose="labels")
    drawn = noise.draw(round_, keys, Coordinates.of_labels(labels, key)).tolist()
    values = {one.decode(): exact[one] + draw for one, draw in zip(labels, drawn, strict=True)}
    return {label: value for label, value in values.items() if value >= threshold}


def _means(
    mechanism: MeanOfBins, round_: int, exact: Exact, keys: NoiseKeys
) -> tuple[int | None, ...]:
    labels = [b""] if mechanism.bins is None else [one.encode() for one in mechanism.bins]
    sums = _draws(mechanism.total, round_, keys, len(labels))
    counts = _draws(mechanism.count, round_, keys, len(labels))
    _, (least, greatest) = mechanism.statistic.of.grid
    values: list[int | None] = []
    for label, sum_noise, count_noise in zip(labels, sums, counts, strict=True):
        count = exact.get(coordinate(COUNT, label), 0) + count_noise
        if count < 1:
            values.append(None)
            continue
        centred = Fraction(exact.get(coordinate(SUM, label), 0) + sum_noise, count)
        mean = min(max(centred + mechanism.statistic.centre, Fraction(least)), Fraction(greatest))
        values.append(math.floor(mean * HUNDREDTHS + HALF))
    return tuple(values)


def _weighted_sums(mechanism: WeightedSums, round_: int, exact: Exact, keys: NoiseKeys) -> Values:
    found: Values = {}
    for block in mechanism.blocks:
        draws = _draws(block.noise, round_, keys, len(block.keys))
        for key, place, draw in zip(block.keys, block.coordinates, draws, strict=True):
            value = (exact.get(place, 0) + draw) * block.noise.step / mechanism.step
            assert value.denominator == 1
            found[key] = int(value)
    return found


def _moments(
    mechanism: NoisyMoments, round_: int, exact: Exact, keys: NoiseKeys
) -> Iterator[tuple[str, int | None]]:
    """Every number from noisy totals in units, rounded to the published step."""
    names, pairs = mechanism.statistic.names, mechanism.statistic.pairs
    labels: dict[str, tuple[CalibratedNoise, list[tuple[str, ...]]]] = {
        "count": (mechanism.count, [()]),
        "sum": (mechanism.sums, [(name,) for name in names]),
        "product": (mechanism.products, [(names[one], names[two]) for one, two in pairs]),
    }
    noisy: dict[tuple[str, ...], Fraction] = {}
    for what, (noise, columns) in labels.items():
        draws = _draws(noise, round_, keys, len(columns))
        for own, draw in zip(columns, draws, strict=True):
            label = json.dumps([what, *own], ensure_ascii=False, separators=(",", ":"))
            total = exact.get(f"{what}\n{label}".encode(), 0) + draw
            noisy[(what, *own)] = total * noise.step
    yield from ((_array(label), int(value / mechanism.step)) for label, value in noisy.items())
    number, step = noisy["count",], mechanism.statistic.step
    bounds = dict(zip(names, (bound * step for bound in mechanism.statistic.bounds), strict=True))
    means: dict[str, Fraction] = {}
    for name in names:
        if number >= 1:
            means[name] = _clamped(noisy["sum", name] / number, bounds[name])
        yield _array(("mean", name)), _rounded(means.get(name), mechanism.step)
    for one, two in ((names[one], names[two]) for one, two in pairs):
        covariance = None
        if number >= 1:
            bound = bounds[one] * bounds[two]
            mean = _clamped(noisy["product", one, two] / number, bound)
            covariance = _clamped(mean - means[one] * means[two], bound)
            covariance = max(covariance, Fraction(0)) if one == two else covariance
        yield _array(("covariance", one, two)), _rounded(covariance, mechanism.step)


def _array(label: Sequence[str]) -> str:
    return json.dumps(list(label), ensure_ascii=False, separators=(",", ":"))


def _clamped(value: Fraction, bound: Fraction) -> Fraction:
    return min(max(value, -bound), bound)


def _rounded(value: Fraction | None, step: Fraction) -> int | None:
    return None if value is None else math.floor(value / step + HALF)


def _tables(mechanism: MarginalTables, round_: int, exact: Exact, keys: NoiseKeys) -> Values:
    found: Values = {}
    both = mechanism.public is not None and mechanism.open is not None
    if mechanism.public is not None:
        labels = [one.key(cell) for one in mechanism.statistic.public for cell in one.cells()]
        draws = _draws(mechanism.public, round_, keys, len(labels))
        prefix = "public\n" if both else ""
        noisy = [
            exact.get(f"{prefix}{label}".encode(), 0) + draw
            for label, draw in zip(labels, draws, strict=True)
        ]
        for label, weights in zip(labels, _least_squares(mechanism.statistic), strict=True):
            fitted = sum((w * value for w, value in zip(weights, noisy, strict=True)), Fraction(0))
            found[label] = math.floor(fitted * HUNDREDTHS + HALF)
    if mechanism.open is not None:
        assert mechanism.threshold is not None
        prefix = "open\n" if both else ""
        cells = {
            label.removeprefix(prefix.encode()): total
            for label, total in exact.items()
            if label.startswith(prefix.encode())
        }
        opened = _open_bins(mechanism.open, mechanism.threshold, round_, cells, keys)
        found |= {label: (value or 0) * HUNDREDTHS for label, value in opened.items()}
    return found


@lru_cache(maxsize=16)
def _least_squares(cube: Cube) -> Matrix:
    """What every noisy cell weighs in every consistent cell: A (A'A)^- A', exactly."""
    columns = {column.name: column for one in cube.public for column in one.columns}
    every = [
        dict(zip(columns, values, strict=True))
        for values in product(*(column.public_values or () for column in columns.values()))
    ]
    design = np.array(
        [
            [
                Fraction(all(full[n] == v for n, v in zip(one.names, cell, strict=True)))
                for full in every
            ]
            for one in cube.public
            for cell in one.cells()
        ],
        dtype=object,
    )
    fitted = design @ _solved(design.T @ design, design.T.copy())
    return tuple(tuple(Fraction(entry) for entry in row) for row in fitted.tolist())


def _solved(matrix: Whole, right: Whole) -> Whole:
    """Some X with matrix X = right, by elimination; free rows are 0."""
    matrix, size, row = matrix.copy(), len(matrix), 0
    pivots: list[int] = []
    for column in range(size):
        chosen = next((one for one in range(row, size) if matrix[one, column]), None)
        if chosen is None:
            continue
        for side in (matrix, right):
            side[[row, chosen]] = side[[chosen, row]]
        right[row] = right[row] / matrix[row, column]
        matrix[row] = matrix[row] / matrix[row, column]
        for other in range(size):
            if other != row and matrix[other, column]:
                right[other] = right[other] - right[row] * matrix[other, column]
                matrix[other] = matrix[other] - matrix[row] * matrix[other, column]
        pivots.append(column)
        row += 1
    found = np.full((size, right.shape[1]), Fraction(0), dtype=object)
    for place, column in enumerate(pivots):
        found[column] = right[place]
    return found


def _below(
    noisy: Sequence[int], total: int, counts: Mapping[int, int], cells: int
) -> dict[int, Fraction]:
    """F(c) at every cell c of a tree, from its noise by node."""
    found = {0: Fraction(0), cells: Fraction(total)}

    def descend(number: int, low: int, high: int) -> None:
        if high - low < 2:
            return
        middle = (low + high) // 2
        left = sum(count for cell, count in counts.items() if low <= cell < middle)
        right = sum(count for cell, count in counts.items() if middle <= cell < high)
        found[middle] = (found[low] + found[high] + left - right + noisy[number]) / 2
        descend(2 * number, low, middle)
        descend(2 * number + 1, middle, high)

    descend(1, 0, cells)
    return found


def _trees(
    mechanism: Quantiles | CumulativeCounts,
    cells: int,
    round_: int,
    exact: Exact,
    keys: NoiseKeys,
) -> Iterator[tuple[str | None, int, dict[int, Fraction]]]:
    """Group, noisy number of records, and F of each public group."""
    groups = (None,) if mechanism.groups is None else mechanism.groups
    width = 1 << (cells - 1).bit_length()
    draws = _draws(mechanism.noise, round_, keys, width * len(groups))
    by_group = cells_by_group(exact)
    for place, group in enumerate(groups):
        counts = by_group.get(b"" if group is None else group.encode(), {})
        noisy = draws[place * width : (place + 1) * width]
        total = sum(counts.values()) + noisy[0]
        yield group, total, _below(noisy, total, counts, cells)


def _quantiles(
    mechanism: Quantiles, round_: int, exact: Exact, keys: NoiseKeys
) -> Iterator[tuple[str, int | None]]:
    cells = mechanism.cells.count
    least, _ = mechanism.band.half(round_, Fraction(1), Fraction(1))
    for group, total, below in _trees(mechanism, cells, round_, exact, keys):
        for share, text in zip(mechanism.at, mechanism.texts, strict=True):
            low, high = 0, cells
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if below[middle] >= share * total else (middle, high)
            some = total - least >= 1
            yield _label(group, text), mechanism.cells.least + low if some else None


def _cumulative(
    mechanism: CumulativeCounts, round_: int, exact: Exact, keys: NoiseKeys
) -> Iterator[tuple[str, int]]:
    edges = len(mechanism.texts)
    found: list[tuple[str | None, list[Fraction]]] = []
    if mechanism.flat:
        groups = (None,) if mechanism.groups is None else mechanism.groups
        draws = _draws(mechanism.noise, round_, keys, edges * len(groups))
        by_group = cells_by_group(exact)
        for place, group in enumerate(groups):
            counts = by_group.get(b"" if group is None else group.encode(), {})
            noisy = [counts.get(cell, 0) + draws[place * edges + cell] for cell in range(edges)]
            found.append((group, [Fraction(sum(noisy[: last + 1])) for last in range(edges)]))
    else:
        for group, _, below in _trees(mechanism, edges, round_, exact, keys):
            found.append((group, [below[edge] for edge in range(1, edges + 1)]))
    for group, sums in found:
        plain = [math.floor(one + HALF) for one in sums]
        for text, value in zip(mechanism.texts, _never_falling(plain), strict=True):
            yield _label(group, text), value


def _never_falling(values: Sequence[int]) -> list[int]:
    """The isotonic fit by minima over ends and maxima over beginnings of the means of runs."""
    size = len(values)

    def mean(first: int, last: int) -> Fraction:
        return Fraction(sum(values[first : last + 1]), last + 1 - first)

    fitted = [
        max(min(mean(first, last) for last in range(own, size)) for first in range(own + 1))
        for own in range(size)
    ]
    return [math.floor(one + HALF) for one in fitted]


def _label(group: str | None, text: str) -> str:
    if group is None:
        return text
    head = json.loads(group) if group.startswith("[") else [group]
    return f"[{json.dumps(head, ensure_ascii=False, separators=(',', ':'))[1:-1]},{text}]"
