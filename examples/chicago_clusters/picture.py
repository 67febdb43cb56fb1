"""Draw the centres that were released.

    python -m pip install matplotlib
    python examples/chicago_clusters/picture.py STORE examples/chicago_clusters/clusters.png

Reads published releases only. Needs matplotlib, which nothing else here does.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl  # type: ignore[import-not-found, unused-ignore]

mpl.use("Agg")

import matplotlib.dates as mdates  # type: ignore[import-not-found, unused-ignore]
import matplotlib.pyplot as plt  # type: ignore[import-not-found, unused-ignore]

from retrodp.mechanisms.answer import Answer
from retrodp.views.published import Published

Rows = dict[tuple[Any, ...], tuple[float, float, float]]


def rows(answer: Answer | None) -> Rows:
    """Value and interval by label."""
    assert answer is not None
    step = float(answer.step)
    return {
        tuple(json.loads(figure.key)): (
            (figure.value or 0) * step,
            figure.bounds.low * step,
            figure.bounds.high * step,
        )
        for figure in answer.figures()
    }


def clusters(found: Rows) -> list[tuple[float, float, float]]:
    """East, north and size of every centre."""
    number = round(found["centres",][0])
    return [
        (
            found["centre", at, "east"][0],
            found["centre", at, "north"][0],
            found["size", at][0],
        )
        for at in range(1, number + 1)
    ]


def draw(store: Path, output: Path) -> None:
    with Published.open(store) as published:
        last = published.last_round
        shown = (30, 120, last)
        maps = {one: rows(published.answer(one, "places")) for one in shown}
        season = [rows(published.answer(one, "season")) for one in range(1, last + 1)]
        boundaries = published.resolved.boundaries
        when = [
            dt.datetime.fromtimestamp(boundaries[one] / 1e6, tz=dt.UTC)
            for one in range(1, last + 1)
        ]
    figure = plt.figure(figsize=(11, 9), layout="constrained")
    grid = figure.add_gridspec(2, 3, height_ratios=[1.6, 1])
    for place, (one, found) in enumerate(maps.items()):
        axes = figure.add_subplot(grid[0, place])
        weights = {
            key[1]: value[0]
            for key, value in found.items()
            if key[0] == "coreset" and key[2] == "weight"
        }
        for at, weight in weights.items():
            east, north = (found["coreset", at, "at", name][0] for name in ("east", "north"))
            axes.scatter(east, north, s=weight / 6, color="#9db4c0", alpha=0.6, lw=0)
        for east, north, size in clusters(found):
            axes.scatter(east, north, s=45, marker="X", color="#d9730d", zorder=3)
            axes.annotate(
                f"{size:,.0f}", (east, north), (4, 4), textcoords="offset points", fontsize=7
            )
        axes.set(xlim=(0, 40), ylim=(0, 50.5), aspect="equal", xlabel="km east")
        axes.set_title(
            f"day {one}: {len(clusters(found))} centres, {len(weights)} weighted points", fontsize=9
        )
        axes.set_ylabel("km north" if not place else "")
    axes = figure.add_subplot(grid[1, :])
    for day, found in zip(when, season, strict=True):
        for east, north, size in clusters(found):
            axes.scatter(
                day, north, s=max(size, 0) / 90, c=[east], vmin=5, vmax=35, cmap="viridis", lw=0
            )
    axes.xaxis.set_major_formatter(mdates.DateFormatter("%b %Y"))
    axes.set(
        ylabel="km north",
        title="Centres of the last 91 days, day by day; color: km east, area: size",
    )
    figure.savefig(output, dpi=100, metadata={"Software": ""})


def main(arguments: list[str]) -> None:
    if len(arguments) != 2:
        sys.exit(__doc__)
    draw(Path(arguments[0]), Path(arguments[1]))


if __name__ == "__main__":
    main(sys.argv[1:])
