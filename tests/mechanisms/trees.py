"""Quantiles and cumulative counts made by hand, with as many equal groups as runs are wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import accumulate

from retrodp.mechanisms.calibrate import choose_factor, gaussian_process, laplace_process
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.cdf import CumulativeCounts, cumulative_band, moved_by_one
from retrodp.mechanisms.quantiles import Quantiles, quantile_band
from retrodp.noise.key import KeyTree
from retrodp.noise.process import Law
from retrodp.postprocess.halving import depth
from retrodp.statistics.ordered import GridCells, coordinate

HORIZON = 8
KEYS = KeyTree.from_root(bytes(range(32)), b"trees", HORIZON)
LEVEL = Fraction(19, 20)
RHO, EPSILON = Fraction(1, 2), Fraction(2)
EXACT = Fraction(10**9)  # a budget of no use in life: hardly any noise


def noise_of(
    moved: int,
    *,
    law: Law = "gaussian",
    horizon: int = HORIZON,
    budget: Fraction | None = None,
    factor: str = "auto",
    name: str = "r",
    amount: int = 1,
    window: int | None = None,
) -> CalibratedNoise:
    chosen = choose_factor(factor, horizon=horizon, law=law, window=window)
    split = (1,) * moved
    process = (
        gaussian_process(chosen, rho=budget or RHO, amount=amount, split=split)
        if law == "gaussian"
        else laplace_process(chosen, epsilon=budget or EPSILON, amount=amount, split=split)
    )
    return CalibratedNoise.of(
        name, process, step=Fraction(1), amount=amount, split=split, level=LEVEL
    )


def groups_named(runs: int) -> tuple[str, ...]:
    return tuple(f"{run:06d}" for run in range(runs))


def quantiles(
    cells: int, at: Sequence[str], *, runs: int | None = None, least: int = 0, **noise: object
) -> Quantiles:
    made = noise_of(depth(cells) + 1, **noise)  # type: ignore[arg-type]
    return Quantiles(
        cells=GridCells(least=least, greatest=least + cells - 1),
        at=tuple(map(Fraction, at)),
        texts=tuple(at),
        groups=None if runs is None else groups_named(runs),
        noise=made,
        band=quantile_band(made, cells),
        column_step=Fraction(1),
        level=LEVEL,
    )


def cumulative_counts(
    edges: int, *, flat: bool, runs: int | None = None, **noise: object
) -> CumulativeCounts:
    made = noise_of(moved_by_one(edges, flat=flat), **noise)  # type: ignore[arg-type]
    return CumulativeCounts(
        texts=tuple(str(edge) for edge in range(edges)),
        groups=None if runs is None else groups_named(runs),
        flat=flat,
        noise=made,
        band=cumulative_band(made, edges),
        level=LEVEL,
    )


def totals(counts: Mapping[int, int], *, runs: int | None = None) -> dict[bytes, int]:
    """The same cells in every group."""
    groups = [b""] if runs is None else [group.encode() for group in groups_named(runs)]
    return {coordinate(cell, group): count for group in groups for cell, count in counts.items()}


def below(counts: Mapping[int, int], cells: int) -> list[int]:
    """Records in cells 0..c."""
    return list(accumulate(counts.get(cell, 0) for cell in range(cells)))


def exact_quantile(sums: Sequence[int], share: Fraction) -> int:
    return next(cell for cell, total in enumerate(sums) if total >= share * sums[-1])


def rank_error(sums: Sequence[int], share: Fraction, cell: int) -> float:
    """How far the share's rank lies outside the ranks of the cell."""
    rank, before = float(share * sums[-1]), sums[cell - 1] if cell else 0
    return max(0.0, before - rank, rank - sums[cell])
