"""A back-up as it lies there: what it is, and whether it may go on under its key.

Promise: it is looked at under the store's lock and without changing it, whatever its parts say of
one another; only `retire` writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from retrodp.engine.files import StoreFiles, require_agreement, require_epoch
from retrodp.errors import (
    GuardError,
    KeyMissingError,
    PlanChangedError,
    StoreCorruptError,
    UsageError,
)
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from retrodp.store.keyfile import KeyKeeper
from retrodp.store.keyrecord import KeyRecord
from retrodp.store.ledger import Ledger
from retrodp.store.lock import StoreLock
from retrodp.store.releases import Releases
from retrodp.stream.clock import Clock

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Place:
    """A store's directory, and where its key is kept."""

    directory: Path
    keeper: KeyKeeper


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a back-up is, beside what was published since.

    Attributes:
        round: Last round that is closed in it.
        released: Last round known to be released by anyone: by the answer given, by the key's
            mark or by the published releases beside it. None if the answer was "unknown".
        horizon: Rounds of its plan.
        reason: Why it must not go on under its key; empty if it may.
        redeliver_from: Instant from which updates have to be delivered again.
    """

    round: int
    released: int | None
    horizon: int
    reason: str
    redeliver_from: str


class Backup:
    """A store's files, read without the agreement that `Store` demands."""

    def __init__(
        self, files: StoreFiles, keeper: KeyKeeper, resolved: ResolvedPlan, ledger: Ledger
    ) -> None:
        self.files = files
        self.keeper = keeper
        self.resolved = resolved
        self.ledger = ledger
        self.plan = Plan.from_dict(resolved.plan)
        self.epoch = files.read_epoch()
        self.clock = Clock.from_boundaries(
            resolved.boundaries, timezone=self.plan.stream.timezone, past=self.epoch.past
        )
        require_epoch(ledger, self.epoch)
        if ledger.fingerprint != resolved.fingerprint:
            raise PlanChangedError(
                "plan.resolved.json is not the one the store was created with.",
                do="Restore the file from a back-up of this store.",
            )
        try:
            self.key: KeyRecord | None = keeper.read()
        except KeyMissingError:
            self.key = None
        else:
            self.key.require(store_id=ledger.store_id, fingerprint=ledger.fingerprint)

    def found(self, last_round: int | None) -> Found:
        """What it is, given the last round that was published anywhere, if anybody knows."""
        if last_round is not None and not 0 <= last_round <= self.clock.horizon:
            raise UsageError(
                f"Round {last_round} is outside the plan.",
                expected=f"0 (nothing was published) to {self.clock.horizon}, or {UNKNOWN}",
            )
        round_ = self.ledger.round
        return Found(
            round=round_,
            released=self._released(last_round),
            horizon=self.clock.horizon,
            reason=self._reason(last_round),
            redeliver_from=self.clock.text_of(self.clock.boundaries[round_]),
        )

    def _released(self, last_round: int | None) -> int | None:
        if last_round is None:
            return None
        marked = 0 if self.key is None else self.key.round
        return max(last_round, marked, self._published())

    def _published(self) -> int:
        try:
            with closing(Releases(self.files.releases)) as releases:
                return releases.last_round
        except StoreCorruptError:
            return 0  # no witness; a store that lacks its releases does not go on anyway

    def _reason(self, last_round: int | None) -> str:
        released = self._released(last_round)
        if self.ledger.retired:
            return "it was retired"
        if self.key is None:
            return f"its key {self.keeper.path} is not there"
        if released is None:
            return "nobody knows which rounds were released since it was made"
        if released > self.ledger.round:
            return (
                f"it ends with round {self.ledger.round}, but round {released} was released, and "
                "releasing it again on other data would cancel its noise"
            )
        try:
            with closing(Releases(self.files.releases)) as releases:
                require_agreement(self.ledger, releases, self.key, self.resolved)
        except GuardError as error:
            return f"its files do not agree ({error.what.rstrip('.')})"
        return ""

    def shift(self, plan: Plan) -> int:
        """How many rounds of the old calendar lie before round 1 of the plan.

        Raises:
            PlanChangedError: The survivors would mean something else under the plan.
        """
        given, stored = _meaning(plan), _meaning(self.plan)
        changed = sorted(name for name in given if given[name] != stored[name])
        if changed:
            raise PlanChangedError(
                f"The plan gives the surviving records another meaning ({', '.join(changed)}).",
                expected="the plan of the back-up, but for start, horizon, [privacy] and releases",
                do="Take its plan.toml, and change only these.",
            )
        ends = self.clock.boundaries[self.ledger.round :]
        start = Clock.of_stream(plan.stream).boundaries[0]
        if start not in ends:
            raise PlanChangedError(
                "stream.start does not go on from the back-up.",
                expected=f"{self._starts()}",
                do=f"With start = {self.clock.text_of(ends[0])} the updates since the back-up can "
                "be delivered again as they are.",
            )
        return self.clock.boundaries.index(start)

    def _starts(self) -> str:
        first, last = self.clock.boundaries[self.ledger.round], self.clock.boundaries[-1]
        if first == last:
            return self.clock.text_of(first)
        return f"the end of a round, from {self.clock.text_of(first)} to {self.clock.text_of(last)}"

    def retire(self, *, erase_ledger: bool) -> None:
        """End the old store; what it holds is in the new one."""
        self.ledger.retire()
        self.files.backup.unlink(missing_ok=True)  # nothing it could do is dangerous any more
        if self.key is not None and self.key.tree.round <= self.key.tree.horizon:
            self.keeper.rewrite(replace(self.key, tree=self.key.tree.destroyed()))
        if erase_ledger:
            self.ledger.forget_everything()


@contextmanager
def opened_backup(place: Place) -> Iterator[Backup]:
    """The back-up at a place, locked while it is looked at."""
    files = StoreFiles(place.directory)
    files.require_store()
    with ExitStack() as opened:
        opened.enter_context(StoreLock(place.directory))
        resolved = files.read_resolved()
        ledger = Ledger.open(files.ledger)
        opened.callback(ledger.close)
        yield Backup(files, place.keeper, resolved, ledger)


def _meaning(plan: Plan) -> dict[str, Any]:
    """What a surviving record means: columns and stream, without when and how long."""
    tables = plan.to_dict()
    stream = {
        f"stream.{name}": value
        for name, value in tables["stream"].items()
        if name not in {"start", "horizon"}
    }
    columns = [
        {key: value for key, value in column.items() if key != "from"}
        for column in tables["columns"]
    ]
    return {**stream, "columns": columns}
