"""Factors of other papers, for comparison only: their noise at the price of a window.

Every factor here releases the count plus `sum of weights * draws`, and is charged like the factors
of the package: for the largest shift of the draws over all windows of rounds, worked out from the
draws that are really used. So the tables compare factorisations and not analyses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Shape:
    """A factor as far as its error goes.

    Attributes:
        name: As in the tables.
        squares: Sum of squared weights of every round, shape (horizon,).
        l1: Largest sum of absolute shifts of a window; None where only Gaussian noise is meant.
        l2sq: Largest sum of squared shifts of a window.
    """

    name: str
    squares: Floats
    l1: float | None
    l2sq: float

    def at_epsilon(self, epsilon: float) -> tuple[float, float] | None:
        """Largest and mean root mean square error with discrete Laplace noise."""
        if self.l1 is None:
            return None
        rate = epsilon / self.l1
        return self._errors(1 / (2 * math.sinh(rate / 2) ** 2))

    def at_rho(self, rho: float) -> tuple[float, float]:
        """The same with Gaussian noise at rho-zCDP."""
        return self._errors(self.l2sq / (2 * rho))

    def _errors(self, variance: float) -> tuple[float, float]:
        largest, mean = float(self.squares.max()), float(self.squares.mean())
        return math.sqrt(largest * variance), math.sqrt(mean * variance)


def kary_with_subtraction(horizon: int, k: int) -> Shape:
    """The k-ary tree with signed digits, k odd (Andersson, Pagh, Steiner, Torkamani 2024).

    A round's number in balanced digits -q..q, q = (k - 1) / 2, says how many nodes of each level are
    added or taken off. A window shifts the used nodes that hold exactly one of its two ends, by 1;
    the largest number of them over all pairs of steps 1..horizon + 1 is found level by level: of two
    steps that part below one block, each brings the used nodes that hold it below that block.
    """
    q, levels, top = (k - 1) // 2, 1, 1
    while q * top < horizon:  # 1 + k + k^2 + ... reaches q times that far
        levels, top = levels + 1, top * k + 1
    rest = np.arange(1, horizon + 1, dtype=np.int64)
    digits: list[Integers] = []
    for _ in range(levels):
        digit = (rest + q) % k - q
        digits.append(digit)
        rest = (rest - digit) // k
    assert not rest.any()
    anchor = np.zeros(horizon, dtype=np.int64)
    used: list[NDArray[np.bool_]] = []
    for level in reversed(range(levels)):
        anchor, digit = anchor * k, digits[level]  # in blocks of this level
        taken = np.zeros((horizon // k**level + 2 + q,), dtype=np.bool_)
        for step in range(q):
            taken[(anchor + step)[digit > step]] = True
            taken[(anchor - 1 - step)[digit < -step]] = True
        anchor = anchor + digit
        used.append(taken)
    used.reverse()
    counts = np.sum([np.abs(digit) for digit in digits], axis=0)
    price = _largest_difference(used, k, horizon + 1)
    return Shape(f"{k}-ary with subtraction", counts.astype(np.float64), float(price), float(price))


def _largest_difference(used: list[NDArray[np.bool_]], k: int, steps: int) -> int:
    """Most used nodes that hold exactly one of two steps; blocks of level i have k**i steps."""
    best = 0
    deepest = np.zeros(steps, dtype=np.int64)  # most used nodes of a block that hold one step
    for taken in used:
        deepest = deepest + taken[: len(deepest)]
        best = max(best, int(deepest.max()))  # a step against none
        parents = np.arange(len(deepest)) // k
        starts = np.arange(0, len(deepest), k)
        first = np.maximum.reduceat(deepest, starts)
        leads = deepest == first[parents]
        second = np.maximum.reduceat(np.where(leads, 0, deepest), starts)
        tied = np.add.reduceat(leads, starts) > 1
        best = max(best, int(np.where(tied, 2 * first, first + second).max()))
        deepest = first
    # The blocks that remain stand side by side above all levels.
    return max(best, int(np.sort(deepest)[-2:].sum()))


def best_kary(horizon: int, law: str) -> Shape:
    """The k of least error under "laplace" or "gaussian" noise."""
    shapes = [kary_with_subtraction(horizon, k) for k in range(3, 40, 2)]

    def cost(shape: Shape) -> float:
        price = shape.l2sq**2 if law == "laplace" else shape.l2sq
        return float(shape.squares.max()) * price

    return min(shapes, key=cost)


def smooth_binary(horizon: int) -> Shape:
    """Rounds on the leaves of one weight w of a binary tree of height w + z (Andersson, Pagh 2023).

    Every round uses w nodes and every step lies in at most z used ones, so a window costs at most
    2 z; (w, z) with room for horizon + 1 leaves and the least w z.
    """
    best: tuple[int, int, int] | None = None
    for w in range(1, 40):
        z = 1
        while math.comb(w + z, w) < horizon + 1:
            z += 1
        if best is None or w * z < best[0]:
            best = (w * z, w, z)
    assert best is not None
    _, w, z = best
    return Shape("smooth binary", np.full(horizon, float(w)), 2.0 * z, 2.0 * z)


def sqrt_coefficients(count: int) -> Floats:
    """First column of the square root of the counting matrix: binomials (2k over k) / 4^k."""
    k = np.arange(1, count, dtype=np.float64)
    return np.concatenate([[1.0], np.cumprod(1 - 0.5 / k)])


def toeplitz(name: str, strategy: Floats, noise: Floats) -> Shape:
    """Noise `sum of noise[l - j] z_j`, with a record's step moving z by the strategy's column.

    A window that begins in the first round moves z by the column minus itself delayed by the
    window's length; later windows move less, as their columns are cut off by the horizon.
    """
    horizon = len(strategy)
    energy = np.concatenate([[0.0], np.cumsum(strategy**2)])
    size = 2 * horizon
    spectrum = np.abs(np.fft.rfft(strategy, size)) ** 2
    overlap = np.fft.irfft(spectrum, size)[:horizon]  # at delay 0, 1, ...
    delays = np.arange(1, horizon)
    moved = energy[horizon] + energy[horizon - delays] - 2 * overlap[1:]
    l2sq = max(float(moved.max(initial=0.0)), float(energy[horizon]))
    return Shape(name, np.cumsum(noise**2), None, l2sq)


def sqrt_toeplitz(horizon: int) -> Shape:
    """The square root of the counting matrix, on both sides (Fichtenberger et al. 2023)."""
    column = sqrt_coefficients(horizon)
    return toeplitz("square-root Toeplitz", column, column)


def strategy_toeplitz(name: str, strategy: Floats) -> Shape:
    """A Toeplitz strategy C given by its first column; the noise is A C^-1 z."""
    horizon = len(strategy)
    inverse = np.zeros(horizon)
    inverse[0] = 1 / strategy[0]
    for row in range(1, horizon):
        inverse[row] = -(strategy[1 : row + 1] @ inverse[row - 1 :: -1][:row]) / strategy[0]
    return toeplitz(name, strategy, np.cumsum(inverse))
