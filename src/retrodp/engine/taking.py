"""Taking updates in: sources and frames into the queue of a ledger.

Promise: a source is taken whole or, if it is refused, not at all. What becomes of a row depends on
the plan, the calendar, the first open round and the row alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from retrodp.engine.collecting import paused
from retrodp.engine.outcomes import Ingested
from retrodp.noise.key import KeyTree
from retrodp.plan.plan import Plan
from retrodp.store.ledger import Ledger
from retrodp.stream.clock import Clock
from retrodp.stream.intake import Intake, Tally
from retrodp.stream.rejected import RefusedRow
from retrodp.stream.sources import RawBatch

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class Taking:
    """Where updates go that a store takes in."""

    plan: Plan
    clock: Clock
    ledger: Ledger

    @property
    def intake(self) -> Intake:
        """The rules of form."""
        return Intake(self.plan, self.clock)

    @paused()
    def take(
        self,
        batches: Iterable[RawBatch],
        *,
        default_at: int | None,
        digest: str | None = None,
        dry_run: bool = False,
    ) -> Ingested:
        """Take the rows of one source in; see `Store.ingest`."""
        tally, refused, new, last = Tally(), list[RefusedRow](), 0, 0
        first_open, intake = self.ledger.facts.round + 1, self.intake
        with self.ledger.transaction():
            for raw in batches:
                taken = intake.take(raw, first_open=first_open, default_at=default_at)
                tally += taken.tally
                refused += taken.refused
                if not dry_run:
                    new += self.ledger.waiting.enqueue(taken.arrivals)
                    last = max(last, taken.arrivals.span()[1])
            if digest is not None and last:
                self.ledger.memory.take_source(digest, last)
        return Ingested(tally, tuple(refused), new)

    def now(self, round_: int) -> int:
        """An instant of a round after all that waits for it, as far as it has room."""
        first, end = self.clock.start_of(round_), self.clock.end_of(round_)
        latest = self.ledger.waiting.latest(round_)
        return first if latest is None else min(latest + 1, end - 1)


def keyed_digest(tree: KeyTree, digest: str) -> str:
    """A source's digest under the store's key, so that the ledger confirms no guess of a file."""
    key = tree.lasting_key(release="", purpose="source")
    return hashlib.blake2b(digest.encode(), key=key, digest_size=16).hexdigest()


def deletions(plan: Plan, ids: Iterable[str]) -> pa.Table:
    """Rows that delete records by id, without their instant."""
    import pyarrow as pa  # noqa: PLC0415  heavy, and only frames need it

    names = list(ids)
    id_, op = (plan.reserved.get(name, name) for name in ("id", "op"))
    return pa.table({id_: names, op: ["delete"] * len(names)})
