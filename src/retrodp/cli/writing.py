"""Commands that change a store: run, ingest, close, forget."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from retrodp.cli.app import (
    FORMAT,
    REFUSED_ROWS,
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
from retrodp.cli.progress import closing_rounds
from retrodp.engine.forget import read_forgotten
from retrodp.engine.ingest import IngestReport, check_sources, ingest_sources
from retrodp.engine.opening import is_store, open_or_create
from retrodp.engine.store import Store
from retrodp.errors import UsageError
from retrodp.plan.plan import Plan
from retrodp.stream.rejected import write_rejected
from retrodp.stream.sources import STANDARD_INPUT, Format
from retrodp.views.figures import counted

FilesArgument = Annotated[
    list[str], typer.Argument(help="CSV, JSON Lines, Parquet or Arrow files; globs; - for stdin.")
]
ThroughOption = Annotated[
    str | None,
    typer.Option("--through", help="Last date to close. Default: the last round that has ended."),
]
FormatOption = Annotated[
    str | None,
    typer.Option("--format", help="csv, jsonl, parquet or arrow, if the name does not tell."),
]
RejectedOption = Annotated[
    Path | None,
    typer.Option("--rejected", help="Where refused rows are listed. Default: DIR.rejected.csv."),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Judge the rows, take nothing.")]


@app.command()
def run(
    plan: Annotated[Path, typer.Argument(help="The plan, a TOML file.")],
    files: FilesArgument,
    store: StoreOption,
    key: KeyOption = None,
    through: ThroughOption = None,
    format_: FormatOption = None,
    rejected: RejectedOption = None,
    as_json: JsonOption = False,
) -> int:
    """Take in all files, then close every round that is over. The same again changes nothing."""
    _require_place(rejected)
    read, stdin = Plan.load(plan), _Stdin()
    if not is_store(store):
        # A store keeps its plan for ever, so a plan that does not fit the files makes none.
        check_sources(read, files, stdin=stdin.opened(files), format_=known_format(format_))
    with open_or_create(store, read, key=keeper_of(store, key)) as opened:
        last = _last(opened, through)
        report = _take(opened, files, stdin, format_=format_, dry_run=False, quiet=as_json)
        closed = _close(opened, last, quiet=as_json)
        document = {"ingested": report.to_json(), **_closed(opened, closed)}
        code = _list_refused(opened, report, rejected)
    _tell(document, report=report, as_json=as_json)
    return code


@app.command()
def ingest(
    files: FilesArgument,
    store: StoreOption,
    key: KeyOption = None,
    format_: FormatOption = None,
    rejected: RejectedOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> int:
    """Take in updates; they wait until their round closes."""
    _require_place(rejected)
    with Store.open(store, key=keeper_of(store, key)) as opened:
        report = _take(opened, files, _Stdin(), format_=format_, dry_run=dry_run, quiet=as_json)
        code = _list_refused(opened, report, rejected)
        document = {"ingested": report.to_json(), "dry_run": dry_run}
    _tell(document, report=report, as_json=as_json)
    return code


@app.command()
def close(
    store: StoreOption,
    key: KeyOption = None,
    through: ThroughOption = None,
    as_json: JsonOption = False,
) -> None:
    """Close every round that is over and publish it; empty rounds publish too."""
    with Store.open(store, key=keeper_of(store, key)) as opened:
        closed = _close(opened, _last(opened, through), quiet=as_json)
        document = _closed(opened, closed)
    _tell(document, report=None, as_json=as_json)


@app.command()
def forget(
    store: StoreOption,
    ids: Annotated[list[str] | None, typer.Option("--id", help="Id of a record.")] = None,
    persons: Annotated[
        list[str] | None, typer.Option("--person", help="A person: all their records.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", help="Requests, one a line: an id, or JSON.")
    ] = None,
    close_now: Annotated[
        bool, typer.Option("--close", help="Close the open round at once.")
    ] = False,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Forget records or persons, and print a receipt for each request."""
    wanted_ids, wanted_persons = [*(ids or [])], [*(persons or [])]
    for request in read_forgotten(file) if file else []:
        if request.kind == "value":
            raise UsageError(f"{file}: a request names an id or a person, not a value.")
        (wanted_ids if request.kind == "id" else wanted_persons).append(request.value)
    if not wanted_ids and not wanted_persons:
        raise UsageError("Nothing to forget was named.", do="Give --id, --person or --file.")
    with Store.open(store, key=keeper_of(store, key)) as opened:
        closing = close_now and not opened.over
        if closing:  # a refusal afterwards would keep the receipts from the requesters
            opened.require_closable(opened.round + 1, now=now_micros())
        receipts = opened.forget(wanted_ids, persons=wanted_persons)
        if closing:
            opened.close_round()
        document = {"receipts": [receipt.to_json() for receipt in receipts]}
    if as_json:
        print_json({"format": FORMAT, **document})
        return
    out = console()
    for receipt in document["receipts"]:
        out.print(f"{receipt['kind']} {receipt['value']}", markup=False)
        out.print(f"  {receipt['what_it_means']}", markup=False)
        out.print(f"  receipt: salt {receipt['salt']}", markup=False, soft_wrap=True)
        out.print(f"           hash {receipt['hash']}", markup=False, soft_wrap=True)
    if not all(receipt["erased"] for receipt in document["receipts"]) and not close_now:
        out.print("The bytes are erased when the round closes (`retrodp close`, or --close here).")


