"""Centres of clusters on a plain plane, each with the cross of its intervals.

Promise: any release whose labels name centres is shown so, whatever its kind is called.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from retrodp.mechanisms.answer import Answer, Figure
from retrodp.views.figures import counted
from retrodp.views.published import Published
from retrodp.views.report import drawings, sentences, snapshots
from retrodp.views.report.gather import history
from retrodp.views.report.labels import Days, Steps, cut, number, spelled
from retrodp.views.report.parts import Block, Chart, Drawing, Shown, Table, notes
from retrodp.views.report.thin import thinned

EARLIER = 30
"""Rounds of which earlier centres are drawn."""

_TITLES = {
    "centres": "How many centres",
    "cost": "Estimated cost",
    "changed": "How many centres changed",
    "recourse": "How many centres changed, so far",
}
TRACKED = tuple(_TITLES)
"""Numbers of a clustering that have a history."""

_POINTS = '["coreset",'
_MARGIN = 0.08
_POLAR = 80
_SCREEN = 20
_TRACKED_POINTS, _TRACKED_HEIGHT = 400, 140
_SAMPLED = re.compile(r"(\d+) (.+)", re.DOTALL)
_EAST = {"lon", "long", "longitude", "east", "easting", "x"}

Place = tuple[int, str]


def place_of(key: str) -> Place | None:
    """Number and column of a centre's coordinate, from its label."""
    if key.startswith('["centre",'):
        match json.loads(key):
            case [_, int(number_), str(column)]:
                return number_, column
    return None


def _sampled_place(key: str) -> Place | None:
    found = _SAMPLED.fullmatch(key)
    return None if found is None else (int(found[1]), found[2])


def has_centres(last: Answer, table: Mapping[str, Any]) -> bool:
    """Whether the labels of a release name centres."""
    return table.get("mechanism") == "kmeans" or any(
        key.startswith(('["centre",', '["centres"')) for key in last.keys or ()
    )


def shown(published: Published, last: Answer, table: Mapping[str, Any], days: Days) -> Shown:
    """Blocks, value and error of a release that has centres."""
    of = table["of"]
    columns: list[str] = [of] if isinstance(of, str) else list(of)
    reads = _sampled_place if table.get("mechanism") == "kmeans" else place_of
    figures = {figure.key: figure for figure in last.figures()}
    found: dict[int, dict[str, Figure]] = {}
    for key, figure in figures.items():
        if (place := reads(key)) is not None:
            found.setdefault(place[0], {})[place[1]] = figure
    sizes = {
        n: figures[key]
        for n in found
        if (key := json.dumps(["size", n], separators=(",", ":"))) in figures
    }
    blocks: list[Block] = []
    names = _axes(columns)
    whole = {n: own for n, own in found.items() if set(columns) <= own.keys()}
    if whole and len(columns) > 1:
        bounds = bounds_of(published, last)
        blocks.append(_chart(published, last, names, (whole, sizes, bounds), days, reads))
    blocks.append(_table(last, (found, sizes, bounds_of(published, last)), columns, days))
    blocks += _tracked(published, last, days)
    others = [
        figure for key, figure in figures.items() if reads(key) is None and not _is_known(key)
    ]
    if others:
        blocks.append(_others(last, others, days))
    return Shown(tuple(blocks), counted(len(found), "centre"))


def _axes(columns: Sequence[str]) -> tuple[str, ...]:
    """East across and north up where the names tell, else in the plan's order."""
    return tuple(sorted(columns, key=lambda name: name.lower() not in _EAST))


def bounds_of(published: Published, last: Answer) -> dict[str, tuple[float, float]]:
    """Public bounds of the columns."""
    columns = published.plan_of(last.round).plan["columns"]
    return {
        str(own["name"]): (float(Fraction(own["min"])), float(Fraction(own["max"])))
        for own in columns
        if own.get("type") in {"number", "integer"}
    }


