"""Clusterings of streams of additions: cost, space, time and recourse, side by side.

The quantities of table 1 of Cohen et al. (2026), measured. A ratio is the cost of the published
centres on the points so far over that of the best of ten runs of scikit-learn's k-means++ on them
(costs and centres on a sample of 50,000 points). Epsilon 1 and delta 1e-6 protect a point in all
blocks together.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import online_streams as streams
from benchmarks.online_rivals import MergeAndReduce, meyerson, retroactive
from benchmarks.online_streams import ORDERS, Floats, Ints, K, Method, Outcome, Step, outcome, parts
from benchmarks.peers import load
from benchmarks.tables import Table
from retrodp.clustering.arrivals import FactorName
from retrodp.clustering.consistent import Algorithm, Consistent
from retrodp.clustering.coreset import Coreset
from retrodp.clustering.practical import box_columns, practical
from retrodp.clustering.running import run
from retrodp.clustering.sketch import PracticalSketch
from retrodp.noise.key import KeyTree
from retrodp.privacy.budget import ApproxDP

DIMENSIONS = (2, 5, 10)
NUMBER, MILLION = 200_000, 1_000_000
BLOCKS, COST_BLOCKS = 200, 250
KEYS = 3
FACTORS: tuple[FactorName, ...] = ("sqrt", "binary")
SLOW = ("k-means++ anew every block", "then k-means++")  # and left out for a million points
IMAGES = Path(__file__).parents[1] / "docs" / "img" / "online.png"
RESULTS = Path(__file__).parent / "results"


class Made(NamedTuple):
    """What the sketch published of one block.

    Attributes:
        coreset: Representatives and weights.
        kept: Numbers in its state.
        seconds: Of processor time.
    """

    coreset: Coreset
    kept: int
    seconds: float


@cache
def sketch(dimensions: int, blocks: int, factor: FactorName) -> PracticalSketch:
    """With the budget of all comparisons, over points in the unit box around 0."""
    return practical(
        "places",
        of=box_columns(["-0.5"] * dimensions, ["0.5"] * dimensions, "0.0001"),
        k=K,
        horizon=blocks,
        budget=ApproxDP(1, "1e-6"),
        factor=factor,
    )


def key_of(number: int, blocks: int) -> KeyTree:
    """One of the keys that everything is repeated with."""
    return KeyTree.from_root(number.to_bytes(32, "big"), b"benchmark", blocks)


def named(points: Ints, blocks: int) -> Iterator[tuple[Ints, list[bytes]]]:
    """Blocks of points with the identities of their records."""
    first = 0
    for own in parts(points, blocks):
        last = first + len(own)
        yield own, [number.to_bytes(8, "big") for number in range(first, last)]
        first = last


@lru_cache(maxsize=4)
def published(number: int, dimensions: int, order: str, factor: FactorName) -> list[Made]:
    """What the sketch publishes of a stream, block by block, through its state as a store keeps it."""
    points, made = streams.stream(number, dimensions, order), sketch(dimensions, BLOCKS, factor)
    keys, state = key_of(1, BLOCKS), made.begin()
    found = []
    for block, (own, identities) in enumerate(named(points, BLOCKS), start=1):
        began = time.process_time()
        coreset, state = made.advance(block, own, identities, keys, state)
        found.append(Made(coreset, len(state) // 8, time.process_time() - began))
    return found


def consistent(stream: list[Made], algorithm: Algorithm) -> Method:
    """Centres among the representatives that hardly move."""

    def method(_: Ints, __: int) -> Iterator[Step]:
        rule = Consistent(k=K, algorithm=algorithm)
        state = rule.begin()
        for block, (coreset, kept, seconds) in enumerate(stream, start=1):
            step = rule.advance(coreset, state)
            state = step.state
            yield Step(block, streams.units(step.centres), kept, seconds)

    return method


def anew(stream: list[Made], *, moved: bool) -> Method:
    """k-means of the private coreset after every block, or the representatives next to its centres."""

    def method(_: Ints, __: int) -> Iterator[Step]:
        for block, (coreset, kept, seconds) in enumerate(stream, start=1):
            centres = coreset_means(coreset, block)
            if moved:
                places = streams.units(coreset.points)
                away = ((places[:, None] - centres[None]) ** 2).sum(axis=2)
                centres = places[np.unique(away.argmin(axis=0))]
            yield Step(block, centres, kept, seconds)

    return method


def coreset_means(coreset: Coreset, seed: int, starts: int = 5) -> Floats:
    """k-means of what stands out of the noise."""
    kept = coreset.positive
    weights = coreset.weights[kept].astype(np.float64)
    return streams.weighted(streams.units(coreset.centres[kept]), weights, seed, starts)


def methods(number: int, dimensions: int, order: str) -> dict[str, Callable[[], Method]]:
    """What is compared on one stream."""

    def own(factor: FactorName = "binary") -> list[Made]:
        return published(number, dimensions, order, factor)

    found: dict[str, Callable[[], Method]] = {
        "**online, swaps**": lambda: consistent(own(), "swaps"),
        "**online, hysteresis**": lambda: consistent(own(), "hysteresis"),
        "**online, robust**": lambda: consistent(own(), "robust"),
        "online, k-means anew every block": lambda: anew(own(), moved=False),
        "online, anew, among representatives": lambda: anew(own(), moved=True),
        "**online, swaps, without forward secrecy**": lambda: consistent(own("sqrt"), "swaps"),
        "**online, robust, without forward secrecy**": lambda: consistent(own("sqrt"), "robust"),
        "online, anew, without forward secrecy": lambda: anew(own("sqrt"), moved=True),
        "`kmeans` every block (retroactive)": lambda: retroactive,
        "merge and reduce, 16 groups": lambda: MergeAndReduce(16),
        "not private: MiniBatchKMeans": lambda: streams.minibatch,
        "not private: k-means++ anew every block": lambda: streams.exact_every_block,
        "not private: Meyerson sketch, then k-means++": lambda: meyerson,
    }
    slow = [title for title in found if "secrecy" in title or title.endswith(SLOW)]
    return {title: make for title, make in found.items() if number == NUMBER or title not in slow}


def tables(*, large: bool) -> Iterable[Table]:
    """All tables of online clusterings.

    Args:
        large: Whether a million points are streamed as well.
    """
    numbers = (NUMBER, MILLION) if large else (NUMBER,)
    for number in numbers:
        yield costs(number)
    for number in numbers:
        yield compared(number)


def costs(number: int) -> Table:
    """What the private coreset is worth after the last block."""
    table = Table(
        name=f"online-cost-{number}",
        title=f"Online sketch of {number:,} points: cost of k-means of the private coreset",
        note=(
            f"k = {K}, {COST_BLOCKS} blocks, epsilon 1, delta 1e-6 for all blocks together. Cost on "
            "all points after the last block over that of the best of ten k-means++ on them without "
            f"privacy: median over {KEYS} keys, in brackets the least and the largest. *binary*: "
            "noise whose past is underivable, as a plan has it; *sqrt*: without forward secrecy. "
            "Representatives and processor seconds of one run, the noise included."
        ),
        headings=[
            "",
            *(f"{factor}" for factor in FACTORS),
            *(f"representatives, {factor}" for factor in FACTORS),
            *(f"seconds, {factor}" for factor in FACTORS),
        ],
    )
    for dimensions in DIMENSIONS:
        for order in ORDERS:
            points = streams.stream(number, dimensions, order)
            found: dict[str, list[tuple[float, int, float]]] = {}
            for factor in FACTORS:
                made = sketch(dimensions, COST_BLOCKS, factor)
                found[factor] = [_cost(points, made, key) for key in range(1, KEYS + 1)]
            table.add(
                f"{dimensions} columns, {order}",
                *(_spread([ratio for ratio, _, _ in found[factor]]) for factor in FACTORS),
                *(found[factor][0][1] for factor in FACTORS),
                *(found[factor][0][2] for factor in FACTORS),
            )
    return table


def _cost(points: Ints, made: PracticalSketch, key: int) -> tuple[float, int, float]:
    """Ratio, representatives and seconds of one run."""
    blocks = [*named(points, made.horizon)]
    began = time.process_time()
    last: Coreset | None = None
    for coreset in run(made, blocks, key_of(key, made.horizon)):
        last = coreset
    seconds = time.process_time() - began
    assert last is not None
    centres = coreset_means(last, key, starts=20)
    return streams.ratio(points, len(points), centres), len(last), seconds


def _spread(found: list[float]) -> str:
    return f"{np.median(found):.3f} ({min(found):.3f}-{max(found):.3f})"


def compared(number: int) -> Table:
    """Every method on every stream."""
    table = Table(
        name=f"online-methods-{number}",
        title=f"Online clusterings of {number:,} points: cost, recourse, space, time",
        note=(
            f"k = {K}, {BLOCKS} blocks, epsilon 1, delta 1e-6 for all blocks together. *Final*: cost "
            "on all points over that of the best of ten k-means++ without privacy; *mean* and "
            "*worst* over the prefixes of 20, 30, ..., 100 % of the stream. *Recourse*: centres that "
            "the block before did not have, added up over all blocks, the first ten included. "
            "*Kept*: most numbers from one block to the next; where a method keeps points, their "
            "coordinates. *Seconds*: of processor time, all blocks. Retroactive `kmeans` forgets "
            "what is deleted; nothing else here does."
        ),
        headings=["", "final", "mean", "worst", "recourse", "kept", "seconds"],
    )
    for dimensions in DIMENSIONS:
        for order in ORDERS:
            points = streams.stream(number, dimensions, order)
            for title, make in methods(number, dimensions, order).items():
                table.add(f"{dimensions} columns, {order}: {title}", *_cells(points, make()))
    return table


def _cells(points: Ints, method: Method) -> tuple[str, str, str, int, int, float]:
    found: Outcome = outcome(points, BLOCKS, method)
    ratios = (f"{one:.3f}" for one in (found.final, found.mean, found.worst))
    final, mean, worst = ratios
    return final, mean, worst, found.recourse, found.kept, found.seconds


LOOKS = {
    "**online, swaps**": ("online, swaps", "tab:blue", "o"),
    "**online, hysteresis**": ("online, hysteresis", "tab:blue", "s"),
    "**online, robust**": ("online, robust", "tab:blue", "^"),
    "**online, swaps, without forward secrecy**": ("online, swaps, sqrt noise", "tab:cyan", "o"),
    "**online, robust, without forward secrecy**": ("online, robust, sqrt noise", "tab:cyan", "^"),
    "online, anew, among representatives": ("online, anew every block", "tab:orange", "D"),
    "`kmeans` every block (retroactive)": ("kmeans, retroactive", "tab:green", "P"),
    "merge and reduce, 16 groups": ("merge and reduce", "tab:red", "X"),
    "not private: k-means++ anew every block": ("k-means++ anew, not private", "0.5", "v"),
    "not private: Meyerson sketch, then k-means++": ("Meyerson, not private", "0.5", "*"),
}
"""Label, colour and mark of each row of the picture."""


def plot(target: Path) -> bool:
    """Mean ratio against recourse; False where matplotlib is not installed or nothing was measured."""
    pyplot = load("matplotlib.pyplot")
    result = RESULTS / f"online-methods-{NUMBER}.json"
    if pyplot is None or not result.exists():
        return False
    found: dict[str, dict[str, tuple[int, float]]] = {}
    for title, _, mean, _, recourse, *_ in json.loads(result.read_text(encoding="utf-8"))["rows"]:
        name, _, method = title.partition(": ")
        found.setdefault(name, {})[method] = (int(recourse), float(mean))
    figure, axes = pyplot.subplots(2, 3, figsize=(12, 7), sharex=True)
    for axis, (name, points) in zip(axes.T.flat, found.items(), strict=True):
        _draw(axis, name, points)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=5, fontsize=9, frameon=False)
    figure.suptitle(
        f"k = {K} centres of {NUMBER:,} points in {BLOCKS} blocks, epsilon 1: mean cost ratio over "
        "the prefixes against the number of centres that changed"
    )
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=100)
    return True


def _draw(axis: Any, name: str, points: dict[str, tuple[int, float]]) -> None:
    for method, (label, colour, mark) in LOOKS.items():
        if method in points:
            recourse, mean = points[method]
            axis.plot([recourse], [mean], mark, color=colour, label=label, ms=8)
    axis.axhline(1, color="0.7", lw=0.8)
    axis.set(xscale="log", xlabel="recourse", ylabel="mean ratio")
    axis.set_title(name, fontsize=10)
    axis.grid(visible=True, alpha=0.3)


if __name__ == "__main__":
    for made_ in tables(large=False):
        print(made_.markdown())
    plot(IMAGES)
