"""Charts of one round in Vega-Lite: bins, a curve, a triangle of revisions, places.

Promise: that of `specs`.
"""

from __future__ import annotations

from collections.abc import Sequence

from retrodp.views.report.specs import BAND, BLUE, SOFT, WIDE, Spec, numbers, upright

CLASSES = (-3, -2, -1, 0, 1, 2, 3)
"""Of revisions: the sign, and which third of the largest change; 0 is within the noise."""

DIVERGING = (
    "var(--d1)",
    "var(--d2)",
    "var(--d3)",
    "var(--d4)",
    "var(--d5)",
    "var(--d6)",
    "var(--d7)",
)


def bins(domain: Sequence[float], count: int, *, brackets: bool = False) -> Spec:
    """Bins of one round below each other: values with both intervals, and the number beside."""
    x: Spec = {
        "field": "v",
        "type": "quantitative",
        "title": None,
        "scale": {"domain": list(domain), "nice": False, "zero": False},
        "axis": {**numbers(domain, small=True, count=4), "domain": False, "ticks": False},
    }
    y: Spec = {
        "field": "i",
        "type": "ordinal",
        "title": None,
        "axis": {"labels": False, "ticks": False, "domain": False, "grid": False},
    }
    zero = {"datum": 0}
    layers: list[Spec] = [
        {
            "mark": {"type": "bar", "color": WIDE, "height": 10},
            "encoding": {"x": x, "x2": zero, "tooltip": {"field": "tip"}},
        },
        {
            "mark": {"type": "rule", "color": BLUE, "strokeWidth": 1, "clip": True},
            "encoding": {"x": {**x, "field": "a"}, "x2": {"field": "b"}},
        },
        {
            "mark": {"type": "rule", "color": BLUE, "strokeWidth": 4, "opacity": 0.5, "clip": True},
            "encoding": {"x": {**x, "field": "l"}, "x2": {"field": "h"}},
        },
        {
            "mark": {
                "type": "text",
                "align": "left",
                "baseline": "bottom",
                "dy": -5,
                "dx": 2,
                "clip": False,
            },
            "encoding": {"x": {"value": 0}, "text": {"field": "k"}},
        },
        {
            "mark": {"type": "text", "align": "right", "baseline": "bottom", "dy": -5},
            "encoding": {"x": {"value": "width"}, "text": {"field": "s"}},
        },
    ]
    if not brackets:
        layers.append(
            {
                "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1, "color": BLUE},
                "encoding": {"x": x, "tooltip": {"field": "tip"}},
            }
        )
    return {
        "width": "container",
        "height": 38 * count,
        "data": {"name": "rows"},
        "encoding": {"y": y},
        "layer": layers,
    }


def curve(domain: Sequence[float], title: str, *, step: str) -> Spec:
    """A distribution function: a value an edge, with its intervals."""
    y = upright(domain)
    return {
        "width": "container",
        "height": 240,
        "data": {"name": "rows"},
        "encoding": {
            "x": {
                "field": "x",
                "type": "quantitative",
                "title": title,
                "scale": {"zero": False, "nice": False},
                "axis": {"grid": False, "labelFlush": True, "labelOverlap": True, "tickCount": 8},
            }
        },
        "layer": [
            {
                "mark": {"type": "area", "color": WIDE, "interpolate": step},
                "encoding": {"y": {**y, "field": "a"}, "y2": {"field": "b"}},
            },
            {
                "mark": {"type": "area", "color": BAND, "interpolate": step},
                "encoding": {"y": {**y, "field": "l"}, "y2": {"field": "h"}},
            },
            {
                "mark": {"type": "line", "color": BLUE, "strokeWidth": 1.5, "interpolate": step},
                "encoding": {"y": y},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 40, "opacity": 1, "color": BLUE},
                "encoding": {"y": y, "tooltip": {"field": "tip"}},
            },
        ],
    }


def triangle(count: int) -> Spec:
    """Revisions in classes: stamps down, rounds across."""
    cell = max(8, min(22, 440 // max(count, 1)))

    def axis(name: str, title: str) -> Spec:
        return {
            "field": name,
            "type": "ordinal",
            "title": title,
            "scale": {"paddingInner": 0.08},
            "axis": {"labelAngle": 0, "labelOverlap": True, "ticks": False, "domain": False},
        }

    return {
        "width": "container",
        "height": cell * count,
        "data": {"name": "rows"},
        "mark": {"type": "rect"},
        "encoding": {
            "x": axis("r", "published in round"),
            "y": axis("s", "about round"),
            "color": {
                "field": "c",
                "type": "ordinal",
                "scale": {"domain": list(CLASSES), "range": list(DIVERGING)},
                "legend": None,
            },
            "tooltip": {"field": "tip"},
        },
    }


def places(x: Sequence[float], y: Sequence[float], names: Sequence[str]) -> Spec:
    """Centres on a plain plane, with a cross of intervals each; earlier ones are grey."""

    def axis(name: str, title: str, domain: Sequence[float]) -> Spec:
        return {
            "field": name,
            "type": "quantitative",
            "title": title,
            "scale": {"domain": list(domain), "nice": False, "zero": False},
            "axis": numbers(domain),
        }

    across, up = axis("x", names[0], x), axis("y", names[1], y)
    line = {"type": "rule", "color": BLUE, "strokeWidth": 2, "clip": True, "opacity": 0.7}
    return {
        "width": "container",
        "height": 320,
        "data": {"name": "rows"},
        "layer": [
            {
                "data": {"name": "before"},
                "mark": {
                    "type": "point",
                    "filled": True,
                    "size": 14,
                    "color": SOFT,
                    "opacity": 0.35,
                    "clip": True,
                },
                "encoding": {"x": across, "y": up},
            },
            {
                "mark": line,
                "encoding": {"x": {**across, "field": "xl"}, "x2": {"field": "xh"}, "y": up},
            },
            {
                "mark": line,
                "encoding": {"x": across, "y": {**up, "field": "yl"}, "y2": {"field": "yh"}},
            },
            {
                "mark": {
                    "type": "point",
                    "filled": False,
                    "color": BLUE,
                    "strokeWidth": 2,
                    "opacity": 1,
                },
                "encoding": {
                    "x": across,
                    "y": up,
                    "size": {
                        "field": "n",
                        "type": "quantitative",
                        "scale": {"rangeMin": 40, "rangeMax": 500, "zero": True},
                        "legend": None,
                    },
                    "tooltip": {"field": "tip"},
                },
            },
            {
                "mark": {
                    "type": "text",
                    "align": "left",
                    "dx": 11,
                    "dy": -11,
                    "fontWeight": "bold",
                },
                "encoding": {"x": across, "y": up, "text": {"field": "k"}},
            },
        ],
    }
