"""Kinds of release: what each measures and which keys it has.

Adding a kind is a row of `KINDS`: its struct of keys and a function that makes the frozen
description from them. None stands at a kind of the grammar that this version does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from retrodp.errors import PlanError
from retrodp.plan.columns import Column
from retrodp.plan.schema import NameOrNames, Text, Whole, did_you_mean, read_table
from retrodp.plan.settings import names

PLANNED_BINS = 100_000_000
"""Labels that an open histogram is planned for unless it says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Number of surviving records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """Sum of the column `of`, as one number or per bin of the columns `by`."""

    of: str
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """Mean of the column `of`, as one number or per bin of the columns `by`."""

    of: str
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Number of surviving records per bin of the columns `by`.

    Attributes:
        by: At least one column.
        max_bins: Planned maximum of labels, which the probability of their collision counts on.
    """

    by: tuple[str, ...]
    max_bins: int = PLANNED_BINS


Statistic: TypeAlias = Count | Sum | Mean | Histogram


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


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of this version.

    Attributes:
        keys: Struct of the keys that only this kind has.
        statistic: Makes the description from the struct.
    """

    keys: type[msgspec.Struct]
    statistic: Callable[[Any, Place], Statistic]

    @property
    def names(self) -> list[str]:
        """Names of the keys that only this kind has."""
        return [key.encode_name for key in msgspec.structs.fields(self.keys)]

    def read(self, own: Mapping[str, Any], place: Place) -> Statistic:
        """The description of one release from its own keys."""
        return self.statistic(read_table(self.keys, own, place.path), place)


class _NoKeys(msgspec.Struct, frozen=True, kw_only=True):
    pass


class _AmountKeys(msgspec.Struct, frozen=True, kw_only=True):
    of: Text
    by: NameOrNames | None = None


class _HistogramKeys(msgspec.Struct, frozen=True, kw_only=True):
    by: NameOrNames
    max_bins: Whole = PLANNED_BINS


def _count(_: _NoKeys, __: Place) -> Count:
    return Count()


def _sum(keys: _AmountKeys, place: Place) -> Sum:
    return Sum(of=place.column(keys.of, "of", "number", "integer"), by=place.bins(keys.by))


def _mean(keys: _AmountKeys, place: Place) -> Mean:
    return Mean(of=place.column(keys.of, "of", "number", "integer"), by=place.bins(keys.by))


def _histogram(keys: _HistogramKeys, place: Place) -> Histogram:
    return Histogram(by=place.bins(keys.by), max_bins=keys.max_bins)


KINDS: Mapping[str, Kind | None] = {
    "count": Kind(_NoKeys, _count),
    "sum": Kind(_AmountKeys, _sum),
    "mean": Kind(_AmountKeys, _mean),
    "histogram": Kind(_HistogramKeys, _histogram),
    "query": None,
    "cube": None,
    "quantiles": None,
    "cdf": None,
    "range": None,
    "distinct": None,
    "second_moment": None,
    "heavy_hitters": None,
    "gram": None,
    "kmeans": None,
    "kmedian": None,
    "online_kmeans": None,
    "sample": None,
    "masked": None,
}
