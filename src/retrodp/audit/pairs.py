"""Pairs of histories that unite: different before a stated round, the same surviving data after.

Promise: whatever the coins, both histories of a pair hold the same surviving data, stamps and
copies included, from `meet` on; before, they differ in ways as various as life: late and
retroactive insertions, wrong stamps, replaced, doubled, redelivered and exhausted records,
deletions of the unknown and deletions that come too early, persons over their bound, forgets.

Source: Kaplan et al. 2026 (arXiv 2609.05329), definitions 2.8 and A.1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from retrodp.audit.coins import Coins
from retrodp.audit.histories import Arrived, Forget, History
from retrodp.audit.rows import Point, any_values, update
from retrodp.plan.plan import Plan
from retrodp.stream.update import Op, QueuedUpdate

MOST_KEPT = 4  # records that both histories end with
MOST_GONE = 4  # records of one history alone that are gone by the meeting


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two histories that unite.

    Attributes:
        meet: First round from which the surviving data are the same.
        one: By the ways of life.
        two: Likewise, or plainly: every survivor added once, in the round of the meeting.
        ways: What happened in them, for the report.
    """

    meet: int
    one: History
    two: History
    ways: tuple[str, ...]


@dataclass(slots=True)
class _Draft:
    """A history being written."""

    plan: Plan
    updates: defaultdict[int, list[QueuedUpdate]] = field(default_factory=lambda: defaultdict(list))
    forgets: defaultdict[int, list[Forget]] = field(default_factory=lambda: defaultdict(list))

    def happens(
        self, op: Op, point: Point, round_: int, *, second: int = 0, count: int = 1
    ) -> None:
        self.updates[round_].append(
            update(self.plan, op, point, round_=round_, second=second, count=count)
        )

    def forget(self, round_: int, kind: str, value: str) -> None:
        self.forgets[round_].append(Forget(kind=kind, value=value))

    def history(self) -> History:
        return tuple(
            Arrived(tuple(self.updates[round_]), tuple(self.forgets[round_]))
            for round_ in range(1, self.plan.stream.horizon + 1)
        )


Way = Callable[[_Draft, Coins, Point, int], None]


def uniting_pair(plan: Plan, coins: Coins) -> Pair:
    """A pair that unites before the horizon and goes on alike for at least one round.

    The horizon must be at least 3 rounds. Every second pair has a plain second history, so that
    "as if it had never been" is tested as such.
    """
    horizon = plan.stream.horizon
    meet = coins.between(2, horizon - 1)
    kept = [_kept(plan, coins, number, meet) for number in range(coins.between(1, MOST_KEPT))]
    drafts = (_Draft(plan), _Draft(plan))
    used: list[str] = []
    plainly = coins.chance(2)
    for draft, prefix in zip(drafts, "pq", strict=True):
        if plainly and prefix == "q":
            for point in kept:
                draft.happens(Op.ADD, point, meet, second=1)
            used.append("plain")
            continue
        ways = WAYS_BY_ID if plan.stream.ids else WAYS_OF_POINTS
        for point in kept:
            name = coins.choice(tuple(ways))
            ways[name](draft, coins, point, meet)
            used.append(name)
        gone = range(coins.between(1, MOST_GONE))
        used += [_come_and_go(draft, coins, f"{prefix}{number}", meet) for number in gone]
    for _ in range(coins.below(5)):
        _afterwards(drafts, coins, kept, coins.between(meet + 1, horizon))
    one, two = (draft.history() for draft in drafts)
    return Pair(meet=meet, one=one, two=two, ways=tuple(sorted(set(used))))


def flapping_pair(plan: Plan, coins: Coins) -> Pair:
    """A pair that unites, made for releases that count comings and goings.

    In one history a record comes and goes as often as the rounds allow, each time under an id of
    its own; in the other it was never there. From the meeting on both hold one other record.
    """
    meet = plan.stream.horizon - 2
    drafts = (_Draft(plan), _Draft(plan))
    values = any_values(plan, coins, "who flaps")
    for begin in range(1, meet, 2):
        id_ = f"flapping {begin}" if plan.stream.ids else ""
        point = Point(id=id_, stamp=begin, person="who flaps", values=values)
        drafts[0].happens(Op.ADD, point, begin)
        drafts[0].happens(Op.DELETE, point, min(begin + 1, meet))
    kept = _kept(plan, coins, 0, meet)
    for draft in drafts:
        draft.happens(Op.ADD, kept, meet)
    one, two = (draft.history() for draft in drafts)
    return Pair(meet=meet, one=one, two=two, ways=("flapping",))


def _kept(plan: Plan, coins: Coins, number: int, meet: int) -> Point:
    person = f"person {number}"
    return Point(
        id=f"kept {number}" if plan.stream.ids else "",
        stamp=coins.between(1, meet),
        person=person,
        values=any_values(plan, coins, person),
    )


def _otherwise(draft: _Draft, coins: Coins, point: Point) -> Point:
    """The same id with other contents."""
    return replace(point, values=any_values(draft.plan, coins, point.person))


def _plain(draft: _Draft, coins: Coins, point: Point, meet: int) -> None:
    draft.happens(Op.ADD, point, coins.between(point.stamp, meet))


def _redelivered(draft: _Draft, coins: Coins, point: Point, meet: int) -> None:
    first = coins.between(point.stamp, meet)
    draft.happens(Op.ADD, point, first)
    draft.happens(Op.ADD, _otherwise(draft, coins, point), coins.between(first, meet), second=5)
    draft.happens(Op.ADD, point, coins.between(first, meet), second=6)


