"""How far the median or mean of a sketch's rows strays: bounds that hold for any data.

A row's estimate has a known variance, and nothing more is known of its law: two large items may
share a bucket or not. So a row is taken to stray by Chebyshev's inequality; the median of rows
strays only where most of them do, and rows are independent.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from retrodp.noise.process import NoiseProcess
from retrodp.noise.processes import Process

_SPREAD_OUT = {"gaussian": 8, "laplace": 64}
"""Variance of a node from which what rounding takes is uniform."""

_MOST_PARTS = 256
"""Parts of a step that rounding is followed in; finer weights are rounded to them."""

_LOG_ROOT = math.log(math.sqrt(2 * math.pi))

DIGITS = 6
TAIL_DIGITS = 15


def squared_reach(rows: int, *, median: bool, miss: float) -> Fraction:
    """q^2 such that the estimate of all rows strays by more than q deviations of one row seldom.

    Args:
        rows: Odd for the median.
        median: Whether the rows' median is taken, or their mean.
        miss: Most that the probability may be.

    Returns:
        A decimal of six digits, rounded up.
    """
    if not median:
        found = 1 / (rows * miss)
    else:
        # P[more than half of the rows stray] is the regularised incomplete beta function of the
        # probability that one does.
        half = (rows + 1) // 2
        found = 1 / float(special.betaincinv(half, rows - half + 1, miss))
    return _rounded_up(found)


@cache
def share_of_variance(rows: int, *, median: bool) -> Fraction:
    """Variance of the rows' median or mean over that of one row, rows being near normal."""
    if not median:
        return Fraction(1, rows)
    from scipy.integrate import quad  # noqa: PLC0415  takes a while to load

    half = rows // 2

    def density(x: float) -> float:
        below = float(special.ndtr(x))
        return x * x * math.exp(-x * x / 2 - _LOG_ROOT) * (below * (1 - below)) ** half

    scale = math.exp(math.lgamma(rows + 1) - 2 * math.lgamma(half + 1))
    return _rounded_up(scale * quad(density, -12, 12)[0])


def tail_of_a_row(rows: int, *, miss: float) -> Fraction:
    """Probability with which a row may stray to one side if their median strays with `miss`.

    The median is above a point if most of the independent rows are, by the binomial law.
    """
    half = (rows + 1) // 2
    found = float(special.betaincinv(half, half, miss / 2))
    return Fraction(math.floor(found * 10**TAIL_DIGITS), 10**TAIL_DIGITS)


def median_deviation(strays: NDArray[np.int64], rows: int) -> float:
    """Standard deviation of the median of rows that each stray like one of these, with any sign.

    Args:
        strays: Absolute strays of equal probability, sorted, shape (n,).
        rows: Odd.
    """
    half, count = (rows + 1) // 2, len(strays)
    above = np.arange(count - 1, -1, -1) / count  # shares of larger strays
    within = 1 - 2 * special.betainc(half, half, above / 2)
    weights = np.diff(within, prepend=0.0)
    return math.sqrt(float(weights @ strays.astype(np.float64) ** 2))


def mean_square(process: Process, round_: int) -> float:
    """Mean of the squared noise of a round as it is added: rounded, halves up; in squared steps.

    On a grid of 1/d with d > 1 rounding adds 1/12 + 1/(6 d^2), if the noise is spread out; where
    it hardly reaches a step, rounding takes nearly all of it away.
    """
    if not isinstance(process, NoiseProcess) or process.factor.denominator == 1:
        return process.variance(round_)
    weights = [abs(weight) for _, weight in process.factor.nodes(round_)]
    common = math.gcd(process.factor.denominator, *weights)
    weights, parts = [w // common for w in weights], process.factor.denominator // common
    variance = process.node_law.variance_exactish
    before = variance * sum(weight**2 for weight in weights) / parts**2
    if parts == 1:
        return before
    if variance > _SPREAD_OUT[process.law]:
        return before + 1 / 12 + 1 / (6 * parts**2)
    coarse = min(parts, _MOST_PARTS)
    lighter = tuple(sorted(round(weight * coarse / parts) for weight in weights))
    return before + _added_by_rounding(process.law, float(process.scale), lighter, coarse)


@cache
def _added_by_rounding(law: str, size: float, weights: tuple[int, ...], parts: int) -> float:
    """E[r^2] - 2 E[N r], r what rounding takes from N: by its Fourier series over the grid."""
    node, slope = _waves(law, size, parts)
    whole, moved = np.ones(parts), np.zeros(parts)  # E[cos(t M)] and its derivative
    frequencies = np.arange(parts)
    for weight in weights:
        at = frequencies * weight % parts
        moved = moved * node[at] + whole * weight * slope[at]
        whole = whole * node[at]
    taken = ((frequencies + parts // 2) % parts - parts // 2) / parts
    square = np.fft.fft(taken**2).real @ whole / parts
    product = np.fft.fft(taken).imag @ moved / parts**2
    return float(square - 2 * product)


@cache
def _waves(law: str, size: float, parts: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """E[cos(t X)] of a node and its derivative, at all multiples of 2 pi / parts."""
    reach = math.ceil(12 * math.sqrt(size) if law == "gaussian" else 45 * size) + 1
    near = np.arange(-reach, reach + 1)
    node = np.exp(-(near**2) / (2 * size) if law == "gaussian" else -np.abs(near) / size)
    node /= node.sum()
    angles = np.outer(np.arange(parts), near) * (2 * math.pi / parts)
    return np.cos(angles) @ node, -np.sin(angles) @ (near * node)


def normal_reach(miss: float) -> Fraction:
    """Deviations by which a normal variable strays with probability `miss`; rounded up."""
    return _rounded_up(float(-special.ndtri(miss / 2)))


def normal_tail(share: Fraction) -> float:
    """Deviations beyond which a normal variable is, on one side, with this probability."""
    return float(-special.ndtri(float(share)))


def _rounded_up(value: float) -> Fraction:
    return Fraction(math.ceil(value * 10**DIGITS), 10**DIGITS)
