"""Draw what exact forgetting gives away, from the documents of two audits.

    retrodp audit reconstruct --deep --json > reconstruct.json
    retrodp audit differencing --deep --json > differencing.json
    python -m pip install matplotlib
    python docs/attacks.py reconstruct.json differencing.json docs/img/attacks.png

Needs matplotlib, which nothing else here does. The picture beside the pages was made by it.
"""  # noqa: INP001  a script beside the pages, not a package

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl  # type: ignore[import-not-found, unused-ignore]

mpl.use("Agg")

import matplotlib.pyplot as plt  # type: ignore[import-not-found, unused-ignore]

LEAKS, OURS, CHANCE = "#d9730d", "#0b6e99", "#9b9a97"
MARKERS = {
    ("distinct, fresh", "zcdp"): "s",
    ("distinct, ladder", "zcdp"): "D",
    ("distinct, fresh", "pure"): "^",
    ("histogram", "zcdp"): "s",
    ("histogram", "pure"): "^",
}
EXACT_AT = 0.05  # where a logarithmic axis shows noise of 0


def panel(axis: Any, rows: list[dict[str, Any]], title: str, what: str) -> None:
    """Share of secrets read, by the standard deviation of the noise."""
    without = [row for row in rows if row["cap"] is None and "kept" not in row["mechanism"]]
    without.sort(key=lambda row: row["deviation"])
    places = [row["deviation"] or EXACT_AT for row in without]
    shares = [100 * row["accuracy"] for row in without]
    axis.plot(places, shares, color=LEAKS, marker="o", label="exact, or noise without a budget")
    for row in rows:
        share = 100 * row["accuracy"]
        if "kept" in row["mechanism"]:
            axis.plot(
                *(row["deviation"], share), "x", color=LEAKS, ms=9, mew=2, label="one noise, kept"
            )
        elif row["cap"] is not None:
            axis.plot(
                *(row["deviation"], share),
                MARKERS[row["mechanism"], row["model"]],
                color=OURS,
                ms=8,
                linestyle="none",
                label=f"retrodp, epsilon 1: {row['mechanism']}, {row['model']}",
            )
    axis.axhline(50, color=CHANCE, linewidth=1, linestyle="--")
    axis.annotate(
        "a fair coin",
        (EXACT_AT, 50),
        xytext=(0, -12),
        textcoords="offset points",
        color=CHANCE,
        fontsize=8,
    )
    axis.set_xscale("log")
    axis.set_ylim(40, 103)
    ticks = [EXACT_AT, 1, 10, 100]
    axis.set_xticks(ticks, ["none", "1", "10", "100"])
    axis.minorticks_off()
    axis.set_xlabel("standard deviation of the noise")
    axis.set_ylabel(f"{what} read, %")
    axis.set_title(title, fontsize=10, loc="left")
    axis.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0, -0.14))
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def draw(reconstruct: dict[str, Any], differencing: dict[str, Any], target: Path) -> None:
    """Both attacks, side by side."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 5), layout="constrained")
    bits = reconstruct["rows"][0]["bits_of_a_stream"]
    blocks = reconstruct["rows"][0]["blocks"]
    panel(
        left,
        reconstruct["rows"],
        f"Reconstruction: {bits} secrets from {blocks} sets\nthat are added and deleted again",
        "secrets",
    )
    panel(
        right,
        differencing["rows"],
        "Difference: the answer of the one\nwho asked to be forgotten",
        "answers",
    )
    figure.savefig(target, dpi=120, metadata={"Software": ""})


if __name__ == "__main__":
    one, other = (json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:3])
    draw(one, other, Path(sys.argv[3]))
