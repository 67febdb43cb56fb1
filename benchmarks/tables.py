"""A table of results: printed, written as Markdown and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.timing import Rate

Cell = str | float | int | None

MISSING = "missing"


@dataclass(slots=True)
class Table:
    """Rows under headings; `None` prints as a dash.

    Attributes:
        name: File name of the results.
        title: Heading.
        note: What was measured and how; Markdown.
        headings: Of the columns.
        rows: One list a row.
    """

    name: str
    title: str
    note: str
    headings: Sequence[str]
    rows: list[list[Cell]] = field(default_factory=list)

    def add(self, *cells: Cell) -> None:
        """Append a row and print it, so that a long run shows what it does."""
        assert len(cells) == len(self.headings)
        self.rows.append(list(cells))
        print(f"  {self.name:10s} " + "  ".join(text(cell) for cell in cells), flush=True)

    def markdown(self) -> str:
        """Heading, note and table."""
        lines = [f"## {self.title}", "", self.note.strip(), ""]
        lines.append("| " + " | ".join(self.headings) + " |")
        lines.append("|" + "|".join([" --- "] + [" ---: "] * (len(self.headings) - 1)) + "|")
        lines += ["| " + " | ".join(text(cell) for cell in row) + " |" for row in self.rows]
        return "\n".join(lines) + "\n"

    def document(self) -> dict[str, object]:
        """JSON-able."""
        return {
            "name": self.name,
            "title": self.title,
            "note": self.note.strip(),
            "headings": list(self.headings),
            "rows": self.rows,
        }


def text(cell: Cell) -> str:
    """Three significant digits for measured numbers."""
    if cell is None:
        return "-"
    if isinstance(cell, float):
        if cell == 0 or not 1e-3 <= abs(cell) < 1e7:
            return f"{cell:.3g}"
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.3g}"
    if isinstance(cell, int):
        return f"{cell:,}"
    return cell


def millions(found: Rate | None) -> tuple[Cell, Cell]:
    """Typical and best rate in millions a second."""
    if found is None:
        return MISSING, MISSING
    return found.typical / 1e6, found.best / 1e6
