"""Error at equal privacy: root mean square error of counters, and thresholds of open domains."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path

from benchmarks import peers
from benchmarks.comparators import (
    Shape,
    best_kary,
    smooth_binary,
    sqrt_toeplitz,
    strategy_toeplitz,
)
from benchmarks.tables import MISSING, Cell, Table
from retrodp.noise.factors import BinaryFactor, Factor, best_delannoy, best_haar
from retrodp.noise.factors.dense import best_dense, rows_of
from retrodp.noise.process import NoiseProcess
from retrodp.noise.tails import best_delannoy_for_threshold, least_threshold_of, summed_tail
from retrodp.privacy import (
    DeltaSplit,
    gaussian_losses,
    largest_rho,
    least_threshold,
    split_delta,
)

HORIZONS = (365, 1024, 65536, 1 << 20)
SHORT = 1024  # beyond it, dense matrices and optimisers are left out
CURVE = (16, 32, 64, 128, 256, 365, 512, 1024, 2048, 4096, 16384, 65536)

binary = cache(lambda horizon: BinaryFactor(horizon=horizon))
delannoy = cache(best_delannoy)
haar = cache(best_haar)


def shape_of(name: str, factor: Factor, *, charge: int | None = None) -> Shape:
    """A factor of the package in the terms of the comparators."""
    squares = factor.profile().squares / float(factor.denominator) ** 2
    l1, l2sq = charge or factor.window_l1, charge or factor.window_l2sq
    return Shape(name, squares, float(l1), float(l2sq))


def classical(horizon: int) -> Shape:
    """The binary tree at the charge of its usual analysis: every level twice."""
    factor = binary(horizon)
    return shape_of("binary, usual analysis", factor, charge=factor.classical_l1)


@cache
def blt(horizon: int) -> Shape | None:
    """jax-privacy's buffered linear Toeplitz strategy."""
    found = peers.jax_blt_strategy(horizon) if horizon <= SHORT else None
    return None if found is None else strategy_toeplitz("jax-privacy BLT", found)


