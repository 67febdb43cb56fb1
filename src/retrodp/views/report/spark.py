"""A line without axes beside a number: a path of an SVG, drawn here, so that it is there without scripts too."""

from __future__ import annotations

from collections.abc import Sequence

from retrodp.views.report.parts import Block, Chart, Columns, Panels

WIDTH, HEIGHT = 120, 28
_RUNS = 75
_EDGE = 2


def spark(blocks: Sequence[Block]) -> str:
    """The path of the first drawing over the rounds; "" if there is none.

    Of every run of rounds its lowest and its highest value are kept, in their order.
    """
    for block in blocks:
        match block:
            case Chart():
                drawings = [block.drawing]
            case Panels():
                drawings = [panel.drawing for panel in block.panels]
            case _:
                drawings = []
        for drawing in drawings:
            rows = drawing.data.get("rows", {})
            if "t" in rows and "v" in rows and "s" not in rows:
                return _path(_one(rows))
    return ""


def _one(rows: Columns) -> list[float | None]:
    """The values of one line; of several that in the middle."""
    if "n" not in rows:
        return list(rows["v"])
    middle = max(rows["n"], default=0) // 2
    return [value for n, value in zip(rows["n"], rows["v"], strict=True) if n == middle]


def _path(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if len(known) <= 1:
        return ""
    low, high = min(known), max(known)
    across = (WIDTH - 2 * _EDGE) / (len(values) - 1)
    if low == high:  # in the middle
        low, high = low - 1, high + 1
    up = (HEIGHT - 2 * _EDGE) / (high - low)
    found, begun = [], False
    for place in _kept(values):
        value = values[place]
        if value is None:
            begun = False
            continue
        x, y = _EDGE + place * across, HEIGHT - _EDGE - (value - low) * up
        found.append(f"{'L' if begun else 'M'}{x:.1f} {y:.1f}")
        begun = True
    return "".join(found)


def _kept(values: Sequence[float | None]) -> list[int]:
    run = max(1, len(values) // _RUNS)
    kept = {0, len(values) - 1}
    for begin in range(0, len(values), run):
        part = list(range(begin, min(begin + run, len(values))))
        there = [(values[place], place) for place in part if values[place] is not None]
        gaps = [place for place in part if values[place] is None]
        if there:
            ordered = sorted(there, key=lambda one: (one[0] or 0.0, one[1]))
            kept |= {ordered[0][1], ordered[-1][1]}
        kept |= set(gaps[:1])
    return sorted(kept)
