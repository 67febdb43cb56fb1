"""Draw what was released about the register: states over the years, and one day of corrections.

    python -m pip install matplotlib
    python examples/gov_register/picture.py REGISTER CORRECTION examples/gov_register/register.png

Reads published releases only. Needs matplotlib, which nothing else here does.
"""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl  # type: ignore[import-not-found, unused-ignore]

mpl.use("Agg")

import matplotlib.dates as mdates  # type: ignore[import-not-found, unused-ignore]
import matplotlib.pyplot as plt  # type: ignore[import-not-found, unused-ignore]

from retrodp.views.published import Published
from retrodp.views.series import Series, key_series, scalar_series

STATES = {"NY": "#0b6e99", "DC": "#d9730d", "CA": "#448361", "TX": "#9065b0", "WI": "#787774"}
UNNAMED, NAMED = "#c4314b", "#0b6e99"


def ends(published: Published, rounds: Any) -> list[dt.datetime]:
    """When each round ended, UTC."""
    boundaries = published.resolved.boundaries
    return [dt.datetime.fromtimestamp(boundaries[round_] / 1e6, tz=dt.UTC) for round_ in rounds]


def band(axis: Any, when: list[dt.datetime], series: Series, color: str, label: str) -> None:
    axis.fill_between(when, series.low_all, series.high_all, color=color, alpha=0.2, lw=0)
    axis.plot(when, series.value, color=color, lw=1.5, label=label)


def states(axis: Any, register: Path) -> None:
    """Domains by state, one table of the cube."""
    with Published.open(register) as published:
        keys = [f'[["state","{state}"]]' for state in STATES]
        found = key_series(published, "tables", keys)
        when = ends(published, found[keys[0]].rounds)
    for state, key in zip(STATES, keys, strict=True):
        band(axis, when, found[key], STATES[state], state)
    axis.legend(loc="upper left", frameon=False, ncols=5)
    axis.set_ylim(0, None)
    axis.set_title("Domains by state, every month, with the band for all months at once")


def unnamed(axis: Any, correction: Path) -> None:
    """Domains without the name of an organisation, around the mass correction."""
    with Published.open(correction) as published:
        series = scalar_series(published, "unnamed")
        when = ends(published, series.rounds)
    axis.step(when, series.value, color=UNNAMED, where="pre", lw=1.5)
    half = (series.high_all - series.value).max()
    axis.set_title(f"Domains without an organisation, four times a day (± {half:.0f})")


def organisations(axis: Any, correction: Path) -> None:
    """Which labels of the open domain were published in which round."""
    with Published.open(correction) as published:
        answers = list(published.each(releases=["by_organization"]))
        when = ends(published, [answer.round for answer in answers])
    largest = {}
    for answer in answers:
        for figure in answer.figures():
            largest[figure.key] = max(largest.get(figure.key, 0), figure.value or 0)
    labels = sorted(largest, key=lambda label: (label != "[null]", -largest[label]))
    for place, label in enumerate(labels):
        shown = [at for at, one in zip(when, answers, strict=True) if label in (one.keys or ())]
        color = UNNAMED if label == "[null]" else NAMED
        axis.scatter(shown, [place] * len(shown), s=14, color=color)
    titles = ["no name" if label == "[null]" else label[:40] for label in labels]
    axis.set_yticks(range(len(labels)), titles, fontsize=8)
    axis.invert_yaxis()
    highest = max(answer.threshold or 0 for answer in answers)
    axis.set_title(f"Organisations that were published: a noisy count of some {highest} or more")


def draw(register: Path, correction: Path, output: Path) -> None:
    figure, (top, middle, bottom) = plt.subplots(
        3, 1, figsize=(9, 9.5), layout="constrained", height_ratios=[3, 1.6, 2.8]
    )
    states(top, register)
    unnamed(middle, correction)
    organisations(bottom, correction)
    bottom.sharex(middle)
    bottom.xaxis.set_major_formatter(mdates.DateFormatter("%d %b"))
    figure.savefig(output, dpi=100, metadata={"Software": ""})


def main(arguments: list[str]) -> None:
    if len(arguments) != 3:
        sys.exit(__doc__)
    draw(*map(Path, arguments))


if __name__ == "__main__":
    main(sys.argv[1:])
