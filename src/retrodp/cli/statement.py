"""`retrodp statement`: what a store promises, for machines and registries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from retrodp.cli.app import FORMAT, JsonOption, StoreOption, app, console, now_micros, print_json
from retrodp.errors import UsageError
from retrodp.views.atomic import whole_file
from retrodp.views.published import TEST, Published


@app.command()
def statement(
    store: StoreOption,
    about: Annotated[
        Path | None,
        typer.Option("--about", help="TOML file with what only you know: name, curators, use, ..."),
    ] = None,
    registry: Annotated[
        bool, typer.Option("--registry", help="Only the entry for the public registry.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File; default: standard output.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """The privacy statement as JSON, in the form of the registry of deployments; needs no key."""
    from retrodp.views import registry as registry_view  # noqa: PLC0415  its forms take time
    from retrodp.views import statement as statement_view  # noqa: PLC0415

    said = registry_view.read_about(about) if about else registry_view.About()
    with Published.open(store) as published:
        found = statement_view.document(published, said, now=now_micros())
    shown = found["registry"] if registry else found
    if output is None:
        print_json(shown)
        return
    if output.suffix == ".toml":
        raise UsageError(f"{output}: the statement is JSON.", do="Name a file that ends in .json.")
    with whole_file(output) as file:
        file.write((json.dumps(shown, indent=2, ensure_ascii=False) + "\n").encode())
    if as_json:
        print_json({"format": FORMAT, "file": str(output), "to_fill_in": found["to_fill_in"]})
        return
    out = console()
    if found["retrodp"]["test"]:
        out.print(TEST)
    out.print(f"Statement: {output}", markup=False, soft_wrap=True)
    if found["to_fill_in"]:
        out.print(f"Still empty, for --about: {', '.join(found['to_fill_in'])}.", soft_wrap=True)
