"""How tables look on a screen."""

from __future__ import annotations

from rich.table import Table


def bare_table() -> Table:
    """A table without lines, two blanks between columns."""
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