class _Stdin:
    """Standard input, read once however often it is looked at."""

    def __init__(self) -> None:
        self._content: bytes | None = None

    def opened(self, files: list[str]) -> BinaryIO:
        """Its content from the beginning, if the files name it."""
        if STANDARD_INPUT not in files:
            return io.BytesIO()
        if self._content is None:
            self._content = sys.stdin.buffer.read()
        return io.BytesIO(self._content)


def _take(
    store: Store,
    files: list[str],
    stdin: _Stdin,
    *,
    format_: str | None,
    dry_run: bool,
    quiet: bool,
) -> IngestReport:
    def reading(source: str) -> None:
        if not quiet:
            notes().print(f"Reading {source}", markup=False, soft_wrap=True)

    report = ingest_sources(
        store,
        files,
        stdin=stdin.opened(files),
        format_=known_format(format_),
        dry_run=dry_run,
        on_source=reading,
    )
    if report.extra and not quiet:
        names = ", ".join(report.extra)
        notes().print(f"Columns not in the plan, ignored: {names}", markup=False, soft_wrap=True)
    return report


def known_format(text: str | None) -> Format | None:
    """The format that `--format` names."""
    match text:
        case None | "csv" | "jsonl" | "parquet" | "arrow":
            return text
        case _:
            raise UsageError(f"There is no format {text!r}.", expected="csv, jsonl, parquet, arrow")


def _last(store: Store, through: str | None) -> int:
    """The round that `--through` means; refused before anything is done."""
    now = now_micros()
    clock = store.clock
    own = clock.last_ended(now) if through is None else clock.round_for_date(through)
    last = store.rounds_before + own
    store.require_closable(last, now=now)
    return last


def _close(store: Store, last: int, *, quiet: bool) -> int:
    with closing_rounds(quiet=quiet or last <= store.round) as progress:
        return store.close_through(last, progress=progress)


def _closed(store: Store, closed: int) -> dict[str, Any]:
    return {
        "rounds_closed": closed,
        "round": store.round,
        "horizon": store.horizon,
        "epoch": store.epoch.number,
        "ignored_at_close": store.ignored,
        "same_time_at_close": store.same_time,
        "waiting": store.ledger.waiting.count(),
    }


def _require_place(rejected: Path | None) -> None:
    """Before anything is taken: afterwards the list of refused rows would be lost."""
    if rejected is not None and not rejected.absolute().parent.is_dir():
        raise UsageError(
            f"{rejected} cannot be written: its directory is not there.",
            do="Make the directory, or name another file with --rejected.",
        )


def _list_refused(store: Store, report: IngestReport, rejected: Path | None) -> int:
    if not report.refused:
        return 0
    path = rejected or store.files.rejected
    write_rejected(path, report.refused)
    notes().print(
        f"{counted(len(report.refused), 'row', 'were')} refused; see {path}.",
        markup=False,
        soft_wrap=True,
    )
    return REFUSED_ROWS


def _tell(document: dict[str, Any], *, report: IngestReport | None, as_json: bool) -> None:
    if as_json:
        print_json({"format": FORMAT, **document})
        return
    out = console()
    if report is not None:
        tally = report.tally
        out.print(
            f"{counted(tally.read, 'row')} read: {tally.accepted:,} accepted ({report.new:,} new), "
            f"{sum(tally.ignored.values()):,} ignored, {tally.refused:,} refused."
        )
        if report.repeated:
            left_out = counted(report.repeated, "source")
            out.print(f"{left_out} left out: taken in before, and waiting for the close.")
        if ignored := sum(tally.ignored.values()):
            out.print(f"Ignored: {counted(ignored, 'row')} of rounds that are closed already.")
        for column, number in tally.clamped.items():
            moved = "was" if number == 1 else "were"
            out.print(
                f"{counted(number, 'value')} of {column} {moved} moved to a bound.", markup=False
            )
    if "round" in document:
        out.print(
            f"{counted(document['rounds_closed'], 'round')} closed; round {document['round']:,} of "
            f"{document['horizon']:,} is the last. "
            f"{counted(document['waiting'], 'update', 'wait')}."
        )
