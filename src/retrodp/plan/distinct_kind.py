"""The kind `distinct`: how many different values of its columns survive.

Its keys, checked against the plan's columns, and the frozen description that comes of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from retrodp.errors import PlanError
from retrodp.plan.place import Place
from retrodp.plan.schema import NameOrNames, Whole, shown
from retrodp.plan.settings import names

MOST_ITEMS = 1 << 40
"""Different items that a plan may expect; far above what a ledger holds."""

DistinctMethod: TypeAlias = Literal[
    "auto", "fresh", "ladder", "minhash", "signed", "flippancy", "recompute"
]
HASHING = ("auto", "ladder", "minhash", "signed")
"""Methods whose size follows from the numbers that are expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distinct:
    """Number of different surviving values of the columns `of`.

    Attributes:
        of: Columns whose values make an item; null is a value like any other.
        method: How it is counted; "auto" until the plan is resolved.
        expect: Least and greatest number that the plan expects, or () where it does not say.
        flips: Changes between present and absent up to which `flippancy` follows an item.
    """

    of: tuple[str, ...]
    method: DistinctMethod
    expect: tuple[int, ...] = ()
    flips: int | None = None


class DistinctKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Keys of `distinct`."""

    of: NameOrNames
    method: DistinctMethod = "auto"
    expect: Any = None
    flips: Whole | None = None


def read_distinct(keys: DistinctKeys, place: Place) -> Distinct:
    """The description of `distinct`."""
    of = tuple(place.column(name, "of") for name in names(keys.of, f"{place.path}.of"))
    if keys.flips is not None and keys.method != "flippancy":
        raise PlanError(
            f'{place.path}.flips is for method = "flippancy", not "{keys.method}".',
            do="Leave flips out.",
        )
    if keys.expect is None and keys.method in HASHING:
        others = ", ".join(one for one in get_args(DistinctMethod) if one not in HASHING)
        raise PlanError(
            f'{place.path}.expect is missing: method = "{keys.method}" is planned for a range of '
            "numbers.",
            expected="expect = [low, high], such as [100, 5000]",
            do=f"State it, or name a method that needs none: {others}.",
        )
    expect = () if keys.expect is None else _expect(keys.expect, f"{place.path}.expect")
    return Distinct(of=of, method=keys.method, expect=expect, flips=keys.flips)


def _expect(raw: object, path: str) -> tuple[int, ...]:
    match raw:
        case [low, high] if (
            type(low) is int and type(high) is int and 0 <= low <= high and 1 <= high <= MOST_ITEMS
        ):
            return (low, high)
        case _:
            raise PlanError(
                f"{path} is {shown(raw)}.",
                expected=f"[low, high], whole numbers, 0 <= low <= high, 1 <= high <= {MOST_ITEMS}",
            )