@cache
def banded(horizon: int) -> Shape | None:
    """jax-privacy's banded Toeplitz strategy, an eighth of the horizon wide."""
    found = peers.jax_banded_strategy(horizon, horizon // 8) if horizon <= SHORT else None
    return None if found is None else strategy_toeplitz("jax-privacy banded Toeplitz", found)


@cache
def dense(horizon: int) -> Shape | None:
    """The package's own optimal factor, where it is offered."""
    if horizon > SHORT:
        return None
    factor = best_dense(horizon)
    squares = (rows_of(factor).weights ** 2).sum(axis=1)
    return Shape("dense (retrodp)", squares, None, float(factor.window_l2sq))


Maker = Callable[[int], Shape | None]

PURE: dict[str, Maker] = {
    "binary, usual analysis (OpenDP, dpcrpy)": classical,
    "binary, window analysis": lambda horizon: shape_of("binary", binary(horizon)),
    "k-ary with subtraction, best k": lambda horizon: best_kary(horizon, "laplace"),
    "delannoy (retrodp)": lambda horizon: shape_of("delannoy", delannoy(horizon)),
}
ZCDP: dict[str, Maker] = {
    "binary, usual analysis (OpenDP, dpcrpy)": classical,
    "binary, window analysis": lambda horizon: shape_of("binary", binary(horizon)),
    "k-ary with subtraction, best k": lambda horizon: best_kary(horizon, "gaussian"),
    "smooth binary": smooth_binary,
    "haar (retrodp)": lambda horizon: shape_of("haar", haar(horizon)),
    "square-root Toeplitz": sqrt_toeplitz,
    "jax-privacy BLT": blt,
    "jax-privacy banded Toeplitz": banded,
    "dense (retrodp)": dense,
}


def _cell(shape: Shape | None, law: str) -> Cell:
    if shape is None:
        return None
    found = shape.at_epsilon(1) if law == "laplace" else shape.at_rho(0.5)
    return None if found is None else f"{found[0]:.2f} / {found[1]:.2f}"


def counters() -> Iterator[Table]:
    """Largest and mean root mean square error of a count, over horizons."""
    note = (
        "Largest over the rounds / root of the mean over the rounds, of a count that a person is "
        "part of during one window of rounds of any length. Everything is charged for the shift "
        "of the draws that are really used (except the first row). {law}"
    )
    headings = ("factor", *(f"T = {horizon:,}" for horizon in HORIZONS))
    pure = Table(
        "error-pure",
        "Error of a counter at epsilon = 1, pure",
        note.format(law="Discrete Laplace noise. Worked out, not sampled."),
        headings,
    )
    zcdp = Table(
        "error-zcdp",
        "Error of a counter at rho = 1/2, zCDP",
        note.format(
            law="Gaussian noise. Toeplitz and dense factors have less error; they need work or "
            "memory that grows with the horizon (BLT: with its buffers), and every draw of theirs "
            "serves until the horizon ends, so that keys cannot forget. A dash: not offered or too "
            "large to optimise here."
        ),
        headings,
    )
    for table, makers, law in ((pure, PURE, "laplace"), (zcdp, ZCDP, "gaussian")):
        for name, make in makers.items():
            cells = [_cell(make(horizon), law) for horizon in HORIZONS]
            if name.startswith("jax") and peers.load("jax_privacy") is None:
                cells = [MISSING] * len(HORIZONS)
            table.add(name, *cells)
        yield table


def paper_threshold(horizon: int, delta: float) -> float:
    """1 + (m / eps0) ln(2 m T / delta) with epsilon = 2 m eps0 = 1: a union bound over summands."""
    nodes = (horizon - 1).bit_length() + 1
    return 1 + 2 * nodes**2 * math.log(2 * nodes * horizon / delta)


def haar_threshold(horizon: int, delta: str) -> int:
    """Least threshold at epsilon = 1, delta shared between noise and threshold at best."""
    factor = haar(horizon)

    @cache
    def process(noise_delta: Fraction) -> NoiseProcess:
        rho = largest_rho(
            lambda rho: gaussian_losses(
                factor.window_shape, variance=factor.window_l2sq / (2 * rho)
            ),
            1,
            noise_delta,
        )
        return NoiseProcess(factor=factor, law="gaussian", scale=factor.window_l2sq / (2 * rho))

    def cost(split: DeltaSplit) -> float:
        made = process(split.noise)
        return 1 + least_threshold(lambda x: summed_tail(made, x), split.thresholds)

    best = split_delta(Fraction(delta), reserved=Fraction(0), cost=cost)
    return int(cost(best))


def thresholds() -> Table:
    """Least published count of an open domain."""
    cells = [(horizon, delta) for horizon in (365, 4096) for delta in ("1e-6", "1e-9")]
    table = Table(
        "thresholds",
        "Threshold of an open domain at epsilon = 1",
        "Least count that is published, for all rounds together. The first row is a union bound "
        "over summands, the others use the exact tail of the noise. Haar shares delta between "
        "noise and threshold.",
        ("factor", *(f"T = {horizon:,}, delta = {delta}" for horizon, delta in cells)),
    )
    table.add("binary, union bound", *(paper_threshold(t, float(d)) for t, d in cells))

    def with_laplace(factor: Factor, delta: str) -> int:
        process = NoiseProcess(factor=factor, law="laplace", scale=Fraction(factor.window_l1))
        return least_threshold_of(process, float(delta))

    table.add("binary, exact tail", *(with_laplace(binary(t), d) for t, d in cells))
    table.add(
        "delannoy, discrete Laplace (retrodp)",
        *(
            with_laplace(best_delannoy_for_threshold(t, epsilon=1, delta=float(d)), d)
            for t, d in cells
        ),
    )
    table.add("haar, discrete Gaussian (retrodp)", *(haar_threshold(t, d) for t, d in cells))
    return table


def plot(path: Path) -> bool:
    """Largest error over the horizon, as curves; False without matplotlib."""
    if peers.load("matplotlib") is None:
        return False
    peers.load("matplotlib").use("Agg")
    pyplot = peers.load("matplotlib.pyplot")
    figure, sides = pyplot.subplots(1, 2, figsize=(11, 4.6))
    for side, makers, law, title in (
        (sides[0], PURE, "laplace", "epsilon = 1, pure (discrete Laplace)"),
        (sides[1], ZCDP, "gaussian", "rho = 1/2, zCDP (Gaussian)"),
    ):
        for name, make in makers.items():
            if name.startswith("jax"):
                continue
            points = [(t, make(t)) for t in CURVE]
            found = [
                (t, (s.at_epsilon(1) or (math.nan,))[0] if law == "laplace" else s.at_rho(0.5)[0])
                for t, s in points
                if s is not None
            ]
            ours = "retrodp" in name
            side.plot(
                *zip(*found, strict=True),
                label=name,
                linewidth=2.4 if ours else 1.3,
                linestyle="-" if ours else "--",
                marker="o" if ours else None,
                markersize=3.5,
            )
        side.set_xscale("log", base=2)
        side.set_title(title, fontsize=10)
        side.set_xlabel("rounds T")
        side.set_ylabel("largest root mean square error of a count")
        side.grid(alpha=0.3)
        side.set_ylim(bottom=0)
        side.legend(fontsize=7.5)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)
    pyplot.close(figure)
    return True
