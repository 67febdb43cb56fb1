"""Progress on standard error while rounds close."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from retrodp.cli.app import notes
from retrodp.engine.outcomes import Progress as OnRound


@contextmanager
def closing_rounds(*, quiet: bool) -> Iterator[OnRound | None]:
    """A bar that counts closed rounds; nothing if `quiet`."""
    if quiet:
        yield None
        return
    bar = Progress(
        TextColumn("Closing rounds"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=notes(),
    )
    with bar:
        task = bar.add_task("rounds", total=None)

        def advance(done: int, todo: int) -> None:
            bar.update(task, completed=done, total=todo)

        yield advance
