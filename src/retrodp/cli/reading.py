"""Commands that look: check, status, verify, show, export."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from retrodp.cli.app import (
    FORMAT,
    JsonOption,
    KeyOption,
    StoreOption,
    app,
    console,
    keeper_of,
    notes,
    now_micros,
    print_json,
)
from retrodp.engine.check import describe
from retrodp.engine.forget import read_forgotten
from retrodp.engine.resolve import resolve
from retrodp.engine.store import Store
from retrodp.engine.verify import verify as verify_store
from retrodp.errors import UsageError
from retrodp.plan.epochs import Epoch
from retrodp.plan.plan import Plan
from retrodp.views import budget as budget_view
from retrodp.views import show as show_view
from retrodp.views import summary, words
from retrodp.views.export import FORMATS, Format, Selection, write, write_file
from retrodp.views.figures import counted
from retrodp.views.published import TEST, Published
from retrodp.views.vintages import vintage_of

VintageOption = Annotated[
    str,
    typer.Option(
        "--vintage",
        help="Of revised releases: latest, first, all, or a round (as known then).",
    ),
]


@app.command()
def check(
    plan: Annotated[Path, typer.Argument(help="The plan, a TOML file.")],
    after: Annotated[
        Path | None, typer.Option("--after", help="Store that the plan would continue.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say what a plan costs and how large its errors will be. Spends nothing."""
    read = Plan.load(plan)
    before = None if after is None else _ended(after)
    resolved = resolve(read)
    document = describe(read, resolved)
    if before is not None:
        document["all_epochs"] = before.statement(resolved)
    if as_json:
        print_json(document)
        return
    out = console()
    budget_view.render(out, budget_view.document(resolved, before))
    spent = document["budget"]
    out.print("Groups of units", style="bold")
    for group in spent["groups"]:
        out.print(f"  {group['group']}: epsilon {group['epsilon']:g}, delta {group['delta']:.3g}")
    out.print(
        f"Streams that react to earlier releases: epsilon {spent['epsilon_adaptive']:.4g} at the "
        "same delta of conversion, where a release allows them."
    )
    for note in document["notes"]:
        out.print(f"Note: {note}", markup=False)


def _ended(store: Path) -> Epoch:
    """What the next epoch of a store will have before it; from its public files."""
    with Published.open(store) as published:
        horizon = published.epoch.statement(published.resolved).get("open_horizon")
        if horizon is not None and horizon["number"] < horizon["of"]:
            raise UsageError(
                "The horizon of that store is open: it goes on by itself, under its own plan.",
                do="Leave out --after, or name a store whose horizon is over.",
            )
        return published.epoch.ended(published.resolved, store=published.store_id, continued=False)


@app.command()
def status(store: StoreOption, key: KeyOption = None, as_json: JsonOption = False) -> None:
    """Open round, updates waiting, last and next close, gaps."""
    now = now_micros()
    with Store.open(store, key=keeper_of(store, key)) as opened:
        clock, done, own = opened.clock, opened.round, opened.ledger.facts.round
        over = opened.over
        document: dict[str, Any] = {
            "format": FORMAT,
            "store": opened.store_id,
            "round": done,
            "horizon": opened.horizon,
            "retired": opened.retired,
            "epoch": opened.epoch.number,
            "goes_on": not over and own >= opened.horizon - opened.rounds_before,
            "last_close": clock.text_of(clock.boundaries[own]) if done else None,
            "next_close": None if over else clock.text_of(clock.boundaries[own + 1]),
            "rounds_due": 0 if over else max(0, clock.last_ended(now) - own),
            "waiting": opened.ledger.waiting.count(),
            "waiting_rounds": {
                str(opened.rounds_before + round_): number
                for round_, number in sorted(opened.ledger.waiting.rounds().items())
            },
            "forgets_waiting": len(opened.ledger.forgets.waiting()),
            "survivors": opened.ledger.survivor_count(),
            "budget": opened.epoch.statement(opened.resolved),
        }
    if as_json:
        print_json(document)
        return
    out = console()
    out.print(f"Round {done:,} of {document['horizon']:,} is closed.")
    if document["retired"]:
        out.print("The store was retired: its key is destroyed, its releases stay.")
    elif over:
        out.print(
            "The horizon is over. `retrodp continue` goes on under a successor plan with a budget "
            "of its own."
        )
    else:
        out.print(f"Round {done + 1:,} is open and ends {document['next_close']}.")
    out.print(
        f"{counted(document['rounds_due'], 'round', 'are')} over and not closed; "
        f"{counted(document['waiting'], 'update')} and "
        f"{counted(document['forgets_waiting'], 'forget request')} wait; "
        f"{counted(document['survivors'], 'record', 'survive')}."
    )
    if document["budget"]["earlier_stores"]:
        out.print(f"Epoch {document['epoch']}. {words.spent(document['budget'])}")


