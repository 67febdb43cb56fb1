"""Streams without ids: the multiset of surviving stamped points, as the paper defines it.

Promise: within a round all additions come before all deletions; a deletion removes one copy of
the point it names if there is one and otherwise does nothing, for ever. Keeps no debt: an early
deletion is not remembered.

Source: Kaplan, Kohen, Mansour, Nissim, Stemmer (2026), section 2 and appendix A.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from retrodp.stream.update import Changes, Op, QueuedUpdate, Record

Point = tuple[int, bytes]
"""A stamped point: stamp round and payload."""


def apply_round(running: Mapping[Point, Record], updates: Iterable[QueuedUpdate]) -> Changes:
    """What one round changes among the surviving points.

    Args:
        running: Record, with its number of copies, of each stamped point that survives when the
            round opens; it must hold every surviving point that the updates name.
        updates: All updates of the round, in any order.

    Returns:
        The net difference: a point's record in `begun` carries the copies it gained, in `ended`
        the copies it lost. `ignored` is 0: an addition is never ignored here, and whether a
        deletion met a copy is not told. `same_time` is 0: the order of a round is fixed.

    Retroactivity: exact, as in `lives`. Time: linear in the updates.
    """
    added: Counter[Point] = Counter()
    deleted: Counter[Point] = Counter()
    person_of: dict[Point, str | None] = {}
    for update in updates:
        point = (update.stamp, update.payload)
        person_of[point] = update.person
        (deleted if update.op == Op.DELETE else added)[point] += update.count
    ended: list[Record] = []
    begun: list[Record] = []
    for point in sorted(person_of):
        record = running.get(point)
        before = 0 if record is None else record.count
        change = max(before + added[point] - deleted[point], 0) - before
        if change:
            stamp, payload = point
            changed = Record("", "", stamp, person_of[point], payload, abs(change))
            (begun if change > 0 else ended).append(changed)
    return Changes(ended, begun, 0)
