"""The border between two epochs of one store, crossed as a whole or not at all.

What makes a crash harmless: (1) the files of the next epoch are laid ready; (2) the key is replaced
by one of the next epoch, which derives no noise of the epoch before: from here on there is no way
back; (3) the ledger begins the epoch, in one transaction; (4) the files take their places, the
account of all epochs last. Before (2) the files that lie ready are thrown away, after it the rest
is completed, by whoever opens the store next. The first release of the epoch comes after (4).
"""

from __future__ import annotations

from dataclasses import dataclass

from retrodp.engine.compile import compile_plan, keyed
from retrodp.engine.creation import write_durably
from retrodp.engine.files import StoreFiles
from retrodp.engine.resolve import resolve_next
from retrodp.engine.running import Running
from retrodp.engine.totals import recount
from retrodp.errors import StoreCorruptError
from retrodp.noise.key import KeyTree
from retrodp.plan.epochs import NAME, Epoch, epoch_of_series, resolved_name
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from retrodp.store.erase import sync_directory
from retrodp.store.keyfile import KeyKeeper
from retrodp.store.keyrecord import KeyRecord
from retrodp.store.ledger import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class NextEpoch:
    """An epoch that is to begin.

    Attributes:
        epoch: What will have been before it.
        resolved: Its plan.
        text: The plan as it was written.
    """

    epoch: Epoch
    resolved: ResolvedPlan
    text: str

    @classmethod
    def by_itself(cls, running: Running, ledger: Ledger, files: StoreFiles) -> NextEpoch:
        """The next one of an open horizon, within the budget that was stated for it."""
        number, series = running.next_in_series, running.declared.stream.epochs
        assert number is not None
        assert series is not None
        first = running.horizon
        resolved = resolve_next(
            running.declared,
            running.resolved,
            epoch=number,
            boundaries=running.clock.boundaries[first : first + series.rounds(number) + 1],
        )
        ended = running.epoch.ended(running.resolved, store=ledger.facts.store_id, continued=True)
        return cls(epoch=ended, resolved=resolved, text=files.plan.read_text(encoding="utf-8"))

    @classmethod
    def under(
        cls, plan: Plan, resolved: ResolvedPlan, running: Running, ledger: Ledger
    ) -> NextEpoch:
        """The first one of a successor plan, with a budget of its own."""
        ended = running.epoch.ended(running.resolved, store=ledger.facts.store_id, continued=False)
        return cls(epoch=ended, resolved=resolved, text=plan.text)


def cross(files: StoreFiles, following: NextEpoch, *, keeper: KeyKeeper, ledger: Ledger) -> None:
    """Begin the next epoch, under a key that nothing but this call knows of.

    Args:
        files: Of a store all of whose rounds of the present epoch are published.
        following: The next epoch.
        keeper: Where the key is kept.
        ledger: At the last round of the present epoch.
    """
    _throw_away(files)
    files.continuing.mkdir()
    write_durably(files.continuing / files.plan.name, following.text.encode())
    name = resolved_name(following.epoch.number)
    write_durably(files.continuing / name, following.resolved.to_json())
    write_durably(files.continuing / NAME, following.epoch.to_bytes())
    sync_directory(files.directory)
    tree = keeper.read().tree.following(
        store_id=ledger.facts.store_id,
        horizon=len(following.resolved.boundaries) - 1,
        root=ledger.facts.test_root,
    )
    keeper.rewrite(KeyRecord.new(ledger.facts.store_id, following.resolved.fingerprint, tree))
    complete(files, keeper=keeper, ledger=ledger)


def complete(files: StoreFiles, *, keeper: KeyKeeper, ledger: Ledger) -> bool:
    """Finish a crossing that was interrupted after its key was written; forget any other.

    Returns:
        Whether there was one.
    """
    if not files.continuing.exists():
        return False
    key = keeper.read()
    if key.store_id != ledger.facts.store_id:
        return False  # not this store's key, and refused as such
    if key.epoch == files.read_epoch().number + 1:
        _finish(files, key, ledger)
    _throw_away(files)
    return True


def _finish(files: StoreFiles, key: KeyRecord, ledger: Ledger) -> None:
    staged, name = files.continuing, resolved_name(key.epoch)
    at = staged / name if (staged / name).exists() else files.directory / name
    resolved = ResolvedPlan.from_json(at.read_bytes(), fingerprint=key.fingerprint)
    content = (staged / NAME).read_bytes()
    epoch = Epoch.from_bytes(content)
    if ledger.facts.fingerprint != key.fingerprint:
        plan = Plan.from_dict(resolved.plan).of_epoch(epoch_of_series(resolved))
        with ledger.transaction():
            ledger.next_epoch(str(epoch.digest), key.fingerprint)
            # In the numbers of the new epoch: some totals name the stamps of their records.
            begin_totals(ledger, plan, resolved, key.tree)
    if ledger.facts.epoch != epoch.digest:
        raise StoreCorruptError(
            "The files of the next epoch are not those that the ledger knows of.",
            do="Bring back the newest back-up of the whole directory.",
        )
    for own in (name, files.plan.name, NAME):
        if (staged / own).exists():
            (staged / own).replace(files.directory / own)
            sync_directory(files.directory)


def begin_totals(ledger: Ledger, plan: Plan, resolved: ResolvedPlan, keys: KeyTree) -> None:
    """Put the totals of an epoch's plan in a ledger at round 0, from its survivors."""
    releases = keyed(compile_plan(plan, resolved), keys)
    for name, totals in recount(releases, plan.names, 0, ledger.survivors()).items():
        ledger.replace_totals(name, totals)


def _throw_away(files: StoreFiles) -> None:
    if files.continuing.exists():
        for path in files.continuing.iterdir():
            path.unlink()
        files.continuing.rmdir()
        sync_directory(files.directory)
