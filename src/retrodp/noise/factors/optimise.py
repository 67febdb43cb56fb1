"""The covariance of least error for hiding windows of rounds, with a proof of how good it is.

Promise: a symmetric positive definite covariance of noise, and a lower bound that no Gaussian noise
goes below. Knows no key, no law, no scale and no data; nothing here bears on privacy, because a
factor works out its own sensitivity afterwards, in integers.

**Problem.** Noise with covariance S hides the window a (1 inside, 0 outside) at the price
a' S^-1 a. Least: max over rounds l of S_ll times max over windows of a' S^-1 a, which is the
squared error at rho = 1/2. **Dual.** For weights mu on rounds and lambda on windows that each sum
to 1, M = diag(mu), N = sum of lambda a a': the product is at least tr(M S) tr(N S^-1), and that at
least (tr (M^1/2 N M^1/2)^1/2)^2, attained at S = M^-1/2 (M^1/2 N M^1/2)^1/2 M^-1/2. **Ascent.** The
weight of a round grows with its variance and that of a window with its price, in turn. For a single
weight both fall as its power -1/2, so that the power 2 would level it at once; windows overlap,
and a power of 3 is faster for them. Together both would overshoot.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

FloatMatrix = NDArray[np.float64]
BoolMatrix = NDArray[np.bool_]

GAP = 1 / 250
"""The search ends when the squared error is within this share of its lower bound."""

MOST_STEPS = 300
_ROUND_POWER = 2.0
_WINDOW_POWER = 3.0
_LEAST_EIGENVALUE = 1e-15  # of the largest; below, floating point knows nothing


class Optimum(NamedTuple):
    """A covariance and how good it is.

    Attributes:
        covariance: Symmetric positive definite, shape (horizon, horizon), any scale.
        squared_error: Largest variance of a round times largest price of a window.
        bound: No covariance has a smaller squared error, up to rounding.
    """

    covariance: FloatMatrix
    squared_error: float
    bound: float


def optimal_covariance(horizon: int, window: int) -> Optimum:
    """Covariance whose squared error is within `GAP` of the least.

    Args:
        horizon: Rounds.
        window: Longest window to be hidden, in rounds; at most the horizon.

    Returns:
        The best covariance met. After `MOST_STEPS` the gap may be wider than `GAP`.

    Time: 20 to 80 steps of two eigendecompositions of half the size; see `best_dense`.
    """
    asked = _windows(horizon, window)
    windows = asked / np.count_nonzero(asked)
    rounds = np.full(horizon, 1 / horizon)
    best, bound = Optimum(np.eye(horizon), np.inf, 0.0), 0.0
    for step in range(MOST_STEPS):
        below, covariance, prices = _evaluate(windows, rounds)
        variances = covariance.diagonal()
        squared_error = float(variances.max() * prices[asked].max())
        bound = max(bound, below)
        if squared_error < best.squared_error:
            best = Optimum(covariance, squared_error, bound)
        if best.squared_error <= (1 + GAP) * bound:
            break
        if step % 2:
            windows *= np.where(asked, np.maximum(prices, 0.0), 0.0) ** _WINDOW_POWER
            windows /= windows.sum()
        else:
            rounds *= variances**_ROUND_POWER
            rounds /= rounds.sum()
    return best._replace(bound=bound)


def _windows(horizon: int, window: int) -> BoolMatrix:
    """Whether (rounds before it, last round of it) is a window to hide; (horizon, horizon + 1)."""
    before, last = np.arange(horizon)[:, None], np.arange(horizon + 1)
    return (last > before) & (last - before <= window)


def _evaluate(windows: FloatMatrix, rounds: FloatMatrix) -> tuple[float, FloatMatrix, FloatMatrix]:
    """Lower bound, covariance, and price of every window, for weights of windows and rounds."""
    scale = np.sqrt(rounds)
    even, odd = (_root(half) for half in _halves(scale[:, None] * _together(windows) * scale))
    covariance = _whole(even.root, odd.root) / scale[:, None] / scale
    inverse = _whole(even.inverse, odd.inverse) * scale[:, None] * scale
    return (even.trace + odd.trace) ** 2, covariance, _prices(inverse)


class _Root(NamedTuple):
    """The square root of a matrix, its trace and its inverse."""

    root: FloatMatrix
    trace: float
    inverse: FloatMatrix


def _root(matrix: FloatMatrix) -> _Root:
    if not len(matrix):
        return _Root(matrix, 0.0, matrix)
    values, vectors = eigh(matrix, driver="evd", check_finite=False)
    roots = np.sqrt(np.maximum(values, values[-1] * _LEAST_EIGENVALUE))
    inverse: FloatMatrix = (vectors / roots) @ vectors.T
    return _Root((vectors * roots) @ vectors.T, float(roots.sum()), inverse)


def _halves(matrix: FloatMatrix) -> tuple[FloatMatrix, FloatMatrix]:
    """The matrix on vectors that are equal, and on those that are opposite, read backwards.

    Windows read backwards are windows, so the problem and all its steps have that symmetry, and a
    decomposition of two halves takes a quarter of the time of the whole.
    """
    half = len(matrix) // 2
    near, far = matrix[:half, :half], matrix[:half, ::-1][:, :half]
    if len(matrix) % 2 == 0:
        return near + far, near - far
    middle = matrix[:half, half : half + 1] * math.sqrt(2)
    even = np.block([[near + far, middle], [middle.T, matrix[half : half + 1, half : half + 1]]])
    return even, near - far


def _whole(even: FloatMatrix, odd: FloatMatrix) -> FloatMatrix:
    """The matrix that `_halves` took apart."""
    half = len(odd)
    near, far = (even[:half, :half] + odd) / 2, (even[:half, :half] - odd) / 2
    middle = even[:half, half:] / math.sqrt(2)
    across = np.hstack([middle.T, even[half:, half:], middle.T[:, ::-1]])
    upper = np.hstack([near, middle, far[:, ::-1]])
    whole: FloatMatrix = np.vstack([upper, across, upper[::-1, ::-1]])
    return whole


def _together(windows: FloatMatrix) -> FloatMatrix:
    """Weight of the windows that hold both of two rounds, shape (horizon, horizon)."""
    begun = windows.cumsum(axis=0)
    running = begun[:, ::-1].cumsum(axis=1)[:, ::-1]  # begun before i, over at j at the earliest
    upper = np.triu(running[:, 1:])
    both: FloatMatrix = upper + np.triu(upper, 1).T
    return both


def _prices(inverse: FloatMatrix) -> FloatMatrix:
    """Price a' inverse a of every window, by sums over rectangles; shape (horizon, horizon + 1)."""
    horizon = len(inverse)
    sums = np.zeros((horizon + 1, horizon + 1))
    sums[1:, 1:] = inverse.cumsum(axis=0).cumsum(axis=1)
    corners = sums.diagonal()
    prices: FloatMatrix = corners - sums - sums.T + corners[:, None]
    return prices[:-1]
