"""Slow, plain formulas for what the accountant computes: direct sums of positive terms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import mpmath as mp
import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Coordinate = tuple[Fraction, int]
"""(variance, shift)"""


def discrete_delta(variance: float, shift: int, epsilon: float) -> float:
    """Delta of one coordinate by one float sum; relative error below 1e-11."""
    s = math.sqrt(variance)
    reach = math.ceil(26 * s) + 40 * abs(shift) + 60
    x = np.arange(-reach, reach + 1, dtype=np.float64)
    law = np.exp(-(x**2) / (2 * variance))
    loss = (shift**2 + 2 * shift * x) / (2 * variance)
    gain = -np.expm1(np.minimum(epsilon - loss, 0))
    return float((law * gain).sum() / law.sum())


def pair_delta(wide: Coordinate, narrow: Coordinate, epsilon: float) -> float:
    """Delta of two coordinates by a double float sum, for a wide one beside a narrow one."""
    (variance, shift), (other, other_shift) = wide, narrow
    reach = math.ceil(20 * math.sqrt(other)) + 20 * abs(other_shift) + 20
    x = np.arange(-reach, reach + 1, dtype=np.float64)
    law = np.exp(-(x**2) / (2 * float(other)))
    losses = (other_shift**2 + 2 * other_shift * x) / (2 * float(other))
    deltas = [discrete_delta(float(variance), shift, epsilon - loss) for loss in losses]
    return float(law @ np.array(deltas) / law.sum())


@cache
def loss_atoms(coordinates: tuple[Coordinate, ...]) -> tuple[tuple[Fraction, mp.mpf], ...]:
    """Every value of the loss of a vector of coordinates with its probability, 40 digits."""
    with mp.workdps(40):
        return _loss_atoms(coordinates)


def _loss_atoms(coordinates: tuple[Coordinate, ...]) -> tuple[tuple[Fraction, mp.mpf], ...]:
    laws = []
    for variance, shift in coordinates:
        inverse = mp.mpf(variance.denominator) / variance.numerator
        reach = math.ceil(17 * math.sqrt(variance)) + 6
        masses = {x: mp.exp(-x * x * inverse / 2) for x in range(-reach, reach + 1)}
        total = mp.fsum(masses.values())
        laws.append(
            [
                ((shift**2 + 2 * shift * x) / (2 * variance), mass / total)
                for x, mass in masses.items()
            ]
        )
    joint: dict[Fraction, mp.mpf] = {}
    for atoms in itertools.product(*laws):
        loss = sum((one for one, _ in atoms), Fraction(0))
        joint[loss] = joint.get(loss, mp.mpf(0)) + mp.fprod(mass for _, mass in atoms)
    return tuple(joint.items())


def vector_delta(coordinates: Sequence[Coordinate], epsilon: Fraction) -> float:
    """Delta of a vector of few coordinates, by brute force with 40 digits."""
    with mp.workdps(40):
        terms = (
            mass * -mp.expm1(mp.mpf((epsilon - loss).numerator) / (epsilon - loss).denominator)
            for loss, mass in loss_atoms(tuple(coordinates))
            if loss > epsilon
        )
        return float(mp.fsum(terms))


def continuous_delta(rho: float, epsilon: float) -> float:
    """The analytic formula of the continuous Gaussian (Balle, Wang 2018), 40 digits."""
    with mp.workdps(40):
        sigma, eps = mp.sqrt(2 * mp.mpf(rho)), mp.mpf(epsilon)
        first = mp.ncdf(-eps / sigma + sigma / 2)
        return float(first - mp.exp(eps) * mp.ncdf(-eps / sigma - sigma / 2))


def pinned_haar(height: int) -> FloatArray:
    """Node shifts if the count at one position moves by 1; shape (2^height - 1, nodes)."""
    n = 2**height
    rows = np.zeros((n + 1, n - 1))
    node = 0
    for level in range(height):
        size = n >> level
        for low in range(0, n, size):
            rows[low + size // 2, node] += 2
            rows[low, node] -= 1
            rows[low + size, node] -= 1
            node += 1
    return rows[1:n]


def haar_variances(height: int, horizon: int) -> FloatArray:
    """Unit variances of the `horizon` best positions of the pinned Haar tree."""
    n = 2**height
    position = np.arange(1, n)
    total = np.zeros(n - 1)
    for level in range(height):
        size = n >> level
        total += ((1 - np.abs(2 * (position % size) / size - 1)) / 2) ** 2
    return np.sort(total)[:horizon]
