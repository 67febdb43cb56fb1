"""The store: what a plan has become. Takes updates in, closes rounds, forgets.

Every release is a pure function of (key, plan, round, surviving data). The order of a close is
what makes a crash harmless: (1) ledger and release in one transaction; (2) the key forgets the
rounds before and marks this one; (3) the release is published; (4) erased bytes are rewritten when
the command ends. Nothing is visible before (3); on opening, the missing steps are completed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from retrodp.engine.close import Closing
from retrodp.engine.compile import CompiledRelease, compile_plan, keyed
from retrodp.engine.creation import create_files, finish_creation, first_horizon, require_new
from retrodp.engine.crossing import NextEpoch, complete, cross
from retrodp.engine.files import (
    TEST_ID,
    StoreFiles,
    require_agreement,
    require_epoch,
    require_same_plan,
)
from retrodp.engine.forget import Forgotten, Receipt, asked, note, require_nameable
from retrodp.engine.kept import KeptTotals
from retrodp.engine.outcomes import Ingested, Release
from retrodp.engine.resolve import resolve
from retrodp.engine.running import Running
from retrodp.engine.states import keepers
from retrodp.engine.succession import require_next, require_over
from retrodp.engine.taking import Taking, deletions, keyed_digest
from retrodp.errors import (
    HorizonExceededError,
    RoundClosedError,
    StoreCorruptError,
    StoreRetiredError,
)
from retrodp.mechanisms.answer import Answer
from retrodp.noise.key import KeyTree
from retrodp.plan.epochs import Epoch
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from retrodp.store.keyfile import KeyKeeper, PlainKeyFile, default_key_path
from retrodp.store.keyrecord import KeyRecord
from retrodp.store.ledger import Ledger
from retrodp.store.lock import StoreLock
from retrodp.store.releases import Releases
from retrodp.stream.clock import Clock
from retrodp.stream.intake import Tally
from retrodp.stream.sources import RawBatch, read_frame

Progress = Callable[[int, int], None]  # rounds done, rounds in all


class Store:
    """A running plan in a directory, with its key outside it; one process at a time.

    Use as a context manager: leaving it erases what is due and lets go of the lock.
    """

    def __init__(self, directory: Path, keeper: KeyKeeper) -> None:
        """Open; see `create` and `open`."""
        self._files = StoreFiles(directory)
        self._keeper = keeper
        self._files.require_store()
        self._files.require_running()
        self._ignored = 0
        self._same_time = 0
        with ExitStack() as opened:  # closed again, in reverse, if anything below raises
            self._lock = StoreLock(directory)
            opened.callback(self._lock.release)
            finish_creation(self._files)
            self._ledger = Ledger.open(self._files.ledger)
            opened.callback(self._ledger.close)
            self._releases = Releases(self._files.releases)
            opened.callback(self._releases.close)
            complete(self._files, keeper=keeper, ledger=self._ledger)
            self._load()
            self._complete()
            opened.pop_all()

    def _load(self) -> None:
        """Read what belongs to the present epoch."""
        self._running = Running.read(self._files)
        self._key = self._keeper.read()
        self._compiled = keyed(compile_plan(self.plan, self.resolved), self._key.tree)
        self._releases.before = self._running.before
        self._totals = KeptTotals(self._compiled, self.plan.names, self._ledger)

    def _complete(self) -> None:
        """See that all parts agree, and do what an interrupted command left undone."""
        require_epoch(self._ledger, self.epoch)
        if self.retired:
            # It may be behind its key or its releases: nothing is ever released again.
            self._key.require(store_id=self.store_id, fingerprint=self._ledger.fingerprint)
            self._destroy_key()  # if that was interrupted, or an old copy of it came back
        else:
            number = self.epoch.number
            require_agreement(self._ledger, self._releases, self._key, self.resolved, number)
            self._finish_close()
        self._totals.catch_up()
        if self.over and self._ledger.forgets():
            self._forget_at_once()

    def __repr__(self) -> str:
        return f"Store({str(self._files.directory)!r}, round={self.round}, horizon={self.horizon})"

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
            self._let_go()

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
        fill = (lambda _: None) if root is None else (lambda ledger: ledger.fix_root(root))
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
        return self._files

    @property
    def key_path(self) -> Path:
        """The file that holds the key, or the mark of a constant secret."""
        return self._keeper.path

    @property
    def plan(self) -> Plan:
        """The plan of the present epoch, with a horizon also where that of the store is open."""
        return self._running.plan

    @property
    def declared(self) -> Plan:
        """The plan as it was written; its horizon may be open."""
        return self._running.declared

    @property
    def resolved(self) -> ResolvedPlan:
        """The plan of the present epoch with everything decided."""
        return self._running.resolved

    @property
    def clock(self) -> Clock:
        """The calendar, from the stored boundaries; round 1 is the first of the present epoch."""
        return self._running.clock

    @property
    def releases(self) -> tuple[CompiledRelease, ...]:
        """Statistics and mechanisms, in the order of the plan."""
        return self._compiled

    @property
    def ledger(self) -> Ledger:
        """The survivors; exact, for the engine only."""
        return self._ledger

    @property
    def key(self) -> KeyRecord:
        """The key as it stands."""
        return self._key

    @property
    def store_id(self) -> str:
        """Public, random name of the store."""
        return self._ledger.store_id

    @property
    def horizon(self) -> int:
        """Last round of the present epoch."""
        return self.rounds_before + self._running.horizon

    @property
    def rounds_before(self) -> int:
        """Rounds of the store before the present epoch."""
        return self._running.before

    @property
    def round(self) -> int:
        """Last closed round, numbered on from epoch to epoch; 0 before the first."""
        return self.rounds_before + self._ledger.round

    @property
    def epoch(self) -> Epoch:
        """What was there before the present epoch, here or in the store that it goes on from."""
        return self._running.epoch

    @property
    def retired(self) -> bool:
        """Whether the store was ended by `retire`."""
        return self._ledger.retired

    @property
    def over(self) -> bool:
        """Whether no round will ever be closed again, unless a successor plan is given."""
        return self.retired or self._ledger.round >= self.clock.horizon

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
        guarded = None if free or digest is None else keyed_digest(self._key.tree, digest)
        if guarded is not None and self._ledger.is_taken(guarded):
            return Ingested(Tally(), (), 0, repeated=True)
        self._require_running()
        return self._taking.take(batches, default_at=None, digest=guarded, dry_run=dry_run)

    def layout(self) -> Any:
        """The columns to look for in a source."""
        return self._taking.intake.layout()

    @property
    def _taking(self) -> Taking:
        return Taking(plan=self.plan, clock=self.clock, ledger=self._ledger)

    def add(self, frame: Any) -> Ingested:
        """Take in a pandas, polars or Arrow frame of updates.

        Rows without a column `at` arrive in the open round, after everything that waits for it;
        without `op` they are additions.
        """
        layout = self._taking.intake.layout(has_default_at=True)
        now = self._taking.now(self._open_round())
        return self._taking.take(read_frame(frame, layout), default_at=now)

    def delete(self, ids: Iterable[str]) -> Ingested:
        """Delete by id in the open round, a text being one id; for persons use `add` with op."""
        return self.add(deletions(self.plan, [ids] if isinstance(ids, str) else ids))

    def _finish_crossing(self) -> None:
        if complete(self._files, keeper=self._keeper, ledger=self._ledger):
            self._load()

    def _require_running(self) -> None:
        self._finish_crossing()
        if self.retired:
            raise StoreRetiredError(
                "The store was retired: its key is destroyed, and no round can be closed any more.",
                do="Read its releases with `retrodp export`; go on in a new store, with a plan and "
                "a budget of its own.",
            )

    def _open_round(self) -> int:
        """In the numbers of the present epoch."""
        self._require_running()
        if self.over:
            raise HorizonExceededError(
                f"All {self.horizon} rounds of the plan are closed.",
                do="Go on with a successor plan and a budget of its own: `retrodp continue`.",
            )
        return self._ledger.round + 1

    # Closing rounds.

    def close_round(self) -> Release:
        """Close the open round and publish its release.

        Raises:
            HorizonExceededError: Every round of the plan is closed.
        """
        return self._close(followed=False)

    def _close(self, *, followed: bool) -> Release:
        """Close the open round; of one that others follow at once the totals are written later."""
        self._finish_close()  # of the round before, if its last steps failed
        round_ = self._open_round()
        if round_ > self._running.horizon:
            # The budget of the next epoch of an open horizon was stated before the first began.
            self._begin(NextEpoch.by_itself(self._running, self._ledger, self._files))
            round_ = self._open_round()
        try:
            answers = self._commit(round_, write=not followed)
        except BaseException:
            self._totals.lose()  # changed in place, but the transaction was not
            raise
        self._finish_close()
        return Release(self.round, {answer.release: answer for answer in answers})

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
        self._require_running()
        self._running.require_closable(through, now=now)

    def _commit(self, round_: int, *, write: bool) -> tuple[Answer, ...]:
        """Step 1: updates, release and round, in one transaction."""
        with self._ledger.transaction():
            closing = Closing(plan=self.plan, releases=self._compiled, ledger=self._ledger)
            closed = closing.close(round_, self._totals, self._key.tree, write=write)
            answers = self.numbered(closed.answers)
            content = {answer.release: answer.to_bytes() for answer in answers}
            self._ledger.set_pending(round_, msgspec.msgpack.encode(content))
            self._ledger.advance(round_)
        if write:
            self._totals.kept()
        self._ignored += closed.ignored
        self._same_time += closed.same_time
        return answers

    def numbered(self, answers: Sequence[Answer]) -> tuple[Answer, ...]:
        """Answers of the present epoch as they are published, numbered on."""
        before = self.rounds_before
        return tuple(answer.numbered_on(before) for answer in answers)

    def _finish_close(self) -> None:
        """Steps 2 and 3 of the last close, or the way into an epoch, as far as they are missing."""
        self._finish_crossing()
        pending = self._ledger.pending()
        if pending is None:
            if self._key.round < self._ledger.round:  # an older copy of the key
                digest = self._releases.digest(self._ledger.round)
                assert digest is not None
                self._mark(self._ledger.round, digest)
            return
        round_, packed = pending
        content = msgspec.msgpack.decode(packed, type=dict[str, bytes])
        if round_ != self._ledger.round:
            raise StoreCorruptError("The ledger holds the release of another round.")
        self._mark(round_, self._releases.digest_of(round_, content))
        self._publish(round_, content)
        self._ledger.clear_pending()

    def _mark(self, round_: int, digest: str) -> None:
        """Step 2: the key forgets the rounds before this one, and notes that it was released."""
        if self._key.round == round_ and self._key.release_sha256 == digest:
            return
        if self._key.round >= round_:
            raise RoundClosedError(f"Round {round_} was released already, with other contents.")
        record = replace(
            self._key, round=round_, release_sha256=digest, tree=self._key.tree.advanced(round_)
        )
        self._keeper.rewrite(record)
        self._key = record

    def _publish(self, round_: int, content: Mapping[str, bytes]) -> None:
        """Step 3: the release becomes visible."""
        self._releases.publish(round_, content)

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
        self._require_running()
        if self.epoch.runs_under(plan, self.resolved):
            return False
        self.require_successor(plan)
        self._finish_close()
        self._begin(NextEpoch.under(plan, resolve(plan), self._running, self._ledger))
        return True

    def require_successor(self, plan: Plan) -> None:
        """Raise what `go_on` would raise, and change nothing."""
        require_over(self._running, self._ledger)
        require_next(plan, self._running)

    def _begin(self, following: NextEpoch) -> None:
        try:
            cross(self._files, following, keeper=self._keeper, ledger=self._ledger)
        finally:
            self._load()

    # Forgetting.

    def forget(self, ids: Iterable[str] = (), *, persons: Iterable[str] = ()) -> list[Receipt]:
        """Forget records by id, or all of persons, from the open round on; a text is one name.

        What matches is taken out when the open round closes, last of all its updates; updates of
        theirs that still wait are dropped. Bytes are erased when the store is closed or settled.
        After the last round they are erased at once, and the last key with them.

        Returns:
            One receipt a request, the same whether or not anything matched.
        """
        requests = asked(*([own] if isinstance(own, str) else own for own in (ids, persons)))
        require_nameable(requests, self.plan)
        self._finish_crossing()
        with self._ledger.transaction():
            note(requests, self._ledger)
        if not self.over:
            return [self._receipt(request, self.round + 1) for request in requests]
        self._forget_at_once()
        return [self._receipt(request, None) for request in requests]

    def _receipt(self, request: Forgotten, round_: int | None) -> Receipt:
        end = None if round_ is None else self.clock.end_of(round_ - self.rounds_before)
        return Receipt(
            forgotten=request,
            store_id=self.store_id,
            from_round=round_,
            from_instant=None if end is None else self.clock.text_of(end),
            erased=round_ is None,
            kept_by=keepers(own.mechanism for own in self._compiled),
        )

    def _forget_at_once(self) -> None:
        """No round is left to carry a forget, so it is carried out at once, without a release."""
        if not self.retired:
            self._finish_close()  # of a close that failed in this process
        # First the key: whoever holds it could otherwise open the last release later.
        self._destroy_key()
        self._take_out_forgotten()
        self.settle()

    def _take_out_forgotten(self, *, also: Callable[[], None] = lambda: None) -> None:
        closing = Closing(plan=self.plan, releases=self._compiled, ledger=self._ledger)
        self._totals.lose()
        with self._ledger.transaction():
            self._totals.catch_up()
            closing.forget(self._ledger.round)
            also()

    def _destroy_key(self) -> None:
        if not self._key.destroyed:
            record = replace(self._key, tree=self._key.tree.destroyed())
            self._keeper.rewrite(record)
            self._key = record

    # Ending.

    def retire(self, *, erase_ledger: bool = False) -> None:
        """End the store: what the key still derives is destroyed; the releases stay.

        Afterwards nothing is taken in and no round is closed. What waits to be forgotten is
        forgotten at once; again does no harm.

        Args:
            erase_ledger: Take out every record, total and waiting update too.
        """
        if not self.retired:
            self._finish_close()  # of a close that failed in this process
        self._take_out_forgotten(also=self._ledger.retire)
        self._destroy_key()
        if erase_ledger:
            self._ledger.forget_everything()
        self.settle()

    def settle(self) -> None:
        """Rewrite the ledger if a deletion, replacement or forget was processed."""
        if self._ledger.erase_due:
            self._ledger.erase()

    def close(self) -> None:
        """Erase what is due and let go of everything."""
        try:
            self.settle()
        finally:
            self._let_go()

    def _let_go(self) -> None:
        try:
            self._releases.close()
            self._ledger.close()
        finally:
            self._lock.release()


__all__ = ["Ingested", "Release", "Store"]
