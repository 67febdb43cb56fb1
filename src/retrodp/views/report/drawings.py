"""Series and answers as drawings: data in columns, ranges of axes, and a sentence for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrodp.mechanisms.answer import Figure
from retrodp.views.report import snapshots, specs
from retrodp.views.report.labels import Days, Steps, in_charts, number, signed
from retrodp.views.report.parts import Drawing
from retrodp.views.series import Series

HEIGHT, SMALL = 240, 96
BEYOND = "Bands that leave the chart go on beyond it; the table has their ends."
NOT_FROM_ZERO = "The axis does not begin at 0."
FEW = 40
"""So many rounds have a point each."""

_ROOM = 1.5
"""How far a band may stretch the range of the values, in ranges."""

Floats = NDArray[np.float64]


def line(
    series: Series,
    days: Days,
    digits: int,
    *,
    small: bool = False,
    of: str = "",
    height: int = HEIGHT,
) -> tuple[Drawing, tuple[str, ...]]:
    """One number over the rounds, and what must be said of the chart."""
    bracket = bool(np.isnan(series.value).all())
    absent = bool(np.isnan(series.value).any()) and not bracket
    threshold = series.absent_below if absent else None
    domain, beyond = value_range([series])
    if threshold is not None:  # it is seen where it lies
        domain = (min(domain[0], 0.0), domain[1])
    notes = [BEYOND] * beyond
    if domain[0] > 0 or domain[1] < 0:
        notes.append(NOT_FROM_ZERO)
    if not bracket and not small and _thin(series, domain):
        notes.append("The band of a round alone is thinner than the line.")
    data: dict[str, Mapping[str, Sequence[Any]]] = {"rows": _columns(series, days, digits)}
    if threshold is not None:
        data["threshold"] = {"v": [number(threshold, digits)]}
    marks: list[specs.Mark] = [] if bracket else ["value"]
    marks += [] if threshold is None else ["threshold"]
    marks += ["whole"] if not (_finite([series.value, series.low, series.high]) % 1).any() else []
    drawing = Drawing(
        spec=specs.series(
            domain,
            _time([series], days, small=small),
            height=SMALL if small else height,
            small=small,
            marks=marks,
        ),
        data=data,
        digits=digits,
        alt=_said(series, days, digits, of or series.release),
    )
    return drawing, tuple(notes)


def lines(
    named: Mapping[str, Series], days: Days, digits: int, *, of: str
) -> tuple[Drawing, tuple[str, ...]]:
    """Several numbers in one chart."""
    domain, beyond = value_range(list(named.values()))
    rows: dict[str, list[Any]] = {}
    ends: dict[str, list[Any]] = {"t": [], "v": [], "k": [], "n": []}
    for place, (name, series) in enumerate(named.items()):
        columns = _columns(series, days, digits)
        columns["n"] = [place] * len(series.rounds)
        columns["k"] = [in_charts(name)] * len(series.rounds)
        for what, column in columns.items():
            rows.setdefault(what, []).extend(column)
        known = np.flatnonzero(~np.isnan(series.value))
        if len(known):
            last = known[-1]
            ends["t"].append(days.millis(int(series.rounds[last])))
            ends["v"].append(number(float(series.value[last]), digits))
            ends["k"].append(in_charts(name))
            ends["n"].append(place)
    ends["v"] = _apart(ends["v"], 16 / HEIGHT * (domain[1] - domain[0]))
    notes = [BEYOND] * beyond
    if domain[0] > 0 or domain[1] < 0:
        notes.append(NOT_FROM_ZERO)
    said = "; ".join(_said(series, days, digits, name) for name, series in list(named.items())[:7])
    drawing = Drawing(
        spec=specs.lines(domain, _time(list(named.values()), days), list(named), height=HEIGHT),
        data={"rows": rows, "ends": ends},
        digits=digits,
        alt=f"{of}. {said}",
    )
    return drawing, tuple(notes)


def _apart(heights: Sequence[float], least: float) -> list[float]:
    """Heights of names, moved as little as it takes for none to lie over another."""
    order = sorted(range(len(heights)), key=lambda place: (heights[place], place))
    found = list(heights)
    for _ in range(len(found)):
        for low, high in pairwise(order):
            if (short := least - (found[high] - found[low])) > 0:
                found[low] -= short / 2
                found[high] += short / 2
    return found


def _time(found: Sequence[Series], days: Days, *, small: bool = False) -> specs.Spec:
    rounds = sorted({round_ for one in found for round_ in one.rounds.tolist()})
    starts = [days.millis(round_) for round_ in rounds]
    return specs.time_axis(starts, small=small)


def value_range(found: Sequence[Series]) -> tuple[tuple[float, float], bool]:
    """Ends of an axis that shows all values and most of the bands, and whether a band leaves it."""
    ends = [(s.low, s.high, s.low_all, s.high_all) for s in found]
    low, high, low_all, high_all = (_finite(column) for column in zip(*ends, strict=True))
    values = _finite([s.value for s in found])
    if not len(low):
        return (0.0, 1.0), False
    core = values if len(values) else np.concatenate([low, high])
    least, most = float(core.min()), float(core.max())
    usual = float(np.median(high - low))
    room = _ROOM * max(most - least, usual)
    bottom = max(float(low_all.min()), least - room)
    top = min(float(high_all.max()), most + room)
    bottom, top = min(bottom, least), max(top, most)
    if 0 < bottom < 0.7 * top or bottom < 0 <= float(low_all.min()) or 0 < bottom == top:
        bottom, top = 0.0, top * 1.15 if bottom == top else top
    if bottom == top:
        bottom, top = bottom - 1, top + 1
    if top == most:  # a line along the edge is hard to see
        top += 0.06 * (top - bottom)
    beyond = bool(low_all.min() < bottom or high_all.max() > top)
    return (bottom, top), beyond


def _finite(columns: Sequence[Floats]) -> Floats:
    joined: Floats = np.concatenate(list(columns))
    found: Floats = joined[~np.isnan(joined)]
    return found


def _thin(series: Series, domain: tuple[float, float]) -> bool:
    width = float(np.nanmedian(series.high - series.low))
    return 0 < width < 1.5 / HEIGHT * (domain[1] - domain[0])


def _columns(series: Series, days: Days, digits: int) -> dict[str, list[Any]]:
    rounds = series.rounds.tolist()
    columns: dict[str, list[Any]] = {
        "t": [days.millis(round_) for round_ in rounds],
        "r": rounds,
    }
    for name, column in (
        ("v", series.value),
        ("l", series.low),
        ("h", series.high),
        ("a", series.low_all),
        ("b", series.high_all),
    ):
        columns[name] = [number(one, digits) for one in column.tolist()]
    if np.isnan(series.value).all():
        # Something must stand under the pointer.
        columns["v"] = list(columns["h"])
        columns["q"] = [1] * len(rounds)
    columns["p"] = _alone(series)
    return columns


def _alone(series: Series) -> list[int]:
    """2 at values between two gaps, which no line shows; 1 at all others of a short series; else 0."""
    here = ~np.isnan(series.low)
    padded = np.concatenate([[False], here, [False]])
    alone = here & ~padded[:-2] & ~padded[2:]
    few = here & (len(here) <= FEW)
    return [2 if lone else int(one) for lone, one in zip(alone.tolist(), few.tolist(), strict=True)]


def _said(series: Series, days: Days, digits: int, of: str) -> str:
    """First, least, greatest and last value of a series."""
    rounds = series.rounds.tolist()
    if not rounds:
        return f"{of}: no rounds"

    def text(value: float) -> str:
        return signed(f"{value:,.{digits}f}")

    if np.isnan(series.value).all():
        last = f"{text(float(series.low[-1]))} to {text(float(series.high[-1]))}"
        return f"{of}: brackets over {len(rounds):,} rounds, the last one {last}"
    known = np.flatnonzero(~np.isnan(series.value))
    first, last_, low, high = (
        int(known[0]),
        int(known[-1]),
        int(np.nanargmin(series.value)),
        int(np.nanargmax(series.value)),
    )
    places = (("first", first), ("lowest", low), ("highest", high), ("last", last_))
    told = ", ".join(
        f"{name} {text(float(series.value[place]))} on {days.short(rounds[place])}"
        for name, place in places
    )
    return f"{of}: {told}"


def bins(named: Sequence[tuple[str, Figure]], steps: Steps, step: float, *, of: str) -> Drawing:
    """Bins of one round, with both intervals."""
    digits = steps.digits

    def scaled(ends: Sequence[int | None]) -> list[float | int | None]:
        return [None if end is None else number(end * step, digits) for end in ends]

    figures = [figure for _, figure in named]
    brackets = all(figure.value is None for figure in figures)
    columns: dict[str, list[Any]] = {
        "i": list(range(len(named))),
        "k": [in_charts(label) for label, _ in named],
        "v": scaled([figure.value for figure in figures]),
        "l": scaled([figure.bounds.low for figure in figures]),
        "h": scaled([figure.bounds.high for figure in figures]),
        "a": scaled([figure.bounds.low_all for figure in figures]),
        "b": scaled([figure.bounds.high_all for figure in figures]),
        "s": [
            steps.value(figure) if figure.value is not None else steps.error(figure)
            for figure in figures
        ],
    }
    ends = [0.0, *(end for name in "vlh" for end in columns[name] if end is not None)]
    domain = (min(ends), max(ends) if max(ends) > min(ends) else min(ends) + 1)
    listed = "; ".join(
        f"{label}: {steps.value(figure)}, {steps.error(figure)}" for label, figure in named[:12]
    )
    return Drawing(
        spec=snapshots.bins(domain, len(named), brackets=brackets),
        data={"rows": columns},
        digits=digits,
        alt=f"{of}. {listed}",
    )


def curve(
    edges: Sequence[float],
    figures: Sequence[Figure],
    steps: Steps,
    step: float,
    *,
    of: str,
    title: str,
) -> Drawing:
    """A distribution function in one round."""
    digits = steps.digits
    columns: dict[str, list[Any]] = {"x": list(edges)}
    for name, pick in (
        ("v", "value"),
        ("l", "low"),
        ("h", "high"),
        ("a", "low_all"),
        ("b", "high_all"),
    ):
        picked = [
            figure.value if pick == "value" else getattr(figure.bounds, pick) for figure in figures
        ]
        columns[name] = [None if one is None else number(one * step, digits) for one in picked]
    ends = [0.0, *(end for name in "vlh" for end in columns[name] if end is not None)]
    listed = "; ".join(
        f"up to {edge:g}: {steps.value(figure)}, {steps.error(figure)}"
        for edge, figure in list(zip(edges, figures, strict=True))[:12]
    )
    return Drawing(
        spec=snapshots.curve((min(ends), max(ends) or 1.0), title, step="linear"),
        data={"rows": columns},
        digits=digits,
        alt=f"{of}. {listed}",
    )
