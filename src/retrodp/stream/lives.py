"""Ids: which life of an id runs after a round.

Promise: `apply_round` is a pure function of the running lives and the multiset of the round's
updates; the order they are given in never matters, and ids never influence one another. At most
one life of an id runs. Keeps no memory of earlier rounds beyond the survivors, and must not know
whether a deletion met anything: a deletion of an unknown id is an ordinary deletion that changes
nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import groupby
from operator import itemgetter

import numpy as np

from retrodp.stream.queued import Updates
from retrodp.stream.update import Changes, Op, QueuedUpdate, Record, made_record

in_order = itemgetter(0, 1, 2, 3, 4, 5)
"""Sort key: id, then `at`, then rank, then the smallest canonical encoding (payload, stamp)."""

_id_of = itemgetter(0, 1)


def apply_round(
    running: Mapping[tuple[str, str], Record],
    updates: Iterable[QueuedUpdate],
    *,
    remembered: Collection[tuple[str, str]] | None = None,
) -> Changes:
    """What one round changes among the running lives.

    Args:
        running: Life of each (space, id) that runs when the round opens; it may hold more ids
            than the round touches, and must hold every running one that it does touch.
        updates: All updates of the round that passed the intake bound, in any order.
        remembered: Ids that were deleted a short while ago, where the plan says
            `remember_deleted`: additions of theirs are ignored, and so are those that follow a
            deletion within this round. None where a deleted id is free at once. Replacements are
            not ignored: a deletion that hid a chain of them would change as many lives, and one
            raw update must change two at most.

    Returns:
        The net difference. A life that begins and ends within the round never appears; an id
        whose record is the same after the round as before (same stamp and payload) does not
        appear either, so statistics need not recognise it. If that record is of a new life, it is
        told apart: whether a life begins must not depend on which other lives there were.

    Retroactivity: exact; the survivors after the round depend on nothing but the survivors before
    it and its updates. Time: the updates of the round, times the logarithm of their number.
    """
    ended: list[Record] = []
    begun: list[Record] = []
    again: list[Record] = []
    ignored = 0
    same_time = 0
    add, delete = int(Op.ADD), int(Op.DELETE)
    for name, of_one_id in groupby(sorted(updates, key=in_order), key=_id_of):
        before = running.get(name)
        life = before
        blocked = remembered is not None and name in remembered
        last_at: int | None = None
        for update in of_one_id:
            same_time += update.at == last_at
            last_at = update.at
            op = update.op
            if op == delete:
                life = None
                blocked = remembered is not None
            elif op == add and (blocked or life is not None):
                ignored += 1
            else:
                blocked = False
                life = made_record((*name, update.stamp, update.person, update.payload, 1))
        if life == before:
            if life is not None and life is not before:
                again.append(life)
            continue
        if before is not None:
            ended.append(before)
        if life is not None:
            begun.append(life)
    return Changes(ended, begun, ignored, same_time, again)


def lone_additions(updates: Updates) -> tuple[Updates, list[QueuedUpdate]]:
    """The additions that are the only row of their name in the round, and all other rows.

    Names never influence one another, so the two can be applied apart. What `apply_round` makes of
    a lone addition is plain: its record begins or, if a life of the name runs, the row is ignored.

    Args:
        updates: All updates of the round, in order.
    """
    alone = updates.alone()
    if alone.all():
        return updates, []
    return updates.take(np.flatnonzero(alone)), updates.take(np.flatnonzero(~alone)).queued()
