"""How far weighted sums of the noise of several coordinates stray: certified, whatever the weights.

Promise: no reach returned is below one that holds. Knows no key and no data.

A sum S = w_1 X_1 + ... + w_k X_k of the rounded noises of k coordinates in one round is a weighted
sum of independent draws, up to the rounding of each X, which adds at most `rounding |w|_1`. Of the
draws only the norm c of all weights together and the largest weight matter here; both follow from
|w|_2 and the round. What is bounded is P(S >= r |w|_2 + rounding |w|_1).

**Gaussian draws** of parameter s. Add an independent h = c g, g standard normal. Then S + h has at
most B^n times the density of a Gaussian of variance (s^2 + 1) c^2, n the number of draws
(`dense_tails` proves it), and h is at least -2 c with probability P(g >= -2), independently of S:

    P(S >= x) <= B^n / P(g >= -2) * P(Gaussian >= x - 2 c).

**Laplace draws** of scale b. A continuous Laplace variable is a discrete one plus an independent
difference of two fractions, each of variance at most 1/12: floors and fractions of exponential
variables are independent. All fractions together have a variance of at most c^2 / 6 and stay above
minus three deviations with probability 9/10 (Cantelli). The continuous sum L has a log-concave
density, as has its tilt by exp(u L), and a log-concave density is at most one over the deviation,
here at least the sqrt(2) b c of L itself:

    P(S >= x) <= 10/9 * E exp(u (L - x')) * min(1, 1 / (u sqrt(2) b c)),  x' = x - 3 c / sqrt(6),

for every u. Weights of one norm have the largest E exp(u L) where they are fewest and largest: the
logarithm of E exp(u L) adds up a convex function of the squared weights. So it is bounded by that of
as many equal weights as fit beside the largest one. Without more knowledge w picks a single
coordinate; where |w|_2^2 is known to be at least `spread` times the largest squared weight, there are
`spread` times as many.

Where noise is so small that the smoothing costs more than it gains, Chernoff's bound alone serves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import assert_never

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from retrodp._check import probability, whole
from retrodp.errors import UsageError
from retrodp.noise.dense import DenseProcess
from retrodp.noise.dense_tails import LEAST_VARIANCE, bracket
from retrodp.noise.factors.dense import rows_of
from retrodp.noise.process import NoiseProcess, profile_of
from retrodp.noise.processes import Process
from retrodp.noise.product import ProductProcess

FloatArray = NDArray[np.float64]

SLACK = 1 + 1e-9  # covers the rounding of some dozens of floating-point operations

_KEPT_BELOW = 2.0  # deviations of the smoothing that are given away
_FRACTION_DEVIATIONS = 3.0
_HALVINGS = 60
_GRID = 2000


def rounding_reach(process: Process) -> Fraction:
    """Most that rounding moves the noise of a coordinate, in steps: 1/2, or 0 for whole sums."""
    match process:
        case DenseProcess():
            return Fraction(1, 2)
        case NoiseProcess():
            return Fraction(1, 2) if process.factor.denominator > 1 else Fraction(0)
        case ProductProcess():
            raise _no_band()
        case _:
            assert_never(process)


def reaches(process: Process, miss: float, *, coordinates: int, spread: float = 1) -> FloatArray:
    """Least certified r of every round, in steps, shape (horizon,).

    For any real weights w of at most `coordinates` coordinates, the weighted sum of their rounded
    noises in round l is at least `r[l - 1] |w|_2 + rounding_reach |w|_1` with probability at most
    `miss`; so is minus the sum.

    Args:
        process: Noise of every coordinate.
        miss: One-sided.
        coordinates: With a weight that is not 0, at most.
        spread: Least |w|_2^2 over the largest squared weight; matters for Laplace noise alone.
    """
    probability(miss=miss)
    whole(least=1, coordinates=coordinates)
    match process.law:
        case "gaussian":
            return _gaussian(process, miss, coordinates)
        case "laplace":
            assert isinstance(process, NoiseProcess)
            return _laplace(process, miss, spread)
        case _:
            assert_never(process.law)


def norms(process: Process) -> FloatArray:
    """Norm of the weights of every round's draws, shape (horizon,)."""
    match process:
        case DenseProcess():
            return np.sqrt(rows_of(process.factor).squares)
        case NoiseProcess():
            squares = profile_of(process.factor).squares.astype(np.float64)
            return np.sqrt(squares) / process.factor.denominator
        case ProductProcess():
            raise _no_band()
        case _:
            assert_never(process)


def _no_band() -> UsageError:
    return UsageError("Sums over the bins of a revised release have no certified band.")


def _gaussian(process: Process, miss: float, coordinates: int) -> FloatArray:
    variance = float(max(process.scale, LEAST_VARIANCE))
    each = (
        process.factor.horizon
        if isinstance(process, DenseProcess)
        else profile_of(process.factor).terms
    )
    excess = each * coordinates * math.log(bracket(variance / (variance + 1)))
    excess -= float(log_ndtr(_KEPT_BELOW))
    smoothed = _normal_quantile(math.log(miss) - excess) * math.sqrt(variance + 1) + _KEPT_BELOW
    chernoff = math.sqrt(-2 * math.log(miss) * variance)
    return norms(process) * (min(smoothed, chernoff) * SLACK)


def _normal_quantile(log_miss: float) -> float:
    """Least x with log P(standard normal >= x) <= log_miss, up to 1e-15 or so above."""
    low, high = -1.0, math.sqrt(-2 * log_miss) + 1  # P(normal >= x) < exp(-x^2 / 2)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if log_ndtr(-middle) <= log_miss else (middle, high)
    return high


def _laplace(process: NoiseProcess, miss: float, spread: float) -> FloatArray:
    profile, scale = profile_of(process.factor), float(process.scale)
    kinds, of_round = np.unique(profile.squares, return_inverse=True)
    fractions = _FRACTION_DEVIATIONS / math.sqrt(6) / (math.sqrt(2) * scale)
    each = []
    for squares in kinds.tolist():
        copies = max(1.0, squares / profile.largest_weight**2) * spread
        smoothed = _log_concave_quantile(copies, math.log(miss * 9 / 10)) + fractions
        each.append(min(smoothed, _chernoff_quantile(copies, math.log(miss))))
    deviations = math.sqrt(2) * scale * norms(process)
    result: FloatArray = deviations * np.array(each)[of_round] * SLACK
    return result


def _chernoff_quantile(copies: float, log_miss: float) -> float:
    """Where min over u of E exp(u (L - x)) is the miss, L of variance 1.

    The bound holds at any u, so that u is best left as the parameter: x(u) is least at one u.
    """
    return _least(lambda u: (_cumulant(copies, u) - log_miss) / u, math.sqrt(2 * copies))


def _log_concave_quantile(copies: float, log_miss: float) -> float:
    def reach(u: float) -> float:
        return (_cumulant(copies, u) - max(0.0, math.log(u)) - log_miss) / u

    return _least(reach, math.sqrt(2 * copies))


def _cumulant(copies: float, u: float) -> float:
    """Logarithm of E exp(u L) of a sum of so many equal continuous Laplace variables, of variance 1."""
    return -copies * math.log1p(-u * u / (2 * copies))


def _least(reach: Callable[[float], float], pole: float) -> float:
    """Least of a function of u on a fine grid of (0, pole): every u gives a valid bound."""
    return min(reach(pole * step / _GRID) for step in range(1, _GRID))
