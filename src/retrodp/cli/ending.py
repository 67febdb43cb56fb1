"""Commands for the end of a store and what comes after it: retire, continue, restore."""

from __future__ import annotations

import sys
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
    print_json,
)
from retrodp.engine.backup import UNKNOWN, Place
from retrodp.engine.forget import Forgotten, read_forgotten
from retrodp.engine.restore import Restored, examine, restore_as_is, restore_into
from retrodp.engine.store import Store
from retrodp.errors import UsageError
from retrodp.plan.plan import Plan
from retrodp.views import words
from retrodp.views.figures import counted

EraseOption = Annotated[
    bool, typer.Option("--erase-ledger", help="Take out every record and waiting update too.")
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@app.command()
def retire(
    store: StoreOption,
    erase_ledger: EraseOption = False,
    yes: YesOption = False,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """End a store: destroy its key, on request every record; the releases stay."""
    with Store.open(store, key=keeper_of(store, key)) as opened:
        confirm(
            f"Retire the store {store}? Its key is destroyed: no round can be closed any more, "
            "and nobody can remove the noise of a past one."
            + (" Every record is erased." if erase_ledger else ""),
            yes=yes,
        )
        opened.retire(erase_ledger=erase_ledger)
        document: dict[str, Any] = {
            "format": FORMAT,
            "store": opened.store_id,
            "retired": True,
            "round": opened.round,
            "horizon": opened.horizon,
            "ledger_erased": erase_ledger,
            "survivors": opened.ledger.survivor_count(),
            "waiting": opened.ledger.waiting.count(),
        }
    if as_json:
        print_json(document)
        return
    out = console()
    out.print(f"The store is retired after round {document['round']:,}. Its key is destroyed.")
    if erase_ledger:
        out.print("Every record is erased. `retrodp verify --forgotten` proves it.")
    else:
        out.print(
            f"{counted(document['survivors'], 'record')} and "
            f"{counted(document['waiting'], 'waiting update')} are still in the ledger; "
            "--erase-ledger takes them out."
        )
    out.print("The releases stay: `retrodp show` and `retrodp export` need no key.")


@app.command(name="continue")
def continue_(
    plan: Annotated[
        Path, typer.Argument(help="The successor plan: it starts where this one ends.")
    ],
    store: StoreOption,
    yes: YesOption = False,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Go on after the last round, under a successor plan, a new key and a budget of its own."""
    read = Plan.load(plan)
    with Store.open(store, key=keeper_of(store, key)) as opened:
        before = opened.epoch.statement(opened.resolved)
        after = _budget_after(opened, read)
        if after is not None:
            opened.require_successor(read)
            confirm(
                f"Go on after round {opened.round:,} under {plan}? It spends epsilon "
                f"{after['own']['epsilon']:g} and delta {after['own']['delta']:.3g} of its own. All "
                f"epochs together then spend epsilon {after['total']['epsilon']:g} and delta "
                f"{after['total']['delta']:.3g}. The old key is destroyed.",
                yes=yes,
            )
        begun = opened.go_on(read)
        document = {
            "format": FORMAT,
            "store": opened.store_id,
            "epoch": opened.epoch.number,
            "begun": begun,
            "round": opened.round,
            "horizon": opened.horizon,
            "survivors": opened.ledger.survivor_count(),
            "budget_before": before["total"],
            "budget": opened.epoch.statement(opened.resolved),
        }
    if as_json:
        print_json(document)
        return
    out = console()
    if not begun:
        out.print(f"Epoch {document['epoch']} runs under this plan already; nothing was changed.")
        return
    budget = document["budget"]
    out.print(
        f"Epoch {document['epoch']} has begun: rounds {document['round'] + 1:,} to "
        f"{document['horizon']:,}, from {document['survivors']:,} surviving records. The old key is "
        "destroyed."
    )
    out.print(
        f"Spent before: epsilon {before['total']['epsilon']:g}, delta {before['total']['delta']:.3g}."
        f" This epoch: epsilon {budget['own']['epsilon']:g}, delta {budget['own']['delta']:.3g}. "
        f"{words.spent(budget)}"
    )


def _budget_after(store: Store, plan: Plan) -> dict[str, Any] | None:
    """What all epochs spend once the plan has begun; None if it has."""
    if store.epoch.runs_under(plan, store.resolved):
        return None
    ended = store.epoch.ended(store.resolved, store=store.store_id, continued=False)
    return ended.with_plan(plan)


@app.command()
def restore(
    store: StoreOption,
    last_round: Annotated[
        str | None,
        typer.Option(
            "--last-round",
            help="Last round of it that was published anywhere (0: none), or `unknown`.",
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option("--plan", help="Plan of a new epoch: its start, horizon and budget."),
    ] = None,
    into: Annotated[
        Path | None, typer.Option("--into", help="New directory for the new epoch.")
    ] = None,
    into_key: Annotated[
        str | None, typer.Option("--into-key", help="Its key, as --key. Default: beside it.")
    ] = None,
    forgotten: Annotated[
        Path | None,
        typer.Option("--forgotten", help="Requests or receipts since the back-up, one a line."),
    ] = None,
    erase_ledger: EraseOption = False,
    yes: YesOption = False,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring a back-up into use, as it is or as a new epoch under a new key and budget."""
    last = _last_round(last_round)
    requests = _requests(forgotten)
    old = Place(store, keeper_of(store, key))
    if (plan is None) != (into is None):
        raise UsageError(
            "--plan and --into belong together.",
            do="Give both for a new epoch under a new key, none to go on as it is.",
        )
    if plan is None or into is None:
        for name, given in (("--into-key", into_key), ("--erase-ledger", erase_ledger)):
            if given:
                raise UsageError(f"{name} belongs to a new epoch; give --plan and --into too.")
        done = restore_as_is(old, last_round=last, forgotten=requests)
    else:
        new = Place(into, keeper_of(into, into_key))
        read = Plan.load(plan)
        found = examine(old, last_round=last)
        confirm(
            f"Open a new epoch in {into}, from the records after round {found.round}? It has a "
            f"budget of its own, which adds to what was spent. {store} is retired"
            + (" and its records erased." if erase_ledger else "."),
            yes=yes,
        )
        done = restore_into(
            new,
            read,
            backup=old,
            last_round=last,
            forgotten=requests,
            erase_ledger=erase_ledger,
        )
    document = _document(done, store if into is None else into, forgotten=len(requests))
    if as_json:
        print_json(document)
        return
    _tell(document)


def confirm(question: str, *, yes: bool) -> None:
    """Go on only if somebody agrees; without a terminal only with --yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(
            "This cannot be undone and nobody is there to be asked.",
            do="Give --yes if it is meant.",
        )
    if not typer.confirm(question, err=True):
        raise UsageError("Nothing was changed.")


def _last_round(text: str | None) -> int | None:
    if text is None:
        question = "Last round published anywhere (a file, a page, a table; 0: none), or unknown"
        if not sys.stdin.isatty():
            raise UsageError(
                "The last round that was published is not named.",
                expected=f"--last-round with a number (0: none was published), or {UNKNOWN}",
                do="Look at the newest export or page; a back-up cannot know it.",
            )
        text = str(typer.prompt(question, err=True))
    if text.strip() == UNKNOWN:
        return None
    if not text.strip().isdecimal():
        raise UsageError(
            f"--last-round is {text!r}.", expected=f"a whole number from 0, or {UNKNOWN}"
        )
    return int(text)


def _requests(path: Path | None) -> list[Forgotten]:
    requests = read_forgotten(path) if path else []
    if any(request.kind == "value" for request in requests):
        raise UsageError(f"{path}: a request names an id or a person, not a value.")
    return requests


def _document(done: Restored, directory: Path, *, forgotten: int) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "how": done.how,
        "directory": str(directory),
        "round": done.round,
        "backup_round": done.found.round,
        "last_round_released": done.found.released,
        "why": done.found.reason or None,
        "redeliver_from": done.found.redeliver_from,
        "waiting_left_behind": done.left_behind,
        "forget_requests": forgotten,
        "budget": done.budget,
    }


def _tell(document: dict[str, Any]) -> None:
    out = console()
    total = document["budget"]["total"]
    spent = f"epsilon {total['epsilon']:g}, delta {total['delta']:.3g}"
    if document["how"] == "as_is":
        out.print(f"The store goes on after round {document['round']:,}, under its key and budget.")
    else:
        out.print(
            f"A new epoch is open in {document['directory']}, under a new key. The old key is "
            "destroyed.",
            markup=False,
            soft_wrap=True,
        )
        if document["why"]:
            out.print(f"The back-up could not go on: {document['why']}.", markup=False)
        out.print(f"Budgets add up: all epochs together spend {spent}.")
    out.print(f"Deliver again every update that arrived from {document['redeliver_from']} on.")
    if document["waiting_left_behind"]:
        out.print(
            f"{document['waiting_left_behind']:,} of the updates that waited in the back-up were "
            "not carried over; they are among these."
        )
    if not document["forget_requests"]:
        out.print(
            "Repeat every forget request made since the back-up: `retrodp forget`, or --forgotten "
            "with the receipts."
        )
