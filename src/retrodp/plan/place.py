"""Where a release stands in a plan: what its keys may name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from retrodp.errors import PlanError
from retrodp.plan.columns import Column
from retrodp.plan.schema import did_you_mean
from retrodp.plan.settings import names


@dataclass(frozen=True, slots=True)
class Place:
    """Where a release stands: its path and the columns it may name."""

    path: str
    columns: Mapping[str, Column]

    def column(self, name: str, key: str, *types: str) -> str:
        """The name, once the column exists and has one of the types (any, if none is given)."""
        path = f"{self.path}.{key}"
        if name not in self.columns:
            known = [*self.columns]
            raise PlanError(
                f"{path} names {name!r}, which is no column of the plan.",
                expected=f"one of {', '.join(known)}" if known else "a column of [columns]",
                do=did_you_mean(name, known),
            )
        found = self.columns[name].type
        if types and found not in types:
            raise PlanError(
                f"{path} names {name!r}, a column of type {found}.",
                expected=f"a column of type {' or '.join(types)}",
            )
        return name

    def bins(self, by: str | list[str] | None) -> tuple[str, ...]:
        """The columns of `by`."""
        listed = () if by is None else names(by, f"{self.path}.by")
        return tuple(self.column(name, "by") for name in listed)
