"""Cost of centres that are published every round, over the best that is found without privacy.

A ratio is the cost of the published centres on the surviving points over that of scikit-learn's
k-means on the same points. Epsilon 1 and delta 1e-6 protect a point in all 365 rounds together; the
one-shot comparators spend as much on the single round that they are asked about.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import clustering_data as data
from benchmarks.clustering_data import HORIZON, STEPS, Stream
from benchmarks.peers import load
from benchmarks.tables import MISSING, Table
from retrodp.clustering import solver
from retrodp.clustering.dense_ball import FACTOR, dense_balls
from retrodp.clustering.retroactive import Clusters
from retrodp.engine.compile import compile_plan, keyed
from retrodp.engine.resolve import resolve
from retrodp.noise.key import KeyTree
from retrodp.plan.plan import Plan
from retrodp.privacy.budget import ApproxDP
from retrodp.statistics.cells import Cells
from retrodp.stream.batch import Batch

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PICTURE = Path(__file__).parents[1] / "docs" / "img" / "clusters.png"
ROUNDS = (30, 60, 120, 240, 365)
KEYS, K = 5, 10
BOOSTED_KEYS = 2  # of the variant with eight grids, which takes ten times as long
SAMPLE = 30_000  # points that the centres without privacy are found from
MEDIAN_SAMPLE = 3_000

PLAN = """
[stream]
start = 2024-01-01
round = "{round}"
horizon = {horizon}
[columns]
{columns}
[privacy]
epsilon = 1
delta = 1e-6
[release.places]
kind = "{kind}"
of = [{of}]
k = {k}
{keys}
"""

STREAMS: dict[str, Callable[[], Stream | None]] = {
    "groups, d = 2": lambda: data.groups(2, drift=False, seed=0),
    "groups that drift, d = 2": lambda: data.groups(2, drift=True, seed=1),
    "groups, d = 8": lambda: data.groups(8, drift=False, seed=2),
    "groups that drift, d = 8": lambda: data.groups(8, drift=True, seed=3),
    "Chicago, d = 2": data.chicago,
    "shuttle, d = 9": data.shuttle,
    "letter, d = 16": data.letter,
}


BOOSTED = ("groups, d = 2", "groups, d = 8")
"""Streams on which the boosted variant is measured too."""


@dataclass(frozen=True, slots=True)
class Run:
    """One release of one key in one round.

    Attributes:
        ratio: Of its cost.
        seconds: Of processor time, from totals to the answer.
    """

    ratio: float
    seconds: float


@cache
def stream(name: str) -> Stream | None:
    """Points of a stream; None where a package is missing."""
    return STREAMS[name]()


@cache
def exact(name: str, round_: int, power: int = 2) -> tuple[float, float]:
    """Least cost found without privacy, and its seconds."""
    found = stream(name)
    assert found is not None
    points = units(found.surviving(round_))
    sample = np.random.default_rng(0).choice(len(points), min(SAMPLE, len(points)), replace=False)
    began = time.process_time()
    if power == 2:
        centres = scikit("KMeans", points[sample], n_init=10)
    else:
        few = points[sample[:MEDIAN_SAMPLE]]
        centres = solver.kmedian(few, np.ones(len(few)), K, coins=bytes(32))
    return data.costs(points, centres, power), time.process_time() - began


def scikit(name: str, points: Floats, n_init: int) -> Floats:
    """Centres by one of scikit-learn's classes, on one thread."""
    cluster, limits = load("sklearn.cluster"), load("threadpoolctl")
    with limits.threadpool_limits(limits=1):
        model = getattr(cluster, name)(n_clusters=K, n_init=n_init, random_state=0)
        centres: Floats = model.fit(points).cluster_centers_
    return centres


def units(points: Ints) -> Floats:
    """Steps as parts of a column's range."""
    return points / STEPS