def is_whole(figure: Figure, step: float, bounds: tuple[float, float] | None) -> bool:
    """Whether an interval is the whole range of the column, and so says nothing."""
    if bounds is None:
        return False
    low, high = figure.bounds.low * step, figure.bounds.high * step
    return low <= bounds[0] + step / 2 and high >= bounds[1] - step / 2


def _chart(
    published: Published,
    last: Answer,
    names: Sequence[str],
    found: tuple[
        Mapping[int, Mapping[str, Figure]],
        Mapping[int, Figure],
        Mapping[str, tuple[float, float]],
    ],
    days: Days,
    reads: Any,
) -> Chart:
    whole, sizes, bounds = found
    step, steps = float(last.step), Steps(last)
    digits = steps.digits
    rows: dict[str, list[Any]] = {
        name: [] for name in ("x", "y", "xl", "xh", "yl", "yh", "n", "k", "s")
    }
    silent = False
    for n, own in sorted(whole.items()):
        for axis, name in zip("xy", names, strict=False):
            figure = own[name]
            value = 0 if figure.value is None else figure.value
            ends = (figure.bounds.low, figure.bounds.high)
            if is_whole(figure, step, bounds.get(name)):
                ends, silent = (value, value), True
            rows[axis].append(number(value * step, digits))
            rows[f"{axis}l"].append(number(ends[0] * step, digits))
            rows[f"{axis}h"].append(number(ends[1] * step, digits))
        size = sizes.get(n)
        rows["n"].append(
            1 if size is None or size.value is None else max(float(size.value * step), 0)
        )
        rows["k"].append(str(n))
        rows["s"].append("" if size is None else f"{Steps(last, digits=0).value(size)} records")
    before = _before(published, last, names, reads, digits)
    x, y = (
        _extent([*rows[axis], *rows[f"{axis}l"], *rows[f"{axis}h"], *before[axis]]) for axis in "xy"
    )
    said = [
        "A plain plane, no projection of the earth.",
        f"Pale dots: centres of the {min(EARLIER, last.round - 1):,} rounds before."
        if before["x"]
        else "",
        "An interval that is the column's whole range says nothing and is not drawn."
        if silent
        else "",
        f"Drawn by {names[0]} and {names[1]}; the table has all {len(names):,} columns."
        if len(names) > 2
        else "",
        "Numbers name the centres of this round only; they do not follow a cluster from round to round.",
    ]
    listed = "; ".join(
        f"centre {k} at {names[0]} {a:,}, {names[1]} {b:,}"
        for k, a, b in list(zip(rows["k"], rows["x"], rows["y"], strict=True))[:12]
    )
    drawing = Drawing(
        spec=snapshots.places(x, y, names[:2]),
        data={"rows": rows, "before": before},
        digits=digits,
        alt=f"{last.release} in round {last.round:,}: {listed}",
        ratio=_ratio(names, x, y),
    )
    legend = (
        ("dot", "a centre; larger for more records" if sizes else "a centre"),
        ("thick", "its interval"),
    )
    return Chart(
        title=f"Centres on {days.text(last.round)}",
        drawing=drawing,
        notes=notes(*said),
        legend=legend,
    )


def _ratio(names: Sequence[str], x: tuple[float, float], y: tuple[float, float]) -> float:
    """Height over width: one unit is as long up as across; on the earth, one kilometre."""
    ratio = (y[1] - y[0]) / (x[1] - x[0])
    if names[0].lower() in {"lon", "long", "longitude"} and abs(y[0] + y[1]) < 2 * _POLAR:
        ratio /= math.cos(math.radians((y[0] + y[1]) / 2))
    return round(min(max(ratio, 0.4), 1.4), 3)


