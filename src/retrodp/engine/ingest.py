"""Files and standard input into a store, one source after the other."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from retrodp.engine.store import Ingested, Store
from retrodp.errors import SourceError
from retrodp.stream.intake import Tally
from retrodp.stream.rejected import RefusedRow
from retrodp.stream.sources import STANDARD_INPUT, Format, expand, read_file, read_stream


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What became of all sources. For the operator only: counts tell what the ledger holds.

    Attributes:
        sources: How many were read.
        repeated: How many of them were left out, because they wait already (streams without ids).
        tally: Rows by what became of them.
        new: Rows that were not waiting yet.
        refused: Malformed rows, by file and line.
    """

    sources: int
    repeated: int
    tally: Tally
    new: int
    refused: tuple[RefusedRow, ...]

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
    paths = expand(patterns)
    for path in paths:
        if on_source is not None:
            on_source(path)
        if path == STANDARD_INPUT:
            content = io.BytesIO(stdin.read())
            digest = hashlib.sha256(content.getbuffer()).hexdigest()
            batches = read_stream(content, store.layout(), format_=format_ or "csv")
        else:
            digest = _digest_of_file(path)
            batches = read_file(path, store.layout(), format_=format_)
        taken: Ingested = store.ingest(batches, digest=digest, dry_run=dry_run)
        repeated += taken.repeated
        tally += taken.tally
        new += taken.new
        refused += taken.refused
    return IngestReport(len(paths), repeated, tally, new, tuple(refused))


def _digest_of_file(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise SourceError(
            f"{path} cannot be read ({error.strerror}).", do="Check the path."
        ) from None