@cache
def plan(
    dimensions: int,
    kind: str,
    *,
    horizon: int = HORIZON,
    round_: str = "1d",
    keys: str = "",
) -> Plan:
    """One release of points in the unit box around 0, alone in its plan.

    Args:
        dimensions: Columns x0, x1, ...
        kind: Of the release.
        horizon: Rounds.
        round_: Their length.
        keys: Further keys of the release.
    """
    names = [f"x{place}" for place in range(dimensions)]
    column = '{name} = {{ type = "number", min = -0.5, max = 0.5, step = 0.0001 }}'
    return Plan.loads(
        PLAN.format(
            horizon=horizon,
            round=round_,
            columns="\n".join(column.format(name=name) for name in names),
            of=", ".join(f'"{name}"' for name in names),
            kind=kind,
            k=K,
            keys=keys,
        )
    )


@cache
def bound(dimensions: int, kind: str, variant: str, key: int) -> tuple[Cells, Clusters, KeyTree]:
    """Statistic, mechanism and key."""
    keys = KeyTree.from_root(bytes([key]) * 32, b"benchmark", HORIZON)
    made = plan(dimensions, kind, keys=f'variant = "{variant}"')
    return (*only_clusters(made, keys), keys)


def only_clusters(made: Plan, keys: KeyTree) -> tuple[Cells, Clusters]:
    """Statistic and mechanism of a plan of one clustering."""
    (release,) = keyed(compile_plan(made, resolve(made)), keys)
    assert isinstance(release.statistic, Cells)
    assert isinstance(release.mechanism, Clusters)
    return release.statistic, release.mechanism


@cache
def runs(name: str, kind: str, variant: str, round_: int) -> tuple[Run, ...]:
    """One run a key."""
    found = stream(name)
    assert found is not None
    points = found.surviving(round_)
    power = 2 if kind == "kmeans" else 1
    least, _ = exact(name, round_, power)
    columns: dict[str, list[object]] = {
        f"x{place}": points[:, place].tolist() for place in range(points.shape[1])
    }
    batch = Batch(len(points), columns, np.ones(len(points), dtype=np.int64))
    made = []
    for key in range(KEYS if variant == "tree" else BOOSTED_KEYS):
        statistic, mechanism, keys = bound(points.shape[1], kind, variant, key)
        totals = statistic.encode(batch)
        began = time.process_time()
        mechanism.release(round_, totals, keys)
        seconds = time.process_time() - began
        centres = mechanism.found(round_, totals, keys).centres
        places = np.zeros((1, points.shape[1])) if centres is None else centres
        if centres is not None:
            places = places * float(statistic.grid.unit) - 0.5
        made.append(Run(data.costs(units(points), places, power) / least, seconds))
    return tuple(made)


def variants(name: str) -> tuple[str, ...]:
    """Variants that are measured on a stream."""
    return ("tree", "lths") if name in BOOSTED else ("tree",)


def ratios(name: str, kind: str, variant: str) -> list[float]:
    """Median over the keys, round by round."""
    return [
        float(np.median([run.ratio for run in runs(name, kind, variant, round_)]))
        for round_ in ROUNDS
    ]


Peer = Callable[[Floats], Floats | None]


def lsh(points: Floats) -> Floats:
    """One-shot tree of random hyperplanes, then weighted k-means."""
    coreset, weights = data.lsh_tree(points, np.random.default_rng(1))
    return solver.kmeans(coreset, weights, K, coins=bytes(32))


PEERS: dict[str, Peer] = {
    "MiniBatchKMeans, not private": lambda points: scikit("MiniBatchKMeans", points, n_init=3),
    "one-shot LSH tree, whole budget": lsh,
    "diffprivlib, one shot, whole budget": lambda points: data.private_peer(points, K),
}


@cache
def peer(name: str, which: str, round_: int) -> float | None:
    """Ratio of a comparator, or None where it is missing."""
    found = stream(name)
    assert found is not None
    points = units(found.surviving(round_))
    centres = PEERS[which](points)
    return None if centres is None else data.costs(points, centres) / exact(name, round_)[0]


def clusters() -> list[Table]:
    """All tables of clusterings."""
    return [means(), medians(), seconds(), dense()]


