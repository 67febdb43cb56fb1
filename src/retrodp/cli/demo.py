"""The main job end to end on the shipped real data."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from retrodp import demo as shipped
from retrodp.cli.app import FORMAT, JsonOption, app, console, notes, print_json
from retrodp.cli.progress import closing_rounds
from retrodp.engine.forget import read_forgotten
from retrodp.engine.opening import is_store, open_or_create
from retrodp.engine.store import Store
from retrodp.engine.verify import verify
from retrodp.errors import UsageError
from retrodp.plan.plan import Plan
from retrodp.stream.sources import read_file
from retrodp.views import show, summary
from retrodp.views.export import write_file
from retrodp.views.published import Published

TITLE = "A gift shop's order book"
ROUNDS_BEFORE = shipped.LAST_ROUND - 2


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="Where everything is written.")] = Path(
        "demo-out"
    ),
    as_json: JsonOption = False,
) -> None:
    """Run the main job on a shop's real order book: publish a year, forget two customers, prove it.

    Running it again on the same folder changes nothing; a new folder has a new key.
    """
    if is_store(out):
        raise UsageError(
            f"{out} is the directory of a store, and only the store's own files belong there.",
            do="Name a new directory with --out.",
        )
    out.mkdir(parents=True, exist_ok=True)
    directory, receipts = out / "store", out / "receipts.jsonl"
    with open_or_create(directory, Plan.load(shipped.plan_path())) as store:
        _run(store, receipts, quiet=as_json)
        store.settle()
        if not as_json:
            notes().print("Verifying: recomputing the last round and reading every byte")
        certificate = verify(store, read_forgotten(receipts)).document
    with Published.open(directory) as published:
        paths = _export(published, out)
        if as_json:
            print_json(
                {
                    "format": FORMAT,
                    "published": show.document(published),
                    "certificate": certificate,
                    "source": shipped.counts(),
                    "paths": {name: str(path) for name, path in paths.items()},
                }
            )
            return
        summary.render(
            console(),
            published,
            certificate=certificate,
            paths={"Store": directory, "Key": f"{directory}.key", **paths, "Receipts": receipts},
            try_next=_try_next(directory),
            forgotten=_story(),
        )


def _run(store: Store, receipts: Path, *, quiet: bool) -> None:
    """The daily job until the end of the plan, wherever an earlier run stopped."""
    if store.round < ROUNDS_BEFORE:
        if not quiet:
            notes().print("Reading the order book (2010-12-01 to 2011-12-09)")
        store.ingest(read_file(shipped.data_path(), store.layout()))
    with closing_rounds(quiet=quiet or store.round >= store.horizon) as shown:

        def progress(_done: int, _todo: int) -> None:
            if shown is not None:
                shown(store.round, store.horizon)

        store.close_through(max(ROUNDS_BEFORE, store.round), progress=progress)
        if store.round == ROUNDS_BEFORE:
            _forget(store, receipts)
        store.close_through(store.horizon, progress=progress)


def _forget(store: Store, receipts: Path) -> None:
    made = store.forget(persons=shipped.FORGET_CUSTOMERS)
    lines = [json.dumps(receipt.to_json(), ensure_ascii=False) for receipt in made]
    receipts.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _export(published: Published, out: Path) -> dict[str, Path]:
    from retrodp.views import report  # noqa: PLC0415  templates take time

    paths = {
        "Report": out / "report.html",
        "CSV": out / "releases.csv",
        "Parquet": out / "releases.parquet",
    }
    report.write_file(published, paths["Report"], title=TITLE)
    write_file(published, paths["CSV"], format="csv")
    write_file(published, paths["Parquet"], format="parquet")
    return paths


def _story() -> list[str]:
    """What was forgotten and what never was part of the data, in sentences."""
    customers = " and ".join(shipped.FORGET_CUSTOMERS)
    prefix = "left_out_"
    left_out = ", ".join(
        f"{number:,} {name.removeprefix(prefix).replace('_', ' ')}"
        for name, number in shipped.counts().items()
        if name.startswith(prefix)
    )
    return [
        f"Customers {customers} asked to be forgotten after round {ROUNDS_BEFORE}.",
        f"Left out of the data from the start: {left_out}.",
    ]


def _try_next(directory: Path) -> list[str]:
    command = _command()
    return [
        f"{command} show --store {directory}",
        f"{command} new my-plan.toml --from my-updates.csv",
        f"{command} check my-plan.toml",
        f"{command} run my-plan.toml my-updates.csv --store my-store",
    ]


def _command() -> str:
    """How this program is called from here: by name if the shell finds it, else by its path."""
    called = Path(sys.argv[0])
    found = shutil.which("retrodp")
    if found is not None and Path(found).resolve() == called.resolve():
        return "retrodp"
    return os.path.relpath(called)
