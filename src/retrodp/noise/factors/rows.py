"""Rows of L = A R^-1: certified floats for speed, exact ratios for doubt.

Promise: floats come with a bound on how far they are from the exact rows, proved from integers, for
any rounding, threads or library that made them. R is a lower triangle of whole numbers with a
positive diagonal, A the lower triangle of ones. Knows no key, no law and no data.

**Floats.** An approximate inverse X of R gives L ~ A X, which is put on the grid of 2^-k as whole
numbers K. The residual F = 2^k A - K R is then worked out **exactly**: K is cut into high and low
parts of 30 and 31 bits, whose products with the 12 bits of R, at most 2^10 of them, add up to whole
numbers below 2^53, in whichever order. Adding F X to K takes F down to the rounding of K; whatever F
is left certifies K, whoever computed X. For 2^k L - K = F R^-1, and with Y = A^-1 K 2^-k,
Y R = I - A^-1 F 2^-k, so that (row sums of absolute values; that of A^-1 is 2)

    |R^-1| <= |Y| / (1 - 2 |F| 2^-k),     |(L - K 2^-k) z| <= |F| 2^-k |R^-1| max |z|, row by row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from retrodp.errors import PlanError
from retrodp.noise.factors.triangle import IntMatrix

FloatArray = NDArray[np.float64]

MOST_ROWS = 1 << 10
LARGEST_ENTRY = 1 << 12

_GRID_BITS = 61  # of the largest whole part K
_LOW_BITS = 31
_HIGHEST = 1 << (_GRID_BITS - _LOW_BITS)
_COARSEST = 1 << 30  # keeps the residual within 64 bits
_REFINEMENTS = 2
_SLACK = 1 + 2.0**-30  # covers the rounding of sums of at most 2^10 positive floats, thrice


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows of L in floating point.

    Attributes:
        weights: Lower triangular, shape (rows, rows); the floats nearest to K 2^-k.
        drift: Bound on |(L - K 2^-k) z| over the largest |z_j|, shape (rows,).
        squares: Upper bound of the sum of L's squares in every row; shape (rows,).
    """

    weights: FloatArray
    drift: FloatArray
    squares: FloatArray


def certified_rows(root: IntMatrix) -> Rows:
    """The rows of A R^-1 for the R given.

    Args:
        root: At most `MOST_ROWS` rows, entries within `LARGEST_ENTRY`.

    Raises:
        PlanError: R cannot be inverted to the needed precision, which happens to none that is a
            root of the counting matrix up to rounding.

    Time: 30 ms at 365 rows, half a second at 1000.
    """
    assert len(root) <= MOST_ROWS
    assert np.abs(root).max() <= LARGEST_ENTRY
    entries = root.astype(np.float64)
    with np.errstate(all="ignore"):  # whatever comes out is certified below
        inverse = solve_triangular(entries, np.eye(len(root)), lower=True, check_finite=False)
        rough = np.tril(inverse.cumsum(axis=0))
        largest = float(np.abs(rough).max())
        if not largest < 2.0**28:  # NaN is not
            raise _not_invertible()
        bits = _GRID_BITS - math.frexp(largest)[1]  # from 33 on; to 73, for largest >= 1 / R_11
        parts = np.rint(np.ldexp(rough, bits)).astype(np.int64)
        residual = _residual(parts, entries, bits)
        for _ in range(_REFINEMENTS):
            correction = np.tril(residual.astype(np.float64) @ inverse)
            parts += np.rint(correction).astype(np.int64)
            residual = _residual(parts, entries, bits)
    return _certified(parts, residual, bits)


def _residual(parts: IntMatrix, entries: FloatArray, bits: int) -> IntMatrix:
    """F = 2^bits A - parts R, exact; see the module."""
    high = np.right_shift(parts, _LOW_BITS)
    low = parts - np.left_shift(high, _LOW_BITS)
    if not (high.min() >= -_HIGHEST and high.max() <= _HIGHEST):
        raise _not_invertible()
    ones = np.tri(len(parts), dtype=np.int64) << (bits - _LOW_BITS)
    coarse = ones - (high.astype(np.float64) @ entries).astype(np.int64)
    if not (coarse.min() >= -_COARSEST and coarse.max() <= _COARSEST):
        raise _not_invertible()
    fine = (low.astype(np.float64) @ entries).astype(np.int64)
    residual: IntMatrix = np.left_shift(coarse, _LOW_BITS) - fine
    return residual


def _certified(parts: IntMatrix, residual: IntMatrix, bits: int) -> Rows:
    """The bounds of the module; floats only add up positive numbers here."""
    weights = np.ldexp(parts.astype(np.float64), -bits)
    missed = np.ldexp(np.abs(residual).astype(np.float64).sum(axis=1), -bits) * _SLACK
    if not missed.max() < 1 / 4:
        raise _not_invertible()
    sizes = np.abs(weights).sum(axis=1)
    steps = np.abs(np.diff(weights, axis=0, prepend=0.0)).sum(axis=1)
    widest = (steps.max() + 2.0**-51 * sizes.max()) * _SLACK  # the weights were rounded
    drift = missed * (widest / (1 - 2 * missed.max()) * _SLACK)
    norms = np.sqrt((weights**2).sum(axis=1)) + math.sqrt(len(parts)) * drift
    return Rows(weights, drift, norms**2 * _SLACK)


def _not_invertible() -> PlanError:
    return PlanError(
        "The root of a dense factor cannot be inverted to full precision.",
        do="Restore the resolved plan from a back-up.",
    )


def exact_row(root: IntMatrix, row: int) -> tuple[tuple[int, ...], int]:
    """One row of A R^-1 in ratios.

    The row y solves y R = (1, ..., 1) on the first `row` columns. From the last column on,
    y_j = (1 - sum over i > j of y_i R_ij) / R_jj, kept over the product of R_jj to R_row,row.

    Args:
        root: R.
        row: From 1.

    Returns:
        Numerators, shape (row,), and their common denominator.

    Time: 30 ms for row 365, half a second for row 1000.
    """
    columns = root[:row, :row].T.tolist()
    diagonal = [columns[j][j] for j in range(row)]
    numerators: list[int] = []  # of y_row, y_(row - 1), ...
    product = 1
    for j in reversed(range(row)):
        column, total = columns[j], 0
        for i, numerator in zip(range(row - 1, j, -1), numerators, strict=True):
            total = total * diagonal[i] + numerator * column[i]
        numerators.append(product - total)
        product *= diagonal[j]
    before, common = 1, []
    for numerator, entry in zip(reversed(numerators), diagonal, strict=True):
        common.append(numerator * before)
        before *= entry
    return tuple(common), before
