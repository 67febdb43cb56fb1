"""Records and updates for the audit's histories, made for whatever columns a plan has.

Promise: canonical values only, inside the plan's bounds, extremes included: what an intake would
have let through.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import assert_never

import msgspec

from retrodp.audit.coins import Coins
from retrodp.plan.columns import Canonical, Column
from retrodp.plan.plan import Plan
from retrodp.stream.update import Op, QueuedUpdate, Record

DAY = 86_400_000_000  # microseconds
TEXTS = ("tea", "ink", "vat", "[x]")  # one that looks like a label of several columns
DATES = ("2024-01-01", "2024-12-31")
_RANKS = {Op.DELETE: 0, Op.REPLACE: 1, Op.ADD: 2}  # delete_first
_pack = msgspec.msgpack.Encoder().encode


def values_of(column: Column) -> tuple[Canonical, ...]:
    """A few canonical values of a column, its extremes and null among them."""
    match column.type:
        case "text":
            listed: tuple[Canonical, ...] = TEXTS
        case "category" | "boolean":
            return column.public_values or ()
        case "integer" | "number":
            _, (least, greatest) = column.grid
            listed = (greatest, least, min(max(1, least), greatest))
        case "date":
            listed = DATES
        case _:
            assert_never(column.type)
    return (*listed, None) if column.nullable else listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A record as the audit names it.

    Attributes:
        id: "" in a stream without ids.
        stamp: Round it belongs to.
        person: Value of the plan's person column, if it has one.
        values: Canonical values in plan order.
    """

    id: str
    stamp: int
    person: str | None
    values: tuple[Canonical, ...]

    def record(self, plan: Plan) -> Record:
        """As a survivor."""
        space, id_ = _name(self, plan)
        return Record(space, id_, self.stamp, self.person, _pack(list(self.values)))


def _name(point: Point, plan: Plan) -> tuple[str, str]:
    if not plan.stream.ids:
        return "", ""
    return (point.person or "" if plan.stream.person_unit else ""), point.id


def update(
    plan: Plan, op: Op, point: Point, *, round_: int, second: int = 0, count: int = 1
) -> QueuedUpdate:
    """The update that does this to the point in a round."""
    space, id_ = _name(point, plan)
    by_id = plan.stream.ids and op == Op.DELETE
    return QueuedUpdate(
        space=space,
        id=id_,
        at=round_ * DAY + second * 1_000_000,
        rank=_RANKS[op],
        payload=b"" if by_id else _pack(list(point.values)),
        stamp=0 if by_id else point.stamp,
        op=int(op),
        person=point.person,
        count=count,
    )


def any_values(plan: Plan, coins: Coins, person: str | None) -> tuple[Canonical, ...]:
    """Contents drawn from the columns' values, with the person in her column."""
    drawn = {column.name: coins.choice(values_of(column)) for column in plan.columns}
    return _placed(plan, drawn, person)


def all_values(plan: Plan, person: str | None) -> Iterator[tuple[Canonical, ...]]:
    """Every combination of the columns' values, with the person in her column."""
    names = [column.name for column in plan.columns]
    choices = [
        (person,) if column.name == plan.stream.person else values_of(column)
        for column in plan.columns
    ]
    for values in product(*choices):
        yield _placed(plan, dict(zip(names, values, strict=True)), person)


def _placed(
    plan: Plan, values: Mapping[str, Canonical], person: str | None
) -> tuple[Canonical, ...]:
    return tuple(
        person if column.name == plan.stream.person else values[column.name]
        for column in plan.columns
    )
