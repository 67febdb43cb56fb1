"""Two samples of one answer: equal laws, or not, with a stated error on both sides.

For mechanisms whose contract promises equal or close laws instead of equal bytes (KKMNS definition
2.9, marginal approximate retroactivity).

Source: Dvoretzky, Kiefer, Wolfowitz (1956) with Massart's constant (1990): n independent values
have an empirical distribution function farther than t from the true one, anywhere, with
probability at most 2 exp(-2 n t^2). No assumption on the law; ties and atoms are allowed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrodp import _check
from retrodp.errors import UsageError

Numbers = NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSample:
    """Outcome of a comparison.

    Attributes:
        distance: Greatest difference of the two empirical distribution functions.
        allowed: Greatest difference that equal (or allowed) laws show, but for `alpha`.
        alpha: Bound on the probability of rejecting laws that are as claimed.
        detected: Kolmogorov distance of laws that is found with a probability of 1 - `beta`.
        beta: Bound on the probability of missing them.
    """

    distance: float
    allowed: float
    alpha: float
    detected: float
    beta: float

    @property
    def rejected(self) -> bool:
        """Whether the laws differ by more than was claimed."""
        return self.distance > self.allowed


def deviation(count: int, miss: float) -> float:
    """Distance such that an empirical distribution function strays farther with `miss`."""
    _check.whole(least=1, count=count)
    _check.probability(miss=miss)
    return math.sqrt(math.log(2 / miss) / (2 * count))


def two_sample(
    one: Numbers, two: Numbers, *, alpha: float, beta: float = 1e-3, claimed: float = 0.0
) -> TwoSample:
    """Compare one answer of two uniting histories over many keys.

    Args:
        one: Independent values, shape (n,).
        two: Independent values, shape (m,); may depend on `one` in any way.
        alpha: Bound on the probability of a false rejection.
        beta: For the stated power.
        claimed: Kolmogorov distance that the contract allows; a total variation bounds it.
    """
    if isinstance(claimed, bool) or not 0 <= claimed <= 1:
        raise UsageError(f"claimed must lie between 0 and 1, got {claimed!r}.")
    if not (np.isfinite(one).all() and np.isfinite(two).all()):
        raise UsageError("Answers are not all finite.", do="Compare numbers alone.")
    noise = deviation(len(one), alpha / 2) + deviation(len(two), alpha / 2)
    values = np.union1d(one, two)
    first = np.searchsorted(np.sort(one), values, side="right") / len(one)
    second = np.searchsorted(np.sort(two), values, side="right") / len(two)
    missed = deviation(len(one), beta / 2) + deviation(len(two), beta / 2)
    return TwoSample(
        distance=float(np.abs(first - second).max()),
        allowed=claimed + noise,
        alpha=alpha,
        detected=claimed + noise + missed,
        beta=beta,
    )
