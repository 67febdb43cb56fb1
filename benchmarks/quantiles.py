"""Rank errors of quantiles that are published every round, at equal privacy.

The amounts of the retail demo, 374 rounds, epsilon 1. Exact counts of every round come from a store
that lives through the demo's updates; every mechanism then sees the same counts under several keys.
Peers publish one-shot quantiles again in every round, so that one round and one quantile may spend
a 374 times k-th part of the budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import shop
from benchmarks.peers import load
from benchmarks.shop import HORIZON
from benchmarks.tables import MISSING, Table
from benchmarks.timing import rate
from retrodp.engine.compile import compile_plan
from retrodp.engine.resolve import resolve
from retrodp.mechanisms.contract import Mechanism, Stateful
from retrodp.noise.key import KeyTree
from retrodp.plan.columns import Column
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from retrodp.statistics.label import BinLabels
from retrodp.statistics.ordered import GridCells, OrderedCounts
from retrodp.stream.batch import Batch

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "img" / "quantiles.png"

Integers = NDArray[np.int64]
Found = tuple[int, str, float]
"""Round, share and rank error."""

AT = ("0.25", "0.5", "0.75", "0.95")
CELLS, DEPTH = 50_001, 16
ROUNDS = (30, 60, 100, 150, 200, 250, 300, 340, 374)
KEYS = 25
SLOW = 3  # draws of a peer that needs seconds for one

PLAN = """
[stream]
start = 2010-12-01
round = "1d"
timezone = "Europe/London"
horizon = 374
[columns]
amount = {{ type = "number", min = 0, max = 500, step = 0.01 }}
[privacy]
model = "{model}"
epsilon = 1
delta = 1e-9
[release.amounts]
kind = "quantiles"
of = "amount"
at = [0.25, 0.5, 0.75, 0.95]
"""


@dataclass(frozen=True, slots=True)
class Round:
    """Exact counts of one round.

    Attributes:
        totals: As the ledger keeps them.
        below: Values in cells 0..c, shape (cells,).
    """

    totals: dict[bytes, int]
    below: Integers

    @property
    def total(self) -> int:
        return int(self.below[-1])

    def rank_error(self, cell: int, share: str) -> float:
        """How far the share's rank lies outside the ranks of this value."""
        rank = float(Fraction(share) * self.total)
        before = self.below[cell - 1] if cell else 0
        return max(0.0, float(before) - rank, rank - float(self.below[cell]))

    def values(self) -> Integers:
        """All values, in cells."""
        return np.repeat(np.arange(CELLS), np.diff(self.below, prepend=0))


@cache
def rounds() -> dict[int, Round]:
    """Exact counts of the chosen rounds."""
    found = {}
    for round_, by_release in shop.totals(Plan.loads(PLAN.format(model="zcdp")), ROUNDS).items():
        totals = by_release["amounts"]
        counts = np.zeros(CELLS, dtype=np.int64)
        counts[[int(cell) for cell in totals]] = [*totals.values()]
        found[round_] = Round(totals, np.cumsum(counts))
    return found


@cache
def planned(model: str) -> tuple[Mechanism, ResolvedPlan]:
    """The release of the plan, and what was decided; nothing is stored."""
    plan = Plan.loads(PLAN.format(model=model))
    resolved = resolve(plan)
    (release,) = compile_plan(plan, resolved)
    assert not isinstance(release.mechanism, Stateful)
    return release.mechanism, resolved


def ours(model: str) -> Iterator[Found]:
    """(round, share, rank error) under several keys."""
    release, _ = planned(model)
    for number in range(KEYS):
        keys = KeyTree.from_root(bytes(32), b"benchmark %d" % number, HORIZON)
        for round_, exact in rounds().items():
            answer = release.release(round_, exact.totals, keys)
            assert answer.keys is not None
            for share, value in zip(answer.keys, answer.values, strict=True):
                if value is not None:
                    yield round_, share, exact.rank_error(value, share)


