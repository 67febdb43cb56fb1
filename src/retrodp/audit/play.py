"""One play of the adaptive game with real updates, as a store would run it.

The reference for `table`, which plays thousands at once: a test has both agree.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from retrodp.audit.adversaries import Adversary, Board
from retrodp.audit.cases import Case
from retrodp.audit.histories import Arrived, Before, Survivors
from retrodp.audit.rows import Point, update
from retrodp.audit.table import new_board, publish, settle
from retrodp.engine.compile import CompiledRelease
from retrodp.engine.totals import Totals, add_into, difference
from retrodp.noise.key import KeyTree
from retrodp.stream.update import Op, QueuedUpdate


def play_once(
    case: Case, adversary: Adversary, labels: Sequence[str], keys: KeyTree, *, challenged: bool
) -> Board:
    """One play with real updates: lives, statistic and release as a store runs them.

    Args:
        case: A plan with one release, a count or a histogram.
        adversary: With as many bins as there are labels.
        labels: Bins; one empty label for a count.
        keys: Of the release.
        challenged: World 0.
    """
    (release,) = case.releases
    player = _Player(case, release, tuple(labels))
    board = new_board(case.horizon, plays=1, bins=adversary.bins)
    own = np.zeros((1, adversary.bins), dtype=np.int64)
    for round_ in range(1, case.horizon + 1):
        moves = adversary.moves(board)
        before = int(board.bin[0]), int(board.end[0])
        settle(board, moves)
        sent = player.own_updates(round_, moves.own[0].tolist())
        if challenged:
            sent += player.challenge_updates(round_, before, (int(board.bin[0]), int(board.end[0])))
        own = own + moves.own
        value, shown = player.answers(round_, sent, keys)
        publish(board, value, shown, own)
    return board


class _Player:
    """Sends updates and reads answers, one play."""

    def __init__(self, case: Case, release: CompiledRelease, labels: tuple[str, ...]) -> None:
        self.case, self.release, self.labels = case, release, labels
        self.names = [column.name for column in case.plan.columns]
        self.survivors = Survivors(case.plan)
        self.totals: Totals = {release.name: {}}
        self.there: list[list[Point]] = [[] for _ in labels]
        self.sent = 0
        self.challenge: Point | None = None

    def _point(self, bin_: int, round_: int, name: str) -> Point:
        by = self.case.plan.releases[0].by
        values = tuple(
            self.labels[bin_] if column.name in by else _plain(column.type, name)
            for column in self.case.plan.columns
        )
        return Point(id=name, stamp=round_, person=name, values=values)

    def own_updates(self, round_: int, changes: list[int]) -> list[QueuedUpdate]:
        """Updates that change the adversary's records by so many."""
        updates = []
        for bin_, change in enumerate(changes):
            for _ in range(abs(change)):
                if change > 0:
                    self.sent += 1
                    point = self._point(bin_, round_, f"own {self.sent}")
                    self.there[bin_].append(point)
                    updates.append(update(self.case.plan, Op.ADD, point, round_=round_))
                else:
                    point = self.there[bin_].pop()
                    updates.append(update(self.case.plan, Op.DELETE, point, round_=round_))
        return updates

    def challenge_updates(
        self, round_: int, before: tuple[int, int], after: tuple[int, int]
    ) -> list[QueuedUpdate]:
        """The challenge's addition or deletion, where this round has one."""
        updates = []
        if before[1] == 0 and after[1] and self.challenge is not None:
            updates.append(update(self.case.plan, Op.DELETE, self.challenge, round_=round_))
        if before[0] < 0 <= after[0]:
            self.challenge = self._point(after[0], round_, "challenge")
            updates.append(update(self.case.plan, Op.ADD, self.challenge, round_=round_))
        return updates

    def answers(
        self, round_: int, updates: list[QueuedUpdate], keys: KeyTree
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """What is published, by bin, shape ``(1, bins)``."""
        before = Before(tuple(self.survivors.records()))
        changes = self.survivors.receive(round_, Arrived(tuple(updates)), keys)
        moves = difference(
            [self.release],
            self.names,
            round_,
            ended=changes.ended,
            begun=changes.begun,
            with_stamp=before.with_stamp,
        )
        add_into(self.totals[self.release.name], moves[self.release.name])
        mechanism = self.case.mechanisms[self.release.name]
        answer = mechanism.release(round_, self.totals[self.release.name], keys)
        published = dict(zip(answer.keys or ("",), answer.values, strict=True))
        least = (answer.threshold or 0) - 1
        value = [published.get(label) for label in self.labels]
        return (
            np.array([[least if one is None else one for one in value]], dtype=np.int64),
            np.array([[one is not None for one in value]]),
        )


def _plain(type_: str, name: str) -> str | int | bool | None:
    if type_ == "text":
        return name
    return False if type_ == "boolean" else None
