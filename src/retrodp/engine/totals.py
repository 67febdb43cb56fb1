"""Exact totals of the surviving data, kept up to date by differences.

Totals are linear, so the difference that a round makes is the encoding of what it begins minus
the encoding of what it ends or lets expire. The same encoding over all survivors gives the same
totals, which is what `verify` relies on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from retrodp.engine.compile import CompiledRelease
from retrodp.errors import CapacityError
from retrodp.mechanisms.wide_totals import WideTotals
from retrodp.stream.batch import Batch
from retrodp.stream.queued import Updates
from retrodp.stream.update import Record

Totals = dict[str, dict[bytes, int]]

_END = 1 << 63


def add_into(totals: dict[bytes, int], difference: Mapping[bytes, int], sign: int = 1) -> None:
    """Add a difference in place; a coordinate that becomes 0 leaves, so no label is remembered."""
    found = totals.get
    for label, amount in difference.items():
        total = found(label, 0) + sign * amount
        if total:
            totals[label] = total
        else:
            totals.pop(label, None)


def add_within(
    totals: dict[bytes, int] | WideTotals, difference: Mapping[bytes, int], *, release: str
) -> None:
    """The same for a release's kept totals, which the ledger holds in 64 bits.

    Raises:
        CapacityError: A total left them; what was added is to be thrown away.
    """
    try:
        if isinstance(totals, WideTotals):
            totals.add(difference)
        else:
            _add_within(totals, difference)
    except OverflowError:
        raise CapacityError(
            f"A total of release {release} does not fit 64 bits; nothing was changed.",
            expected="counts and sums, in steps, between -2^63 and 2^63 - 1",
            do="Use a coarser step, or correct the rows with huge counts.",
        ) from None


def _add_within(totals: dict[bytes, int], difference: Mapping[bytes, int]) -> None:
    found, sums = totals.get, []
    for label, amount in difference.items():
        total = found(label, 0) + amount
        if total:
            totals[label] = total
            sums.append(total)
        else:
            totals.pop(label, None)
    if sums and not -_END <= min(sums) <= max(sums) < _END:
        raise OverflowError


def expired_stamp(release: CompiledRelease, round_: int) -> int | None:
    """The stamp whose records stop counting in this round, if there is one."""
    return None if release.window is None else round_ - release.window


def difference(
    releases: Sequence[CompiledRelease],
    names: Sequence[str],
    round_: int,
    *,
    ended: Sequence[Record],
    begun: Sequence[Record],
    with_stamp: Callable[[int], Sequence[Record]],
) -> Totals:
    """What one round does to the totals of every release.

    Args:
        releases: All releases of the plan.
        names: All columns of the plan, in plan order.
        round_: The round being closed.
        ended: Lives that end in it.
        begun: Lives that begin in it.
        with_stamp: Survivors of the round before with a given stamp.
    """
    moves: Totals = {release.name: {} for release in releases}
    expired: dict[int, Batch] = {}
    for release in releases:
        stamp = expired_stamp(release, round_)
        if stamp is not None:
            if stamp not in expired:
                expired[stamp] = Batch.of_records(with_stamp(stamp), names)
            add_into(moves[release.name], release.statistic.encode(expired[stamp]), -1)
    # What expires in this round was taken off above, whether or not it also ends in it.
    for records, sign in ((ended, -1), (begun, 1)):
        for release, batch in _live_batches(releases, names, round_, records):
            add_into(moves[release.name], release.statistic.encode(batch), sign)
    return moves


def add_additions(
    moves: Totals,
    releases: Sequence[CompiledRelease],
    names: Sequence[str],
    round_: int,
    added: Updates,
) -> None:
    """Add to a difference, in place, what additions do to it that begin a life each."""
    for release, batch in _live_additions(releases, names, round_, added):
        move = release.statistic.encode(batch)
        if moves[release.name]:
            add_into(moves[release.name], move)
        else:
            moves[release.name] = move


def recount(
    releases: Sequence[CompiledRelease],
    names: Sequence[str],
    round_: int,
    survivors: Iterable[Sequence[Record]],
) -> Totals:
    """Totals of every release from the surviving records alone."""
    totals: Totals = {release.name: {} for release in releases}
    for records in survivors:
        for release, batch in _live_batches(releases, names, round_, records):
            add_into(totals[release.name], release.statistic.encode(batch))
    return totals


def _live_batches(
    releases: Sequence[CompiledRelease],
    names: Sequence[str],
    round_: int,
    records: Sequence[Record],
) -> Iterator[tuple[CompiledRelease, Batch]]:
    """Each release with the records that count for it; one batch for all that count all of them."""
    if not records:
        return
    everything = Batch.of_records(records, names)
    for release in releases:
        live = records
        if release.window is not None:
            live = [record for record in records if release.live(record.stamp, round_)]
        if len(live) == len(records):
            yield release, everything
        elif live:
            yield release, Batch.of_records(live, names)


def _live_additions(
    releases: Sequence[CompiledRelease], names: Sequence[str], round_: int, added: Updates
) -> Iterator[tuple[CompiledRelease, Batch]]:
    """As `_live_batches`, of what additions write."""
    if not len(added):
        return
    everything = Batch.of_updates(added, names)
    stamps, places = np.unique(added.stamp, return_inverse=True)
    for release in releases:
        live = np.array([release.live(stamp, round_) for stamp in stamps.tolist()], np.bool_)
        if live.all():
            yield release, everything
        elif live.any():
            yield release, Batch.of_updates(added.take(np.flatnonzero(live[places])), names)
