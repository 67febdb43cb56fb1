"""A back-up as it lies there: what it is, and whether it may go on under its key.

Promise: it is looked at under the store's lock and without changing it, whatever its parts say of
one another; only `retire` writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from retrodp.engine.crossing import complete
from retrodp.engine.files import (
    StoreFiles,
    require_agreement,
    require_epoch,
    require_epoch_of_key,
)
from retrodp.engine.running import Running
from retrodp.engine.succession import require_same_meaning
from retrodp.errors import (
    GuardError,
    KeyMissingError,
    PlanChangedError,
    StoreCorruptError,
    UsageError,
)
from retrodp.plan.epochs import epoch_of_series
from retrodp.plan.plan import Plan
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

    def __init__(self, files: StoreFiles, keeper: KeyKeeper, ledger: Ledger) -> None:
        self.files = files
        self.keeper = keeper
        self.ledger = ledger
        running = Running.read(files)
        self.resolved = running.resolved
        self.plan = running.declared
        self.epoch = running.epoch
        self.clock = running.clock
        require_epoch(ledger, self.epoch)
        if ledger.facts.fingerprint != self.resolved.fingerprint:
            raise PlanChangedError(
                "plan.resolved.json is not the one the store was created with.",
                do="Restore the file from a back-up of this store.",
            )
        try:
            self.key: KeyRecord | None = keeper.read()
        except KeyMissingError:
            self.key = None
        else:
            if not self._is_ahead(self.key):
                require_epoch_of_key(self.key, ledger, self.epoch.number)
                self.key.require(
                    store_id=ledger.facts.store_id, fingerprint=ledger.facts.fingerprint
                )

    def _is_ahead(self, key: KeyRecord) -> bool:
        """Whether the key is that of a later epoch of the same open horizon.

        Its budget was stated with this one's. That of a successor plan is not known here, and such
        a key is refused: the total would leave it out.
        """
        if self.plan.stream.epochs is None or key.store_id != self.ledger.facts.store_id:
            return False
        to_come = self.plan.stream.epochs.number - epoch_of_series(self.resolved)
        return 0 < key.epoch - self.epoch.number <= to_come

    def found(self, last_round: int | None) -> Found:
        """What it is, given the last round that was published anywhere, if anybody knows."""
        before = self.epoch.rounds_before
        horizon = before + self.clock.horizon
        if last_round is not None and not 0 <= last_round <= horizon:
            raise UsageError(
                f"Round {last_round} is outside the plan.",
                expected=f"0 (nothing was published) to {horizon}, or {UNKNOWN}",
                do=f"If the store went on under a later plan, answer {UNKNOWN}.",
            )
        round_, released = self.ledger.facts.round, self._released(last_round)
        return Found(
            round=before + round_,
            released=released,
            horizon=horizon,
            reason=self._reason(released),
            redeliver_from=self.clock.text_of(self.clock.boundaries[round_]),
        )

    def _released(self, last_round: int | None) -> int | None:
        if last_round is None:
            return None
        marked = 0 if self.key is None else self.epoch.rounds_before + self.key.round
        if self.key is not None and self._is_ahead(self.key):
            marked += len(self.resolved.boundaries) - 1  # at least
        return max(last_round, marked, self._published())

    def _published(self) -> int:
        """Last round in the published releases, numbered on from epoch to epoch."""
        try:
            with closing(Releases(self.files.releases)) as releases:
                return releases.last_round
        except StoreCorruptError:
            return 0  # no witness; a store that lacks its releases does not go on anyway

    def _reason(self, released: int | None) -> str:
        if self.ledger.facts.retired:
            return "it was retired"
        if self.key is None or self._is_ahead(self.key):
            begun = None if self.key is None else f"epoch {self.key.epoch} has begun under its key"
            return begun or f"its key {self.keeper.path} is not there"
        if released is None:
            return "nobody knows which rounds were released since it was made"
        ends = self.epoch.rounds_before + self.ledger.facts.round
        if released > ends:
            return (
                f"it ends with round {ends}, but round {released} was released, and "
                "releasing it again on other data would cancel its noise"
            )
        try:
            before, number = self.epoch.rounds_before, self.epoch.number
            with closing(Releases(self.files.releases, before=before)) as releases:
                require_agreement(self.ledger, releases, self.key, self.resolved, number)
        except GuardError as error:
            return f"its files do not agree ({error.what.rstrip('.')})"
        return ""

    def shift(self, plan: Plan) -> int:
        """How many rounds of the old calendar lie before round 1 of the plan.

        Raises:
            PlanChangedError: The survivors would mean something else under the plan.
        """
        require_same_meaning(plan, of=self.plan)
        ends = self.clock.boundaries[self.ledger.facts.round :]
        start = Clock.of_stream(plan.of_epoch(1).stream).boundaries[0]
        if start not in ends:
            raise PlanChangedError(
                "stream.start does not go on from the back-up.",
                expected=f"{self._starts()}",
                do=f"With start = {self.clock.text_of(ends[0])} the updates since the back-up can "
                "be delivered again as they are.",
            )
        return self.clock.boundaries.index(start)

    def _starts(self) -> str:
        first, last = self.clock.boundaries[self.ledger.facts.round], self.clock.boundaries[-1]
        if first == last:
            return self.clock.text_of(first)
        return f"the end of a round, from {self.clock.text_of(first)} to {self.clock.text_of(last)}"

    def retire(self, *, erase_ledger: bool) -> None:
        """End the old store; what it holds is in the new one."""
        self.ledger.facts.retire()
        self.files.backup.unlink(missing_ok=True)  # nothing it could do is dangerous any more
        if self.key is not None and not self.key.destroyed:
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
        ledger = Ledger.open(files.ledger)
        opened.callback(ledger.close)
        with suppress(KeyMissingError):  # what began under its key can only be completed
            complete(files, keeper=place.keeper, ledger=ledger)
        yield Backup(files, place.keeper, ledger)
