"""Draw what was published and what retrodp released, for one region and one of its provinces.

    python -m pip install matplotlib
    python examples/italy/picture.py STORE examples/italy/lazio.png

Needs matplotlib, which nothing else here does. The picture beside this file was made by it.
"""

from __future__ import annotations

import sys
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import matplotlib as mpl  # type: ignore[import-not-found, unused-ignore]

mpl.use("Agg")

import matplotlib.pyplot as plt  # type: ignore[import-not-found, unused-ignore]
from compare import Totals, table_by_round, weeks_by_round
from make_updates import START, changes

from retrodp.views.published import Published
from retrodp.views.series import Series, key_series

REGION, PROVINCE = "Lazio", "Rieti"
MISTAKE = date(2022, 9, 3)
MOST = 3_000  # the mistake would leave no room for the weeks
PRIVATE, TABLE = "#0b6e99", "#d9730d"


def band(axis: Any, series: Series, days: list[date]) -> None:
    axis.fill_between(days, series.low_all, series.high_all, color=PRIVATE, alpha=0.25, lw=0)
    axis.plot(days, series.value, color=PRIVATE, lw=1, label="retrodp, with 95 % band")


def draw(store: Path, output: Path) -> None:
    source = changes(region=REGION)
    with Published.open(store) as published:
        rounds = published.last_round
        region = key_series(published, "by_region", [REGION])[REGION]
        week = key_series(published, "week_by_province", [PROVINCE])[PROVINCE]
    days = [START + timedelta(days=number) for number in range(rounds)]

    def millions(cases: Totals) -> float:
        return sum(cases.values()) / 1e6

    figure, (top, bottom) = plt.subplots(2, 1, figsize=(9, 6), sharex=True, layout="constrained")
    top.plot(days, [millions(said) for said in table_by_round(source, rounds)], color=TABLE, lw=4)
    top.plot(days, region.value / 1e6, color=PRIVATE, lw=1)
    noise = (region.high_all - region.value).max()
    top.set_title(
        f"{REGION}: cases so far, millions; the band (± {noise:.0f}) is thinner than the line"
    )
    top.annotate(
        "a day on which\nthe table lost them",
        xy=(MISTAKE, 0.1),
        xytext=(date(2022, 1, 25), 0.25),
        arrowprops={"arrowstyle": "->"},
    )
    exact = [said[PROVINCE] for said in weeks_by_round(source, rounds)]
    bottom.plot(days, exact, color=TABLE, lw=2, label="published table")
    band(bottom, week, days)
    bottom.set_ylim(-150, MOST)
    bottom.set_title(f"{PROVINCE}: cases of the last seven days, as known on each day")
    bottom.legend(loc="upper left", frameon=False)
    figure.savefig(output, dpi=100, metadata={"Software": ""})


def main(arguments: list[str]) -> None:
    if len(arguments) != 2:
        sys.exit(__doc__)
    draw(Path(arguments[0]), Path(arguments[1]))


if __name__ == "__main__":
    main(sys.argv[1:])