def _extent(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = (high - low) * _MARGIN or 1.0
    return low - room, high + room


def _before(
    published: Published, last: Answer, names: Sequence[str], reads: Any, digits: int
) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {"x": [], "y": []}
    first = max(1, last.round - EARLIER)
    if first >= last.round:
        return found
    for answer in published.each(releases=[last.release], first=first, last=last.round - 1):
        step = float(answer.step)
        own: dict[int, dict[str, float]] = {}
        for figure in answer.figures():
            if (place := reads(figure.key)) is not None and figure.value is not None:
                own.setdefault(place[0], {})[place[1]] = figure.value * step
        for centre in own.values():
            if names[0] in centre and names[1] in centre:
                found["x"].append(number(centre[names[0]], digits))
                found["y"].append(number(centre[names[1]], digits))
    return found


def _table(
    last: Answer,
    found: tuple[
        Mapping[int, Mapping[str, Figure]],
        Mapping[int, Figure],
        Mapping[str, tuple[float, float]],
    ],
    columns: Sequence[str],
    days: Days,
) -> Table:
    centres, sizes, bounds = found
    steps, level = Steps(last), sentences.percent_of(last)
    whole = Steps(last, digits=0)
    rows = []
    for n, own in sorted(centres.items()):
        cells = [str(n)]
        for name in columns:
            figure = own.get(name)
            if figure is None:
                cells += ["–", "–"]
                continue
            silent = is_whole(figure, float(last.step), bounds.get(name))
            cells += [steps.value(figure), "whole range" if silent else _interval(figure, steps)]
        if sizes:
            size = sizes.get(n)
            cells += ["–", "–"] if size is None else [whole.value(size), whole.error(size)]
        rows.append(tuple(cells))
    heads = [heading for name in columns for heading in (cut(name, 24), f"interval, {level}")]
    if sizes:
        heads += ["records", f"interval, {level}"]
    return Table(
        title=f"The centres of {days.text(last.round)}",
        columns=("centre", *heads),
        rows=tuple(rows),
        open=len(rows) <= _SCREEN,
        notes=notes(
            "Intervals say how far the noise may have moved a centre, not how far it is from the best one.",
            "–: the number stands for itself; no error is stated."
            if any("–" in row for row in rows)
            else "",
        ),
    )


def _interval(figure: Figure, steps: Steps) -> str:
    """Both ends; a dash where a number stands for itself."""
    low, high = figure.bounds.low, figure.bounds.high
    return "–" if low == high else steps.between(low, high)


def _is_known(key: str) -> bool:
    tracked = any(key == f'["{name}"]' for name in TRACKED)
    return tracked or key.startswith((_POINTS, '["size",'))


def _tracked(published: Published, last: Answer, days: Days) -> list[Block]:
    """Numbers of a clustering that have a history: how many centres, the cost."""
    wanted = [key for name in TRACKED if (key := f'["{name}"]') in (last.keys or ())]
    if not wanted:
        return []
    read = history(published, last, wanted)
    blocks: list[Block] = []
    for key, series in read.keyed(wanted).items():
        thin = thinned(series, _TRACKED_POINTS)
        exact = bool((series.low == series.high).all())
        digits = 0 if exact and not (series.value % 1).any() else Steps(last).digits
        drawing, more = drawings.line(
            thin.series, days, digits, of=spelled("", key), height=_TRACKED_HEIGHT
        )
        blocks.append(
            Chart(
                title=f"{_TITLES[json.loads(key)[0]]}, over the rounds",
                drawing=drawing,
                notes=notes(read.note, thin.note, *more),
                legend=sentences.LEGEND[:1] if exact else sentences.LEGEND,
            )
        )
    return blocks


def _others(last: Answer, figures: Sequence[Figure], days: Days) -> Table:
    steps, level = Steps(last), sentences.percent_of(last)
    rows = tuple(
        (cut(spelled("", figure.key)), steps.value(figure), steps.error(figure))
        for figure in figures[:50]
    )
    left = len(figures) - len(rows)
    note = notes(f"{left:,} more: `retrodp export` has them." if left else "")
    return Table(
        title=f"Other numbers of {days.text(last.round)}",
        columns=("label", "value", f"interval, {level}"),
        rows=rows,
        notes=note,
    )
