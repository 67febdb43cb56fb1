"""What a view prints, as text."""

from __future__ import annotations

import io
from collections.abc import Callable

from rich.console import Console


def screen(draw: Callable[[Console], None], *, width: int = 80) -> str:
    """The text on a screen without colours."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    draw(console)
    text = console.file
    assert isinstance(text, io.StringIO)
    return text.getvalue()


def widest(text: str) -> int:
    return max(len(line) for line in text.splitlines())
