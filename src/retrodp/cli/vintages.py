"""`retrodp vintages`: how published numbers were revised."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from retrodp.cli.app import JsonOption, StoreOption, app, console, notes, print_json
from retrodp.errors import UsageError
from retrodp.views import vintages as view
from retrodp.views.figures import grouped, printable
from retrodp.views.published import TEST, Published
from retrodp.views.tables import bare_table

STAMPS = 14


@app.command()
def vintages(
    store: StoreOption,
    release: Annotated[
        str | None, typer.Option("--release", help="A revised release; default: the first.")
    ] = None,
    key: Annotated[str | None, typer.Option("--key", help="Label of a bin.")] = None,
    stamps: Annotated[int, typer.Option("--stamps", help="Newest stamps to list.")] = STAMPS,
    triangle: Annotated[
        bool, typer.Option("--triangle", help="Every published value: stamps down, rounds across.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """First release, latest release and revision of the newest stamps; needs no key."""
    if stamps < 1:
        raise UsageError(f"There are no {stamps} stamps to list.", expected="1 or more")
    with Published.open(store) as published:
        revised = view.revised_releases(published)
        if not revised:
            raise UsageError(
                "This plan has no revised release.", do="Set revised = true in a plan's release."
            )
        name = revised[0] if release is None else release
        if published.is_test and not as_json:
            notes().print(TEST)
        if triangle:
            document = view.triangle_document(published, name, key, last=stamps)
        else:
            document = view.document(published, name, key, last=stamps)
    if as_json:
        print_json(document)
    elif triangle:
        for line in view.triangle_lines(document):
            console().print(line, markup=False, soft_wrap=True)
    else:
        _render(document)


def _render(document: dict[str, object]) -> None:
    out, rows = console(), document["stamps"]
    assert isinstance(rows, list)
    of = document["release"] if document["key"] is None else f"{document['release']}, "
    label = "" if document["key"] is None else printable(str(document["key"]))
    out.print(Text(f"{of}{label} as known in round {document['round']:,}", style="bold"))
    table = bare_table()
    table.add_column("of")
    for heading in ("first release", "latest release", "revision", "noise of both"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        cells = [
            "-" if row[name] is None else grouped(f"{row[name]:.10g}")
            for name in ("first", "latest", "revision", "noise")
        ]
        cells[-1] = f"± {cells[-1]}"
        table.add_row(row["stamp_start"][:16], *cells)
    out.print(table)
    out.print(Text("A revision within the noise of both releases may be noise.", style="dim"))
