"""Releases that remember: their states, from the last close to this one.

Promise: whatever a release remembers passes through here and stands in the ledger's states, so that
a crash, a restart and a recomputation meet the same bytes. Round 1 begins with the state that the
mechanism gives, and with everything that survives it as begun: so a new epoch starts anew from the
survivors, and what the epochs before remembered is left behind.

How a release comes to remember: its mechanism is `mechanisms.contract.Stateful`. Nothing else in
the engine has to be told; resolution asks the plan for `forgetting = "partial"`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from retrodp.engine.compile import CompiledRelease
from retrodp.engine.totals import Totals
from retrodp.errors import PlanError, StoreCorruptError
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.contract import AnyMechanism, Seen, Stateful
from retrodp.noise.key import NoiseKeys, encode
from retrodp.plan.plan import Plan
from retrodp.statistics.contract import Individual
from retrodp.store.ledger import Ledger
from retrodp.store.states import Kept
from retrodp.stream.batch import Batch
from retrodp.stream.update import Record


@dataclass(frozen=True, slots=True)
class Made:
    """What one round publishes, and what is kept of it.

    Attributes:
        answers: In the order of the plan.
        kept: By release, of those that remember.
    """

    answers: tuple[Answer, ...]
    kept: Mapping[str, Kept]


def remembering(releases: Iterable[CompiledRelease]) -> tuple[CompiledRelease, ...]:
    """The releases that remember."""
    return tuple(release for release in releases if isinstance(release.mechanism, Stateful))


def keepers(mechanisms: Iterable[AnyMechanism]) -> tuple[str, ...]:
    """Names of releases that keep the influence of deleted records, in the order given.

    Those whose answers hide it (`marginal`) are among them: their state keeps it.
    """
    return tuple(own.name for own in mechanisms if own.retroactive != "exact")


def require_partial(plan: Plan, mechanisms: Sequence[AnyMechanism]) -> None:
    """Raise `PlanError` if a release keeps what is deleted and the plan does not say so."""
    keeping = [own for own in mechanisms if own.retroactive != "exact"]
    if not keeping or plan.stream.forgetting == "partial":
        return
    first = keeping[0]
    instead = first.instead if isinstance(first, Stateful) else "a retroactive release"
    how = (
        "is not retroactive: its later answers keep"
        if first.retroactive == "no"
        else "is only marginally retroactive: its state keeps, and each later answer hides,"
    )
    raise PlanError(
        f"release.{first.name} {how} the influence of deleted and forgotten records.",
        expected='stream.forgetting = "partial", which says so to everyone who asks',
        do=f"To have every deletion forgotten, plan {instead}.",
    )


def made(
    releases: Sequence[CompiledRelease],
    round_: int,
    totals: Mapping[str, Mapping[bytes, int]],
    keys: NoiseKeys,
    *,
    begun: Totals,
    states: Mapping[str, bytes],
) -> Made:
    """The answers of a round and the states after it: a pure function.

    Args:
        releases: All of the plan.
        round_: Being closed.
        totals: Of the survivors.
        keys: Source of the noise.
        begun: What each release that watches saw begin.
        states: After the round before, of the releases that remember; none before round 1.
    """
    answers, kept = [], {}
    for release in releases:
        mechanism, name = release.mechanism, release.name
        if isinstance(mechanism, Stateful):
            seen = Seen(totals[name], begun.get(name, {}))
            state = mechanism.begin() if round_ == 1 else states[name]
            answer, state = mechanism.advance(round_, seen, keys, state)
            kept[name] = Kept(state, seen.begun)
        else:
            answer = mechanism.release(round_, totals[name], keys)
        answers.append(answer)
    return Made(tuple(answers), kept)


def read_states(
    releases: Sequence[CompiledRelease], ledger: Ledger, round_: int
) -> dict[str, bytes]:
    """States after a round, of the releases that remember; none after round 0.

    Raises:
        StoreCorruptError: One is missing.
    """
    found = {}
    for release in remembering(releases) if round_ else ():
        kept = ledger.states.read(release.name, round_)
        if kept is None:
            raise StoreCorruptError(
                f"The ledger lacks the state of release {release.name} after round {round_}.",
                do="Restore the store from a back-up with `retrodp restore`.",
            )
        found[release.name] = kept.state
    return found


def begun_in(
    releases: Sequence[CompiledRelease],
    names: Sequence[str],
    round_: int,
    *,
    begun: Sequence[Record],
    forgotten: Sequence[Record],
    ledger: Ledger,
) -> Totals:
    """What the releases that watch see begin in a round that is being closed.

    Args:
        releases: All of the plan.
        names: Columns in plan order.
        round_: Being closed, with its updates and forgets applied.
        begun: Lives that its updates begin.
        forgotten: Lives that its forgets end; of those that begin in it nothing is ever seen.
        ledger: Of the survivors, all of which round 1 sees begin.
    """
    if not any(map(watches, releases)):
        return {}
    if round_ == 1:
        records = [record for batch in ledger.survivors() for record in batch]
    else:
        gone = set(map(_place, forgotten))
        records = [record for record in begun if _place(record) not in gone]
    return seen_to_begin(releases, records, names, round_)


def seen_to_begin(
    releases: Sequence[CompiledRelease],
    records: Sequence[Record],
    names: Sequence[str],
    round_: int,
) -> Totals:
    """What the releases that watch see of records that begin in a round and survive it."""
    found: Totals = {}
    for release in filter(watches, releases):
        live = [record for record in records if release.live(record.stamp, round_)]
        seen = _shown(release, live, names)
        found[release.name] = {place: amount for place, amount in seen.items() if amount}
    return found


def _shown(
    release: CompiledRelease, records: Sequence[Record], names: Sequence[str]
) -> dict[bytes, int]:
    batch = Batch.of_records(records, names)
    if isinstance(release.statistic, Individual):
        return release.statistic.arrivals(batch, [_identity(record) for record in records])
    return release.statistic.encode(batch)


def watches(release: CompiledRelease) -> bool:
    """Whether a release looks at what begins in a round, record by record."""
    return isinstance(release.mechanism, Stateful) and release.mechanism.watches


def _place(record: Record) -> tuple[str, str, int, bytes]:
    return record.space, record.id, record.stamp, record.payload


def _identity(record: Record) -> bytes:
    if record.id:
        return encode(record.space, record.id, record.stamp)
    return encode(record.stamp, record.payload)