@app.command()
def verify(
    store: StoreOption,
    forgotten: Annotated[
        Path | None,
        typer.Option("--forgotten", help="Ids, requests or receipts, one a line, to look for."),
    ] = None,
    compact: Annotated[
        bool,
        typer.Option(
            "--compact", help="First rewrite the ledger into the one file that its contents have."
        ),
    ] = False,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> int:
    """Recompute the current round from the survivors and scan every file; writes a certificate."""
    requests = read_forgotten(forgotten) if forgotten else []
    with Store.open(store, key=keeper_of(store, key)) as opened:
        if compact:
            opened.compact()
        outcome = verify_store(opened, requests)
    if as_json:
        print_json(
            {
                **outcome.document,
                "passed": outcome.passed,
                "salts": list(outcome.salts),
                "compacted": compact,
            }
        )
    else:
        out = console()
        if compact:
            out.print("The ledger was rewritten: its bytes follow from what it holds alone.")
        for style, sentence in summary.proof(outcome.document):
            out.print(sentence, style=style, markup=False)
    return 0 if outcome.passed else 1


@app.command()
def show(
    store: StoreOption,
    round_: Annotated[int | None, typer.Option("--round", help="Default: the last one.")] = None,
    top: Annotated[int, typer.Option("--top", help="Bins of each histogram.")] = show_view.TOP,
    vintage: VintageOption = "latest",
    as_json: JsonOption = False,
) -> None:
    """Published numbers with intervals; needs no key."""
    chosen = vintage_of(vintage)
    with Published.open(store) as published:
        document = show_view.document(
            published, round=round_, top=top, now=now_micros(), vintage=chosen
        )
    if as_json:
        print_json(document)
    else:
        show_view.render(console(), document)


@app.command()
def export(
    store: StoreOption,
    format_: Annotated[str, typer.Option("--format", help=", ".join(FORMATS))] = "csv",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File; default: standard output.")
    ] = None,
    release: Annotated[
        list[str] | None, typer.Option("--release", help="Only these releases.")
    ] = None,
    first: Annotated[int | None, typer.Option("--from", help="First round.")] = None,
    last: Annotated[int | None, typer.Option("--to", help="Last round.")] = None,
    latest: Annotated[bool, typer.Option("--latest", help="Only the last round.")] = False,
    vintage: VintageOption = "latest",
    as_json: JsonOption = False,
) -> None:
    """All published numbers as CSV, JSON Lines or Parquet; needs no key."""
    chosen = export_format(format_)
    names = tuple(release or ())
    if latest and (first, last) != (None, None):
        raise UsageError("--latest is the last round alone; --from and --to do not go with it.")
    with Published.open(store) as published:
        if published.is_test:
            notes().print(TEST)
        selection = (
            Selection.latest(published, releases=names)
            if latest
            else Selection(releases=names, first=first, last=last)
        )
        selection = replace(selection, vintage=vintage_of(vintage))
        if output is None:
            if as_json:
                raise UsageError("--json describes a file that was written; name one with -o.")
            if chosen == "parquet":
                raise UsageError("Parquet is not written to standard output; name a file with -o.")
            write(published, sys.stdout.buffer, format=chosen, selection=selection)
            return
        rows = write_file(published, output, format=chosen, selection=selection)
    if as_json:
        print_json({"format": FORMAT, "file": str(output), "rows": rows, "as": chosen})
    else:
        console().print(f"{counted(rows, 'row')} in {output}", markup=False, soft_wrap=True)


def export_format(text: str) -> Format:
    """The format that `--format` names."""
    for format_ in FORMATS:
        if text == format_:
            return format_
    raise UsageError(f"There is no format {text!r}.", expected=", ".join(FORMATS))
