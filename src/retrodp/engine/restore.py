"""A back-up brought into use, without ever using noise twice on different data.

A back-up does not know what was released after it was made. If whoever restores it knows that
nothing newer was published, it goes on as it is. Otherwise nothing is closed under its key again:
a new store, with a key, a plan and a budget of its own, goes on from the surviving records
(KKMNS remark 3.6), which are released only through the new store's noise. Budgets add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from retrodp.engine.backup import Backup, Found, Place, opened_backup
from retrodp.engine.creation import create_files, require_new, write_durably
from retrodp.engine.crossing import begin_totals
from retrodp.engine.files import StoreFiles
from retrodp.engine.forget import Forgotten
from retrodp.engine.resolve import resolve
from retrodp.engine.store import Store
from retrodp.engine.totals import recount
from retrodp.engine.verify import verify
from retrodp.errors import BackupError, StoreBehindError, StoreCorruptError, TestKeyError
from retrodp.noise.key import KeyTree
from retrodp.plan.epochs import Epoch, Predecessor, known_boundaries
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from retrodp.store.keyrecord import KeyRecord
from retrodp.store.ledger import Ledger
from retrodp.stream.update import Arrivals, Changes, Op, QueuedUpdate, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What `restore` did.

    Attributes:
        found: The back-up.
        round: Last closed round of the store that is in use now.
        how: "as_is", or "new_epoch" under a new key and budget.
        budget: What all epochs spend together; see `Epoch.statement`.
        left_behind: Updates that waited in the back-up and were not carried over.
    """

    found: Found
    round: int
    how: str
    budget: dict[str, Any]
    left_behind: int = 0


def examine(place: Place, *, last_round: int | None) -> Found:
    """Say whether a back-up may go on as it is. Changes nothing.

    Args:
        place: The back-up, where it is to be used.
        last_round: Last round that was published anywhere; None if nobody knows.
    """
    with opened_backup(place) as backup:
        return backup.found(last_round)


def restore_as_is(
    place: Place, *, last_round: int | None, forgotten: Sequence[Forgotten] = ()
) -> Restored:
    """Use a back-up as the store it is; nothing newer was published.

    Args:
        place: The back-up, where it is to be used.
        last_round: Last round that was published anywhere.
        forgotten: Requests since the back-up was made; they belong to the open round.

    Raises:
        StoreBehindError: It must not go on under its key; nothing was changed.
        StoreCorruptError: Its records do not give the release that it published.
    """
    found = examine(place, last_round=last_round)
    if found.reason:
        raise StoreBehindError(
            f"The back-up cannot go on under its key: {found.reason}.",
            do="Give --plan, with the rounds still to come and a budget of its own, and --into, "
            "a new directory: a new store goes on from the surviving records.",
        )
    marker = StoreFiles(place.directory).backup
    marked = marker.exists()
    marker.unlink(missing_ok=True)
    try:
        with Store.open(place.directory, key=place.keeper) as store:
            _require_sound(store)
            _forget(store, forgotten)
            budget = store.epoch.statement(store.resolved)
            return Restored(found=found, round=store.round, how="as_is", budget=budget)
    except BaseException:
        if marked:
            marker.touch()
        raise


def restore_into(
    new: Place,
    plan: Plan,
    *,
    backup: Place,
    last_round: int | None,
    forgotten: Sequence[Forgotten] = (),
    erase_ledger: bool = False,
) -> Restored:
    """Open a new epoch: a new store, key and budget, from the survivors of a back-up.

    The old store is retired: its key is destroyed. Survivors keep their stamps, counted from the
    new first round back (round 0 is the one before), so that windows mean what they meant. Waiting
    updates are carried over where records have ids. Again, after an interruption, completes it.

    Args:
        new: New or empty, and where its key is to be kept.
        plan: The old one but for `start`, `horizon`, budget and releases; its start is the end of
            the last round that is closed in the back-up, or of a later one of its calendar.
        backup: The old store; its key may be gone.
        last_round: As for `examine`; for the record.
        forgotten: Requests since the back-up was made; what they name is not carried over.
        erase_ledger: Take every record out of the back-up when the new store stands.

    Raises:
        PlanChangedError: The plan would give the survivors another meaning.
    """
    with opened_backup(backup) as old:
        if old.ledger.facts.test:
            raise TestKeyError("A store made for tests protects nobody and cannot be restored.")
        found = old.found(last_round)
        _require_only_successor(old, new.directory)
        if not _stands(new, old):
            require_new(StoreFiles(new.directory))
            carrying = _Carrying(backup=old, plan=plan, shift=old.shift(plan), forgotten=forgotten)
            carrying.create(new, released=found.released)
        with Store.open(new.directory, key=new.keeper) as store:
            done = Restored(
                found=found,
                round=store.round,
                how="new_epoch",
                budget=store.epoch.statement(store.resolved),
                left_behind=old.ledger.waiting.count() - store.ledger.waiting.count(),
            )
        old.retire(erase_ledger=erase_ledger)
    return done


