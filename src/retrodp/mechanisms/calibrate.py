"""From a budget to calibrated noise, for one release: shared by the mechanisms and the engine."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import overload

from retrodp import _check
from retrodp.errors import PlanError
from retrodp.mechanisms.calibrated import ONE_RECORD, CalibratedNoise
from retrodp.noise.dense import DenseProcess
from retrodp.noise.factors.binary import BinaryFactor
from retrodp.noise.factors.contract import Factor
from retrodp.noise.factors.delannoy import best_delannoy
from retrodp.noise.factors.dense import DenseFactor, best_dense, rows_of, square_root
from retrodp.noise.factors.fresh import FreshFactor
from retrodp.noise.factors.haar import best_haar
from retrodp.noise.process import NoiseProcess
from retrodp.noise.processes import AnyFactor, Process
from retrodp.noise.product import ProductFactor, ProductProcess
from retrodp.privacy.budget import PureDP, zCDP

VARIANCE_GRID = 1024  # a variance is rounded up to a multiple of 1/1024 step squared
DEFAULT_LEVEL = Fraction(19, 20)

_FACTORS: dict[str, Callable[[int], Factor]] = {
    "binary": lambda horizon: BinaryFactor(horizon=horizon),
    "haar": best_haar,
    "delannoy": best_delannoy,
}


_LASTING: dict[str, Callable[[int, int | None], DenseFactor]] = {
    "dense": best_dense,
    "sqrt": square_root,
}

MOST_DENSE_ROUNDS = 1000
"""A round of a dense factor draws as many nodes a coordinate as its number."""

MOST_DENSE_COORDINATES = 10**5
"""Coordinates of a release, planned where they are open, up to which that takes seconds."""

MOST_DENSE_AMOUNT = 10**6
"""Steps that one unit moves a coordinate; draws on the fine grid of a root are far larger."""


def choose_factor(choice: str, *, horizon: int, law: str, window: int | None = None) -> Factor:
    """The factor of a release whose past noise must become underivable as rounds close.

    Args:
        choice: "auto", or the name of such a factor.
        horizon: Rounds covered.
        law: "gaussian" or "laplace".
        window: Length of the sliding window in rounds, if the release has one.

    Returns:
        With "auto" the factor of least worst error: haar for Gaussian noise, delannoy for Laplace
        noise, or independent noise every round where the window is short enough for it to win.
    """
    if choice != "auto":
        if choice not in _FACTORS:
            known = ", ".join(["auto", *_FACTORS, *_LASTING])
            raise PlanError(f"Unknown factor {choice!r}.", expected=known)
        return _FACTORS[choice](horizon)
    tree: Factor = best_haar(horizon) if law == "gaussian" else best_delannoy(horizon)
    if window is None:
        return tree
    fresh = FreshFactor(horizon=horizon, window=window)
    return min((fresh, tree), key=lambda factor: worst_error(factor, law))


def choose_any_factor(
    choice: str,
    *,
    horizon: int,
    law: str,
    window: int | None = None,
    coordinates: int = 1,
    amount: int = 1,
) -> AnyFactor:
    """The factor of a release whose noise may stay derivable until the horizon.

    Args:
        choice: "auto", or the name of any factor.
        horizon: Rounds covered.
        law: "gaussian" or "laplace".
        window: Length of the sliding window in rounds, if the release has one.
        coordinates: Bins of the release; where they are open, as many as are planned.
        amount: Most that one unit moves a coordinate, in steps.

    Returns:
        With "auto" the factor of least worst error, dense ones included where they fit.

    Raises:
        PlanError: A dense factor was named and does not fit.
    """
    unfit = why_not_dense(horizon=horizon, law=law, coordinates=coordinates, amount=amount)
    if choice in _LASTING:
        if unfit is not None:
            raise PlanError(f'factor = "{choice}" does not fit: {unfit}.', do=_OTHERS)
        return _LASTING[choice](horizon, window)
    lean = choose_factor(choice, horizon=horizon, law=law, window=window)
    if choice != "auto" or unfit is not None:
        return lean
    factors: tuple[AnyFactor, ...] = (lean, best_dense(horizon, window))
    return min(factors, key=lambda factor: worst_error(factor, law))


_OTHERS = 'Leave factor out, or name "haar" (zcdp), "delannoy" (pure) or "binary".'


def why_not_dense(*, horizon: int, law: str, coordinates: int, amount: int) -> str | None:
    """What a dense factor needs and does not find, or None if it fits."""
    if law != "gaussian":
        return 'it needs Gaussian noise, model = "zcdp"'
    if horizon > MOST_DENSE_ROUNDS:
        return f"the horizon of {horizon} rounds is above {MOST_DENSE_ROUNDS}"
    if coordinates > MOST_DENSE_COORDINATES:
        return f"{coordinates} bins are more than {MOST_DENSE_COORDINATES}"
    if amount > MOST_DENSE_AMOUNT:
        return f"{amount} steps that one unit may add are more than {MOST_DENSE_AMOUNT}"
    return None


def worst_error(factor: AnyFactor, law: str) -> float:
    """Largest variance of a round at unit budget, up to a constant of the law."""
    if isinstance(factor, DenseFactor):
        return factor.window_l2sq * float(rows_of(factor).squares.max())
    if isinstance(factor, ProductFactor):
        own = factor.axis.shift_l2sq if law == "gaussian" else factor.axis.moved**2
        return worst_error(factor.arrival, law) * own * float(factor.axis.squares.max())
    price = factor.window_l2sq if law == "gaussian" else factor.window_l1**2
    return price * int(factor.profile().squares.max()) / factor.denominator**2


@overload
def gaussian_process(
    factor: Factor, *, rho: Fraction, amount: int, split: tuple[int, ...] = ONE_RECORD
) -> NoiseProcess: ...
@overload
def gaussian_process(
    factor: AnyFactor, *, rho: Fraction, amount: int, split: tuple[int, ...] = ONE_RECORD
) -> Process: ...
def gaussian_process(
    factor: AnyFactor, *, rho: Fraction, amount: int, split: tuple[int, ...] = ONE_RECORD
) -> Process:
    """Discrete Gaussian noise that costs at most `rho` zCDP for every window of any unit."""
    exact = Fraction(factor.window_l2sq * amount * amount * sum(n * n for n in split)) / (2 * rho)
    variance = Fraction(math.ceil(exact * VARIANCE_GRID), VARIANCE_GRID)
    if isinstance(factor, DenseFactor):
        return DenseProcess(factor=factor, scale=variance)
    if isinstance(factor, ProductFactor):
        return ProductProcess(factor=factor, law="gaussian", scale=variance)
    return NoiseProcess(factor=factor, law="gaussian", scale=variance)


@overload
def laplace_process(
    factor: Factor, *, epsilon: Fraction, amount: int, split: tuple[int, ...] = ONE_RECORD
) -> NoiseProcess: ...
@overload
def laplace_process(
    factor: Factor | ProductFactor,
    *,
    epsilon: Fraction,
    amount: int,
    split: tuple[int, ...] = ONE_RECORD,
) -> Process: ...
def laplace_process(
    factor: Factor | ProductFactor,
    *,
    epsilon: Fraction,
    amount: int,
    split: tuple[int, ...] = ONE_RECORD,
) -> Process:
    """Discrete Laplace noise that costs at most `epsilon` pure DP for every window of any unit."""
    if isinstance(factor, ProductFactor):
        scale = factor.window_l1 * amount * sum(split) / epsilon
        return ProductProcess(factor=factor, law="laplace", scale=scale)
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
    step, level = _check.exact("step", step), _check.exact("level", level)
    _check.positive(step=step)
    _check.probability(level=level)
    _require_budget(budget)
    if isinstance(budget, zCDP):
        process = gaussian_process(
            _named(factor, horizon=horizon, window=window), rho=budget.rho, amount=amount
        )
    else:
        chosen = choose_factor(factor, horizon=horizon, law="laplace", window=window)
        process = laplace_process(chosen, epsilon=budget.epsilon, amount=amount)
    return CalibratedNoise.of(
        name, process, step=step, amount=amount, split=ONE_RECORD, level=level
    )


def _require_budget(budget: object) -> None:
    expected = "zCDP(rho) for Gaussian noise, PureDP(epsilon) for Laplace noise"
    _check.instance((zCDP, PureDP), budget=budget, expected=expected)


def process_of(
    factor: Factor, budget: zCDP | PureDP, *, split: tuple[int, ...] = ONE_RECORD
) -> NoiseProcess:
    """Noise for numbers that a record moves by one: Gaussian for zCDP, else Laplace."""
    _require_budget(budget)
    if isinstance(budget, zCDP):
        return gaussian_process(factor, rho=budget.rho, amount=1, split=split)
    return laplace_process(factor, epsilon=budget.epsilon, amount=1, split=split)


def _named(choice: str, *, horizon: int, window: int | None) -> AnyFactor:
    """A factor for Gaussian noise; a dense one only if it is named."""
    choose = choose_any_factor if choice in _LASTING else choose_factor
    return choose(choice, horizon=horizon, law="gaussian", window=window)
