"""A history lived through the pure pipeline: updates to survivors to totals to answers, no disk.

Promise: the same functions as a store's close, in the same order, and nothing else; what a
mechanism is asked in a round it is asked here once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from retrodp.engine.close import INTAKE, bound_of
from retrodp.engine.compile import CompiledRelease, keyed
from retrodp.engine.states import seen_to_begin
from retrodp.engine.totals import Totals, add_into, difference
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.contract import Mechanism
from retrodp.mechanisms.lived import Lived
from retrodp.noise.key import NoiseKeys
from retrodp.plan.plan import Plan
from retrodp.stream import lives, multiset
from retrodp.stream.bounding import within_bound
from retrodp.stream.update import Changes, QueuedUpdate, Record

Plant = Callable[[Mechanism], Mechanism]
"""Replaces a mechanism; for planted faults. Called once a history, so state is the history's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """A request that takes effect when its round closes, after the updates."""

    kind: str  # "id" or "person"
    value: str

    def names(self, record: Record) -> bool:
        """Whether the record must go."""
        return self.value == (record.id if self.kind == "id" else record.person)


@dataclass(frozen=True, slots=True)
class Arrived:
    """What arrives in one round; the order of the updates never matters."""

    updates: tuple[QueuedUpdate, ...] = ()
    forgets: tuple[Forget, ...] = ()


History = tuple[Arrived, ...]
"""One entry a round, from round 1."""


@dataclass(slots=True)
class Survivors:
    """Running lives, or surviving stamped points, as a store's ledger holds them."""

    plan: Plan
    running: dict[tuple[str, str], Record] = field(default_factory=dict)
    points: dict[multiset.Point, Record] = field(default_factory=dict)

    def records(self) -> Iterator[Record]:
        """All of them."""
        yield from self.running.values()
        yield from self.points.values()

    def state(self) -> frozenset[tuple[str, str, int, bytes, int]]:
        """What two histories must share to unite: the surviving data, stamps and copies."""
        return frozenset((r.space, r.id, r.stamp, r.payload, r.count) for r in self.records())

    def receive(self, round_: int, arrived: Arrived, keys: NoiseKeys) -> Changes:
        """Apply one round; returns the net difference, forgets included, in that order."""
        updates: Sequence[QueuedUpdate] = arrived.updates
        if not self.plan.stream.ids:
            changes = multiset.apply_round(self.points, updates)
        else:
            if self.plan.stream.max_records is not None:
                key = keys.fresh_key(release="", purpose=INTAKE, round=round_)
                updates = within_bound(updates, bound_of(self.plan), key=key).kept
            changes = lives.apply_round(self.running, updates)
        self._apply(changes)
        gone = [
            record
            for record in self.records()
            if any(forget.names(record) for forget in arrived.forgets)
        ]
        self._apply(Changes(gone, [], 0))
        return replace(changes, ended=[*changes.ended, *gone])

    def _apply(self, changes: Changes) -> None:
        if self.plan.stream.ids:
            for record in changes.ended:
                del self.running[record.space, record.id]
            for record in changes.begun:
                self.running[record.space, record.id] = record
            return
        for records, sign in ((changes.ended, -1), (changes.begun, 1)):
            for record in records:
                point = (record.stamp, record.payload)
                before = self.points.pop(point, None)
                copies = (0 if before is None else before.count) + sign * record.count
                if copies:
                    self.points[point] = record._replace(count=copies)


@dataclass(frozen=True, slots=True)
class Before:
    """Survivors when a round opens."""

    records: tuple[Record, ...]

    def with_stamp(self, stamp: int) -> list[Record]:
        """Those of one stamp."""
        return [record for record in self.records if record.stamp == stamp]


@dataclass(frozen=True, slots=True)
class Round:
    """What one round of a lived history left: exact, for the audit alone.

    Attributes:
        survivors: The surviving data.
        totals: Of every release, by coordinate.
        begun: What each release that watches saw begin, by coordinate.
    """

    survivors: frozenset[tuple[str, str, int, bytes, int]]
    totals: Mapping[str, Mapping[bytes, int]]
    begun: Mapping[str, Mapping[bytes, int]] = field(default_factory=dict)


def exact_rounds(
    plan: Plan, releases: Sequence[CompiledRelease], history: History, keys: NoiseKeys
) -> list[Round]:
    """Survivors and totals after every round of a history.

    Args:
        plan: Of the releases.
        releases: Whose totals are wanted; their mechanisms are not asked.
        history: One entry a round.
        keys: For the intake bound of person units, and for statistics that hash.
    """
    names = plan.names
    releases = keyed(releases, keys)
    survivors = Survivors(plan)
    totals: Totals = {release.name: {} for release in releases}
    rounds = []
    for round_, arrived in enumerate(history, start=1):
        before = Before(tuple(survivors.records()))
        changes = survivors.receive(round_, arrived, keys)
        moves = difference(
            releases,
            names,
            round_,
            ended=changes.ended,
            begun=changes.begun,
            with_stamp=before.with_stamp,
        )
        for name, move in moves.items():
            add_into(totals[name], move)
        ended = {*map(_place, changes.ended)}
        lives_begun = [*changes.begun, *changes.again] if round_ > 1 else []
        seen = [one for one in lives_begun if _place(one) not in ended]
        seen += survivors.records() if round_ == 1 else ()
        rounds.append(
            Round(
                survivors.state(),
                {name: dict(found) for name, found in totals.items()},
                seen_to_begin(releases, seen, names, round_),
            )
        )
    return rounds


def _place(record: Record) -> tuple[str, str, int, bytes]:
    return record.space, record.id, record.stamp, record.payload


def asked(mechanism: Mechanism, round_: int, lived: Round, keys: NoiseKeys) -> Answer:
    """The answer of one round, as a store would ask for it."""
    if isinstance(mechanism, Lived):
        mechanism.begun = lived.begun.get(mechanism.name, {})
    return mechanism.release(round_, lived.totals[mechanism.name], keys)


def published(
    mechanisms: Mapping[str, Mechanism], rounds: Sequence[Round], keys: NoiseKeys
) -> list[dict[str, Answer]]:
    """The answers of every mechanism in every round, asked in order as a store asks them."""
    return [
        {name: asked(mechanism, round_, lived, keys) for name, mechanism in mechanisms.items()}
        for round_, lived in enumerate(rounds, start=1)
    ]
