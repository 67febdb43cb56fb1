"""The kinds that look at the order of a bounded column: `quantiles`, `cdf` and `range`.

Their keys, checked against the plan's columns, and the frozen descriptions that come of them.
Numbers stay exact and are kept as the texts that are published as keys.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any

import msgspec

from retrodp.errors import PlanError
from retrodp.plan.decimals import decimal_text, is_decimal
from retrodp.plan.place import Place
from retrodp.plan.schema import NameOrNames, Text, number, shown

MOST_QUANTILES = 10_000
MOST_EDGES = 100_000
"""Of all groups together; all of them are published every round."""

MOST_PLACES = 1 << 62
"""Cells times groups; each has a place of its own in the block space of the noise."""

Numbers = Annotated[
    list[Any], msgspec.Meta(min_length=1, description="a list of numbers, such as [0.25, 0.5]")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """Least values that shares of the surviving non-null values do not exceed.

    Attributes:
        of: An integer or number column.
        at: The shares, rising, as texts: a decimal, or a ratio such as "1/3".
        by: Public groups.
    """

    of: str
    at: tuple[str, ...]
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cdf:
    """Numbers of surviving values at or below each edge.

    Attributes:
        of: An integer or number column.
        edges: Rising, decimals.
        by: Public groups.
    """

    of: str
    edges: tuple[str, ...]
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Numbers of surviving values in each [edge, next edge).

    Attributes:
        of: An integer or number column.
        edges: Rising, decimals, at least two.
        by: Public groups.
    """

    of: str
    edges: tuple[str, ...]
    by: tuple[str, ...] = ()


class QuantilesKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Keys of `quantiles`."""

    of: Text
    at: Numbers
    by: NameOrNames | None = None


class EdgesKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Keys of `cdf` and `range`."""

    of: Text
    edges: Numbers
    by: NameOrNames | None = None


def read_quantiles(keys: QuantilesKeys, place: Place) -> Quantiles:
    """The description of `quantiles`."""
    of, path = _column(keys.of, place), f"{place.path}.at"
    shares = [number(share, path) for share in keys.at]
    if not all(0 < share < 1 for share in shares) or len(set(shares)) < len(shares):
        raise PlanError(
            f"{path} is {shown(keys.at)}.",
            expected="different numbers between 0 and 1, both excluded",
        )
    by = place.bins(keys.by)
    groups = _groups(by, place)
    _refuse_too_many(len(shares) * groups, MOST_QUANTILES, "quantiles", place)
    _, (least, greatest) = place.columns[of].grid
    if (1 << (greatest - least).bit_length()) * groups > MOST_PLACES:
        raise PlanError(
            f"{place.path} has too fine a grid for its {groups} groups.",
            do="Choose a coarser step, or fewer groups.",
        )
    return Quantiles(of=of, at=tuple(map(_share_text, sorted(shares))), by=by)


def _share_text(share: Fraction) -> str:
    return decimal_text(1, share) if is_decimal(share) else str(share)


def read_cdf(keys: EdgesKeys, place: Place) -> Cdf:
    """The description of `cdf`."""
    of, by = _column(keys.of, place), place.bins(keys.by)
    return Cdf(of=of, edges=_edges(keys.edges, of, by, place, beyond=0), by=by)


def read_range(keys: EdgesKeys, place: Place) -> Range:
    """The description of `range`."""
    of, by = _column(keys.of, place), place.bins(keys.by)
    # The last edge is no part of a range: one step more takes the greatest value in.
    edges = _edges(keys.edges, of, by, place, beyond=1)
    if len(edges) < 2:
        raise PlanError(f"{place.path}.edges has one edge.", expected="at least two")
    return Range(of=of, edges=edges, by=by)


def _column(name: str, place: Place) -> str:
    return place.column(name, "of", "number", "integer")


def _edges(
    raw: Sequence[object], of: str, by: tuple[str, ...], place: Place, *, beyond: int
) -> tuple[str, ...]:
    path = f"{place.path}.edges"
    step, (least, greatest) = place.columns[of].grid
    edges = [number(edge, path) / step for edge in raw]
    if not all(one < other for one, other in pairwise(edges)):
        raise PlanError(f"{path} is {shown(list(raw))}.", expected="rising numbers")
    last = greatest + beyond
    if not (least <= edges[0] and edges[-1] <= last and all(e.denominator == 1 for e in edges)):
        raise PlanError(
            f"{path} is {shown(list(raw))}.",
            expected=f"multiples of the step {decimal_text(1, step)} of {of}, from "
            f"{decimal_text(least, step)} to {decimal_text(last, step)}",
        )
    _refuse_too_many(len(edges) * _groups(by, place), MOST_EDGES, "edges", place)
    return tuple(decimal_text(int(edge), step) for edge in edges)


def _groups(by: tuple[str, ...], place: Place) -> int:
    """Public groups; those of open columns are refused when the plan is resolved."""
    sizes = [place.columns[name].public_values for name in by]
    return math.prod(len(values) for values in sizes if values is not None)


def _refuse_too_many(count: int, most: int, what: str, place: Place) -> None:
    if count > most:
        raise PlanError(
            f"{place.path} has {count} {what}, each published every round.",
            expected=f"at most {most} in all groups together",
        )