def _require_only_successor(old: Backup, directory: Path) -> None:
    """Refuse a second epoch beside the one that goes on from this store.

    Every epoch states the sum of the budgets before it, so two beside each other would each leave
    the other's out.
    """
    place = str(directory.absolute())
    if old.ledger.facts.successor not in {None, place}:
        raise BackupError(
            f"This store goes on as {old.ledger.facts.successor} already.",
            expected="one epoch after another",
            do="Go on with that store; if it is lost, restore its own back-up.",
        )


def _require_sound(store: Store) -> None:
    """Refuse a copy that was torn: its records must give its totals and its last release."""
    counted = recount(
        store.releases, store.plan.names, store.ledger.facts.round, store.ledger.survivors()
    )
    if any(counted[name] != store.ledger.read_totals(name) for name in counted) or not (
        verify(store).passed
    ):
        raise StoreCorruptError(
            "The records of the back-up do not give the totals and the release that it holds.",
            do="Use another back-up; make back-ups while no command runs on the store.",
        )


def _forget(store: Store, forgotten: Sequence[Forgotten]) -> None:
    ids = [request.value for request in forgotten if request.kind == "id"]
    persons = [request.value for request in forgotten if request.kind == "person"]
    if ids or persons:
        store.forget(ids, persons=persons)


def _stands(new: Place, old: Backup) -> bool:
    """Whether an interrupted restore of this back-up made the new store already."""
    files = StoreFiles(new.directory)
    if not files.resolved.is_file():
        return False
    predecessors = files.read_epoch().predecessors
    return bool(predecessors) and predecessors[-1].store == old.ledger.facts.store_id


@dataclass(frozen=True, slots=True, kw_only=True)
class _Carrying:
    """What a new store begins with: a function of the survivors of a back-up and what waits."""

    backup: Backup
    plan: Plan
    shift: int
    forgotten: Sequence[Forgotten]

    def create(self, new: Place, *, released: int | None) -> None:
        """Make the new store's files."""
        resolved = resolve(self.plan)
        tree, store_id = KeyTree.generate(self.plan.of_epoch(1).stream.horizon)
        record = KeyRecord.new(store_id, resolved.fingerprint, tree)
        epoch, files = self._epoch(released), StoreFiles(new.directory)

        def fill(ledger: Ledger) -> None:
            with ledger.transaction():
                self._fill(ledger, resolved, tree)
                ledger.facts.begin_epoch(str(epoch.digest))
            write_durably(files.epoch, epoch.to_bytes())

        # Before the new store exists: an interrupted restore can only be completed, not repeated.
        self.backup.ledger.facts.note("successor", str(new.directory.absolute()))
        create_files(files, self.plan, resolved, keeper=new.keeper, record=record, fill=fill)

    def _epoch(self, released: int | None) -> Epoch:
        old = self.backup
        ended = Predecessor(
            store=old.ledger.facts.store_id,
            fingerprint=old.resolved.fingerprint,
            epsilon=str(old.resolved.budget["epsilon"]),
            delta=str(old.resolved.budget["delta"]),
            last_round=released,
        )
        earlier = (replace(own, rounds=0) for own in old.epoch.predecessors)
        return Epoch(
            past=(*old.clock.past, *old.clock.boundaries[: self.shift]),
            predecessors=(*earlier, ended),
        )

    def _fill(self, ledger: Ledger, resolved: ResolvedPlan, keys: KeyTree) -> None:
        """Fill a ledger at round 0; what is to be forgotten never enters it."""
        old = self.backup.ledger
        named: set[tuple[str, str | None]] = {(own.kind, own.value) for own in self.forgotten}
        named |= {(own.kind, own.value) for own in old.forgets.waiting()}
        for batch in old.survivors():
            begun = [
                record._replace(stamp=record.stamp - self.shift)
                for record in batch
                if not _is_named(record, named)
            ]
            ledger.apply_changes(Changes(ended=[], begun=begun, ignored=0))
        # Without ids, a source that is delivered again would count twice.
        for round_ in old.waiting.rounds() if self.plan.stream.ids else ():
            rows = [row for row in old.waiting.of_round(round_) if not _is_named(row, named)]
            if round_ - self.shift < len(known_boundaries(self.plan, resolved)):
                ledger.waiting.enqueue(_arrivals(rows, max(1, round_ - self.shift), self.shift))
        begin_totals(ledger, self.plan.of_epoch(1), resolved, keys)


def _arrivals(rows: Sequence[QueuedUpdate], round_: int, shift: int) -> Arrivals:
    return Arrivals(
        round=[round_] * len(rows),
        at=[row.at for row in rows],
        rank=[row.rank for row in rows],
        op=[row.op for row in rows],
        space=[row.space for row in rows],
        id=[row.id for row in rows],
        # A deletion by id names no stamp.
        stamp=[0 if row.op == Op.DELETE else row.stamp - shift for row in rows],
        person=[row.person for row in rows],
        payload=[row.payload for row in rows],
        count=[row.count for row in rows],
    )


def _is_named(row: Record | QueuedUpdate, named: set[tuple[str, str | None]]) -> bool:
    own = {("id", row.id), ("person", row.person), ("person", row.space)}
    return not own.isdisjoint(named)
