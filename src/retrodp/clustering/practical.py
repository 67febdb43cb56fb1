"""From a budget to a practical sketch: levels, noise and thresholds, all public.

Promise: what is made keeps to the budget by the accountant's own count. Knows no point and no key.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import assert_never

from retrodp import _check
from retrodp.clustering.arrivals import (
    FactorName,
    Part,
    factor_of,
    gaussian_part,
    laplace_part,
    losses_of,
)
from retrodp.clustering.counters import (
    CELLS,
    PARTS,
    SHARES,
    SIZE,
    SUMS,
    WEIGHTS,
    parts_of,
)
from retrodp.clustering.places import Box
from retrodp.clustering.sketch import FIRST_WIDTH, PracticalSketch
from retrodp.errors import PlanError, UsageError
from retrodp.noise.factors.binary import BinaryFactor
from retrodp.noise.factors.dense import DenseFactor
from retrodp.noise.processes import AnyFactor, Process
from retrodp.plan.columns import Column
from retrodp.privacy.budget import ApproxDP, Budget, PureDP, zCDP
from retrodp.privacy.calibrate import largest_rho
from retrodp.privacy.loss import PrivacyLoss

CLIP_PARTS = 4
"""Offsets are counted in full up to a quarter of the box's width."""

MANY = 4  # bits of branching from which a cell has many children
DEVIATIONS = {"few": Fraction(3), "many": Fraction(9, 2)}
"""Of the noise that a count must exceed: more where a cell has hundreds of children."""


def default_levels(columns: int) -> tuple[int, int]:
    """First and last level of the cells: halvings of every column's range."""
    return {1: (3, 9), 2: (3, 6), 3: (2, 5)}.get(columns, (1, 3))


def practical(  # noqa: PLR0913  the constructor of a library: every argument is a public choice
    name: str,
    *,
    of: Sequence[Column],
    k: int,
    horizon: int,
    budget: Budget,
    power: int = 2,
    factor: FactorName | None = None,
    levels: tuple[int, int] | None = None,
    shares: Mapping[str, Fraction] = SHARES,
    first_width: Fraction = FIRST_WIDTH,
    records: int = 1,
) -> PracticalSketch:
    """A sketch that spends at most `budget` over all its blocks.

    Args:
        name: Of the release.
        of: Bounded columns of the points, at most 100.
        k: Number of clusters it is made for.
        horizon: Blocks.
        budget: All of it.
        power: 2 for k-means, 1 for k-median.
        factor: Of the noise: by default "sqrt" for Gaussian and "delannoy" for Laplace noise;
            "binary" lets the noise of past blocks be forgotten.
        levels: First and last level of the cells.
        shares: Of the budget, by part; they add up to 1.
        first_width: The first estimated cost is that of k * tau points at this part of the width
            of the box; phases double it.
        records: Arrivals of one unit, all in one block.
    """
    _check.whole(least=1, k=k, horizon=horizon, records=records)
    if set(shares) != set(PARTS) or sum(shares.values()) != 1 or min(shares.values()) <= 0:
        raise PlanError(
            f"The shares of a sketch are those of {', '.join(PARTS)}, and add up to 1.",
        )
    box = Box.of(of, levels or default_levels(len(of)), CLIP_PARTS)
    parts = parts_of(box, dict(shares), records)
    pure = isinstance(budget, PureDP)
    root = factor_of(factor or ("delannoy" if pure else "sqrt"), horizon)
    noises = processes(budget, root, parts)
    cells = noises[CELLS]
    return PracticalSketch(
        name=name,
        box=box,
        k=k,
        power=power,
        horizon=horizon,
        cells=cells,
        weights=noises[WEIGHTS],
        sums=noises[SUMS],
        size=noises[SIZE],
        threshold=thresholds(cells, box, horizon),
        first_width=first_width,
        records=records,
        shares=tuple((part.name, part.share) for part in parts),
    )


def thresholds(cells: Process, box: Box, horizon: int) -> tuple[int, ...]:
    """Noisy count from which a cell is a representative, by rounds of its phase."""
    bits = max(map(box.grid.branching, box.grid.counted))
    deviations = float(DEVIATIONS["many" if bits >= MANY else "few"])
    return tuple(
        max(1, math.ceil(deviations * cells.stddev(index))) for index in range(1, horizon + 1)
    )


def processes(budget: Budget, factor: AnyFactor, parts: Sequence[Part]) -> dict[str, Process]:
    """Noise of each part; together they cost at most the budget."""
    match budget:
        case PureDP():
            return {part.name: laplace_part(part, factor, budget.epsilon) for part in parts}
        case zCDP():
            return _gaussian(parts, factor, budget.rho)
        case ApproxDP():

            def losses(rho: Fraction) -> list[PrivacyLoss]:
                noises = _gaussian(parts, factor, rho)
                return [losses_of(part, noises[part.name]) for part in parts]

            rho = largest_rho(losses, epsilon=budget.epsilon, delta=budget.delta)
            return _gaussian(parts, factor, rho)
        case _:
            assert_never(budget)


def _gaussian(parts: Sequence[Part], factor: AnyFactor, rho: Fraction) -> dict[str, Process]:
    if not isinstance(factor, DenseFactor | BinaryFactor):
        raise PlanError(
            f'factor = "{factor.name}" does not suit Gaussian noise of a sketch.',
            expected='"sqrt", "dense" or "binary"',
        )
    return {part.name: gaussian_part(part, factor, rho) for part in parts}


def box_columns(
    low: Sequence[float | str], high: Sequence[float | str], step: str
) -> tuple[Column, ...]:
    """Columns x0, x1, ... of numbers between bounds, on a grid.

    Args:
        low: Least value of each.
        high: Greatest value of each.
        step: Of the grid, a decimal.
    """
    for name, bounds in (("low", low), ("high", high)):
        if isinstance(bounds, str):
            raise UsageError(
                f"{name} is the one text {bounds!r}.",
                expected="a number a column",
                do=f"Write {name}=[{bounds!r}].",
            )
    grid = _check.exact("step", step)
    _check.positive(step=grid)
    return tuple(
        Column(
            name=f"x{place}",
            type="number",
            from_=f"x{place}",
            min=_check.exact("low", least),
            max=_check.exact("high", greatest),
            step=grid,
        )
        for place, (least, greatest) in enumerate(zip(low, high, strict=True))
    )
