"""From a budget to calibrated noise, for one release: shared by the mechanisms and the engine."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from retrodp import _check
from retrodp.errors import PlanError
from retrodp.mechanisms.calibrated import ONE_RECORD, CalibratedNoise
from retrodp.noise.factors.binary import BinaryFactor
from retrodp.noise.factors.contract import Factor
from retrodp.noise.factors.delannoy import best_delannoy
from retrodp.noise.factors.fresh import FreshFactor
from retrodp.noise.factors.haar import best_haar
from retrodp.noise.process import NoiseProcess
from retrodp.privacy.budget import PureDP, zCDP

VARIANCE_GRID = 1024  # a variance is rounded up to a multiple of 1/1024 step squared
DEFAULT_LEVEL = Fraction(19, 20)

_FACTORS: dict[str, Callable[[int], Factor]] = {
    "binary": lambda horizon: BinaryFactor(horizon=horizon),
    "haar": best_haar,
    "delannoy": best_delannoy,
}


def choose_factor(choice: str, *, horizon: int, law: str, window: int | None = None) -> Factor:
    """The factor a release uses.

    Args:
        choice: "auto", or the name of a factor.
        horizon: Rounds covered.
        law: "gaussian" or "laplace".
        window: Length of the sliding window in rounds, if the release has one.

    Returns:
        With "auto" the factor of least worst error: haar for Gaussian noise, delannoy for Laplace
        noise, or independent noise every round where the window is short enough for it to win.
    """
    if choice != "auto":
        if choice not in _FACTORS:
            raise PlanError(f"Unknown factor {choice!r}.", expected=", ".join(["auto", *_FACTORS]))
        return _FACTORS[choice](horizon)
    tree: Factor = best_haar(horizon) if law == "gaussian" else best_delannoy(horizon)
    if window is None:
        return tree
    fresh = FreshFactor(horizon=horizon, window=window)
    return min((fresh, tree), key=lambda factor: worst_error(factor, law))


def worst_error(factor: Factor, law: str) -> float:
    """Largest variance of a round at unit budget, up to a constant of the law."""
    price = factor.window_l2sq if law == "gaussian" else factor.window_l1**2
    return price * int(factor.profile().squares.max()) / factor.denominator**2


def gaussian_process(
    factor: Factor, *, rho: Fraction, amount: int, split: tuple[int, ...] = ONE_RECORD
) -> NoiseProcess:
    """Discrete Gaussian noise that costs at most `rho` zCDP for every window of any unit."""
    exact = Fraction(factor.window_l2sq * amount * amount * sum(n * n for n in split)) / (2 * rho)
    variance = Fraction(math.ceil(exact * VARIANCE_GRID), VARIANCE_GRID)
    return NoiseProcess(factor=factor, law="gaussian", scale=variance)


def laplace_process(
    factor: Factor, *, epsilon: Fraction, amount: int, split: tuple[int, ...] = ONE_RECORD
) -> NoiseProcess:
    """Discrete Laplace noise that costs at most `epsilon` pure DP for every window of any unit."""
    return NoiseProcess(
        factor=factor, law="laplace", scale=factor.window_l1 * amount * sum(split) / epsilon
    )


def calibrated(  # noqa: PLR0913  the researcher's constructor: every argument is a public choice
    name: str,
    *,
    horizon: int,
    budget: zCDP | PureDP,
    step: Fraction = Fraction(1),
    amount: int = 1,
    factor: str = "auto",
    window: int | None = None,
    level: Fraction = DEFAULT_LEVEL,
) -> CalibratedNoise:
    """Noise for one release that spends exactly `budget` over the whole horizon."""
    _check.whole(least=1, horizon=horizon, amount=amount)
    _check.probability(level=level)
    if isinstance(budget, zCDP):
        chosen = choose_factor(factor, horizon=horizon, law="gaussian", window=window)
        process = gaussian_process(chosen, rho=budget.rho, amount=amount)
    else:
        chosen = choose_factor(factor, horizon=horizon, law="laplace", window=window)
        process = laplace_process(chosen, epsilon=budget.epsilon, amount=amount)
    return CalibratedNoise.of(
        name, process, step=step, amount=amount, split=ONE_RECORD, level=level
    )
