"""Draw what was released about the wards.

    python -m pip install matplotlib
    python examples/chicago_wards/picture.py STORE examples/chicago_wards/wards.png

Reads published releases only. Needs matplotlib, which nothing else here does.
"""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path

import matplotlib as mpl  # type: ignore[import-not-found, unused-ignore]

mpl.use("Agg")

import matplotlib.dates as mdates  # type: ignore[import-not-found, unused-ignore]
import matplotlib.pyplot as plt  # type: ignore[import-not-found, unused-ignore]
import numpy as np

from retrodp.views.published import Published
from retrodp.views.series import key_series

WARDS = tuple(str(number) for number in range(1, 51))
SHOWN = {"6": "#0b6e99", "43": "#d9730d", "48": "#448361"}


def draw(store: Path, output: Path) -> None:
    with Published.open(store) as published:
        quarters = key_series(published, "quarter_by_ward", WARDS)
        totals = key_series(published, "by_ward", WARDS)
        rounds = quarters["1"].rounds
        boundaries = published.resolved.boundaries
        when = [dt.datetime.fromtimestamp(boundaries[one] / 1e6, tz=dt.UTC) for one in rounds]
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(9, 8), layout="constrained", height_ratios=[1.1, 1]
    )
    order = sorted(WARDS, key=lambda ward: -totals[ward].value[-1])
    grid = np.array([quarters[ward].value for ward in order])
    first, last = (mdates.date2num(one) for one in (when[0], when[-1]))
    image = top.imshow(
        grid, aspect="auto", cmap="viridis", vmin=0, extent=(first, last, len(order), 0)
    )
    top.xaxis_date()
    top.set_yticks(np.arange(len(order))[::3] + 0.5, order[::3], fontsize=7)
    top.set_ylabel("ward, most complaints first")
    top.set_title("Complaints of the last 13 weeks that stand, by ward")
    figure.colorbar(image, ax=top, pad=0.01)
    for ward, color in SHOWN.items():
        series = quarters[ward]
        bottom.fill_between(when, series.low, series.high, color=color, alpha=0.2, lw=0)
        bottom.plot(when, series.value, color=color, lw=1.2, label=f"ward {ward}")
    bottom.axhline(0, color="black", lw=0.5)
    bottom.legend(loc="upper left", frameon=False, ncols=3)
    bottom.set_title("Three of them, with the 95 % interval of each week")
    figure.savefig(output, dpi=100, metadata={"Software": ""})


def main(arguments: list[str]) -> None:
    if len(arguments) != 2:
        sys.exit(__doc__)
    draw(Path(arguments[0]), Path(arguments[1]))


if __name__ == "__main__":
    main(sys.argv[1:])
