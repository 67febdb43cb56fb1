"""The store: what a plan has become. Takes updates in, closes rounds, forgets.

Every release is a pure function of (key, plan, round, surviving data). This is the face; `parts`
opens a store, `taking` takes updates in, `publishing` has the steps of a close, `crossing` those
into another epoch, `ending` those after the last round. What a crash left undone of them is
completed when the store is opened; erased bytes are rewritten when the command ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from retrodp.engine import ending, publishing
from retrodp.engine.compile import CompiledRelease
from retrodp.engine.creation import create_files, first_horizon, require_new
from retrodp.engine.crossing import NextEpoch
from retrodp.engine.files import (
    TEST_ID,
    StoreFiles,
    require_agreement,
    require_epoch,
    require_same_plan,
)
from retrodp.engine.forget import Receipt, asked, note, require_nameable
from retrodp.engine.naming import names
from retrodp.engine.outcomes import Ingested, Progress, Release
from retrodp.engine.parts import Parts
from retrodp.engine.resolve import resolve
from retrodp.engine.states import keepers
from retrodp.engine.succession import require_next, require_over
from retrodp.engine.taking import Taking, deletions, keyed_digest
from retrodp.mechanisms.answer import Answer
from retrodp.noise.key import KeyTree
from retrodp.plan.epochs import Epoch
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from retrodp.store.keyfile import KeyKeeper, PlainKeyFile, default_key_path
from retrodp.store.keyrecord import KeyRecord
from retrodp.store.ledger import Ledger
from retrodp.stream.clock import Clock
from retrodp.stream.intake import Tally
from retrodp.stream.sources import RawBatch, read_frame


class Store:
    """A running plan in a directory, with its key outside it; one process at a time.

    Use as a context manager: leaving it erases what is due and lets go of the lock.
    """

    def __init__(self, directory: Path, keeper: KeyKeeper) -> None:
        """Open; see `create` and `open`."""
        self._parts = Parts(StoreFiles(directory), keeper)
        self._ignored = 0
        self._same_time = 0
        try:
            self._complete()
        except BaseException:
            self._parts.close()
            raise

    def _complete(self) -> None:
        """See that all parts agree, and do what an interrupted command left undone."""
        parts, epoch = self._parts, self.epoch
        require_epoch(parts.ledger, epoch)
        if self.retired:
            # It may be behind its key or its releases: nothing is ever released again.
            parts.key.require(store_id=self.store_id, fingerprint=parts.ledger.facts.fingerprint)
            ending.destroy_key(parts)  # if that was interrupted, or an old copy of it came back
        else:
            require_agreement(parts.ledger, parts.releases, parts.key, self.resolved, epoch.number)
            publishing.finish(parts)
        parts.totals.catch_up()
        if self.over and parts.ledger.forgets.waiting():
            ending.forget_at_once(parts)

    def __repr__(self) -> str:
        return f"Store({str(self.files.directory)!r}, round={self.round}, horizon={self.horizon})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._parts.close()

    @classmethod
    def create(cls, directory: str | Path, plan: Plan, *, key: KeyKeeper | None = None) -> Store:
        """Make a store under a new key and open it.

        Args:
            directory: New or empty.
            plan: Resolved now, once for all.
            key: Where the key is kept; by default `DIR.key` beside the directory.
        """
        tree, store_id = KeyTree.generate(first_horizon(plan))
        return cls._create(Path(directory), plan, key, tree=tree, store_id=store_id)

    @classmethod
    def create_for_tests(
        cls, directory: str | Path, plan: Plan, *, root: bytes = bytes(32), name: str = "fixed"
    ) -> Store:
        """A store whose noise anyone can derive, so that its bytes can be compared; marked TEST.

        Args:
            directory: New or empty.
            plan: As for `create`.
            root: 32 bytes in the place of the secret.
            name: Names the store; part of its key.
        """
        store_id = TEST_ID + name
        tree = KeyTree.from_root(root, store_id.encode(), first_horizon(plan))
        return cls._create(Path(directory), plan, None, tree=tree, store_id=store_id, root=root)

    @classmethod
    def _create(
        cls,
        directory: Path,
        plan: Plan,
        key: KeyKeeper | None,
        *,
        tree: KeyTree,
        store_id: str,
        root: bytes | None = None,
    ) -> Store:
        require_new(StoreFiles(directory))  # before the calibration, which takes a while
        resolved = resolve(plan)
        keeper = key or PlainKeyFile(default_key_path(directory))
        record = KeyRecord.new(store_id, resolved.fingerprint, tree)
        fill = (lambda _: None) if root is None else (lambda ledger: ledger.facts.fix_root(root))
        create_files(StoreFiles(directory), plan, resolved, keeper=keeper, record=record, fill=fill)
        return cls(directory, keeper)

    @classmethod
    def open(
        cls, directory: str | Path, *, plan: Plan | None = None, key: KeyKeeper | None = None
    ) -> Store:
        """Open an existing store and complete what a crash interrupted.

        Args:
            directory: Of the store.
            plan: If given, it must say what the store was created with.
            key: As for `create`.

        Raises:
            GuardError: Key, plan, lock or the age of the files do not allow it.
        """
        files = StoreFiles(Path(directory))
        if plan is not None:
            require_same_plan(plan, files.read_resolved())
        files.require_store()
        return cls(files.directory, key or PlainKeyFile(default_key_path(files.directory)))

    # What is known; all of it public but the two counts.

    @property
    def files(self) -> StoreFiles:
        """Where the parts lie."""
        return self._parts.files

    @property
    def key_path(self) -> Path:
        """The file that holds the key, or the mark of a constant secret."""
        return self._parts.keeper.path

    @property
    def plan(self) -> Plan:
        """The plan of the present epoch, with a horizon also where that of the store is open."""
        return self._parts.running.plan

    @property
    def declared(self) -> Plan:
        """The plan as it was written; its horizon may be open."""
        return self._parts.running.declared

    @property
    def resolved(self) -> ResolvedPlan:
        """The plan of the present epoch with everything decided."""
        return self._parts.running.resolved

    @property
    def clock(self) -> Clock:
        """The calendar, from the stored boundaries; round 1 is the first of the present epoch."""
        return self._parts.running.clock

    @property
    def releases(self) -> tuple[CompiledRelease, ...]:
        """Statistics and mechanisms, in the order of the plan."""
        return self._parts.compiled

    @property
    def ledger(self) -> Ledger:
        """The survivors; exact, for the engine only."""
        return self._parts.ledger

    @property
    def key(self) -> KeyRecord:
        """The key as it stands."""
        return self._parts.key

    @property
    def store_id(self) -> str:
        """Public, random name of the store."""
        return self.ledger.facts.store_id

    @property
    def horizon(self) -> int:
        """Last round of the present epoch."""
        return self.rounds_before + self._parts.running.horizon

    @property
    def rounds_before(self) -> int:
        """Rounds of the store before the present epoch."""
        return self._parts.running.before

    @property
    def round(self) -> int:
        """Last closed round, numbered on from epoch to epoch; 0 before the first."""
        return self.rounds_before + self.ledger.facts.round

    @property
    def epoch(self) -> Epoch:
        """What was there before the present epoch, here or in the store that it goes on from."""
        return self._parts.running.epoch

    @property
    def retired(self) -> bool:
        """Whether the store was ended by `retire`."""
        return self.ledger.facts.retired

    @property
    def over(self) -> bool:
        """Whether no round will ever be closed again, unless a successor plan is given."""
        return self._parts.over

    @property
    def ignored(self) -> int:
        """Rows ignored at the closes of this object's life. For the operator only."""
        return self._ignored

    @property
    def same_time(self) -> int:
        """Updates whose order the plan's `same_time` decided, likewise. For the operator only."""
        return self._same_time

    # Taking updates in.

    def ingest(
        self, batches: Iterable[RawBatch], *, digest: str | None = None, dry_run: bool = False
    ) -> Ingested:
        """Take the rows of one source in, all or (if the source is refused) nothing.

        Args:
            batches: From `read_file`, `read_stream` or `read_frame` with `layout()`.
            digest: Of the source's contents. In a stream without ids equal rows are different
                copies, so a source whose digest was seen while its rows still wait is not taken
                again; with ids redelivery is harmless and the digest is not kept.
            dry_run: Judge the rows and take nothing.

        Raises:
            SourceError: The source is refused whole; nothing of it was taken.
        """
        free = self.plan.stream.ids or self.over  # nothing is taken that could be taken twice
        guarded = None if free or digest is None else keyed_digest(self.key.tree, digest)
        if guarded is not None and self.ledger.memory.is_taken(guarded):
            return Ingested(Tally(), (), 0, repeated=True)
        self._parts.require_unretired()
        return self._taking.take(batches, default_at=None, digest=guarded, dry_run=dry_run)

    def layout(self) -> Any:
        """The columns to look for in a source."""
        return self._taking.intake.layout()

    @property
    def _taking(self) -> Taking:
        return Taking(plan=self.plan, clock=self.clock, ledger=self.ledger)

    def add(self, frame: Any) -> Ingested:
        """Take in a pandas, polars or Arrow frame of updates.

        Rows without a column `at` arrive in the open round, after everything that waits for it;
        without `op` they are additions.
        """
        layout = self._taking.intake.layout(has_default_at=True)
        now = self._taking.now(self._parts.open_round())
        return self._taking.take(read_frame(frame, layout), default_at=now)

    def delete(self, ids: Iterable[str]) -> Ingested:
        """Delete by id in the open round, a text being one id; for persons use `add` with op."""
        return self.add(deletions(self.plan, names(ids=ids)))

    # Closing rounds.

    def close_round(self) -> Release:
        """Close the open round and publish its release.

        Raises:
            HorizonExceededError: Every round of the plan is closed.
        """
        return self._close(followed=False)

    def _close(self, *, followed: bool) -> Release:
        """Close the open round; of one that others follow at once the totals are written later."""
        parts = self._parts
        publishing.finish(parts)  # of the round before, if its last steps failed
        round_ = parts.open_round()
        if round_ > parts.running.horizon:
            # The budget of the next epoch of an open horizon was stated before the first began.
            parts.begin(NextEpoch.by_itself(parts.running, parts.ledger, parts.files))
            round_ = parts.open_round()
        closed = publishing.commit(parts, round_, write=not followed)
        self._ignored += closed.ignored
        self._same_time += closed.same_time
        publishing.finish(parts)
        return Release(self.round, {answer.release: answer for answer in closed.answers})

    def close_through(
        self, through: int, *, now: int | None = None, progress: Progress | None = None
    ) -> int:
        """Close every open round up to and including `through`.

        Args:
            through: A round of the plan; closed rounds have nothing to do.
            now: Microseconds since 1970 UTC; if given, a round that has not begun is refused.
            progress: Called after each round.

        Returns:
            How many rounds were closed.

        Raises:
            FutureDateError: The round has not begun.
            HorizonExceededError: The round lies after the horizon.
        """
        self.require_closable(through, now=now)
        todo = max(0, through - self.round)
        for done in range(1, todo + 1):
            self._close(followed=done < todo)
            if progress is not None:
                progress(done, todo)
        return todo

    def require_closable(self, through: int, *, now: int | None = None) -> None:
        """Raise what `close_through` would raise, before anything is done."""
        self._parts.require_unretired()
        self._parts.running.require_closable(through, now=now)

    def numbered(self, answers: Sequence[Answer]) -> tuple[Answer, ...]:
        """Answers of the present epoch as they are published, numbered on."""
        return self._parts.running.numbered(answers)

    # From epoch to epoch.

    def go_on(self, plan: Plan) -> bool:
        """Begin the next epoch of a store whose rounds are over, under a plan of its own.

        Survivors and their stamps stay, in new noise under a new key; the old one is destroyed.
        Budgets add up.

        Args:
            plan: That of the store but for start, horizon, budget and releases; it starts when the
                last round ended.

        Returns:
            False if that epoch has begun already.

        Raises:
            UsageError: Rounds of the present plan are still to come.
            PlanChangedError: The plan would give the survivors another meaning.
        """
        parts = self._parts
        parts.require_unretired()
        if self.epoch.runs_under(plan, self.resolved):
            return False
        self.require_successor(plan)
        publishing.finish(parts)
        parts.begin(NextEpoch.under(plan, resolve(plan), parts.running, parts.ledger))
        return True

    def require_successor(self, plan: Plan) -> None:
        """Raise what `go_on` would raise, and change nothing."""
        require_over(self._parts.running, self.ledger)
        require_next(plan, self._parts.running)

    # Forgetting.

    def forget(self, ids: Iterable[str] = (), *, persons: Iterable[str] = ()) -> list[Receipt]:
        """Forget records by id, or all of persons, from the open round on; a text is one name.

        What matches is taken out when the open round closes, last of all its updates; updates of
        theirs that still wait are dropped. Bytes are erased when the store is closed or settled.
        After the last round they are erased at once, and the last key with them.

        Returns:
            One receipt a request, the same whether or not anything matched.
        """
        requests = asked(names(ids=ids), names(persons=persons))
        require_nameable(requests, self.plan)
        self._parts.finish_crossing()
        with self.ledger.transaction():
            note(requests, self.ledger)
        over = self.over
        if over:
            ending.forget_at_once(self._parts)
        end = None if over else self.clock.end_of(self.round + 1 - self.rounds_before)
        return [
            Receipt(
                forgotten=request,
                store_id=self.store_id,
                from_round=None if over else self.round + 1,
                from_instant=None if end is None else self.clock.text_of(end),
                erased=over,
                kept_by=keepers(own.mechanism for own in self.releases),
            )
            for request in requests
        ]

    # Ending.

    def retire(self, *, erase_ledger: bool = False) -> None:
        """End the store: what the key still derives is destroyed; the releases stay.

        Afterwards nothing is taken in and no round is closed. What waits to be forgotten is
        forgotten at once; again does no harm.

        Args:
            erase_ledger: Take out every record, total and waiting update too.
        """
        ending.retire(self._parts, erase_ledger=erase_ledger)

    def compact(self) -> None:
        """Erase what is due, and make the ledger's file a function of its contents."""
        ending.compact(self._parts)

    def settle(self) -> None:
        """Rewrite the ledger if a deletion, replacement or forget was processed."""
        ending.settle(self._parts)

    def close(self) -> None:
        """Erase what is due and let go of everything."""
        try:
            self.settle()
        finally:
            self._parts.close()


__all__ = ["Ingested", "Release", "Store"]
