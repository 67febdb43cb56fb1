"""What sampling buys a one-shot mechanism, and when the linear release of the question is better."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Any

from benchmarks.peers import load
from benchmarks.tables import MISSING, Cell, Table
from retrodp.errors import PlanError
from retrodp.mechanisms.calibrate import calibrated
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.oneshot.ranks import GridQuantile
from retrodp.mechanisms.quantiles import rank_errors
from retrodp.postprocess.halving import depth
from retrodp.privacy.budget import PureDP, zCDP
from retrodp.privacy.conversion import rho_of
from retrodp.privacy.ratio import own_delta
from retrodp.privacy.sampling import (
    Charge,
    OneShot,
    advanced_bound,
    amplified_bound,
    bound_of,
    fixed_charge,
    persistent_bound,
    persistent_charge,
    poisson_charge,
)

PICTURE = Path(__file__).parents[1] / "docs" / "img" / "sampling.png"
DELTA = 1e-6
SLACK = Fraction(1, 10**7)  # of the ranks
SIZE = 100
EPSILONS = (Fraction(1, 100), Fraction(1, 10), Fraction(1, 2))
WINDOWS = (7, 30, 90, 365)
RATES = (Fraction(1, 100), Fraction(1, 10))
CELLS, HORIZON, LIVE = 50_001, 374, 10_000
MEDIAN = Fraction(1, 2)
LENGTHS = (7, 14, 30, 60, 90, 180, 365)
PARTS = (Fraction(1), Fraction(1, 10), Fraction(1, 100))


def charges(one: OneShot, window: int, rate: Fraction) -> dict[str, Charge]:
    """Every way to sample, at one rate."""
    occupancy = math.ceil(SIZE / rate) - 1
    return {
        "all records": fixed_charge(one, window, size=SIZE, occupancy=None)
        if rate == 1
        else poisson_charge(one, window, rate=Fraction(1)),
        "poisson": poisson_charge(one, window, rate=rate),
        "fixed": fixed_charge(one, window, size=SIZE, occupancy=occupancy),
        "persistent": persistent_charge(
            one, window, size=SIZE, occupancy=occupancy, rank_slack=SLACK
        ),
    }


def of_paper(one: OneShot, window: int, rate: Fraction) -> dict[str, Cell]:
    """The paper's bounds where their conditions hold."""
    occupancy = math.ceil(SIZE / rate) - 1
    found: dict[str, Cell] = {
        "fixed, paper": amplified_bound(one, window, DELTA, size=SIZE, occupancy=occupancy).epsilon,
        "no promise, paper": advanced_bound(one, window, DELTA).epsilon,
    }
    try:
        bound = persistent_bound(
            one, window, DELTA / 3, size=SIZE, occupancy=occupancy, rank_slack=float(SLACK)
        )
        found["persistent, paper"] = bound.epsilon
    except PlanError:
        found["persistent, paper"] = MISSING
    return found


def bought() -> Table:
    """Epsilon of all rounds of a record's life."""
    table = Table(
        name="sampling",
        title="Privacy bought by sampling",
        note=f"Epsilon at delta 1e-6 of W answers, each eps0-private for adding or removing a record; "
        f"fixed and persistent: {SIZE} of {SIZE}/q live records.",
        headings=[
            *("eps0", "W", "q", "all records", "poisson", "fixed", "persistent"),
            *("fixed, paper", "persistent, paper", "no promise, paper"),
        ],
    )
    for epsilon in EPSILONS:
        one = OneShot(epsilon=epsilon)
        for window in WINDOWS:
            for rate in RATES:
                own = {
                    name: bound_of(charge, DELTA).epsilon
                    for name, charge in charges(one, window, rate).items()
                }
                paper = of_paper(one, window, rate)
                cells = {**own, **paper}
                table.add(
                    f"{float(epsilon):g}",
                    window,
                    f"{float(rate):.0%}",
                    *(cells[name] for name in table.headings[3:]),
                )
    return table


@cache
def linear_error(model: str, window: int) -> int:
    """Rank error of the linear median over a window, at the 95 % level."""
    moved = depth(CELLS) + 1
    part = PureDP(Fraction(1, moved)) if model == "pure" else zCDP(rho_of(1.0, DELTA) / moved)
    noise: CalibratedNoise = calibrated("m", horizon=HORIZON, budget=part, window=window)
    found: int = rank_errors(noise, CELLS, (MEDIAN,))["half"]
    return found


