"""The kinds that publish centres of points: `kmeans` and `kmedian`.

Their keys, checked against the plan's columns, and the frozen descriptions that come of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from retrodp.errors import PlanError
from retrodp.plan.place import Place
from retrodp.plan.schema import NameOrNames, Whole, shown
from retrodp.plan.settings import names

Variant = Literal["tree", "lths"]

MOST_CENTRES = 1_000
MOST_COLUMNS = 100
MOST_FIRST_BITS = 16
"""All cells of the first level are looked at in every round."""

MOST_BITS = 44
"""Bits of a cell's number at the last level."""

MOST_HALVINGS = 24
"""Of a column's range; cells that are halved further are narrower than positions are told apart."""

PROJECTED_FROM, PROJECTED = 11, 5
"""Columns from which cells are made of so many signed sums instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KMeans:
    """At most k centres of least sum of squared distances.

    Attributes:
        of: Columns of the points.
        k: Centres asked for.
        levels: First and last level of the nested cells that are counted.
        variant: "tree" for one grid, "lths" for floor(log2 T) of them.
        coreset: Whether the weighted points that the centres come from are published too.
    """

    of: tuple[str, ...]
    k: int
    levels: tuple[int, int]
    variant: Variant = "tree"
    coreset: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KMedian(KMeans):
    """At most k centres of least sum of distances."""


class ClusterKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Keys of `kmeans` and `kmedian`."""

    of: NameOrNames
    k: Whole
    levels: Any = None
    variant: Variant = "tree"
    coreset: bool = False


def read_kmeans(keys: ClusterKeys, place: Place) -> KMeans:
    """The description of a `kmeans`."""
    return KMeans(**_checked(keys, place))


def read_kmedian(keys: ClusterKeys, place: Place) -> KMedian:
    """The description of a `kmedian`."""
    return KMedian(**_checked(keys, place))


def points_of(of: NameOrNames, k: int, place: Place) -> tuple[str, ...]:
    """The columns of the points, once they and the number of centres are sane."""
    listed = names(of, f"{place.path}.of")
    found = tuple(place.column(name, "of", "number", "integer") for name in listed)
    if not 1 <= len(found) <= MOST_COLUMNS:
        raise PlanError(
            f"{place.path}.of has {len(found)} columns.", expected=f"1 to {MOST_COLUMNS}"
        )
    if not 1 <= k <= MOST_CENTRES:
        raise PlanError(f"{place.path}.k is {k}.", expected=f"1 to {MOST_CENTRES}")
    for name in found:
        _, (least, greatest) = place.columns[name].grid
        if least == greatest:
            raise PlanError(
                f"{place.path}.of names {name!r}, a column with a single value.",
                do="Widen the column's min and max, or leave it out.",
            )
    return found


def _checked(keys: ClusterKeys, place: Place) -> dict[str, Any]:
    of = points_of(keys.of, keys.k, place)
    levels = _default_levels(len(of)) if keys.levels is None else _levels(keys.levels, place)
    axes = len(of) if len(of) < PROJECTED_FROM else PROJECTED
    last = min(MOST_BITS // axes, MOST_HALVINGS)
    if levels[0] * axes > MOST_FIRST_BITS or levels[1] > last:
        raise PlanError(
            f"{place.path}.levels is {shown(keys.levels)}: too many cells of {axes} axes.",
            expected=f"a first level of at most {MOST_FIRST_BITS // axes}, a last of at most {last}",
        )
    return {
        "of": of,
        "k": keys.k,
        "levels": levels,
        "variant": keys.variant,
        "coreset": keys.coreset,
    }


def _default_levels(columns: int) -> tuple[int, int]:
    if columns <= 3:
        return {1: (3, 9), 2: (3, 6), 3: (2, 6)}[columns]
    return 1, 3


def _levels(raw: object, place: Place) -> tuple[int, int]:
    sane = isinstance(raw, list | tuple) and all(type(one) is int for one in raw)
    if sane and isinstance(raw, list | tuple) and len(raw) == 2 and 1 <= raw[0] <= raw[1]:
        return int(raw[0]), int(raw[1])
    raise PlanError(
        f"{place.path}.levels is {shown(raw)}.",
        expected="the first and the last level, such as [2, 6]",
    )
