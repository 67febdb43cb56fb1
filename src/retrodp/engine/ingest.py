"""Files and standard input into a store, one source after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import BinaryIO

from retrodp.engine.store import Ingested, Store
from retrodp.stream.intake import Tally
from retrodp.stream.rejected import RefusedRow
from retrodp.stream.sources import STANDARD_INPUT, Format, expand, read_file, read_stream


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What became of all sources. For the operator only: counts tell what the ledger holds.

    Attributes:
        sources: How many were read.
        tally: Rows by what became of them.
        new: Rows that were not waiting yet.
        refused: Malformed rows, by file and line.
    """

    sources: int
    tally: Tally
    new: int
    refused: tuple[RefusedRow, ...]

    def to_json(self) -> dict[str, object]:
        """Counts only."""
        tally = self.tally
        return {
            "sources": self.sources,
            "read": tally.read,
            "accepted": tally.accepted,
            "new": self.new,
            "refused": tally.refused,
            "ignored": dict(tally.ignored),
            "clamped": dict(tally.clamped),
            "ambiguous_times": tally.ambiguous,
            "nonexistent_times": tally.nonexistent,
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
    tally, new, refused = Tally(), 0, list[RefusedRow]()
    paths = expand(patterns)
    for path in paths:
        if on_source is not None:
            on_source(path)
        batches = (
            read_stream(stdin, store.layout(), format_=format_ or "csv")
            if path == STANDARD_INPUT
            else read_file(path, store.layout(), format_=format_)
        )
        taken: Ingested = store.ingest(batches, dry_run=dry_run)
        tally += taken.tally
        new += taken.new
        refused += taken.refused
    return IngestReport(len(paths), tally, new, tuple(refused))