def means() -> Table:
    """k-means, beside the comparators."""
    table = Table(
        name="clusters",
        title="k-means every round: cost over that of k-means without privacy",
        note=(
            f"k = {K}, 365 rounds, epsilon 1, delta 1e-6. Groups: 100,000 points, a fifth of them "
            "deleted again; Chicago: complaints about rubbish with the real withdrawals. Median "
            f"over {KEYS} keys ({BOOSTED_KEYS} for `lths`), in brackets the worst. Exact re-clustering every round is 1 by "
            "definition. *One shot*: the comparator publishes this round alone and spends "
            "everything on it; it could not publish another."
        ),
        headings=["", *(f"round {round_}" for round_ in ROUNDS)],
    )
    for name in STREAMS:
        if stream(name) is None:
            table.add(f"{name}: data", *[MISSING] * len(ROUNDS))
            continue
        for variant in variants(name):
            cells = []
            for round_ in ROUNDS:
                found = [run.ratio for run in runs(name, "kmeans", variant, round_)]
                cells.append(f"{np.median(found):.3f} ({max(found):.3f})")
            table.add(f"{name}: **{variant}**", *cells)
        for which in PEERS:
            found_ = [peer(name, which, round_) for round_ in ROUNDS]
            table.add(f"{name}: {which}", *(MISSING if one is None else one for one in found_))
    return table


def medians() -> Table:
    """k-median."""
    table = Table(
        name="medians",
        title="k-median every round: cost over that of k-median without privacy",
        note=(
            f"As above; the centres without privacy are the best local optimum of "
            f"{solver.MEDIAN_STARTS} starts on a sample of {MEDIAN_SAMPLE:,}, so that a ratio may be "
            "below 1."
        ),
        headings=["", *(f"round {round_}" for round_ in ROUNDS)],
    )
    for name in ("groups, d = 2", "groups, d = 8", "Chicago, d = 2"):
        if stream(name) is not None:
            table.add(name, *ratios(name, "kmedian", "tree"))
    return table


def seconds() -> Table:
    """Processor time of a round."""
    table = Table(
        name="cluster-seconds",
        title="Seconds of a round with 100,000 points",
        note=(
            "Processor seconds from exact totals to the answer in round 365; encoding a round's own "
            "updates comes on top (about 4 microseconds a point and level at d = 2). Beside it "
            "scikit-learn's k-means with 10 starts on a sample of 30,000 points."
        ),
        headings=["", "tree", "lths", "k-median", "scikit-learn"],
    )
    for name in ("groups, d = 2", "groups, d = 8"):
        own = [
            float(np.median([run.seconds for run in runs(name, kind, variant, 365)]))
            for kind, variant in (("kmeans", "tree"), ("kmeans", "lths"), ("kmedian", "tree"))
        ]
        table.add(name, *own, exact(name, 365)[1])
    return table


TARGETS = (30, 50, 80, 100, 150, 200, 300, 400, 600, 900)


def dense() -> Table:
    """Least number of points in a planted ball that is found, by dimension and background."""
    table = Table(
        name="dense-balls",
        title="Dense balls: points in a planted ball that is covered within three radii",
        note=(
            "100,000 points (50,000 at d = 50) in the ball of diameter 1, one call, epsilon 1, delta "
            "1e-6; the least of ten numbers tau at which the planted ball of radius r was "
            "covered in at least nine of ten trials (all of six for d = 10 and 50). *Factor*: median "
            "distance of the nearest place over r. *Places*: published, on average. *Proved*: tau "
            "from which the 3 is proved."
        ),
        headings=["", "r_min", "r", "tau", "factor", "places", "proved"],
    )
    for dimensions, least, radii in (
        (2, 0.005, (0.005, 0.05)),
        (10, 0.05, (0.05,)),
        (50, 0.05, (0.05,)),
    ):
        for radius in radii:
            for background in ("groups", "uniform"):
                found = covered(dimensions, least, radius, background)
                table.add(f"d = {dimensions}, {background}", least, radius, *found)
    return table


def covered(
    dimensions: int, least: float, radius: float, background: str
) -> tuple[int | str, float | None, float | None, int | None]:
    """Least tau, median factor, places, tau that is proved."""
    trials = 10 if dimensions == 2 else 6
    number = 100_000 if dimensions < 50 else 50_000
    for tau in TARGETS:
        factors, places, proved = [], [], None
        for trial in range(trials):
            rng = np.random.default_rng([dimensions, tau, trial])
            points, middle = planted(rng, dimensions, number, tau, radius, background)
            keys = KeyTree.from_root(bytes([trial]) * 32, b"benchmark", 1)
            found = dense_balls(points, tau, least, ApproxDP(1, "1e-6"), keys=keys)
            away = np.sqrt(((found.centres - middle) ** 2).sum(axis=1))
            factors.append(float(away.min()) / radius)
            places.append(len(found.balls))
            proved = found.proved_tau
            if sum(factor > FACTOR for factor in factors) > trials - 0.9 * trials:
                break
        if len(factors) == trials and np.mean(np.array(factors) <= FACTOR) >= 0.9:
            return tau, float(np.median(factors)), float(np.mean(places)), proved
    return f"above {TARGETS[-1]}", None, None, None