class PlainTree:
    """Noisy counts of all dyadic intervals, added up on the way down; float noise, insecure."""

    def __init__(self, exact: Round, deviation: float, seed: int) -> None:
        self._below = np.concatenate([[0], exact.below, np.full((1 << DEPTH) - CELLS, exact.total)])
        self._deviation = deviation
        self._generator = np.random.default_rng(seed)
        self._drawn: dict[tuple[int, int], float] = {}

    def count(self, low: int, high: int) -> float:
        """Noisy count of one interval; the same whenever it is asked for."""
        if (low, high) not in self._drawn:
            self._drawn[low, high] = self._generator.normal(0, self._deviation)
        return float(self._below[high] - self._below[low]) + self._drawn[low, high]

    def quantile(self, share: str) -> int:
        """Where the walk down ends."""
        low, high = 0, 1 << DEPTH
        rest = float(Fraction(share)) * (self.count(0, high // 2) + self.count(high // 2, high))
        while high - low > 1:
            middle = (low + high) // 2
            left = self.count(low, middle)
            if left >= rest:
                high = middle
            else:
                low, rest = middle, rest - left
        return min(low, CELLS - 1)


def plain_trees(deviations: Sequence[float]) -> Iterator[Found]:
    """Rank errors of `PlainTree`; deviation of a node's noise by round."""
    for number in range(KEYS):
        for round_, exact in rounds().items():
            tree = PlainTree(exact, deviations[round_ - 1], 1000 * number + round_)
            for share in AT:
                yield round_, share, exact.rank_error(tree.quantile(share), share)


def opendp_quantile(rho: float) -> Callable[[Integers, str], int] | None:
    """OpenDP's private quantile over the same grid, at this rho."""
    dp = load("opendp.prelude")
    if dp is None:
        return None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    measure, candidates = dp.zero_concentrated_divergence(), list(range(CELLS))

    def make(share: str, scale: float) -> object:
        return dp.m.make_private_quantile(
            *space, measure, candidates=candidates, alpha=float(Fraction(share)), scale=scale
        )

    scales = {
        share: dp.binary_search_param(
            lambda scale, share=share: make(share, scale), d_in=1, d_out=rho, T=float
        )
        for share in AT
    }
    made = {share: make(share, scales[share]) for share in AT}
    return lambda values, share: int(made[share](values.tolist()))  # type: ignore[operator]


def diffprivlib_quantile(epsilon: float) -> Callable[[Integers, str], int] | None:
    """diffprivlib's quantile on a continuous scale, rounded to the grid."""
    tools = load("diffprivlib.tools")
    if tools is None:
        return None

    def quantile(values: Integers, share: str) -> int:
        found = tools.quantile(
            values.astype(float), float(Fraction(share)), epsilon=epsilon, bounds=(0, CELLS - 1)
        )
        return round(float(found))

    return quantile


def repeated(quantile: Callable[[Integers, str], int]) -> Iterator[Found]:
    """A one-shot quantile asked anew in every round."""
    for round_, exact in rounds().items():
        values = exact.values()
        for share in AT:
            for _ in range(SLOW):
                try:
                    yield round_, share, exact.rank_error(quantile(values, share), share)
                except ValueError:  # diffprivlib where values are tied
                    yield round_, share, math.nan


def spread(errors: Sequence[float]) -> tuple[str | float, str | float]:
    """Root mean square and largest of the errors."""
    known = [error for error in errors if not math.isnan(error)]
    if not known:
        return "fails", "fails"
    return math.sqrt(sum(error**2 for error in known) / len(known)), max(known)


@cache
def runs() -> dict[str, list[Found] | None]:
    """Every mechanism's rank errors; None for a peer that is not installed."""
    _, resolved = planned("zcdp")
    each = float(Fraction(resolved.budget["rho"])) / (HORIZON * len(AT))
    noise = resolved.release("amounts")["noise"]
    # A record lies in one dyadic interval a level, one level fewer than with the total.
    plain = [float(one) * math.sqrt(DEPTH / (DEPTH + 1)) for one in noise["stddev"]]
    opendp = opendp_quantile(each)
    # The exponential mechanism at epsilon is epsilon^2 / 8 zCDP.
    other = diffprivlib_quantile(math.sqrt(8 * each))
    return {
        "retrodp, Gaussian": [*ours("zcdp")],
        "dyadic counts, same factor": [*plain_trees(plain)],
        "retrodp, pure epsilon": [*ours("pure")],
        "OpenDP, one-shot repeated": None if opendp is None else [*repeated(opendp)],
        "diffprivlib, one-shot repeated": None if other is None else [*repeated(other)],
    }


def quantiles() -> Iterator[Table]:
    """Rank errors by share and by round, and the speed of counting."""
    release, resolved = planned("zcdp")
    facts = release.describe()
    records = max(one.total for one in rounds().values())
    by_share = Table(
        name="quantiles",
        title="Quantiles every round: rank errors in records, retail amounts",
        note=(
            f"{HORIZON} rounds, epsilon 1, delta 1e-9 "
            f"(rho {float(Fraction(resolved.budget['rho'])):.4g}), {CELLS:,} values, {len(AT)} "
            f"quantiles, up to {records:,} records; rounds {', '.join(map(str, ROUNDS))}, {KEYS} "
            f"keys (peers {SLOW}). Predicted for the tree of differences: standard deviation of a "
            f"noisy rank at most {facts['stddev_max']:.0f}, rank error at most "
            f"{facts['error_max']:,} in a round (95 %), {facts['error_all_max']:,} in all rounds."
        ),
        headings=["mechanism", *(f"{share} rms" for share in AT), "rms", "largest"],
    )
    by_round = Table(
        name="quantiles-rounds",
        title="Quantiles every round: root mean square rank error by round",
        note=f"As above, all {len(AT)} quantiles together.",
        headings=["mechanism", *map(str, ROUNDS)],
    )
    for name, found in runs().items():
        if found is None:
            by_share.add(name, *[MISSING] * (len(AT) + 2))
            by_round.add(name, *[MISSING] * len(ROUNDS))
            continue
        own = [spread([error for _, share, error in found if share == one])[0] for one in AT]
        by_share.add(name, *own, *spread([error for _, _, error in found]))
        curve = [spread([error for at, _, error in found if at == round_])[0] for round_ in ROUNDS]
        by_round.add(name, *curve)
    yield by_share
    yield by_round
    yield speed()


def speed() -> Table:
    """Records a second that are counted by cell: what one update costs beside the ledger."""
    table = Table(
        name="quantiles-speed",
        title="Counting records by cell",
        note="A million decoded records at a time, processor time of one core, median call.",
        headings=["statistic", "M records/s"],
    )
    generator = np.random.default_rng(1)
    values = generator.integers(0, CELLS, 1_000_000).tolist()
    some = [None if number % 10 == 0 else value for number, value in enumerate(values)]
    labels = ["north", "south", None]
    regions = [labels[code] for code in generator.integers(0, 3, len(values)).tolist()]
    amount = Plan.loads(PLAN.format(model="zcdp")).column("amount")
    region = Column(name="region", type="category", from_="region", values=("north", "south"))
    by = BinLabels(columns=(region,))
    for name, column, groups in (
        ("grid of 50,001 values", values, None),
        ("the same, every tenth null", some, None),
        ("the same by three groups", some, by),
    ):
        statistic = OrderedCounts(
            of=amount, cells=GridCells(least=0, greatest=CELLS - 1), moved=DEPTH + 1, by=groups
        )
        columns: dict[str, list[object]] = {"amount": [*column], "region": [*regions]}
        batch = Batch(len(column), columns, np.ones(len(column), dtype=np.int64))
        found = rate(partial(statistic.encode, batch), len(column))
        table.add(name, found.typical / 1e6)
    return table


def plot(target: Path) -> bool:
    """Rank error by round; False where matplotlib is not installed."""
    pyplot = load("matplotlib.pyplot")
    if pyplot is None:
        return False
    figure, axes = pyplot.subplots(figsize=(7, 4.2))
    for name, found in runs().items():
        if found is not None:
            curve = [spread([e for at, _, e in found if at == round_])[0] for round_ in ROUNDS]
            axes.plot(ROUNDS, curve, marker="o", label=name)
    axes.set_yscale("symlog", linthresh=10)  # exact quantiles have error 0
    axes.set(ylim=(0, None), xlabel="round", ylabel="rms rank error, records")
    axes.set_title("Quantiles every round: 374 rounds, epsilon 1, delta 1e-9")
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend(fontsize=8)
    figure.tight_layout()
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=110)
    return True
