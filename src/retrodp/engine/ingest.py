"""Files and standard input into a store, one source after the other."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from retrodp.engine.store import Ingested, Store
from retrodp.errors import SourceError
from retrodp.plan.plan import Plan
from retrodp.stream.clock import Clock
from retrodp.stream.intake import Intake, Tally
from retrodp.stream.rejected import RefusedRow
from retrodp.stream.sources import (
    STANDARD_INPUT,
    Format,
    Layout,
    RawBatch,
    expand,
    read_file,
    read_stream,
)


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What became of all sources. For the operator only: counts tell what the ledger holds.

    Attributes:
        sources: How many were read.
        repeated: How many of them were left out, because they wait already (streams without ids).
        tally: Rows by what became of them.
        new: Rows that were not waiting yet.
        refused: Malformed rows, by file and line.
        extra: Columns of the sources that the plan does not have.
    """

    sources: int
    repeated: int
    tally: Tally
    new: int
    refused: tuple[RefusedRow, ...]
    extra: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Counts only."""
        tally = self.tally
        return {
            "sources": self.sources,
            "sources_repeated": self.repeated,
            "read": tally.read,
            "accepted": tally.accepted,
            "new": self.new,
            "refused": tally.refused,
            "ignored": dict(tally.ignored),
            "clamped": dict(tally.clamped),
            "ambiguous_times": tally.ambiguous,
            "nonexistent_times": tally.nonexistent,
            "date_only_times": tally.date_only,
            "extra_columns": list(self.extra),
        }


def ingest_sources(
    store: Store,
    patterns: Iterable[str],
    *,
    stdin: BinaryIO,
    format_: Format | None = None,
    dry_run: bool = False,
    on_source: Callable[[str], None] | None = None,
) -> IngestReport:
    """Take in every file that the patterns name; "-" is standard input.

    Every source is one transaction: a source that is refused whole leaves nothing behind, and
    those before it stay.
    """
    tally, new, repeated, refused = Tally(), 0, 0, list[RefusedRow]()
    extra: dict[str, None] = {}
    paths = expand(patterns)
    for path in paths:
        if on_source is not None:
            on_source(path)
        if path == STANDARD_INPUT:
            content = stdin.read()
            digest = hashlib.sha256(content).hexdigest()
            batches = _batches(path, store.layout(), stdin=io.BytesIO(content), format_=format_)
        else:
            digest = _digest_of_file(path)
            batches = _batches(path, store.layout(), stdin=stdin, format_=format_)
        noting = _noting(batches, extra)
        taken: Ingested = store.ingest(noting, digest=digest, dry_run=dry_run)
        repeated += taken.repeated
        tally += taken.tally
        new += taken.new
        refused += taken.refused
    return IngestReport(len(paths), repeated, tally, new, tuple(refused), tuple(extra))


def check_sources(
    plan: Plan, patterns: Iterable[str], *, stdin: BinaryIO, format_: Format | None = None
) -> None:
    """Raise `SourceError` if a source does not have the plan's columns; takes nothing.

    For a plan that no store has yet: it may still be changed to fit.
    """
    layout = Intake(plan, Clock.of_stream(plan.stream)).layout()
    for path in expand(patterns):
        next(iter(_batches(path, layout, stdin=stdin, format_=format_)), None)


def _batches(
    path: str, layout: Layout, *, stdin: BinaryIO, format_: Format | None
) -> Iterator[RawBatch]:
    if path == STANDARD_INPUT:
        return read_stream(stdin, layout, format_=format_ or "csv")
    return read_file(path, layout, format_=format_)


def _noting(batches: Iterable[RawBatch], extra: dict[str, None]) -> Iterator[RawBatch]:
    """The batches; notes which columns nobody asked for."""
    for batch in batches:
        extra.update(dict.fromkeys(batch.extra))
        yield batch


def _digest_of_file(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except IsADirectoryError:
        raise SourceError(
            f"{path} is a directory.", do=f"Name files, or a quoted pattern such as '{path}/*.csv'."
        ) from None
    except OSError as error:
        raise SourceError(
            f"{path} cannot be read ({error.strerror}).", do="Check the path."
        ) from None
