"""The audits: `retrodp audit retroactivity`, `privacy`, `price`, `reconstruct`, `differencing`, `report`."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from retrodp.cli.app import JsonOption, app, console, notes, print_json
from retrodp.errors import UsageError
from retrodp.views.atomic import whole_file

if TYPE_CHECKING:  # the audits are imported when one is run: every other command starts without
    from retrodp.audit.report import Row

STYLES = {
    "accused": "bold red",
    "missed": "bold red",
    "as stated": "yellow",
    "left out": "yellow",
    "caught": "cyan",
}

audits = typer.Typer(
    name="audit",
    help="Try to break both promises, and report what was measured beside what is claimed.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(audits)

SeedOption = Annotated[
    str | None,
    typer.Option("--seed", help="32 hexadecimal digits, to run an audit again. Default: fresh."),
]
DeepOption = Annotated[
    bool, typer.Option("--deep", help="The long run: minutes, every combination, all faults.")
]
OnlyOption = Annotated[
    str | None, typer.Option("--only", help="A kind, such as `count`: releases of it alone.")
]


@audits.command("retroactivity")
def audit_retroactivity(
    seed: SeedOption = None,
    deep: DeepOption = False,
    only: OnlyOption = None,
    as_json: JsonOption = False,
) -> int:
    """Run histories that unite through every release, and compare the answers byte by byte."""
    return _run("retroactivity", seed, deep=deep, only=only, as_json=as_json)


@audits.command("privacy")
def audit_privacy(
    seed: SeedOption = None,
    deep: DeepOption = False,
    only: OnlyOption = None,
    as_json: JsonOption = False,
) -> int:
    """Measure lower bounds on epsilon, play the adaptive game, and hunt planted faults."""
    return _run("privacy", seed, deep=deep, only=only, as_json=as_json)


@audits.command("price")
def audit_price(
    seed: SeedOption = None, deep: DeepOption = False, as_json: JsonOption = False
) -> int:
    """Measure what forgetting costs: distinct counts that remember against those that forget."""
    return _run("price", seed, deep=deep, as_json=as_json)


@audits.command("reconstruct")
def audit_reconstruct(
    seed: SeedOption = None, deep: DeepOption = False, as_json: JsonOption = False
) -> int:
    """Read secret bits out of counts that forget: exact ones, noisy ones, and ours."""
    return _run("reconstruct", seed, deep=deep, as_json=as_json)


@audits.command("differencing")
def audit_differencing(
    seed: SeedOption = None, deep: DeepOption = False, as_json: JsonOption = False
) -> int:
    """Subtract the publications before and after a deletion, and read who was deleted."""
    return _run("differencing", seed, deep=deep, as_json=as_json)


@audits.command("report")
def audit_report(
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="FILE.html, FILE.md or FILE.json; the first two with a FILE.json.",
        ),
    ] = None,
    from_: Annotated[
        list[Path] | None,
        typer.Option("--from", help="What an audit's --json printed; then none is run."),
    ] = None,
    store: Annotated[
        Path | None, typer.Option("--store", help="A store whose privacy statement goes in too.")
    ] = None,
    seed: SeedOption = None,
    deep: DeepOption = False,
    as_json: JsonOption = False,
) -> int:
    """Put the verdicts of all audits on one page, each with its figures and its command."""
    from retrodp.audit import page, verdicts  # noqa: PLC0415  see above

    if output is not None:
        page.form_of(output)  # before anything runs
    elif not as_json:
        raise UsageError(
            "The report has no place to go.", do="Name a page with -o FILE.html, or give --json."
        )
    if from_ and (deep or seed is not None):
        raise UsageError(
            "--from shows audits that were run before; --seed and --deep run new ones.",
            do="Leave out one or the other.",
        )
    statement = None if store is None else _statement(store)
    documents = [_read(path) for path in from_] if from_ else _run_all(seed, deep=deep)
    found = verdicts.document(documents, statement=statement)
    for path, content in page.contents(output, found).items() if output is not None else ():
        with whole_file(path) as file:
            file.write(content)
    if as_json:
        print_json(found)
    elif output is not None:
        _tell(output, found)
    return 0 if found["passed"] else 1


def _statement(store: Path) -> dict[str, Any]:
    from retrodp.views import statement as statement_view  # noqa: PLC0415  as the command itself
    from retrodp.views.published import Published  # noqa: PLC0415

    with Published.open(store) as published:
        return statement_view.document(published)


def _run_all(seed: str | None, *, deep: bool) -> list[dict[str, Any]]:
    from retrodp.audit.coins import Seed  # noqa: PLC0415  see above
    from retrodp.audit.suite import AUDITS  # noqa: PLC0415

    chosen = Seed.fresh().hex if seed is None else Seed(seed).hex
    return [_audited(name, chosen, deep=deep, only=None)[1] for name in AUDITS]


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except ValueError:
        found = None
    if not isinstance(found, dict) or "audit" not in found or "rows" not in found:
        raise UsageError(
            f"{path} is no document of an audit.",
            expected="what `retrodp audit privacy --json` prints",
            do="Write one: retrodp audit privacy --json > privacy.json",
        )
    return found


def _tell(output: Path, found: dict[str, Any]) -> None:
    out = console()
    for one in found["audits"]:
        style = "" if one["passed"] else "bold red"
        out.print(f"{one['audit']}: {one['verdict']}", style=style, markup=False, soft_wrap=True)
    if found["missing"]:
        out.print(f"Not in the report: {', '.join(found['missing'])}.", markup=False)
    out.print(f"Report: {output}", markup=False, soft_wrap=True)


def _audited(
    name: str, seed: str | None, *, deep: bool, only: str | None
) -> tuple[list[Row], dict[str, Any]]:
    from retrodp.audit import suite  # noqa: PLC0415  see above
    from retrodp.audit.coins import Seed  # noqa: PLC0415

    chosen = Seed.fresh() if seed is None else Seed(seed)
    with notes().status("Auditing") as status:

        def progress(what: str) -> None:
            status.update(f"Auditing: {what}")

        return suite.run(name, chosen, progress, deep=deep, only=only or "")


def _run(name: str, seed: str | None, *, deep: bool, as_json: bool, only: str | None = None) -> int:
    began = time.monotonic()
    rows, found = _audited(name, seed, deep=deep, only=only)
    if as_json:
        print_json(found)
    else:
        _show(rows)
        _conclude(found)
        counts = ", ".join(f"{number} {verdict}" for verdict, number in found["counts"].items())
        console().print(
            f"{counts}; {time.monotonic() - began:.0f} s. Again: --seed {found['seed']}",
            soft_wrap=True,
        )
    return 0 if found["passed"] else 1


def _conclude(found: dict[str, Any]) -> None:
    """The verdict in a sentence, the chance of a false alarm, and how much it says."""
    from retrodp.audit import verdicts  # noqa: PLC0415  see above

    (one,) = verdicts.document([found])["audits"]
    for line in (one["verdict"], one["alpha_means"], f"Power: {one['power']}"):
        console().print(line, markup=False, soft_wrap=True)


def _show(rows: Sequence[Row]) -> None:
    """A table for every test, failures last so that they stay on the screen."""
    from retrodp.audit.report import FAILURES  # noqa: PLC0415  see above

    tests: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        title = "planted faults" if row.test.startswith("planted fault") else row.test
        tests["adaptive game" if row.test.startswith("adversary") else title].append(row)
    for title, of_test in tests.items():
        table = Table(title=title, title_justify="left", show_edge=False, pad_edge=False)
        for column in ("mechanism", "model", "factor", "claim", "measured", "verdict"):
            table.add_column(column, overflow="fold")
        for row in of_test:
            name = row.mechanism
            if title == "adaptive game":
                name = f"{name}; {row.test.removeprefix('adversary: ')}"
            style = STYLES.get(row.verdict)
            table.add_row(
                name, row.model, row.factor, row.claim, row.measured, row.verdict, style=style
            )
        console().print(table)
        console().print()
    for row in rows:
        if row.verdict == "left out":
            text = f"LEFT OUT: {row.mechanism}: {row.measured}"
            console().print(text, markup=False, soft_wrap=True)
        if row.verdict in FAILURES:
            console().print(
                f"{row.verdict.upper()}: {row.mechanism} ({row.model}, {row.factor}), {row.test}: "
                f"{row.measured} against {row.claim}",
                style="bold red",
                markup=False,
            )
