"""Scores that tell two worlds apart: what an adversary who knows everything but one life would use.

Promise: a score is fixed by the declared structure of the noise, or learned from the training half
alone; the half that is counted has no part in it. Higher scores speak for world 0, if for either.

- *declared*: the likelihood ratio of the declared noise. For Gaussian noise it is linear, least
  squares under the covariance of the factor; for Laplace noise the nodes are told from the
  released rounds and their ratios added.
- *learned line* and *learned curve*: linear and quadratic discriminants of the training half. A
  direction in which the noise does not reach (two rounds that share a node they should not, two
  releases that share their labels) has no variance, and the score becomes exact.
- *equal*: two published numbers differ by one fixed amount.
- *low bits*: the finest binary digit of a published number, beside its size.
- *present*: how many of the bins in question are published at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from retrodp.audit.structure import Structure

Floats = NDArray[np.float64]
Score = Callable[["Seen"], Floats]

DECLARED = "declared ratio"
RIDGE = 1e-10  # of the mean variance
MOST_COLUMNS = 12  # whose low bits are read
MOST_PAIRS = 200  # of columns compared for equality
EQUAL = 1e-9
FEW, MANY = 400, 4000  # training runs that simple scores learn from
SIZES = 8  # bands of magnitude beside which low bits are read
BITS = 64


@dataclass(frozen=True, slots=True)
class Seen:
    """What is published about one unit, in independent runs of one world.

    Attributes:
        values: Less what is known for certain, shape ``(runs, columns)``; a bin that is absent
            has the least value it could have.
        present: Whether there is a value, same shape; None if there always is.
    """

    values: Floats
    present: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def half(self, which: int) -> Seen:
        """The even (0) or odd (1) runs."""
        part = slice(which, None, 2)
        return Seen(self.values[part], None if self.present is None else self.present[part])


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """One component of the declared noise, at some of the columns.

    Attributes:
        structure: Of its factor.
        law: "gaussian" or "laplace".
        scale: Variance, or b.
        columns: Of the seen values, one a round.
        change: World 0 less world 1 there.
    """

    structure: Structure
    law: str
    scale: float
    columns: slice
    change: Floats


def declared_score(parts: Sequence[Declared], *, rounding: float) -> Score:
    """Sum of the likelihood ratios of independent components."""

    def score(seen: Seen) -> Floats:
        total = np.zeros(len(seen))
        for part in parts:
            if not part.change.any():
                continue
            values = seen.values[:, part.columns]
            weights = part.structure.weights
            if part.law == "gaussian" or not part.structure.square:
                variance = part.scale if part.law == "gaussian" else 2 * part.scale**2
                covariance = weights @ weights.T * variance
                covariance += np.eye(len(weights)) * rounding
                total += _times(values, _solved(covariance, part.change))
            else:
                shift = part.structure.shift(part.change)
                moved = np.flatnonzero(np.abs(shift) > 1e-9)
                nodes = _times(values, part.structure.inverse[moved].T)
                gains = np.abs(nodes) - np.abs(nodes - shift[moved])
                total += gains.sum(axis=1) / part.scale
        return np.round(total, 9)  # equal ratios are one event, however they were added up

    return score


def learned_line(zero: Seen, one: Seen) -> Score:
    """Fisher's discriminant of the training half."""
    covariance = _covariance(one.values) + _covariance(zero.values)
    means = zero.values.mean(axis=0) - one.values.mean(axis=0)
    direction = _solve(covariance, means)
    return lambda seen: _times(seen.values, direction)


def learned_curve(zero: Seen, one: Seen) -> Score:
    """Ratio of two Gaussians fitted to the training half."""
    centres = zero.values.mean(axis=0), one.values.mean(axis=0)
    inverses = [
        _solve(_covariance(half.values), np.eye(half.values.shape[1])) for half in (zero, one)
    ]

    def score(seen: Seen) -> Floats:
        distances = []
        for centre, inverse in zip(centres, inverses, strict=True):
            off = seen.values - centre
            distances.append((_times(off, inverse) * off).sum(axis=1))
        result: Floats = distances[1] - distances[0]
        return result

    return score


