"""Draw what forgetting costs, from the audit's document.

    retrodp audit price --deep --json > price.json
    python -m pip install matplotlib
    python docs/price.py price.json docs/img/price.png

Needs matplotlib, which nothing else here does. The picture beside the other pages was made by it.
"""  # noqa: INP001  a script beside the pages, not a package

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl  # type: ignore[import-not-found, unused-ignore]

mpl.use("Agg")

import matplotlib.pyplot as plt  # type: ignore[import-not-found, unused-ignore]

COLOURS = {
    "flippancy, w known": "#d9730d",
    "flippancy, doubling": "#dfab01",
    "recompute": "#9065b0",
    "fresh": "#0b6e99",
}
REMEMBERS = "#9b9a97"


def draw(document: dict[str, Any], target: Path) -> None:
    """Root mean squared error by flippancy, a line a method, and the predicted crossing."""
    figure, axis = plt.subplots(figsize=(7, 4))
    rows = [row for row in document["rows"] if row.get("rmse") is not None]
    for method, colour in COLOURS.items():
        own = [row for row in rows if row["mechanism"] == method]
        style = "-" if own[0]["retroactive"] else "--"
        flips = [row["flips"] for row in own]
        axis.plot(
            flips, [row["rmse"] for row in own], style, color=colour, marker="o", label=method
        )
    (last,) = (row for row in document["rows"] if row["test"] == "crossing")
    axis.axvline(last["crossing"], color=REMEMBERS, linewidth=1)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.annotate(
        "predicted crossing",
        (last["crossing"], axis.get_ylim()[0]),
        rotation=90,
        xytext=(-12, 8),
        textcoords="offset points",
        color=REMEMBERS,
        fontsize=8,
    )
    axis.set_xlabel("flips of every item")
    axis.set_ylabel("root mean squared error, items")
    axis.set_title(f"{last['horizon']:,} rounds, epsilon 1: dashed methods remember", fontsize=10)
    axis.legend(frameon=False, fontsize=8)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(target, dpi=130)


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2]))
