"""The release of one round: from the ledger's difference to the bytes that are published.

`states.made` is the law of this package in code: a pure function of keys, mechanisms, round and the
totals of the surviving data, and of a state for the releases that say they remember.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from retrodp.engine.collecting import paused
from retrodp.engine.compile import CompiledRelease
from retrodp.engine.kept import KeptTotals
from retrodp.engine.states import begun_in, made, read_states, watches
from retrodp.engine.totals import add_additions, add_into, difference, expired_stamp
from retrodp.mechanisms.answer import Answer
from retrodp.noise.key import NoiseKeys, encode
from retrodp.plan.plan import Plan
from retrodp.statistics.contract import Keyed
from retrodp.store.ledger import Ledger
from retrodp.stream import lives, multiset
from retrodp.stream.batch import Batch
from retrodp.stream.bounding import Bound, within_bound
from retrodp.stream.queued import Updates, no_updates
from retrodp.stream.update import Changes, Op, QueuedUpdate, Record

INTAKE = "intake"  # purpose of the key that decides which of a person's ids are kept
MEMORY = "remember_deleted"  # purpose of the key that hides remembered ids


@dataclass(frozen=True, slots=True)
class Closed:
    """One closed round.

    Attributes:
        answers: What is published, in the order of the plan.
        ignored: Rows that met a running life or were over a person's bound. For the operator.
        same_time: Updates whose order the plan's `same_time` decided. For the operator.
    """

    answers: tuple[Answer, ...]
    ignored: int
    same_time: int


@dataclass(frozen=True, slots=True)
class _Arrived:
    """The updates of a round that were looked at one by one, what they change, and the others."""

    updates: list[QueuedUpdate]
    changes: Changes
    alone: Updates


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """Everything a close needs that does not change from round to round."""

    plan: Plan
    releases: tuple[CompiledRelease, ...]
    ledger: Ledger

    @paused()
    def close(
        self, round_: int, totals: KeptTotals, keys: NoiseKeys, *, write: bool = True
    ) -> Closed:
        """Apply the round's updates and forgets, move the totals, make the answers.

        Must run inside one transaction of the ledger. `totals` is changed in place; on an error
        the caller throws it away with the transaction.

        Args:
            round_: To be closed.
            totals: Of the survivors of the round before.
            keys: Source of the noise.
            write: Whether the ledger's totals follow, or are written with a later round.
        """
        totals.read()  # while the survivors are those that they are counted of
        difference_made = self._arrived(round_, keys)
        expiring = {
            stamp: self.ledger.records_with_stamp(stamp)
            for stamp in {expired_stamp(release, round_) for release in self.releases}
            if stamp is not None
        }
        # Before the survivors grow: they take the room that what waited leaves.
        self.ledger.waiting.remove_round(round_)
        changes, added = self._applied(difference_made)
        forgets = self.ledger.forgets.waiting()
        asked = {("", forget.value) for forget in forgets if forget.kind == "id"}
        forgotten = self._take_out_forgotten()
        self._remember(round_, difference_made.updates, asked, keys)
        moves = difference(
            self.releases,
            self.plan.names,
            round_,
            ended=[*changes.ended, *forgotten],
            begun=changes.begun,
            with_stamp=expiring.__getitem__,
        )
        add_additions(moves, self.releases, self.plan.names, round_, added)
        for name, move in moves.items():
            totals.move(name, move, write=write)
        totals.noted(written=write)
        self.ledger.memory.drop_past(round_)
        begun = begun_in(
            self.releases,
            self.plan.names,
            round_,
            begun=[*changes.begun, *changes.again],
            forgotten=forgotten,
            ledger=self.ledger,
        )
        states = read_states(self.releases, self.ledger, round_ - 1)
        found = made(self.releases, round_, totals.read(), keys, begun=begun, states=states)
        self.ledger.states.keep(round_, found.kept)
        return Closed(found.answers, changes.ignored, changes.same_time)

    def _arrived(self, round_: int, keys: NoiseKeys) -> _Arrived:
        """What the round does to the lives, as far as that is known before it is done."""
        if not self.plan.stream.ids:
            updates = self.ledger.waiting.of_round(round_)
            points = self.ledger.running_points(round_)
            return _Arrived(updates, multiset.apply_round(points, updates), no_updates())
        alone = no_updates()
        if self._apart:
            alone, updates = lives.lone_additions(self.ledger.waiting.columns(round_))
        else:
            updates = self.ledger.waiting.of_round(round_)
        arrived, over = updates, 0
        if self.plan.stream.max_records is not None:
            key = keys.fresh_key(release="", purpose=INTAKE, round=round_)
            bounded = within_bound(updates, bound_of(self.plan), key=key)
            arrived, over = bounded.kept, bounded.over
        changes = lives.apply_round(
            self.ledger.running({(update.space, update.id) for update in arrived}),
            arrived,
            remembered=self._remembered(arrived, keys),
        )
        ignored = changes.ignored + over
        changes = replace(changes, ignored=ignored)
        return _Arrived(updates, changes, alone)

    @property
    def _apart(self) -> bool:
        """Whether lone additions can be applied as columns: nothing looks at rows one by one."""
        stream = self.plan.stream
        bounded = stream.max_records is not None or stream.remember_deleted is not None
        return not bounded and not any(map(watches, self.releases))

    def _applied(self, arrived: _Arrived) -> tuple[Changes, Updates]:
        """Change the survivors; the net difference, additions that begin a life each apart."""
        changes, added = arrived.changes, arrived.alone
        self.ledger.apply_changes(changes)
        if not len(added):
            return changes, added
        begun = self.ledger.begin_all(added)  # where a life of the name runs, the row is ignored
        return replace(changes, ignored=changes.ignored + len(added) - len(begun)), begun

    def _remembered(
        self, updates: list[QueuedUpdate], keys: NoiseKeys
    ) -> set[tuple[str, str]] | None:
        """Ids of the round that were deleted a short while ago; None if the plan keeps no memory."""
        if self.plan.stream.remember_deleted is None:
            return None
        hash_of = _hashing(keys)
        named = {hash_of(update.space, update.id): (update.space, update.id) for update in updates}
        return {named[found] for found in self.ledger.memory.remembered(named)}

    def _remember(
        self,
        round_: int,
        updates: list[QueuedUpdate],
        asked: set[tuple[str, str]],
        keys: NoiseKeys,
    ) -> None:
        """Start the memory of every deletion row and every id to forget, effective or not.

        It depends on the rows and requests alone, never on what they met: otherwise two streams
        that differ in one addition would remember differently, and one difference could decide
        about later lives for ever. So a forget by person starts none: which ids it ends is data.
        """
        if self.plan.stream.remember_deleted is None:
            return
        hash_of = _hashing(keys)
        deleted = {(update.space, update.id) for update in updates if update.op == Op.DELETE}
        hashes = [hash_of(space, id_) for space, id_ in deleted | asked]
        self.ledger.memory.remember(hashes, round_ + self.plan.stream.remember_deleted)

    def forget(self, round_: int) -> None:
        """Take out what waits to be forgotten, without a release: the horizon is over.

        Must run inside one transaction of the ledger.
        """
        ended = self._take_out_forgotten()
        self.ledger.states.purge()  # no round will ever read them
        for release in self.releases:
            if isinstance(release.statistic, Keyed) and not release.statistic.bound:
                self.ledger.replace_totals(release.name, {})  # its secret is gone, and its use
                continue
            live = [record for record in ended if release.live(record.stamp, round_)]
            move: dict[bytes, int] = {}
            add_into(move, release.statistic.encode(Batch.of_records(live, self.plan.names)), -1)
            self.ledger.add_totals(release.name, move)

    def _take_out_forgotten(self) -> list[Record]:
        """End the lives that the open forgets name; after the updates, so new lives too."""
        forgotten = self._named_by_forgets()
        self.ledger.apply_changes(Changes(ended=forgotten, begun=[], ignored=0))
        self.ledger.forgets.clear()
        return forgotten

    def _named_by_forgets(self) -> list[Record]:
        forgets = self.ledger.forgets.waiting()
        named = self.ledger.records_of_persons(
            [forget.value for forget in forgets if forget.kind == "person"]
        )
        for forget in forgets:
            if forget.kind == "id":
                named += self.ledger.records_of_id(forget.value)
        found = {(one.space, one.id, one.stamp, one.payload): one for one in named}
        return list(found.values())


def _hashing(keys: NoiseKeys) -> Callable[[str, str], bytes]:
    key = keys.lasting_key(release="", purpose=MEMORY)

    def hash_of(space: str, id_: str) -> bytes:
        return hashlib.blake2b(encode(space, id_), key=key, digest_size=16).digest()

    return hash_of


def bound_of(plan: Plan) -> Bound:
    """The plan's bound on what one person may add in a round."""
    stream = plan.stream
    assert stream.max_records is not None
    if stream.max_per_bin is None:
        return Bound(max_records=stream.max_records)
    positions = {column.name: position for position, column in enumerate(plan.columns)}
    return Bound(
        max_records=stream.max_records,
        bin_columns=tuple(positions[name] for name in stream.max_per_bin.by),
        max_per_bin=stream.max_per_bin.max,
    )