def equal_columns(zero: Seen, one: Seen) -> Score:
    """The pair of columns whose difference is one fixed number most often in one world alone."""
    columns = zero.values.shape[1]
    pairs = np.array(list(combinations(range(columns), 2))[:MOST_PAIRS])
    # An exact equality shows at once, so that a few runs serve.
    gaps = [half.values[:FEW, pairs[:, 0]] - half.values[:FEW, pairs[:, 1]] for half in (zero, one)]
    best = (-1.0, 0, 0.0)
    for own in gaps:
        common = np.median(own, axis=0)
        rates = [(np.abs(gap - common) < EQUAL).mean(axis=0) for gap in gaps]
        told = np.abs(rates[0] - rates[1])
        place = int(np.argmax(told))
        best = max(best, (float(told[place]), place, float(common[place])))
    _, place, fixed = best
    left, right = pairs[place]

    def score(seen: Seen) -> Floats:
        same = np.abs(seen.values[:, left] - seen.values[:, right] - fixed) < EQUAL
        return same.astype(np.float64)

    return score


def low_bits(zero: Seen, one: Seen, raw: Floats) -> Score:
    """Learned ratio of (finest binary digit, size) of the column that tells most.

    Args:
        zero: Training half of world 0.
        one: Training half of world 1.
        raw: What to add to the seen values to have the published ones, shape ``(columns,)``.
    """
    best: tuple[float, int, Floats, Floats] | None = None
    apart = np.abs(zero.values.mean(axis=0) - one.values.mean(axis=0))
    for column in np.argsort(-apart)[:MOST_COLUMNS].tolist():
        numbers = [half.values[:MANY, column] + raw[column] for half in (zero, one)]
        edges = np.quantile(np.concatenate(numbers), np.linspace(0, 1, SIZES + 1)[1:-1])
        tables = [
            np.bincount(_cells(some, edges), minlength=BITS * SIZES) + 0.5 for some in numbers
        ]
        shares = [table / table.sum() for table in tables]
        told = float(np.abs(shares[0] - shares[1]).sum())
        if best is None or told > best[0]:
            best = (told, column, edges, np.log(shares[0] / shares[1]))
    assert best is not None
    _, chosen, edges, ratio = best
    return lambda seen: ratio[_cells(seen.values[:, chosen] + raw[chosen], edges)]


def _cells(numbers: Floats, edges: Floats) -> NDArray[np.intp]:
    """Finest binary digit and band of size, as one index."""
    mantissa, exponent = np.frexp(numbers)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = np.log2(np.maximum(whole & -whole, 1).astype(np.float64)).astype(np.int64)
    finest = np.clip(lowest + exponent - 53 + 56, 0, BITS - 1)
    return np.asarray(finest * SIZES + np.searchsorted(edges, numbers), dtype=np.intp)


def how_many_present(seen: Seen) -> Floats:
    """Number of columns that are published."""
    assert seen.present is not None
    result: Floats = seen.present.sum(axis=1).astype(np.float64)
    return result


def scores(
    zero: Seen,
    one: Seen,
    parts: Sequence[Declared],
    *,
    raw: Floats,
    rounding: float,
    only: str = "",
) -> dict[str, Score]:
    """All scores, trained on these halves.

    Args:
        zero: Training half of world 0.
        one: Training half of world 1.
        parts: Declared noise; empty where it is not known.
        raw: See `low_bits`.
        rounding: Variance that rounding adds to the declared noise.
        only: Name of a single one; "" for all that apply.
    """
    makers: dict[str, Callable[[], Score]] = {}
    if parts:
        makers[DECLARED] = lambda: declared_score(parts, rounding=rounding)
    makers["learned line"] = lambda: learned_line(zero, one)
    makers["learned curve"] = lambda: learned_curve(zero, one)
    if zero.values.shape[1] > 1:
        makers["equal columns"] = lambda: equal_columns(zero, one)
    makers["low bits"] = lambda: low_bits(zero, one, raw)
    if zero.present is not None:
        makers["present"] = lambda: how_many_present
    return {name: make() for name, make in makers.items() if only in {"", name}}


def _times(values: Floats, right: Floats) -> Floats:
    """The product, on one thread: for tall and narrow matrices many threads only get in the way."""
    result: Floats = np.einsum("ij,j...->i...", values, right)
    return result


def _covariance(values: Floats) -> Floats:
    off = values - values.mean(axis=0)
    result: Floats = np.einsum("ij,ik->jk", off, off) / len(values)
    return result


def _solve(covariance: Floats, right: Floats) -> Floats:
    size = float(np.trace(covariance)) / len(covariance)
    ridge = np.eye(len(covariance)) * ((RIDGE * size) or 1.0)
    return _solved(covariance + ridge, right)


def _solved(matrix: Floats, right: Floats) -> Floats:
    return np.linalg.solve(matrix, right).astype(np.float64)
