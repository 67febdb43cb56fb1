"""Draw the same days as they were known on different days, in the table and as released.

    python -m pip install matplotlib
    python examples/italy_revised/picture.py STORE examples/italy_revised/revised.png

Needs matplotlib. The picture beside this file was made by it.
"""

from __future__ import annotations

import sys
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import matplotlib as mpl  # type: ignore[import-not-found, unused-ignore]
import numpy as np

mpl.use("Agg")

import matplotlib.dates as mdates  # type: ignore[import-not-found, unused-ignore]
import matplotlib.pyplot as plt  # type: ignore[import-not-found, unused-ignore]

sys.path.insert(0, str(Path(__file__).parent))

from measure import START, again, known, measured  # type: ignore[import-not-found]

from retrodp.views.published import Published
from retrodp.views.vintages import triangle

PRIVATE, TABLE, PALE = "#0b6e99", "#d9730d", "#f2c9a1"
LOST = "P.A. Bolzano"
VINTAGES = (date(2020, 12, 25), date(2020, 12, 26), date(2020, 12, 27))
RULED, RULING = "Piemonte", date(2020, 12, 18)
SAID = (
    "As published on 25 December",
    "On 26 December the file of the\nautumn was lost ...",
    "... and on 27 December it was back,\nevery case on its own day",
)


def round_of(day: date) -> int:
    return (day - START).days + 1


def days(first: int, last: int) -> list[date]:
    return [START + timedelta(days=stamp - 1) for stamp in range(first, last + 1)]


def vintage(axis: Any, published: Published, tables: Any, region: str, day: date) -> None:
    """One region's days as known on one day."""
    round_, first = round_of(day), round_of(date(2020, 10, 12))
    shown = days(first, round_)
    axis.bar(shown, tables[round_][region][first - 1 :], width=1, color=PALE, label="the table")
    found = triangle(published, "by_region", region, rounds=[round_])
    value, half = found.value[first - 1 :, 0], found.half[first - 1 :, 0]
    axis.fill_between(shown, value - half, value + half, color=PRIVATE, alpha=0.25, lw=0)
    axis.plot(shown, value, color=PRIVATE, lw=1, label="released with noise, 95 % band")
    axis.axhline(0, color="black", lw=0.5)
    axis.xaxis.set_major_locator(mdates.MonthLocator())
    axis.xaxis.set_major_formatter(mdates.DateFormatter("%b"))


def ruling(axis: Any, published: Published, tables: Any) -> None:
    """First and latest release of some days of one region."""
    first, last = round_of(date(2020, 12, 5)), round_of(date(2020, 12, 24))
    stamps = range(first, last + 1)
    shown = np.arange(first, last + 1)
    own = triangle(published, "by_region", RULED, rounds=range(first, published.last_round + 1))
    early = [tables[stamp][RULED][stamp - 1] for stamp in stamps]
    late = [tables[published.last_round][RULED][stamp - 1] for stamp in stamps]
    part = slice(first - 1, last)
    axis.bar(shown - 0.2, early, width=0.4, color=PALE, label="table, first published")
    axis.bar(shown + 0.2, late, width=0.4, color=TABLE, label="table, as corrected")
    for values, half, move, marker, what in (
        (own.first[part], own.half[shown - 1, shown - first], -0.2, "o", "released, first"),
        (own.latest[part], own.half[shown - 1, -1], 0.2, "s", "released, latest"),
    ):
        axis.errorbar(
            *(shown + move, values, half),
            fmt=marker,
            ms=3.5,
            color=PRIVATE,
            mfc="white" if marker == "o" else PRIVATE,
            lw=1,
            label=what,
        )
    labels = [START + timedelta(days=int(stamp) - 1) for stamp in shown]
    axis.set_xticks(shown[::5], [f"{day.day} Dec" for day in labels[::5]])
    axis.set_title(
        f"{RULED}: on 18 December the region took antigen tests\noff the days before, as ruled",
        fontsize=9,
        loc="left",
    )
    axis.legend(frameon=False, fontsize=7, loc="upper right")
    axis.set_ylim(0, max(early) * 1.55)


def errors(axis: Any, published: Published) -> None:
    """Typical error beside publishing again every day."""
    found = measured(published)
    names = ["a day,\nby region", "a day,\nItaly", "up to a day,\nItaly"]
    own = [found[name].rms for name in ("by_region", "cases", "so_far")]
    other = [
        again(published, "by_region")[0],
        again(published, "cases")[0],
        again(published, "so_far")[1],
    ]
    places = np.arange(3)
    for move, values, colour, what in (
        (-0.2, own, PRIVATE, "retrodp"),
        (0.2, other, "#9b9b9b", "publishing again every day, same budget"),
    ):
        bars = axis.bar(places + move, values, width=0.4, color=colour, label=what)
        axis.bar_label(bars, [f"{value:,.0f}" for value in values], fontsize=8)
    axis.set_yscale("log")
    axis.set_ylim(10, 9000)
    axis.set_xticks(places, names)
    axis.set_title("Typical error of a number, in cases", fontsize=9, loc="left")
    axis.legend(frameon=False, fontsize=7, loc="upper left")


def draw(directory: Path, output: Path) -> None:
    with Published.open(directory) as published:
        regions = sorted(
            {str(key) for key in published.answer(1, "by_region").keys or ()},  # type: ignore[union-attr]
            key=str.encode,
        )
        tables = {
            round_: dict(zip(regions, rows, strict=True))
            for round_, rows in enumerate(known(published.last_round, regions), start=1)
        }
        figure = plt.figure(figsize=(10, 7.2), layout="constrained")
        grid = figure.add_gridspec(2, 6)
        figure.suptitle(
            "COVID-19 cases by day, as known on different days: the past changes when it is corrected",
            fontsize=11,
        )
        first = None
        for place, (day, said) in enumerate(zip(VINTAGES, SAID, strict=True)):
            axis = figure.add_subplot(grid[0, 2 * place : 2 * place + 2], sharey=first)
            first = first or axis
            vintage(axis, published, tables, LOST, day)
            axis.set_title(f"{said}", fontsize=9, loc="left")
        assert first is not None
        first.set_ylabel(f"{LOST}: new cases a day")
        first.set_ylim(-150, 1050)
        first.legend(frameon=False, fontsize=7, loc="upper right")
        ruling(figure.add_subplot(grid[1, :4]), published, tables)
        errors(figure.add_subplot(grid[1, 4:]), published)
        figure.savefig(output, dpi=100, metadata={"Software": ""})


def main(arguments: list[str]) -> None:
    if len(arguments) != 2:
        sys.exit(__doc__)
    draw(Path(arguments[0]), Path(arguments[1]))


if __name__ == "__main__":
    main(sys.argv[1:])
