"""The bound on what one person may add in one round, decided when the round closes.

Promise: which ids are kept is a function of nothing but the key and the multiset of updates that
arrived in this round. It must not know the running lives (the id rules come second: a redelivered
row takes its place whether or not its life runs, so that one dropped duplicate cannot cascade),
and it keeps no books over rounds.

Why `Bound.max_records` and `Bound.max_per_bin` hold for the lives that remain:

1. Of each person at most `max_records` distinct ids have an addition or a replacement left. An id
   has at most one running life after the round, so at most `max_records` lives of the person
   begin in the round.
2. An id occupies the bin of *every* addition and replacement that arrived for it in the round,
   and is kept only if each of these bins has had fewer than `max_per_bin` occupants among the
   kept ids before it. So no bin has more than `max_per_bin` occupants. A life that begins in the
   round carries the payload of one of its id's updates of the round, hence lies in a bin that its
   id occupies: at most `max_per_bin` of the person's lives begun in the round lie in one bin,
   whichever of the id's updates the id rules let win.

Records without a person live in the namespace "". Each of their ids is a person of its own, so no
two of them share a bound: strangers who did would decide about each other's records.

An id that is not kept loses all its additions and replacements of the round, for ever; it does
not come back when a kept one is deleted. Deletions are never dropped: a replacement that is not
kept still ends the running life, so that nobody's bound can keep taken-back data alive and the
end of an older life does not depend on what else the person added.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from hashlib import blake2b

import msgspec

from retrodp.errors import PlanError
from retrodp.stream.update import Op, QueuedUpdate

_decode = msgspec.msgpack.Decoder(list[object]).decode
_encode = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """How much of one person is taken per round; public.

    Attributes:
        max_records: Distinct ids with an addition or a replacement.
        bin_columns: Positions, in the payload, of the columns whose values make a bin.
        max_per_bin: Ids per bin; None if the plan bounds no bins.
    """

    max_records: int
    bin_columns: tuple[int, ...] = ()
    max_per_bin: int | None = None

    def __post_init__(self) -> None:
        if self.max_records < 1 or (self.max_per_bin is not None and self.max_per_bin < 1):
            raise PlanError(
                "max_records and max_per_bin must be at least 1.",
                do="Raise the bound of a person in [stream].",
            )


@dataclass(frozen=True, slots=True)
class Bounded:
    """What the bound left of a round.

    Attributes:
        kept: The updates that the id rules may see, in the order they were given.
        over: Additions and replacements over the bound. For the operator only.
    """

    kept: list[QueuedUpdate]
    over: int


def within_bound(updates: Iterable[QueuedUpdate], bound: Bound, *, key: bytes) -> Bounded:
    """Drop what exceeds the bound of each person (the namespace of the ids).

    Args:
        updates: All updates that arrived in the round, duplicates included, in any order.
        bound: The plan's bound.
        key: At most 64 secret bytes; which ids are kept looks random to whoever lacks them.

    Returns:
        The kept updates and how many were over the bound. A replacement over the bound is kept as
        a deletion.

    Time: linear in the updates, times the logarithm of the ids of one person.
    """
    arrived = list(updates)
    payloads: defaultdict[str, defaultdict[str, set[bytes]]] = defaultdict(lambda: defaultdict(set))
    for update in arrived:
        if update.op != Op.DELETE and update.space:  # one id alone is always within the bound
            payloads[update.space][update.id].add(update.payload)
    over_bound = {
        (space, id_)
        for space, of_person in payloads.items()
        for id_ in of_person.keys() - _kept_ids(space, of_person, bound, key)
    }
    kept: list[QueuedUpdate] = []
    over = 0
    for update in arrived:
        if update.op == Op.DELETE or (update.space, update.id) not in over_bound:
            kept.append(update)
            continue
        over += 1
        if update.op == Op.REPLACE:
            kept.append(update._replace(op=int(Op.DELETE), payload=b"", stamp=0))
    return Bounded(kept, over)


def _kept_ids(space: str, payloads: dict[str, set[bytes]], bound: Bound, key: bytes) -> set[str]:
    """Ids of one person within the bound: smallest keyed hashes first."""
    if len(payloads) <= 1:
        return set(payloads)  # one id occupies each of its bins once
    by_hash = sorted(payloads, key=lambda id_: (_hash(space, id_, key), id_))
    chosen = by_hash[: bound.max_records]
    if bound.max_per_bin is None:
        return set(chosen)
    occupants: Counter[Hashable] = Counter()
    kept: set[str] = set()
    for id_ in chosen:
        bins = {_bin(payload, bound.bin_columns) for payload in payloads[id_]}
        if all(occupants[bin_] < bound.max_per_bin for bin_ in bins):
            occupants.update(bins)
            kept.add(id_)
    return kept


def _hash(space: str, id_: str, key: bytes) -> bytes:
    return blake2b(_encode((space, id_)), key=key, digest_size=16).digest()


def _bin(payload: bytes, columns: tuple[int, ...]) -> bytes:
    """The named values, encoded so that true, 1 and "1" stay apart."""
    values = _decode(payload)
    return _encode([values[column] for column in columns])
