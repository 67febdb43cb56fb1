"""Draw what was released about the shop.

    python -m pip install matplotlib
    python examples/retail/picture.py STORE examples/retail/shop.png

Reads published releases only. Needs matplotlib, which nothing else here does.
"""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl  # type: ignore[import-not-found, unused-ignore]

mpl.use("Agg")

import matplotlib.pyplot as plt  # type: ignore[import-not-found, unused-ignore]

from retrodp.views.published import Published
from retrodp.views.series import Series, key_series, scalar_series

START = dt.date(2010, 12, 1)
COUNTRIES = {
    "United Kingdom": "#0b6e99",
    "Germany": "#d9730d",
    "France": "#448361",
    "EIRE": "#9065b0",
}
TOP = 12
MOST = 40  # pounds


def days(series: Series) -> list[dt.date]:
    return [START + dt.timedelta(days=int(round_) - 1) for round_ in series.rounds]


def values(axis: Any, published: Published) -> None:
    """Medians by country with the band of each day."""
    for country, color in COUNTRIES.items():
        key = f'["{country}",0.5]'
        series = key_series(published, "values", [key])[key]
        axis.fill_between(days(series), series.low, series.high, color=color, alpha=0.2, lw=0)
        axis.plot(days(series), series.value, color=color, lw=1.5, label=country)
    axis.set_ylim(0, MOST)
    axis.legend(loc="upper right", frameon=False, ncols=4, fontsize=8)
    axis.set_title("Median value of an order line, pounds, with each day's 95 % interval", size=10)


def products(axis: Any, published: Published) -> None:
    """The largest bins of an open domain."""
    answer = published.answer(published.last_round, "by_product")
    largest = sorted(answer.figures(), key=lambda figure: -(figure.value or 0))[:TOP]
    names = [figure.key for figure in largest]
    numbers = [figure.value or 0 for figure in largest]
    halves = [answer.half] * len(numbers)
    axis.barh(names, numbers, xerr=halves, color="#0b6e99", alpha=0.7, ecolor="black")
    axis.invert_yaxis()
    axis.tick_params(axis="y", labelsize=7)
    axis.set_title(
        f"Top products of the year, lines;\n{len(answer)} reach the threshold of {answer.threshold}",
        size=10,
    )


def sales(axis: Any, published: Published) -> None:
    """Lines per day and per thirty days."""
    day = scalar_series(published, "lines_per_day")
    month = scalar_series(published, "lines_per_30_days")
    axis.fill_between(days(day), day.low, day.high, color="#787774", alpha=0.4, lw=0)
    axis.plot(days(day), day.value, color="#787774", lw=0.8, label="in a day")
    axis.plot(
        days(month), month.value / 30, color="#c4314b", lw=2, label="in 30 days, a day's part"
    )
    axis.legend(loc="upper left", frameon=False, fontsize=8)
    axis.set_title("Order lines that stand", size=10)


def draw(store: Path, output: Path) -> None:
    figure = plt.figure(figsize=(9, 7), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=[2, 1])
    with Published.open(store) as published:
        values(figure.add_subplot(grid[0, :]), published)
        sales(figure.add_subplot(grid[1, 0]), published)
        products(figure.add_subplot(grid[1, 1]), published)
    figure.savefig(output, dpi=100, metadata={"Software": ""})


def main(arguments: list[str]) -> None:
    if len(arguments) != 2:
        sys.exit(__doc__)
    draw(Path(arguments[0]), Path(arguments[1]))


if __name__ == "__main__":
    main(sys.argv[1:])
