"""The release of one round: from the ledger's difference to the bytes that are published.

`answers` is the law of this package in code: a pure function of keys, mechanisms, round and the
totals of the surviving data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retrodp.engine.compile import CompiledRelease
from retrodp.engine.totals import Totals, add_into, difference
from retrodp.mechanisms.answer import Answer
from retrodp.noise.key import NoiseKeys
from retrodp.plan.plan import Plan
from retrodp.store.ledger import Ledger
from retrodp.stream import lives, multiset
from retrodp.stream.batch import Batch
from retrodp.stream.bounding import Bound, within_bound
from retrodp.stream.update import Changes, QueuedUpdate, Record

INTAKE = "intake"  # purpose of the key that decides which of a person's ids are kept


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


def answers(
    releases: Sequence[CompiledRelease], round_: int, totals: Totals, keys: NoiseKeys
) -> tuple[Answer, ...]:
    """The answers of a round, from exact totals; a pure function."""
    return tuple(
        release.mechanism.release(round_, totals[release.name], keys) for release in releases
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """Everything a close needs that does not change from round to round."""

    plan: Plan
    releases: tuple[CompiledRelease, ...]
    ledger: Ledger

    @property
    def names(self) -> list[str]:
        """Columns in plan order, as payloads hold them."""
        return [column.name for column in self.plan.columns]

    def close(self, round_: int, totals: Totals, keys: NoiseKeys) -> Closed:
        """Apply the round's updates and forgets, move the totals, make the answers.

        Must run inside one transaction of the ledger. `totals` is changed in place; on an error
        the caller throws it away with the transaction.
        """
        updates = self.ledger.waiting(round_)
        changes = self._changes(round_, updates, keys)
        expiring = {
            stamp: self.ledger.records_with_stamp(stamp)
            for stamp in {round_ - release.window for release in self.releases if release.window}
            if stamp >= 1
        }
        self.ledger.apply_changes(changes)
        forgotten = self._take_out_forgotten()
        moves = difference(
            self.releases,
            self.names,
            round_,
            ended=[*changes.ended, *forgotten],
            begun=changes.begun,
            with_stamp=expiring.__getitem__,
        )
        for name, move in moves.items():
            add_into(totals[name], move)
            self.ledger.add_totals(name, move)
        self.ledger.remove_round_from_queue(round_)
        made = answers(self.releases, round_, totals, keys)
        return Closed(made, changes.ignored, changes.same_time)

    def _changes(self, round_: int, updates: list[QueuedUpdate], keys: NoiseKeys) -> Changes:
        if not self.plan.stream.ids:
            return multiset.apply_round(self.ledger.running_points(round_), updates)
        over = 0
        if self.plan.stream.max_records is not None:
            key = keys.fresh_key(release="", purpose=INTAKE, round=round_)
            bounded = within_bound(updates, bound_of(self.plan), key=key)
            updates, over = bounded.kept, bounded.over
        changes = lives.apply_round(self.ledger.running_for_round(round_), updates)
        return Changes(changes.ended, changes.begun, changes.ignored + over, changes.same_time)

    def forget(self, round_: int) -> None:
        """Take out what waits to be forgotten, without a release: the horizon is over.

        Must run inside one transaction of the ledger.
        """
        ended = self._take_out_forgotten()
        for release in self.releases:
            live = [record for record in ended if release.live(record.stamp, round_)]
            move: dict[bytes, int] = {}
            add_into(move, release.statistic.encode(Batch.of_records(live, self.names)), -1)
            self.ledger.add_totals(release.name, move)

    def _take_out_forgotten(self) -> list[Record]:
        """End the lives that the open forgets name; after the updates, so new lives too."""
        forgotten = self._named_by_forgets()
        self.ledger.apply_changes(Changes(ended=forgotten, begun=[], ignored=0))
        self.ledger.clear_forgets()
        return forgotten

    def _named_by_forgets(self) -> list[Record]:
        found: dict[tuple[str, str, int, bytes], Record] = {}
        for forget in self.ledger.forgets():
            if forget.kind == "person":
                records = self.ledger.records_of_person(forget.value)
            else:
                records = self.ledger.records_of_id(forget.value)
            for record in records:
                found[record.space, record.id, record.stamp, record.payload] = record
        return list(found.values())


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
