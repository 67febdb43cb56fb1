"""The plan's `[release.NAME]` tables as frozen values, checked against the rest of the plan."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import msgspec

from retrodp.errors import PlanError
from retrodp.plan.columns import Column
from retrodp.plan.expression import Expression
from retrodp.plan.kinds import KINDS, Kind, Place, Statistic
from retrodp.plan.revised_kind import read_revised
from retrodp.plan.schema import (
    ReleaseTable,
    as_table,
    not_yet,
    number,
    read_table,
    refuse_choice,
    refuse_unknown,
    shown,
)
from retrodp.plan.settings import StreamPlan

FactorChoice: TypeAlias = Literal["auto", "haar", "delannoy", "binary", "dense"]

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One release of the plan.

    Attributes:
        name: Lower-case identifier, unique in the plan.
        kind: The grammar's word for the statistic.
        statistic: What is measured, with the keys of its kind.
        share: Weight in the budget, above 0.
        where: Condition on the records that count; None: all.
        window: Records are live for this many rounds; None: for ever.
        factor: How noise is shared between rounds.
        level: Of the intervals, strictly between 0 and 1.
    """

    name: str
    kind: str
    statistic: Statistic
    share: Fraction
    where: Expression | None
    window: int | None
    factor: FactorChoice
    level: Fraction

    @property
    def of(self) -> str | None:
        """The column whose values are added up, if the kind has one."""
        return getattr(self.statistic, "of", None)

    @property
    def by(self) -> tuple[str, ...]:
        """The columns that make the bins; empty: one number."""
        by: tuple[str, ...] = getattr(self.statistic, "by", ())
        return by


def read_releases(
    raw: object, stream: StreamPlan, columns: Mapping[str, Column]
) -> tuple[Release, ...]:
    """Check all releases, in the order of the file."""
    tables = {} if raw is None else as_table(raw, "release")
    if not tables:
        raise PlanError(
            "The plan has no release.",
            expected='at least one, such as [release.records] with kind = "count"',
        )
    return tuple(_read_release(name, table, stream, columns) for name, table in tables.items())


def _read_release(
    name: str, raw: object, stream: StreamPlan, columns: Mapping[str, Column]
) -> Release:
    path = f"release.{name}"
    if _NAME.fullmatch(name) is None:
        raise PlanError(
            f"{path} is no name for a release.",
            expected="at most 64 small letters, digits and _, beginning with a letter",
        )
    table = as_table(raw, path)
    kind = _kind(table.get("kind"), f"{path}.kind")
    shared = [key.encode_name for key in msgspec.structs.fields(ReleaseTable)]
    refuse_unknown(table, [*shared, *kind.names], path)
    common = read_table(ReleaseTable, {key: table[key] for key in table if key in shared}, path)
    own = {key: table[key] for key in table if key not in shared}
    share, level = number(common.share, f"{path}.share"), number(common.level, f"{path}.level")
    if not share > 0:
        raise PlanError(f"{path}.share is {shown(common.share)}.", expected="above 0")
    if not 0 < level < 1:
        raise PlanError(
            f"{path}.level is {shown(common.level)}.", expected="between 0 and 1, both excluded"
        )
    where = common.where
    listed = tuple(columns.values())
    return Release(
        name=name,
        kind=common.kind,
        statistic=read_revised(common, kind.read(own, Place(path, columns)), stream, table, path),
        share=share,
        where=None if where is None else Expression.parse(where, listed, key=f"{path}.where"),
        window=_window(common.window, stream, f"{path}.window"),
        factor=common.factor,
        level=level,
    )


def _made() -> list[str]:
    """Kinds that this version makes."""
    return [name for name, kind in KINDS.items() if kind is not None]


def _kind(name: object, path: str) -> Kind:
    if name is None:
        raise PlanError(f"{path} is missing.", expected=f"one of {', '.join(_made())}")
    if not isinstance(name, str) or name not in KINDS:
        raise refuse_choice(path, name, _made())
    kind = KINDS[name]
    if kind is None:
        raise not_yet(f'{path} = "{name}"')
    return kind


def _window(text: str | None, stream: StreamPlan, path: str) -> int | None:
    if text is None:
        return None
    return stream.rounds_in(
        text, key=path, usual=7, without="Leave it out to count all surviving records."
    )
