"""Revised releases: the first and the latest release of every stamp, and the triangle of the newest ones.

Promise: made of published values alone. A change that lies within the noise of both values is pale and is
called that: it may be nothing but noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrodp.mechanisms.answer import Answer
from retrodp.views.published import Published
from retrodp.views.report import drawings, sentences, snapshots
from retrodp.views.report.labels import Days, Steps, cut, number, signed
from retrodp.views.report.parts import Block, Chart, Drawing, Shown, Table
from retrodp.views.report.thin import thinned
from retrodp.views.series import Series
from retrodp.views.vintages import Triangle, triangle

WINDOW = 28
"""Newest stamps and rounds of a triangle."""

KEYS, READ, LISTED = 3, 3_000_000, 100


def shown(published: Published, last: Answer, days: Days) -> Shown:
    """Blocks, newest value and error of a revised release."""
    keys: list[str | None] = [None] if last.keys is None else list(_largest(last))
    blocks: list[Block] = []
    first = _first_read(last)
    rounds = [round_ for round_ in published.rounds if first <= round_ <= last.round]
    for key in keys:
        found = triangle(published, last.release, key, rounds=rounds)
        blocks += _of_key(found, last, days, first)
    bins = len(set(last.keys or ()))
    if bins > len(keys):
        blocks.append(_newest(last, days))
    steps, newest = Steps(last), [f for f in last.figures() if f.stamp == last.round]
    if last.keys is None and newest:
        return Shown(tuple(blocks), steps.value(newest[0]), steps.error(newest[0]))
    return Shown(tuple(blocks), f"{bins:,} bins, {len(last.spreads or ()):,} stamps")


def _largest(last: Answer) -> list[str]:
    """Keys with the most in the newest stamps."""
    totals: dict[str, int] = {}
    for key, value in zip(last.keys or (), last.values, strict=True):
        totals[key] = totals.get(key, 0) + (value or 0)
    return sorted(totals, key=lambda key: (-totals[key], key))[:KEYS]


def _first_read(last: Answer) -> int:
    """Reading every value of a long series takes too long; then the newest rounds are read."""
    many = max(1, len(last.values))
    return max(1, last.round - max(WINDOW, min(400, READ // many)) + 1)


def _of_key(found: Triangle, last: Answer, days: Days, first: int) -> list[Block]:
    digits = Steps(last).digits
    name = "" if found.key is None else f", {cut(found.key, 40)}"
    places = np.arange(len(found.stamps))[found.stamps >= first]
    stamps = found.stamps[places]
    vintages = {}
    for title, pick in (("first release", 0), ("latest release", -1)):
        value, half = _ends(found, places, pick)
        vintages[title] = _series(last.release, stamps, value, half)
    thin = {title: thinned(one, drawings.FEW * 6) for title, one in vintages.items()}
    drawing, notes = drawings.lines(
        {title: one.series for title, one in thin.items()},
        days,
        digits,
        of=f"{last.release}{name}",
    )
    left = f"Only stamps from round {first:,} on are read here." if first > 1 else ""
    chart = Chart(
        title=f"First and latest release of every stamp{name}",
        drawing=drawing,
        notes=tuple(
            note
            for note in (left, *dict.fromkeys(one.note for one in thin.values()), *notes)
            if note
        ),
        legend=(("line", "a release each, named at its end"), ("band", "its interval")),
    )
    blocks: list[Block] = [chart]
    if len(found.rounds) > 1:
        blocks.append(_heat(found, last, days, name, digits))
    blocks.append(_table(found, places, last, days, name))
    return blocks


def _ends(found: Triangle, places: Any, pick: int) -> tuple[Any, Any]:
    value = np.full(len(places), np.nan)
    half = np.full(len(places), np.nan)
    for row, place in enumerate(places):
        known = np.flatnonzero(~np.isnan(found.value[place]))
        if len(known):
            value[row], half[row] = found.value[place, known[pick]], found.half[place, known[pick]]
    return value, half


def _series(release: str, stamps: Any, value: Any, half: Any) -> Series:
    return Series(
        release=release,
        key=None,
        rounds=stamps,
        value=value,
        low=value - half,
        high=value + half,
        low_all=value - half,
        high_all=value + half,
        absent_below=None,
    )


def _heat(found: Triangle, last: Answer, days: Days, name: str, digits: int) -> Chart:
    columns = np.arange(len(found.rounds))[-WINDOW:]
    oldest = int(found.rounds[columns[0]])
    rows: dict[str, list[Any]] = {what: [] for what in "srdevtq"}
    for place, stamp in enumerate(found.stamps.tolist()):
        known = np.flatnonzero(~np.isnan(found.value[place]))
        if stamp < oldest or not len(known):
            continue
        first, half = found.value[place, known[0]], found.half[place, known[0]]
        for column in columns.tolist():
            value = found.value[place, column]
            if np.isnan(value):
                continue
            change = float(value - first)
            rows["s"].append(stamp)
            rows["r"].append(int(found.rounds[column]))
            rows["d"].append(number(change, digits))
            rows["e"].append(int(abs(change) > half + found.half[place, column]))
            rows["v"].append(number(float(value), digits))
            rows["t"].append(days.short(stamp))
            rows["q"].append(days.short(int(found.rounds[column])))
    largest = max(map(abs, rows["d"]), default=0)
    rows["c"] = [
        _class(d, largest) if beyond else 0 for d, beyond in zip(rows["d"], rows["e"], strict=True)
    ]
    many = sum(rows["e"])
    drawing = Drawing(
        spec=snapshots.triangle(len(set(rows["s"]))),
        data={"rows": rows},
        digits=digits,
        alt=(
            f"Revision triangle of {last.release}{name}, the newest {len(columns)} rounds: {many:,} of "
            f"{len(rows['d']):,} values changed by more than the noise since their first release, the "
            f"largest change is {largest:,.{digits}f}."
        ),
    )
    notes = []
    if len(found.rounds) > len(columns):
        notes.append(f"Only the newest {len(columns):,} of {len(found.rounds):,} rounds are drawn.")
    return Chart(
        title=f"How the newest stamps were revised{name}",
        drawing=drawing,
        notes=tuple(notes),
        legend=_classes(largest, digits),
    )


def _class(change: float, largest: float) -> int:
    """-3 to 3: the sign, and which third of the largest change it reaches."""
    third = min(3, 1 + int(3 * abs(change) / largest)) if largest else 1
    return third if change > 0 else -third


def _classes(largest: float, digits: int) -> tuple[tuple[str, str], ...]:
    def text(value: float) -> str:
        return f"{value:,.{digits}f}"

    ends = [text(largest * third / 3) for third in (1, 2, 3)]
    rising = tuple(
        (
            f"d{4 + third}",
            f"up by {'at most ' if third < 2 else f'{ends[third - 2]} to '}{ends[third - 1]}",
        )
        for third in (1, 2, 3)
    )
    falling = tuple(
        (f"d{4 - n}", text_.replace("up by", "down by", 1))
        for n, (_, text_) in enumerate(rising, 1)
    )
    return (("d4", "within the noise"), *rising, *falling)


def _table(found: Triangle, places: Any, last: Answer, days: Days, name: str) -> Table:
    digits = Steps(last).digits

    def text(value: float) -> str:
        return "–" if np.isnan(value) else signed(f"{value:,.{digits}f}")

    first, half_first = _ends(found, places, 0)
    latest, half_latest = _ends(found, places, -1)
    rows = []
    for row in range(len(places) - 1, max(-1, len(places) - 1 - LISTED), -1):
        change = latest[row] - first[row]
        noise = half_first[row] + half_latest[row]
        said = (
            "–"
            if np.isnan(change)
            else ("within noise" if abs(change) <= noise else "beyond noise")
        )
        rows.append(
            (
                days.short(int(found.stamps[places[row]])),
                text(first[row]),
                text(latest[row]),
                text(change),
                f"±\u00a0{text(noise)}",
                said,
            )
        )
    left = len(places) - len(rows)
    return Table(
        title=f"First and latest release{name}, newest first",
        columns=("about", "first", "latest", "change", "noise of both", ""),
        rows=tuple(rows),
        notes=(f"{left:,} older stamps: `retrodp vintages`.",) if left else (),
    )


def _newest(last: Answer, days: Days) -> Table:
    steps, level = Steps(last), sentences.percent_of(last)
    newest: Sequence[Any] = [figure for figure in last.figures() if figure.stamp == last.round]
    newest = sorted(newest, key=lambda figure: (-(figure.value or 0), figure.key))[:50]
    return Table(
        title=f"All bins about {days.text(last.round)}"
        if len(newest) < 50
        else f"The largest 50 bins about {days.text(last.round)}",
        columns=("label", "value", f"interval, {level}"),
        rows=tuple((cut(f.key), steps.value(f), steps.error(f)) for f in newest),
    )
