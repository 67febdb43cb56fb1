"""How far the noise of a dense factor strays: certified upper bounds.

Promise: no probability returned is below the true one. Knows no key and no data.

N = L z is a sum of n discrete Gaussian draws of parameter s with real weights, of norm |L|. Add an
independent h = L g, g_j continuous Gaussians of variance 1. Completing the square, z_j + g_j has at
y the density

    exp(-y^2 / (2 (s^2 + 1))) sum over k of exp(-(k - c y)^2 / (2 t^2)) / (Z sqrt(2 pi)),

c = s^2 / (s^2 + 1) = t^2 and Z the sum of exp(-k^2 / (2 s^2)) over k. By Poisson summation the sum
is at most t sqrt(2 pi) B, with B = 1 + 2 sum over k > 0 of exp(-2 pi^2 k^2 t^2), and Z is at least
s sqrt(2 pi): the density is at most B times that of a Gaussian of variance s^2 + 1. Hence N + h is
at most B^n times as likely as a Gaussian of variance (s^2 + 1) |L|^2 to reach anything. As h falls
below -6 |L| with a probability of less than 1e-9, independently of N,

    P(N >= x) <= B^n / (1 - 1e-9) P(Gaussian >= x - 6 |L|).

With draws on the fine grid of a root, s is some thousands: this loses a thousandth of a deviation,
and B^n is below 1 + 1e-5. For very small s the bound exp(-x^2 / (2 s^2 |L|^2)) is better.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from retrodp.noise.dense import DenseProcess

FloatArray = NDArray[np.float64]

# Noise of a smaller scale strays less, so that these bounds serve for it too.
LEAST_VARIANCE = Fraction(1, 10**4)

_FARTHEST = 6.0
_LOG_MISSED = 1e-9
_TERMS = range(1, 12)


def log_tails(process: DenseProcess, squares: FloatArray, least: FloatArray) -> FloatArray:
    """Logarithms of bounds of P(N >= least).

    Args:
        process: Factor and scale.
        squares: Upper bounds of |L|^2 of some rounds, shape (n,); see `Rows`.
        least: Above 0, in steps, shape (n,).

    Returns:
        Up to a relative rounding error of 1e-12 or so; shape (n,).
    """
    return log_tails_of(process.scale, process.factor.horizon, squares, least)


def log_tails_of(scale: Fraction, draws: int, squares: FloatArray, least: FloatArray) -> FloatArray:
    """The same for any real combination of at most `draws` discrete Gaussian draws of s^2 `scale`."""
    variance = float(max(scale, LEAST_VARIANCE))
    norms = np.sqrt(squares)
    smoothed = -(least - _FARTHEST * norms) / (norms * math.sqrt(variance + 1))
    excess = draws * math.log(bracket(variance / (variance + 1))) + _LOG_MISSED
    logs: FloatArray = np.minimum(
        log_ndtr(smoothed) + excess, -(least**2) / (2 * variance * squares)
    )
    return logs


def bracket(ratio: float) -> float:
    """1 + 2 sum over k > 0 of exp(-2 pi^2 k^2 ratio), by whichever of its two series is short.

    By Poisson summation it is also the sum over k of exp(-k^2 / (2 ratio)) over sqrt(2 pi ratio),
    and shifting the points k gives no more.
    """
    if ratio > 1 / 8:
        return 1 + 2 * math.fsum(math.exp(-2 * math.pi**2 * i * i * ratio) for i in _TERMS)
    ends = 1 + 2 * math.fsum(math.exp(-i * i / (2 * ratio)) for i in _TERMS)
    return ends / math.sqrt(2 * math.pi * ratio)
