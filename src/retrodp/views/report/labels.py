"""How labels, numbers and days are written for people who read a page.

Promise: a label is shown as text, cut where it is long, and can neither move nor hide what stands around it.
"""

from __future__ import annotations

import datetime as dt
import json
from fractions import Fraction
from typing import Any

from retrodp.mechanisms.answer import Answer, Figure
from retrodp.plan.decimals import decimal_text
from retrodp.views.figures import Grid, grouped, printable
from retrodp.views.published import Published

LONGEST = 80
"""Characters of a label in a table."""

IN_CHARTS = 24
"""Characters of a label in a chart."""

MINUS = "\u2212"
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_EVERY = {"1h": "hourly", "1d": "daily", "1w": "weekly", "1mo": "monthly"}
_MIDNIGHT = dt.time(0)


def cut(label: str, most: int = LONGEST) -> str:
    """A label without controls, cut to so many characters; what was cut off is said."""
    text = printable(label[: most + 1])
    if len(label) <= most and len(text) <= 2 * most:
        return text
    return f"{text[: most - 1]}… ({len(label):,} characters)"


def in_charts(label: str) -> str:
    """A label as short as an axis needs it."""
    text = printable(label[: IN_CHARTS + 1])
    return text if len(text) <= IN_CHARTS else f"{text[: IN_CHARTS - 1]}…"


def spelled(kind: str, key: str) -> str:
    """A published label as people say it; what cannot be read so stands as it is."""
    parts = _parts(key)
    if parts is None:
        return key
    match kind:
        case "cube":
            return _cell(parts)
        case "gram" if parts and all(isinstance(part, str) for part in parts):
            return _moment(*parts)
        case _:
            return " · ".join(_said(part) for part in parts) if parts else key


def _cell(pairs: list[Any]) -> str:
    """A cell of a cube: its columns and their values."""
    named = [pair if isinstance(pair, list) else [pair] for pair in pairs]
    return ", ".join(" = ".join(_said(part) for part in pair) for pair in named) or "all"


def _moment(what: str, *columns: str) -> str:
    """A moment of a `gram`: "variance of amount"."""
    if what == "covariance" and len(set(columns)) == 1:
        what, columns = "variance", columns[:1]
    return f"{what} of {' and '.join(columns)}" if columns else what


def _parts(key: str) -> list[Any] | None:
    if not key.startswith("["):
        return None
    try:
        found = json.loads(key)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None


def _said(value: Any) -> str:
    match value:
        case None:
            return "(none)"
        case True:
            return "yes"
        case False:
            return "no"
        case "":
            return "(empty)"
        case str():
            return value
        case _:
            return json.dumps(value, ensure_ascii=False)


def signed(text: str) -> str:
    """A number with the sign that is as wide as its digits."""
    return text.replace("-", MINUS)


class Steps:
    """Numbers of one answer as texts, with the same digits after the point."""

    def __init__(self, answer: Answer, *, digits: int | None = None) -> None:
        """Take the step of an answer; `digits` after the point at least, by default as the step has."""
        self._step = answer.step
        self.digits = Grid.of(answer.step).digits if digits is None else digits

    def text(self, steps: int | None) -> str:
        """A number, or a dash where there is none."""
        if steps is None:
            return "–"
        return signed(grouped(decimal_text(steps, self._step), self.digits))

    def value(self, figure: Figure) -> str:
        """The value, or what stands for it in a bracket."""
        return self.text(figure.value)

    def between(self, low: int, high: int) -> str:
        """Both ends of an interval."""
        return f"{self.text(low)} to {self.text(high)}"

    def error(self, figure: Figure) -> str:
        """Half width of this round's interval where it is even, else both ends."""
        return self._around(figure.value, figure.bounds.low, figure.bounds.high)

    def error_all(self, figure: Figure) -> str:
        """The same for all rounds at once."""
        return self._around(figure.value, figure.bounds.low_all, figure.bounds.high_all)

    def _around(self, value: int | None, low: int, high: int) -> str:
        if value is not None and high - value == value - low:
            return f"±\u00a0{self.text(high - value)}"
        return self.between(low, high)


class Days:
    """Rounds as people name them, by the plan's clocks."""

    def __init__(self, published: Published) -> None:
        """Take the calendar of a store."""
        self._published = published
        self._length = str(published.resolved.plan["stream"]["round"])

    @property
    def every(self) -> str:
        """How often rounds end: "daily", "every 6h"."""
        return _EVERY.get(self._length, f"every {self._length}")

    def text(self, round_: int) -> str:
        """When a round begins: "9 December 2011", with the time where a day has several."""
        start = self._published.start(round_)
        day = f"{start.day} {_MONTHS[start.month - 1]} {start.year}"
        if self._length.endswith("mo") and start.day == 1:
            day = f"{_MONTHS[start.month - 1]} {start.year}"
        return day if start.time() == _MIDNIGHT else f"{day}, {start:%H:%M}"

    def short(self, round_: int) -> str:
        """The same for a table: "2011-12-09"."""
        start = self._published.start(round_)
        return f"{start:%Y-%m-%d}" if start.time() == _MIDNIGHT else f"{start:%Y-%m-%d %H:%M}"

    def millis(self, round_: int) -> int:
        """Milliseconds of what the plan's clocks show, so that no reader's own zone moves a day."""
        start = self._published.start(round_).replace(tzinfo=None)
        return (start - dt.datetime(1970, 1, 1)) // dt.timedelta(milliseconds=1)  # noqa: DTZ001


def number(value: float, digits: int) -> float | int | None:
    """A number of a chart: with as many digits as were published; None for none."""
    if value != value:  # noqa: PLR0124  NaN alone differs from itself
        return None
    return round(value, digits) if digits else round(value)


def level_text(level: Fraction) -> str:
    """How often intervals hold, in words: "95 of 100"."""
    hundred = level * 100
    return f"{float(hundred):.4g} of 100"
