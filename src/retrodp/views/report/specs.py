"""Charts over the rounds in Vega-Lite, and what all charts share.

Promise: every text that comes from data is a value of a field, never part of an expression. Colours are names
of the page's style, so that they follow dark mode and print.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

Spec = dict[str, Any]
Mark = Literal["value", "threshold", "whole"]
_DAY = 86_400_000
_YEARS, _MONTHS, _DAYS = 1_200, 75, 3

INK, SOFT, GRID = "var(--ink)", "var(--soft)", "var(--grid)"
BLUE, BAND, WIDE = "var(--c1)", "var(--band)", "var(--wide)"
COLOURS = tuple(f"var(--c{number})" for number in range(1, 8))
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [1, 3], [10, 4])

CONFIG: Mapping[str, Any] = {
    "background": None,
    "font": "system-ui, sans-serif",
    "aria": False,
    "view": {"stroke": None},
    "axis": {
        "labelColor": SOFT,
        "titleColor": SOFT,
        "domainColor": GRID,
        "tickColor": GRID,
        "gridColor": GRID,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelLimit": 170,
    },
    "legend": {"labelColor": SOFT, "titleColor": SOFT, "labelFontSize": 12, "titleFontSize": 12},
    "text": {"fill": INK, "fontSize": 12},
}


def time_axis(starts: Sequence[int], *, small: bool = False) -> Spec:
    """The axis of rounds: years, months, days or hours; of a small chart its two ends.

    Args:
        starts: When each round begins, milliseconds of the plan's clocks, rising.
        small: Whether there is room for little.
    """
    first, last = starts[0], starts[-1]
    days = (last - first) / _DAY
    midnights = all(start % _DAY == 0 for start in starts)
    axis: Spec = {"grid": False, "labelOverlap": "parity", "labelSeparation": 8, "labelFlush": True}
    title = None
    if small:
        axis |= {
            "format": "%-d %b %Y" if days <= _YEARS else "%b %Y",
            "values": _signal([first, last]),
        }
    elif days > _YEARS:
        axis |= {"format": "%Y", "tickCount": {"signal": "ceil(width/70)"}}
    elif days > _MONTHS:
        axis |= {"format": "%b %Y", "tickCount": {"signal": "ceil(width/110)"}}
    else:
        stride = max(1, -(-len(starts) // 7))
        axis |= {
            "format": "%-d %b" if days >= _DAYS or midnights else "%-d %b, %H:%M",
            "values": _signal(list(starts)[::stride]),
            "titleAnchor": "start",
        }
        title = "–".join(dict.fromkeys(_year(one) for one in (first, last)))
    return {
        "field": "t",
        "type": "temporal",
        "scale": {"type": "utc"},
        "title": title,
        "axis": axis,
    }


def _signal(instants: Sequence[int]) -> Spec:
    """Ticks as an expression: as numbers they would be taken for the reader's own clock."""
    return {"signal": f"[{','.join(map(str, instants))}]"}


def _year(millis: int) -> str:
    return str((dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=millis)).year)  # noqa: DTZ001


def numbers(domain: Sequence[float], *, small: bool = False, count: int = 5) -> Spec:
    """How an axis writes its numbers: as people do, with no more digits than the range needs."""
    span = max(domain) - min(domain)
    digits = max(0, 2 - math.floor(math.log10(span))) if 0 < span < 100 else 0
    millions = "' M'" if small else "' million'"
    plain = f"format(datum.value, ',.{digits}~f')"
    return {
        "labelExpr": f"abs(datum.value) >= 1e6 ? format(datum.value / 1e6, ',.3~f') + {millions} : {plain}",
        "tickCount": 3 if small else count,
    }


def upright(domain: Sequence[float], *, small: bool = False, whole: bool = False) -> Spec:
    """The axis of values; `whole`: of whole numbers."""
    return {
        "field": "v",
        "type": "quantitative",
        "title": None,
        "scale": {"domain": list(domain), "nice": True, "zero": False},
        "axis": {
            **numbers(domain, small=small),
            **({"tickMinStep": 1} if whole else {}),
            "domain": False,
            "ticks": False,
        },
    }


def _area(low: str, high: str, fill: str, axis: Spec) -> Spec:
    return {
        "mark": {"type": "area", "color": fill, "clip": True},
        "encoding": {"y": {**axis, "field": low}, "y2": {"field": high}},
    }