def _replaced(draft: _Draft, coins: Coins, point: Point, meet: int) -> None:
    last = coins.between(point.stamp, meet)
    wrong = replace(_otherwise(draft, coins, point), stamp=coins.between(1, last))
    draft.happens(Op.ADD, wrong, coins.between(wrong.stamp, last))
    draft.happens(Op.REPLACE, point, last, second=7)


def _added_again(draft: _Draft, coins: Coins, point: Point, meet: int) -> None:
    last = coins.between(point.stamp, meet)
    wrong = replace(_otherwise(draft, coins, point), stamp=coins.between(1, last))
    draft.happens(Op.ADD, wrong, coins.between(wrong.stamp, last))
    draft.happens(Op.DELETE, point, last, second=8)
    draft.happens(Op.ADD, point, last, second=9)


def _deleted_early(draft: _Draft, coins: Coins, point: Point, meet: int) -> None:
    last = coins.between(point.stamp, meet)
    for _ in range(coins.between(1, 3)):
        draft.happens(Op.DELETE, point, coins.between(1, last))
    draft.happens(Op.ADD, point, last, second=9)


def _forgotten_first(draft: _Draft, coins: Coins, point: Point, meet: int) -> None:
    last = coins.between(point.stamp, meet)
    if last > 1:
        before = coins.between(1, last - 1)
        draft.happens(Op.ADD, replace(_otherwise(draft, coins, point), stamp=before), before)
        draft.forget(before, "id", point.id)
    draft.happens(Op.ADD, point, last)


WAYS_BY_ID: dict[str, Way] = {
    "plain": _plain,
    "redelivered": _redelivered,
    "replaced": _replaced,
    "deleted and added again": _added_again,
    "deleted too early": _deleted_early,
    "forgotten and added again": _forgotten_first,
}


def _never_there(draft: _Draft, coins: Coins, point: Point, meet: int) -> None:
    last = coins.between(point.stamp, meet)
    if last > point.stamp:
        draft.happens(Op.DELETE, point, coins.between(point.stamp, last - 1), count=3)
    draft.happens(Op.ADD, point, last)


def _exhausted(draft: _Draft, coins: Coins, point: Point, meet: int) -> None:
    first = coins.between(point.stamp, meet)
    draft.happens(Op.ADD, point, first, count=3)
    draft.happens(Op.DELETE, point, coins.between(first, meet), count=2)


def _over_exhausted(draft: _Draft, coins: Coins, point: Point, meet: int) -> None:
    last = coins.between(point.stamp, meet)
    if last > point.stamp:
        before = coins.between(point.stamp, last - 1)
        draft.happens(Op.ADD, point, before, count=2)
        draft.happens(Op.DELETE, point, before, count=5)
    draft.happens(Op.ADD, point, last)


def _wrong_stamp(draft: _Draft, coins: Coins, point: Point, meet: int) -> None:
    last = coins.between(point.stamp, meet)
    wrong = replace(point, stamp=coins.between(1, last))
    draft.happens(Op.ADD, wrong, last)
    draft.happens(Op.DELETE, wrong, last)
    draft.happens(Op.ADD, point, meet)


WAYS_OF_POINTS: dict[str, Way] = {
    "plain": _plain,
    "deleted before it was there": _never_there,
    "exhausted to one copy": _exhausted,
    "exhausted beyond the last copy": _over_exhausted,
    "inserted with another stamp first": _wrong_stamp,
}


def _come_and_go(draft: _Draft, coins: Coins, name: str, meet: int) -> str:
    """A record of one history alone, gone by the meeting; or deletions of the unknown."""
    begin = coins.between(1, meet - 1)
    end = coins.between(begin + 1, meet)
    point = Point(
        id=name if draft.plan.stream.ids else "",
        stamp=coins.between(1, begin),
        person=name,
        values=any_values(draft.plan, coins, name),
    )
    ways = ["deleted", "person forgotten", "unknown deleted"]
    ways += ["id forgotten", "over the bound"] if draft.plan.stream.ids else ["copies deleted"]
    how = coins.choice(ways)
    match how:
        case "unknown deleted":
            draft.happens(Op.DELETE, point, end)
        case "over the bound":
            for number in range(5):
                one = replace(_otherwise(draft, coins, point), id=f"{name} {number}")
                draft.happens(Op.ADD, one, begin, second=number)
                draft.happens(Op.DELETE, one, end)
        case "copies deleted":
            draft.happens(Op.ADD, point, begin, count=3)
            draft.happens(Op.DELETE, point, end, count=coins.between(3, 4))
        case "deleted":
            draft.happens(Op.ADD, point, begin)
            draft.happens(Op.DELETE, point, end)
        case "person forgotten":
            draft.happens(Op.ADD, point, begin)
            draft.forget(end, "person", name)
        case _:
            draft.happens(Op.ADD, point, begin)
            draft.forget(end, "id", point.id)
    return how


def _afterwards(
    drafts: tuple[_Draft, _Draft], coins: Coins, kept: list[Point], round_: int
) -> None:
    """One update after the meeting, the same in both histories."""
    plan = drafts[0].plan
    late = Point(
        id="late" if plan.stream.ids else "",
        stamp=coins.between(1, round_),
        person="late",
        values=any_values(plan, coins, "late"),
    )
    op, point = coins.choice(
        [(Op.ADD, late), (Op.DELETE, late), *((Op.DELETE, one) for one in kept)]
        + [(Op.ADD, one) for one in kept]
    )
    for draft in drafts:
        draft.happens(op, point, round_)
