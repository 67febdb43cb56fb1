"""What a page is made of: charts, panels, tables and sections, as frozen values without layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

Columns: TypeAlias = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A chart as the page's script draws it.

    Attributes:
        spec: Vega-Lite, without data and without a label in any expression.
        data: Columns of equal length by name of the data set.
        digits: After the point, of the numbers that a reader is shown.
        alt: What is to be seen, in a sentence, for those who do not see it.
        ratio: Height over width; None where the spec has a height.
    """

    spec: Mapping[str, Any]
    data: Mapping[str, Columns]
    digits: int
    alt: str
    ratio: float | None = None

    def to_json(self) -> dict[str, Any]:
        """What the script needs."""
        return {
            "spec": self.spec,
            "data": self.data,
            "digits": self.digits,
            "ratio": self.ratio,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A drawing with a heading and what one must know to read it."""

    title: str
    drawing: Drawing
    notes: tuple[str, ...] = ()
    legend: tuple[tuple[str, str], ...] = ()
    form: Literal["chart"] = "chart"


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A small drawing; label, value and error stand above it."""

    label: str
    value: str
    error: str
    drawing: Drawing


@dataclass(frozen=True, slots=True, kw_only=True)
class Panels:
    """Several small drawings, each with a scale of its own."""

    title: str
    panels: tuple[Panel, ...]
    notes: tuple[str, ...] = ()
    form: Literal["panels"] = "panels"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Numbers as text.

    Attributes:
        title: Also its caption.
        columns: Headings; the first column names the row.
        rows: Texts.
        open: Whether it is shown without being asked for.
        notes: What one must know to read it.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    open: bool = False
    notes: tuple[str, ...] = ()
    form: Literal["table"] = "table"


Block: TypeAlias = Chart | Panels | Table


class Shown(NamedTuple):
    """What a release shows: blocks, its newest value or what stands for it, and its error."""

    blocks: tuple[Block, ...]
    value: str
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One release.

    Attributes:
        name: Of the release.
        means: What one value of it is, as a sentence.
        kind: The plan's word.
        value: The newest value, or what stands for it; "" if there is none.
        error: Its error, or interval.
        facts: Name and text of what one must know not to misread the numbers.
        forgets: Whether it forgets deleted records, in a word or two.
        blocks: What is shown.
        spark: Path of a small line; "" if there is none.
    """

    name: str
    means: str
    kind: str
    value: str
    error: str
    facts: tuple[tuple[str, str], ...]
    forgets: str
    blocks: tuple[Block, ...]
    spark: str = ""


def notes(*found: str) -> tuple[str, ...]:
    """Those that say something."""
    return tuple(note for note in found if note)
