"""The command that drafts a plan: new."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from retrodp.cli.app import FORMAT, JsonOption, app, console, print_json
from retrodp.cli.writing import FormatOption, known_format
from retrodp.engine.draft import columns_of
from retrodp.errors import UsageError
from retrodp.plan.draft import Draft, Fields, FileColumn, draft, guess_fields, open_keys
from retrodp.plan.toml import toml_value


@app.command()
def new(
    plan: Annotated[Path, typer.Argument(help="The plan to write; never an existing file.")],
    source: Annotated[Path, typer.Option("--from", help="A file of updates, or one like it.")],
    id_: Annotated[str | None, typer.Option("--id", help="Column that names a record.")] = None,
    op: Annotated[str | None, typer.Option("--op", help="Column: add, delete, replace.")] = None,
    at: Annotated[str | None, typer.Option("--at", help="Column: when it arrived.")] = None,
    time: Annotated[str | None, typer.Option("--time", help="Column: when it happened.")] = None,
    n: Annotated[str | None, typer.Option("--n", help="Column: how many equal records.")] = None,
    person: Annotated[
        str | None, typer.Option("--person", help="Column that names the person.")
    ] = None,
    no_ids: Annotated[bool, typer.Option("--no-ids", help="Records have no ids.")] = False,
    format_: FormatOption = None,
    no_input: Annotated[
        bool, typer.Option("--no-input", "--yes", "-y", help="Ask nothing; leave it open.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Draft a plan from a file's columns: names and types, never values; bounds it asks for."""
    if plan.exists():
        raise UsageError(
            f"{plan} exists already; a plan is never overwritten.", do="Name another file."
        )
    columns = columns_of(source, format_=known_format(format_))
    names = [column.name for column in columns]
    given = {"id": id_, "op": op, "at": at, "time": time, "n": n, "person": person}
    asking = sys.stdin.isatty() and not (no_input or as_json)
    fields = guess_fields(names, given, ids=not no_ids)
    if asking:
        fields = _ask_fields(names, given, fields)
    answers = _ask(columns, fields) if asking else {}
    drafted = draft(columns, fields, source=source.name, answers=answers)
    with plan.open("x", encoding="utf-8") as file:
        file.write(drafted.text)
    if as_json:
        print_json(
            {
                "format": FORMAT,
                "plan": str(plan),
                "fields": dict(fields.names),
                "columns": dict(drafted.columns),
                "left_out": list(drafted.left_out),
                "fill_in": list(drafted.open),
            }
        )
    else:
        _tell(plan, fields, drafted)


def _ask_fields(names: Sequence[str], given: dict[str, str | None], guessed: Fields) -> Fields:
    """Let somebody confirm or name the columns of id and arrival."""
    typer.echo(f"Columns: {', '.join(names)}", err=True)
    said = dict(given)
    ids = guessed.ids
    for field, question in (
        ("id", "Column that names a record (none: records have no ids)"),
        ("at", "Column that says when an update arrived"),
    ):
        if said[field] is None and ids >= (field == "id"):
            told = str(
                typer.prompt(question, default=guessed.names.get(field, "none"), err=True)
            ).strip()
            ids = ids and not (field == "id" and told == "none")
            said[field] = None if told == "none" else told
    return guess_fields(names, said, ids=ids)


def _ask(columns: Sequence[FileColumn], fields: Fields) -> dict[str, str]:
    """What only somebody who knows the domain can say; an empty answer leaves a key open."""
    typer.echo("An empty answer leaves the key open. Do not look bounds up in the data.", err=True)
    answers = {}
    for key, question in open_keys(columns, fields).items():
        told = str(typer.prompt(f"{key}: {question}", default="", show_default=False, err=True))
        if told.strip():
            answers[key] = _as_toml(told.strip())
    return answers


def _as_toml(text: str) -> str:
    """The answer as TOML reads it: a number or date as such, anything else as text."""
    try:
        value = tomllib.loads(f"x = {text}")["x"]
    except (tomllib.TOMLDecodeError, KeyError):
        return toml_value(text)
    return (
        text if not isinstance(value, dict | list | bool) and "\n" not in text else toml_value(text)
    )


def _tell(plan: Path, fields: Fields, drafted: Draft) -> None:
    out = console()
    named = ", ".join(f"{field} = {name}" for field, name in fields.names.items())
    out.print(
        f"Wrote {plan}: {len(drafted.columns)} columns; {named or 'no fields found'}.",
        markup=False,
        soft_wrap=True,
    )
    for name in drafted.left_out:
        out.print(f"Left out: {name or '(a column without a name)'}.", markup=False)
    if drafted.open:
        out.print("Fill in, from what you know of the domain:")
        for key in drafted.open:
            out.print(f"  {key}", markup=False)
    out.print(f"Then: retrodp check {plan}", markup=False, soft_wrap=True)
