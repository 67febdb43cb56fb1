"""Where the parts of a store lie, and what must agree before any of them is used.

A store directory holds `ledger.sqlite` (exact), `releases.sqlite` (published), `plan.toml`,
`plan.resolved.json` and `lock`; the key lies outside it. A store that goes on from another one, or
from an epoch of its own, has `epoch.json` too, and a `plan.resolved.N.json` for each later epoch. A
directory `continuing` holds the files of a next epoch until it has begun. A file `backup` says that the directory is a copy, which `restore` alone opens.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from retrodp import _check
from retrodp.errors import (
    BackupError,
    KeyMismatchError,
    PlanChangedError,
    StoreBehindError,
    StoreCorruptError,
    UsageError,
)
from retrodp.plan.epochs import NAME, Epoch, read_epoch, read_plans, resolved_name
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from retrodp.store.keyrecord import KeyRecord
from retrodp.store.ledger import Ledger
from retrodp.store.releases import Releases


@dataclass(frozen=True, slots=True)
class StoreFiles:
    """Paths inside a store directory."""

    directory: Path

    @property
    def ledger(self) -> Path:
        """Exact; opened by the engine alone."""
        return self.directory / "ledger.sqlite"

    @property
    def releases(self) -> Path:
        """Published; what every view reads."""
        return self.directory / "releases.sqlite"

    @property
    def plan(self) -> Path:
        """The plan as it was written."""
        return self.directory / "plan.toml"

    @property
    def resolved(self) -> Path:
        """The plan of the first epoch with everything decided; a store is what has it."""
        return self.directory / resolved_name(1)

    @property
    def epoch(self) -> Path:
        """Calendar and budgets of the epochs before the present one, if there were any."""
        return self.directory / NAME

    @property
    def continuing(self) -> Path:
        """Files of the next epoch, until it has begun."""
        return self.directory / "continuing"

    def plans(self) -> list[Path]:
        """Everything that was made from plans alone."""
        resolved = [resolved_name(number) for number in range(1, self.read_epoch().number + 1)]
        return [self.plan, self.epoch, *(self.directory / name for name in resolved)]

    @property
    def backup(self) -> Path:
        """Marker of a copy that must not be opened as if it were the running store."""
        return self.directory / "backup"

    @property
    def certificate(self) -> Path:
        """The last certificate of `verify`."""
        return self.directory / "certificate.json"

    @property
    def rejected(self) -> Path:
        """Refused rows of the last ingest, beside the store."""
        return self.directory.with_name(f"{self.directory.name}.rejected.csv")

    def require_store(self) -> None:
        """Raise `UsageError` if this is no store."""
        if not self.resolved.is_file():
            raise UsageError(
                f"{self.directory} is not a store.",
                expected="a directory made by `retrodp run` or `Store.create`",
                do="Check --store.",
            )

    def require_running(self) -> None:
        """Raise `BackupError` if this is a copy that was put aside."""
        if self.backup.exists():
            raise BackupError(
                f"{self.directory} is a back-up: rounds may have been released since it was made.",
                do=f"Run `retrodp restore --store {self.directory}`; it asks what was released.",
            )

    def read_epoch(self) -> Epoch:
        """What was there before the present epoch."""
        return read_epoch(self.directory)

    def read_resolved(self) -> ResolvedPlan:
        """The resolved plan of the present epoch, as it was stored."""
        self.require_store()
        return read_plans(self.directory, self.read_epoch())[-1]


def require_plan(plan: object) -> None:
    """Raise `UsageError` for anything but a plan, a path to one for example."""
    _check.instance(Plan, plan=plan, expected="a Plan, as Plan.load(path) reads it from a file")


def require_same_plan(given: Plan, resolved: ResolvedPlan) -> None:
    """Raise `PlanChangedError` unless the plan says what the store was created with."""
    require_plan(given)
    if given.to_dict() == dict(resolved.plan):
        return
    changed = sorted(_differences("", given.to_dict(), resolved.plan))
    raise PlanChangedError(
        f"The plan differs from the one the store was created with ({', '.join(changed)}).",
        expected="the plan of the store, see plan.toml in its directory",
        do="Use that plan, or create a new store with a budget of its own.",
    )


def _differences(path: str, given: object, stored: object) -> set[str]:
    if isinstance(given, dict) and isinstance(stored, dict):
        found: set[str] = set()
        for name in given.keys() | stored.keys():
            inner = f"{path}.{name}" if path else str(name)
            found |= _differences(inner, given.get(name), stored.get(name))
        return found
    return set() if given == stored else {path}


def require_epoch(ledger: Ledger, epoch: Epoch) -> None:
    """Raise `StoreCorruptError` unless `epoch.json` is what the store was opened with."""
    if ledger.facts.epoch != epoch.digest:
        raise StoreCorruptError(
            "epoch.json is not the one that the store was opened with.",
            do="Restore the file from a back-up of this store.",
        )


def require_epoch_of_key(key: KeyRecord, ledger: Ledger, number: int) -> None:
    """Raise the error that explains it, unless the key belongs to the present epoch."""
    if key.store_id != ledger.facts.store_id or key.epoch == number:
        return  # another store's key has an error of its own
    if key.epoch > number:
        raise StoreBehindError(
            f"The store is in epoch {number}, but epoch {key.epoch} has begun under its key.",
            expected="a store that is not older than its key",
            do="Bring back the newest back-up of the whole directory; do not copy single files.",
        )
    raise KeyMismatchError(
        f"The key belongs to epoch {key.epoch} of this store, which is over.",
        expected=f"the key of epoch {number}, under which the store goes on",
        do="Name the newest copy of the key; an old one derives nothing of this epoch.",
    )


def require_agreement(
    ledger: Ledger, releases: Releases, key: KeyRecord, resolved: ResolvedPlan, number: int
) -> None:
    """Raise the error that explains it, unless ledger, releases, key and plan fit together.

    The key's mark and the published releases are two witnesses against a ledger that was rolled
    back: closing a released round again on other data would use its noise twice.
    """
    if ledger.facts.fingerprint != resolved.fingerprint:
        raise PlanChangedError(
            "plan.resolved.json is not the one the store was created with.",
            do="Restore the file from a back-up of this store.",
        )
    require_epoch_of_key(key, ledger, number)
    key.require(store_id=ledger.facts.store_id, fingerprint=ledger.facts.fingerprint)
    if ledger.facts.test != is_test_id(key.store_id):
        raise KeyMismatchError(
            "A test key was given for a real store, or the reverse.",
            do="Name the key that was made with the store.",
        )
    behind, closed = max(key.round, releases.last_round), ledger.facts.round
    if closed < behind:
        raise StoreBehindError(
            f"The store is at round {closed}, but round {behind} was released already.",
            expected="a store that is not older than its key and its published releases",
            do="Releasing a round twice on different data would cancel its noise. Bring back the "
            "newest back-up of the whole directory; do not copy single files.",
        )
    if releases.last_round < closed:
        pending = ledger.pending.read()
        if releases.last_round != closed - 1 or pending is None or pending[0] != closed:
            raise StoreCorruptError(
                f"Rounds {releases.before + releases.last_round + 1} to "
                f"{releases.before + closed} were closed, but their releases are missing.",
                do="Bring back the newest back-up of the whole directory.",
            )
    published = releases.digest(key.round) if 0 < key.round <= releases.last_round else None
    if published is not None and published != key.release_sha256:
        raise StoreBehindError(
            f"Round {key.round} was released from another copy of this store.",
            do="Use the copy that its key belongs to.",
        )


TEST_ID = "test-"


def is_test_id(store_id: str) -> bool:
    """Whether a store id is that of a store made for tests, under a fixed key."""
    return store_id.startswith(TEST_ID)
