"""Releases that look at the order of a column: distribution functions, ranges, quantiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from retrodp.mechanisms.answer import Answer
from retrodp.views.figures import natural
from retrodp.views.published import Published
from retrodp.views.report import drawings, sentences
from retrodp.views.report.bins import (
    LISTED,
    PANELS,
    SMALL_POINTS,
    bins_table,
    history_table,
    numbered,
    panels,
)
from retrodp.views.report.gather import history
from retrodp.views.report.labels import Days, Steps, cut, spelled
from retrodp.views.report.parts import Block, Chart, Shown, notes
from retrodp.views.report.thin import thinned

_GROUPS = 4
"""Groups with a chart each."""

_IN_ORDER = 30
"""Ranges in a chart."""


def edges(published: Published, last: Answer, table: Mapping[str, Any], days: Days) -> Shown:
    """Counts up to edges, or between them, in the order of the edges."""
    figures = sorted(last.figures(), key=lambda figure: natural(figure.key))
    kind, steps = str(table["kind"]), Steps(last)
    said: tuple[str, ...] = ()
    of = f"{last.release} in round {last.round:,}"
    places = [_number(figure.key) for figure in figures]
    if kind == "cdf" and figures and None not in places:
        drawing = drawings.curve(
            [float(edge or 0) for edge in places],
            figures,
            steps,
            float(last.step),
            of=of,
            title=f"{table['of']} up to",
        )
        legend = sentences.LEGEND
        said = ("Known at the dots; between them the line is but to guide the eye.",)
    else:
        named = [(spelled(kind, figure.key), figure) for figure in figures[:_IN_ORDER]]
        drawing = drawings.bins(named, steps, float(last.step), of=of)
        legend = sentences.BAR_LEGEND
    keys = [figure.key for figure in figures]
    chosen = keys[:: max(1, -(-len(keys) // PANELS))]
    read = history(published, last, chosen)
    blocks = (
        Chart(title=f"On {days.text(last.round)}", drawing=drawing, legend=legend, notes=said),
        panels(read, [(_up_to(kind, key), key) for key in chosen], days),
        bins_table(last, figures[:LISTED], kind, days),
        history_table(read, [_up_to(kind, key) for key in chosen], days),
    )
    return Shown(blocks, numbered(last))


def _up_to(kind: str, key: str) -> str:
    return f"up to {key}" if kind == "cdf" else spelled(kind, key)


def _number(key: str) -> float | None:
    try:
        return float(Fraction(key))
    except (ValueError, ZeroDivisionError):
        return None


def quantiles(published: Published, last: Answer, _: Mapping[str, Any], days: Days) -> Shown:
    """All quantiles of a group in one chart."""
    groups: dict[str, dict[str, str]] = {}
    for key in sorted(last.keys or (), key=natural):
        group, at = _group(key)
        groups.setdefault(group, {})[f"quantile {at}"] = key
    chosen = dict(list(groups.items())[:_GROUPS])
    read = history(published, last, [key for own in chosen.values() for key in own.values()])
    series = read.keyed(read.keys)
    blocks: list[Block] = []
    for group, own in chosen.items():
        thin = {name: thinned(series[key], SMALL_POINTS) for name, key in own.items()}
        shown = {name.removeprefix("quantile "): one.series for name, one in thin.items()}
        title = f"Quantiles over the rounds{f', {cut(group, 40)}' if group else ''}"
        drawing, said = drawings.lines(
            shown, days, Steps(last).digits, of=f"{last.release} {group}".strip()
        )
        blocks.append(
            Chart(
                title=title,
                drawing=drawing,
                notes=notes(read.note, *dict.fromkeys(one.note for one in thin.values()), *said),
                legend=sentences.FAN_LEGEND,
            )
        )
    figures = sorted(last.figures(), key=lambda figure: natural(figure.key))
    left = len(groups) - len(chosen)
    if left:
        blocks[-1] = replace(
            blocks[-1], notes=(*blocks[-1].notes, f"{left:,} more groups: in the table.")
        )
    labels = [spelled("quantiles", key) for key in read.keys]
    table = bins_table(last, figures[:LISTED], "quantiles", days)
    blocks += [
        replace(table, columns=("quantile", *table.columns[1:])),
        history_table(read, labels, days),
    ]
    return Shown(tuple(blocks), _middle(last, Steps(last)))


def _group(key: str) -> tuple[str, str]:
    text = spelled("quantiles", key)
    group, found, at = text.rpartition(" · ")
    return (group, at) if found else ("", text)


def _middle(last: Answer, steps: Steps) -> str:
    """The median, if there is one for all."""
    found = {figure.key: figure for figure in last.figures()}
    if "0.5" in found:
        return f"median {steps.value(found['0.5'])}"
    return f"{len(last):,} quantiles"