def planted(
    rng: np.random.Generator, dimensions: int, number: int, tau: int, radius: float, background: str
) -> tuple[Floats, Floats]:
    """Points of a uniform ball of tau points, of the others, and its middle."""
    middle = data.in_ball(rng, 1, dimensions)[0] * 0.4
    inside = middle + data.in_ball(rng, tau, dimensions) * radius
    if background == "uniform":
        others = data.in_ball(rng, number - tau, dimensions) * 0.5
    else:
        centres = data.in_ball(rng, 10, dimensions) * 0.42
        chosen = rng.choice(10, number - tau, p=rng.dirichlet(np.full(10, 2.0)))
        spread = rng.normal(size=(number - tau, dimensions)) * 0.08 / np.sqrt(dimensions)
        others = centres[chosen] + spread
    return np.vstack([inside, others]), middle


RESULT = Path(__file__).parent / "results" / "clusters.json"
LINES = {
    "**tree**": ("retrodp, tree", "tab:blue", "-"),
    "**lths**": ("retrodp, lths", "tab:orange", "-"),
    "MiniBatchKMeans, not private": ("MiniBatchKMeans, not private", "tab:gray", "--"),
    "one-shot LSH tree, whole budget": ("one-shot LSH tree, whole budget", "tab:red", "--"),
    "diffprivlib, one shot, whole budget": (
        "diffprivlib, one shot, whole budget",
        "tab:purple",
        "--",
    ),
}
"""Label, colour and line of each row of the table."""


def plot(target: Path) -> bool:
    """Cost ratios by round, from the last result; False where matplotlib is not installed."""
    pyplot = load("matplotlib.pyplot")
    if pyplot is None or not RESULT.exists():
        return False
    rows = json.loads(RESULT.read_text(encoding="utf-8"))["rows"]
    found: dict[str, dict[str, list[str]]] = {}
    for title, *cells in rows:
        name, _, line = title.partition(": ")
        if MISSING not in cells:
            found.setdefault(name, {})[line] = [str(cell) for cell in cells]
    columns = (len(found) + 1) // 2
    figure, axes = pyplot.subplots(2, columns, figsize=(3.2 * columns, 6.4))
    for axis, (name, lines) in zip(axes.flat, found.items(), strict=False):
        _draw(axis, name, lines)
    for axis in axes.flat[len(found) :]:
        axis.axis("off")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower right", fontsize=9, frameon=False)
    figure.suptitle(
        "Cost of k = 10 centres over that without privacy: epsilon 1 for 365 rounds; "
        "shaded to the worst of five keys"
    )
    figure.tight_layout()
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=100)
    return True


def _draw(axis: Any, name: str, lines: dict[str, list[str]]) -> None:
    for line, cells in lines.items():
        label, colour, style = LINES[line]
        middle = [float(cell.split()[0]) for cell in cells]
        axis.plot(ROUNDS, middle, marker=".", color=colour, ls=style, label=label)
        if "(" in cells[0]:
            worst = [float(cell.partition("(")[2].rstrip(")")) for cell in cells]
            axis.fill_between(ROUNDS, middle, worst, color=colour, alpha=0.15, lw=0)
    axis.axhline(1, color="0.6", lw=0.8)
    axis.set(yscale="log", xlabel="round", xticks=ROUNDS, ylim=(0.92, 12))
    axis.set_title(name, fontsize=10)
    ticks = [1, 1.2, 1.5, 2, 3, 5, 10]
    axis.set_yticks(ticks, map(str, ticks))
    axis.minorticks_off()
    axis.grid(visible=True, alpha=0.3)


if __name__ == "__main__":
    for made_ in clusters():
        print(made_.markdown())
    plot(PICTURE)
