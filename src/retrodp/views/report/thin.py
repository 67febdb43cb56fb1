"""Fewer rounds for a chart, none of them invented.

Promise: what is left are published rounds with their own values and intervals: of every run of rounds the
lowest, the highest and the last. So no peak and no trough is lost, and nothing is an average.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrodp.views.series import Series

_COLUMNS = ("rounds", "value", "low", "high", "low_all", "high_all")


@dataclass(frozen=True, slots=True)
class Thinned:
    """A series with fewer rounds.

    Attributes:
        series: What is left of it.
        of: How many rounds there were.
        run: Length of the runs that three rounds at most are left of; 1 if all rounds are.
    """

    series: Series
    of: int
    run: int

    @property
    def note(self) -> str:
        """What was left out, as a sentence; "" if nothing was."""
        if self.run == 1:
            return ""
        return (
            f"Of {self.of:,} rounds {len(self.series.rounds):,} are drawn: of every {self.run:,} the "
            "lowest, the highest and the last."
        )


def thinned(series: Series, most: int) -> Thinned:
    """At most so many rounds, about; the first and the last among them."""
    number = len(series.rounds)
    if number <= most:
        return Thinned(series, number, 1)
    run = -(-3 * number // most)
    kept = {0, number - 1}
    middle = (series.low + series.high) / 2
    height = np.where(np.isnan(series.value), middle, series.value)
    for begin in range(0, number, run):
        part = height[begin : begin + run]
        kept.add(begin + len(part) - 1)
        if not np.isnan(part).all():
            kept |= {begin + int(np.nanargmin(part)), begin + int(np.nanargmax(part))}
    return Thinned(_picked(series, np.array(sorted(kept))), number, run)


def _picked(series: Series, places: NDArray[np.int64]) -> Series:
    columns = {name: getattr(series, name)[places] for name in _COLUMNS}
    return Series(
        release=series.release, key=series.key, absent_below=series.absent_below, **columns
    )


def last_rounds(series: Series, number: int) -> Series:
    """The newest rounds of a series."""
    return _picked(series, np.arange(len(series.rounds))[-number:])
