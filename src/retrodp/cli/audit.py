"""The audits: `retrodp audit retroactivity`, `privacy`, `price`, `reconstruct`, `differencing`."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Annotated

import typer
from rich.table import Table

from retrodp.audit import (
    differencing,
    faults,
    game,
    price,
    privacy,
    reconstruct,
    retroactivity,
)
from retrodp.audit.coins import Seed
from retrodp.audit.report import FAILURES, Row, document, failed
from retrodp.cli.app import JsonOption, app, console, notes, print_json

GAMES_MISS = 1e-3
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


@audits.command("retroactivity")
def audit_retroactivity(
    seed: SeedOption = None, deep: DeepOption = False, as_json: JsonOption = False
) -> int:
    """Run histories that unite through every release, and compare the answers byte by byte."""

    def run(chosen: Seed, progress: Callable[[str], None]) -> list[Row]:
        size = retroactivity.DEEP if deep else retroactivity.SMOKE
        return retroactivity.audit(chosen, size, progress)

    return _run(run, seed, deep=deep, as_json=as_json)


@audits.command("privacy")
def audit_privacy(
    seed: SeedOption = None, deep: DeepOption = False, as_json: JsonOption = False
) -> int:
    """Measure lower bounds on epsilon, play the adaptive game, and hunt planted faults."""

    def run(chosen: Seed, progress: Callable[[str], None]) -> list[Row]:
        size = privacy.DEEP if deep else privacy.SMOKE
        rows = privacy.audit(chosen, size, progress)
        plays = game.DEEP if deep else game.SMOKE
        rows += game.audit(chosen, plays, miss=GAMES_MISS, progress=progress)
        progress("planted faults")
        rows += faults.controls(chosen, size, miss=privacy.miss_of_case(size))
        return rows

    return _run(run, seed, deep=deep, as_json=as_json)


@audits.command("price")
def audit_price(
    seed: SeedOption = None, deep: DeepOption = False, as_json: JsonOption = False
) -> int:
    """Measure what forgetting costs: distinct counts that remember against those that forget."""

    def run(chosen: Seed, progress: Callable[[str], None]) -> list[Row]:
        return price.audit(chosen, price.DEEP if deep else price.SMOKE, progress)

    return _run(run, seed, deep=deep, as_json=as_json)


@audits.command("reconstruct")
def audit_reconstruct(
    seed: SeedOption = None, deep: DeepOption = False, as_json: JsonOption = False
) -> int:
    """Read secret bits out of counts that forget: exact ones, noisy ones, and ours."""

    def run(chosen: Seed, progress: Callable[[str], None]) -> list[Row]:
        size = reconstruct.DEEP if deep else reconstruct.SMOKE
        return reconstruct.audit(chosen, size, progress)

    return _run(run, seed, deep=deep, as_json=as_json)


@audits.command("differencing")
def audit_differencing(
    seed: SeedOption = None, deep: DeepOption = False, as_json: JsonOption = False
) -> int:
    """Subtract the publications before and after a deletion, and read who was deleted."""

    def run(chosen: Seed, progress: Callable[[str], None]) -> list[Row]:
        size = differencing.DEEP if deep else differencing.SMOKE
        return differencing.audit(chosen, size, progress)

    return _run(run, seed, deep=deep, as_json=as_json)


def _run(
    audit: Callable[[Seed, Callable[[str], None]], list[Row]],
    seed: str | None,
    *,
    deep: bool,
    as_json: bool,
) -> int:
    chosen = Seed.fresh() if seed is None else Seed(seed)
    began = time.monotonic()
    with notes().status("Auditing") as status:

        def progress(what: str) -> None:
            status.update(f"Auditing: {what}")

        rows = audit(chosen, progress)
    found = document(rows, seed=chosen.hex, deep=deep)
    if as_json:
        print_json(found)
    else:
        _show(rows)
        counts = ", ".join(f"{number} {verdict}" for verdict, number in found["counts"].items())
        console().print(
            f"{counts}; {time.monotonic() - began:.0f} s. Again: --seed {chosen.hex}",
            soft_wrap=True,
        )
    return 1 if failed(rows) else 0


def _show(rows: Sequence[Row]) -> None:
    """A table for every test, failures last so that they stay on the screen."""
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