@cache
def once(model: str, window: int, rate: Fraction) -> Fraction:
    """The largest epsilon of one answer on a Poisson sample."""
    least, most = 1e-6, 64.0
    while most / least > 1.0005:
        middle = math.sqrt(least * most)
        loss = poisson_charge(OneShot(epsilon=Fraction(middle)), window, rate=rate).loss
        fits = loss.epsilon <= 1 if model == "pure" else own_delta(loss, 1.0) <= DELTA
        least, most = (middle, most) if fits else (least, middle)
    return Fraction(least)


def sampled_error(model: str, window: int, rate: Fraction) -> int:
    """Rank error of a sampled median at the 95 % level: of the choice and of the sample."""
    deviations = NormalDist().inv_cdf(1 - 0.025)
    median = GridQuantile(
        epsilon=once(model, window, rate), share=MEDIAN, low=0, high=CELLS - 1, step=Fraction(1)
    )
    choice = median.rank_error(0.05) / float(rate)
    return math.ceil(choice + deviations * math.sqrt(LIVE * (1 - rate) / (4 * rate)))


def against_linear() -> Table:
    """Rank errors of the median of a window."""
    table = Table(
        name="sampling-linear",
        title="A median of a window: linear, or from a sample",
        note=f"Rank error in records at 95 %; {CELLS:,} grid points, {HORIZON} rounds, {LIVE:,} live "
        "records, epsilon 1, delta 1e-6, the release alone in its plan; Poisson samples. The linear "
        "release gives all quantiles for this error, the sampled one a single one.",
        headings=["model", "W", "linear", *(f"sample of {float(part):.0%}" for part in PARTS)],
    )
    for model in ("zcdp", "pure"):
        for window in LENGTHS:
            errors = [sampled_error(model, window, part) for part in PARTS]
            table.add(model, window, linear_error(model, window), *errors)
    return table


def tables() -> Iterator[Table]:
    """Both."""
    yield bought()
    yield against_linear()


def plot(target: Path) -> bool:
    """Epsilon against rate and window, and rank errors; False where matplotlib is not installed."""
    pyplot = load("matplotlib.pyplot")
    if pyplot is None:
        return False
    figure, (left, middle, right) = pyplot.subplots(1, 3, figsize=(13, 4.2))
    _plot_bought(left, middle)
    _plot_linear(right)
    for axes in (left, middle, right):
        axes.set(xscale="log", yscale="log")
        axes.grid(visible=True, which="both", alpha=0.3)
        axes.legend(fontsize=8, loc="lower right" if axes is right else "best")
    figure.tight_layout()
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=110)
    return True


def _plot_bought(left: Any, middle: Any) -> None:
    one = OneShot(epsilon=Fraction(1, 10))
    rates = [Fraction(1, 1000) * round(10 ** (n / 4)) for n in range(2, 11)]
    series: dict[str, list[float]] = {}
    for rate in rates:
        for name, charge in charges(one, 30, rate).items():
            series.setdefault(name, []).append(bound_of(charge, DELTA).epsilon)
    for name, values in series.items():
        left.plot([float(rate) for rate in rates], values, marker=".", label=name)
    left.set(xlabel="rate q", ylabel="epsilon at delta 1e-6", title="30 rounds, eps0 = 0.1")
    series = {}
    windows = (1, 2, 4, 7, 14, 30, 60, 120, 240, 365)
    for window in windows:
        for name, charge in charges(one, window, Fraction(1, 50)).items():
            series.setdefault(name, []).append(bound_of(charge, DELTA).epsilon)
    for name, values in series.items():
        middle.plot(windows, values, marker=".", label=name)
    middle.set(xlabel="window W, rounds", title="rate 2 %, eps0 = 0.1")


def _plot_linear(right: Any) -> None:
    for model, color in (("zcdp", "tab:blue"), ("pure", "tab:red")):
        linear = [linear_error(model, window) for window in LENGTHS]
        right.plot(LENGTHS, linear, color=color, ls="--", label=f"{model}, linear")
        for part, mark in zip(PARTS[:2], "os", strict=True):
            sampled = [sampled_error(model, window, part) for window in LENGTHS]
            name = f"{model}, sample of {float(part):.0%}"
            right.plot(LENGTHS, sampled, color=color, marker=mark, ms=4, label=name)
    right.set(
        xlabel="window W, rounds", ylabel="rank error, records", title="one median, epsilon 1"
    )
