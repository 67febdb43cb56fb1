"""`retrodp report`: a page of everything that was published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from retrodp.cli.app import JsonOption, StoreOption, app, console, notes, now_micros, print_json
from retrodp.views.figures import counted
from retrodp.views.published import TEST, Published


@app.command()
def report(
    store: StoreOption,
    output: Annotated[Path, typer.Option("-o", "--output", help="The HTML file.")] = Path(
        "report.html"
    ),
    title: Annotated[
        str, typer.Option("--title", help="What the numbers are about.")
    ] = "Published numbers",
    as_json: JsonOption = False,
) -> None:
    """One page of all published numbers, as charts, tables and plain words; needs no key.

    It is one file that works offline and loads nothing.
    """
    from retrodp.views import report as view  # noqa: PLC0415  templates take time

    with Published.open(store) as published:
        if published.is_test and not as_json:
            notes().print(TEST)
        written = view.write_file(published, output, title=title, now=now_micros())
    if as_json:
        print_json(written)
        return
    size = written["bytes"] / 1_000_000
    console().print(
        f"{counted(written['charts'], 'chart')} and {counted(written['tables'], 'table')} of "
        f"{counted(len(written['releases']), 'release')}, {size:.1f} MB, in {output}",
        markup=False,
        soft_wrap=True,
    )
