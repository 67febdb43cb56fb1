"""The parts of an open store, in the hands of one process, and its present epoch.

Promise: all parts are open, under the store's lock, or none is; what is known of the epoch is read
again whenever another one begins. It closes no round and takes no update: see `publishing` and
`taking`.
"""

from __future__ import annotations

from contextlib import ExitStack

from retrodp.engine.compile import CompiledRelease, compile_plan, keyed
from retrodp.engine.creation import finish_creation
from retrodp.engine.crossing import NextEpoch, complete, cross
from retrodp.engine.files import StoreFiles
from retrodp.engine.kept import KeptTotals
from retrodp.engine.running import Running
from retrodp.errors import HorizonExceededError, StoreRetiredError
from retrodp.store.keyfile import KeyKeeper
from retrodp.store.keyrecord import KeyRecord
from retrodp.store.ledger import Ledger
from retrodp.store.lock import StoreLock
from retrodp.store.releases import Releases


class Parts:
    """What a running store is made of.

    Attributes:
        files: Where the parts lie.
        keeper: Where the key is kept.
        ledger: The survivors and what waits; exact.
        releases: What is published.
        running: The present epoch.
        key: As it stands.
        compiled: Statistics and mechanisms of the epoch, in the order of the plan.
        totals: Of the survivors, under the epoch's releases.
    """

    running: Running
    key: KeyRecord
    compiled: tuple[CompiledRelease, ...]
    totals: KeptTotals

    def __init__(self, files: StoreFiles, keeper: KeyKeeper) -> None:
        """Open all parts of a store, and take it over the border that it was crossing.

        Args:
            files: Of the store.
            keeper: Where its key is kept.

        Raises:
            UsageError: There is no store.
            GuardError: Something does not allow it; nothing stays open.
        """
        files.require_store()
        files.require_running()
        self.files = files
        self.keeper = keeper
        with ExitStack() as opened:  # closed again, in reverse, if anything below raises
            lock = StoreLock(files.directory)
            opened.callback(lock.release)
            finish_creation(files)
            self.ledger = Ledger.open(files.ledger)
            opened.callback(self.ledger.close)
            self.releases = Releases(files.releases)
            opened.callback(self.releases.close)
            complete(files, keeper=keeper, ledger=self.ledger)
            self._load()
            self._opened = opened.pop_all()

    def close(self) -> None:
        """Let go of all parts; again does no harm."""
        self._opened.close()

    def _load(self) -> None:
        """Read what belongs to the present epoch."""
        self.running = Running.read(self.files)
        self.key = self.keeper.read()
        plan, resolved = self.running.plan, self.running.resolved
        self.compiled = keyed(compile_plan(plan, resolved), self.key.tree)
        self.releases.before = self.running.before
        self.totals = KeptTotals(self.compiled, plan.names, self.ledger)

    def finish_crossing(self) -> None:
        """Complete the way into an epoch that failed after its key was written, if one did."""
        if complete(self.files, keeper=self.keeper, ledger=self.ledger):
            self._load()

    def begin(self, following: NextEpoch) -> None:
        """Begin the next epoch."""
        try:
            cross(self.files, following, keeper=self.keeper, ledger=self.ledger)
        finally:
            self._load()

    def rewrite_key(self, record: KeyRecord) -> None:
        """Put another state of the key in the place of the present one."""
        self.keeper.rewrite(record)
        self.key = record

    @property
    def over(self) -> bool:
        """Whether no round will ever be closed again, unless a successor plan is given."""
        return self.ledger.facts.retired or self.ledger.facts.round >= self.running.clock.horizon

    def require_unretired(self) -> None:
        """Raise `StoreRetiredError` if the store was ended."""
        self.finish_crossing()
        if self.ledger.facts.retired:
            raise StoreRetiredError(
                "The store was retired: its key is destroyed, and no round can be closed any more.",
                do="Read its releases with `retrodp export`; go on in a new store, with a plan and "
                "a budget of its own.",
            )

    def open_round(self) -> int:
        """The round that is open, in the numbers of the present epoch.

        Raises:
            StoreRetiredError: The store was ended.
            HorizonExceededError: Every round is closed.
        """
        self.require_unretired()
        if self.over:
            raise HorizonExceededError(
                f"All {self.running.before + self.running.horizon} rounds of the plan are closed.",
                do="Go on with a successor plan and a budget of its own: `retrodp continue`.",
            )
        return self.ledger.facts.round + 1
