"""Rows of L = A R^-1 for a dense factor: certified floats for speed, exact ratios for doubt.

Promise: floats come with a bound on how far they are from the exact rows, proved from integers, for
any rounding, threads or library that made them. Knows no key, no law and no data.

**Floats.** An approximate inverse X of R gives L ~ A X, which is put on the grid of 2^-k as whole
numbers K. The residual F = 2^k A - K R is then worked out **exactly**: K is cut into high and low
parts of 30 and 31 bits, whose products with the 12 bits of R, at most 2^10 of them, add up to whole
numbers below 2^53, in whichever order. Adding F X to K takes F down to the rounding of K; whatever F
is left certifies K, whoever computed X. For 2^k L - K = F R^-1, and with Y = A^-1 K 2^-k,
Y R = I - A^-1 F 2^-k, so that (row sums of absolute values; |A^-1| = 2)

    |R^-1| <= |Y| / (1 - 2 |F| 2^-k),     |(L - K 2^-k) z| <= |F| 2^-k |R^-1| max |z|, row by row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from retrodp.errors import PlanError
from retrodp.noise.factors.dense import DenseFactor, IntMatrix

FloatArray = NDArray[np.float64]

_GRID_BITS = 61  # whole parts of the largest weight
_LOW_BITS = 31
_REFINEMENTS = 2
_LARGEST_RESIDUAL = 1 << 62  # in units of the grid
_SLACK = 1 + 2.0**-30  # covers the rounding of sums of at most 2^10 positive terms


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows of L in floating point.

    Attributes:
        weights: Shape (horizon, horizon), lower triangular; each a float nearest to a whole part
            of the grid.
        drift: For every round, a bound on how far the weights' exact grid values move a weighted
            sum from the true one, over the largest absolute draw; shape (horizon,).
        squares: Upper bound of the sum of the squared weights of every round; shape (horizon,).
    """

    weights: FloatArray
    drift: FloatArray
    squares: FloatArray


@lru_cache(maxsize=4)
def rows_of(factor: DenseFactor) -> Rows:
    """The certified rows of a factor.

    Raises:
        PlanError: The root cannot be inverted to the needed precision; none that `best_dense` or
            `square_root` make.

    Time: 30 ms at 365 rounds, half a second at 1000.
    """
    root = factor.matrix().astype(np.float64)
    inverse = solve_triangular(root, np.eye(factor.horizon), lower=True, check_finite=False)
    rough = np.tril(inverse.cumsum(axis=0))
    largest = float(np.abs(rough).max())
    if not 2.0**-13 < largest < 2.0**_LOW_BITS / 4:  # NaN fails, too
        raise _not_invertible()
    bits = _GRID_BITS - math.frexp(largest)[1]
    parts = np.rint(np.ldexp(rough, bits)).astype(np.int64)
    residual = _residual(parts, root, bits)
    for _ in range(_REFINEMENTS):
        parts += np.rint(np.tril(residual.astype(np.float64) @ inverse)).astype(np.int64)
        residual = _residual(parts, root, bits)
    return _certified(parts, residual, bits)


def _residual(parts: IntMatrix, root: FloatArray, bits: int) -> IntMatrix:
    """F = 2^bits A - parts R, exact; see the module."""
    high = np.right_shift(parts, _LOW_BITS)
    low = parts - np.left_shift(high, _LOW_BITS)
    if np.abs(high).max() > 1 << 30:
        raise _not_invertible()
    ones = np.tri(len(parts), dtype=np.int64) << (bits - _LOW_BITS)
    coarse = ones - (high.astype(np.float64) @ root).astype(np.int64)
    if np.abs(coarse).max() > _LARGEST_RESIDUAL >> (_LOW_BITS + 1):
        raise _not_invertible()
    fine = (low.astype(np.float64) @ root).astype(np.int64)
    return np.left_shift(coarse, _LOW_BITS) - fine


def _certified(parts: IntMatrix, residual: IntMatrix, bits: int) -> Rows:
    """The bounds of the module; floats only add up positive numbers here."""
    weights = np.ldexp(parts.astype(np.float64), -bits)
    missed = np.ldexp(np.abs(residual).astype(np.float64).sum(axis=1), -bits) * _SLACK
    steps = np.abs(weights[1:] - weights[:-1]).sum(axis=1)
    widest = max(float(np.abs(weights[0]).sum()), float(steps.max(initial=0.0))) * _SLACK
    if not 2 * missed.max() < 1 / 2:
        raise _not_invertible()
    drift = missed * (widest / (1 - 2 * missed.max()) * _SLACK)
    norms = np.sqrt((weights**2).sum(axis=1)) + math.sqrt(len(parts)) * drift
    return Rows(weights, drift, norms**2 * _SLACK)


def _not_invertible() -> PlanError:
    return PlanError(
        "The root of a dense factor cannot be inverted to full precision.",
        do="Restore the resolved plan from a back-up.",
    )


@lru_cache(maxsize=4)
def exact_row(factor: DenseFactor, round_: int) -> tuple[tuple[int, ...], int]:
    """One row of L in ratios: its numerators, shape (round,), and their common denominator.

    The row y solves y R = (1, ..., 1) on the first columns. From the last column on,
    y_j = (1 - sum over i > j of y_i R_ij) / R_jj, kept over the product of R_jj to R_ll.

    Time: 40 ms for the last of 365 rounds, about a second for the last of 1000.
    """
    columns = factor.matrix()[:round_, :round_].T.tolist()
    diagonal = [columns[j][j] for j in range(round_)]
    numerators: list[int] = []  # of y_l, y_(l-1), ..., each over its own product of diagonals
    product = 1
    for j in reversed(range(round_)):
        column, total = columns[j], 0
        for i, numerator in zip(range(round_ - 1, j, -1), numerators, strict=True):
            total = total * diagonal[i] + numerator * column[i]
        numerators.append(product - total)
        product *= diagonal[j]
    before, common = 1, []
    for numerator, entry in zip(reversed(numerators), diagonal, strict=True):
        common.append(numerator * before)
        before *= entry
    return tuple(common), before