def _whisker(low: str, high: str, stroke: str, axis: Spec) -> Spec:
    """The interval of a value that stands alone, where a band has no width."""
    return {
        "transform": [{"filter": "datum.p === 2"}],
        "mark": {"type": "rule", "color": stroke, "strokeWidth": 5, "clip": True},
        "encoding": {"y": {**axis, "field": low}, "y2": {"field": high}},
    }


def _pointer(axis: Spec) -> list[Spec]:
    """A line under the pointer that says what stands there."""
    hover = {
        "name": "hover",
        "select": {
            "type": "point",
            "encodings": ["x"],
            "on": "pointerover",
            "nearest": True,
            "clear": "pointerout",
        },
    }
    shown = {"condition": {"param": "hover", "empty": False, "value": 1}, "value": 0}
    return [
        {
            "mark": {"type": "rule", "color": SOFT, "strokeWidth": 1},
            "params": [hover],
            "encoding": {"opacity": shown, "tooltip": {"field": "tip"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 50, "color": BLUE},
            "encoding": {"y": axis, "opacity": shown},
        },
    ]


def series(
    domain: Sequence[float],
    time: Spec,
    *,
    height: int,
    small: bool = False,
    marks: Collection[Mark],
) -> Spec:
    """A number over the rounds with both of its bands, and what else `marks` names."""
    axis = upright(domain, small=small, whole="whole" in marks)
    layers: list[Spec] = [_area("a", "b", WIDE, axis), _area("l", "h", BAND, axis)]
    if "threshold" in marks:
        layers.insert(
            0,
            {
                "data": {"name": "threshold"},
                "mark": {"type": "rule", "color": SOFT, "strokeDash": [3, 3], "clip": True},
                "encoding": {"y": axis, "x": None},
            },
        )
    layers += [_whisker("a", "b", WIDE, axis), _whisker("l", "h", BAND, axis)]
    if "value" in marks:
        layers += [
            {
                "mark": {"type": "line", "color": BLUE, "strokeWidth": 1.5},
                "encoding": {"y": axis},
            },
            {
                "transform": [{"filter": "datum.p >= 1"}],
                "mark": {
                    "type": "point",
                    "filled": True,
                    "size": 14,
                    "color": BLUE,
                    "opacity": 1,
                },
                "encoding": {"y": axis},
            },
        ]
    layers += _pointer(axis)
    return {
        "width": "container",
        "height": height,
        "data": {"name": "rows"},
        "encoding": {"x": time},
        "layer": layers,
    }


def lines(domain: Sequence[float], time: Spec, names: Sequence[str], *, height: int) -> Spec:
    """Several numbers over the rounds, each with the band of a round and its name at its end."""
    axis = upright(domain)
    order = list(range(len(names)))
    colour = {
        "field": "n",
        "type": "nominal",
        "scale": {"domain": order, "range": [COLOURS[n % len(COLOURS)] for n in order]},
        "legend": None,
    }
    dash = {
        "field": "n",
        "type": "nominal",
        "scale": {"domain": order, "range": [DASHES[n % len(DASHES)] for n in order]},
        "legend": None,
    }
    return {
        "width": "container",
        "height": height,
        "data": {"name": "rows"},
        "encoding": {"x": time},
        "layer": [
            {
                "mark": {"type": "area", "opacity": 0.22, "clip": True},
                "encoding": {
                    "y": {**axis, "field": "l"},
                    "y2": {"field": "h"},
                    "color": colour,
                },
            },
            {
                "mark": {"type": "line", "strokeWidth": 1.75},
                "encoding": {"y": axis, "color": colour, "strokeDash": dash},
            },
            {
                "data": {"name": "ends"},
                "mark": {"type": "text", "align": "left", "dx": 6, "fontWeight": 600},
                "encoding": {"y": axis, "text": {"field": "k"}, "color": colour},
            },
            _tips(axis),
        ],
    }


def _tips(axis: Spec) -> Spec:
    """Invisible points to stand on with the pointer."""
    return {
        "mark": {"type": "point", "filled": True, "size": 90, "opacity": 0},
        "encoding": {"y": axis, "tooltip": {"field": "tip"}},
    }
