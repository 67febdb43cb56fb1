"""The kinds that are read off a sketch: `second_moment` and `heavy_hitters`.

Their keys, checked against the plan's columns, and the frozen descriptions that come of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import msgspec

from retrodp.errors import PlanError
from retrodp.plan.place import Place
from retrodp.plan.schema import NameOrNames, Number, Text, Whole, number, shown
from retrodp.plan.settings import names

MomentMethod: TypeAlias = Literal["median", "mean", "dense"]

MOST_COUNTERS = 1 << 22
"""Of one sketch; all of them are kept, hidden and read every round."""

MOST_DENSE_COUNTERS = 1 << 13
"""Of a dense projection, whose counters every record moves."""

MOST_ROWS = 63
MOST_TOP = 1_000
MOST_BYTES = 8
LEAST_ACCURACY = Fraction(1, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondMoment:
    """Sum of the squared numbers of surviving records by item.

    Attributes:
        of: Columns whose values make an item; null is a value like any other.
        method: How the rows become one number, "median" or "mean"; "dense": every record moves
            every counter (Rademacher projection), and the rows' median.
        rows: Of the sketch; None: decided when the plan is resolved.
        buckets: Of a row; likewise.
        accuracy: Part of the moment that the error may have beside what the noise adds, at the
            release's level; None where the sizes are given.
    """

    of: tuple[str, ...]
    method: MomentMethod
    rows: int | None = None
    buckets: int | None = None
    accuracy: Fraction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeavyHitters:
    """The items with most surviving records, found in a sketch.

    Attributes:
        of: A text, integer, number or date column.
        top: Most items that are published.
        rows: Of the sketch, odd.
        buckets: Of a row.
        length: Bytes of a text that tell items apart; the rest is cut off.
    """

    of: str
    top: int
    rows: int = 7
    buckets: int = 4096
    length: int = MOST_BYTES


class SecondMomentKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Keys of `second_moment`."""

    of: NameOrNames
    method: MomentMethod = "median"
    rows: Whole | None = None
    buckets: Whole | None = None
    accuracy: Number = None


class HeavyHittersKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Keys of `heavy_hitters`."""

    of: Text
    top: Whole
    rows: Whole = 7
    buckets: Whole = 4096
    length: Whole = MOST_BYTES


def read_second_moment(keys: SecondMomentKeys, place: Place) -> SecondMoment:
    """The description of a `second_moment`."""
    of = tuple(place.column(name, "of") for name in names(keys.of, f"{place.path}.of"))
    accuracy = None
    if keys.accuracy is not None:
        if keys.rows is not None or keys.buckets is not None:
            raise PlanError(
                f"{place.path} has accuracy, and rows or buckets.",
                expected="accuracy, or rows and buckets",
            )
        accuracy = number(keys.accuracy, f"{place.path}.accuracy")
        if not LEAST_ACCURACY <= accuracy < 1:
            raise PlanError(
                f"{place.path}.accuracy is {shown(keys.accuracy)}.",
                expected=f"at least {float(LEAST_ACCURACY)}, below 1",
            )
    rows = keys.rows
    if keys.method != "mean" and rows is not None:
        _odd(rows, place)
    if rows is not None or keys.buckets is not None:
        most = MOST_DENSE_COUNTERS if keys.method == "dense" else MOST_COUNTERS
        _fit(rows or 5, keys.buckets or 1024, most, place)
    return SecondMoment(
        of=of, method=keys.method, rows=rows, buckets=keys.buckets, accuracy=accuracy
    )


def read_heavy_hitters(keys: HeavyHittersKeys, place: Place) -> HeavyHitters:
    """The description of `heavy_hitters`."""
    if keys.of in place.columns and place.columns[keys.of].public_values is not None:
        raise PlanError(
            f"{place.path}.of names {keys.of!r}, whose values are listed in the plan.",
            do=f'Publish all of them: kind = "histogram" and by = "{keys.of}", without any search.',
        )
    of = place.column(keys.of, "of", "text", "integer", "number", "date")
    if keys.top > MOST_TOP:
        raise PlanError(f"{place.path}.top is {keys.top}.", expected=f"at most {MOST_TOP}")
    _odd(keys.rows, place)
    if not 1 <= keys.length <= MOST_BYTES:
        raise PlanError(
            f"{place.path}.length is {keys.length}.", expected=f"1 to {MOST_BYTES} bytes"
        )
    if keys.length != MOST_BYTES and place.columns[of].type != "text":
        raise PlanError(f"{place.path}.length is for texts.", do="Leave it out.")
    _fit(keys.rows, keys.buckets, MOST_COUNTERS >> 3, place)
    return HeavyHitters(
        of=of, top=keys.top, rows=keys.rows, buckets=keys.buckets, length=keys.length
    )


def _odd(rows: int, place: Place) -> None:
    if rows % 2 == 0 or rows > MOST_ROWS:
        raise PlanError(
            f"{place.path}.rows is {rows}.",
            expected=f"an odd number up to {MOST_ROWS}: the median row is published",
        )


def _fit(rows: int, buckets: int, most: int, place: Place) -> None:
    if rows > MOST_ROWS:
        raise PlanError(f"{place.path}.rows is {rows}.", expected=f"at most {MOST_ROWS}")
    if rows * buckets > most:
        raise PlanError(
            f"{place.path} has {rows} rows of {buckets} buckets.",
            expected=f"at most {most} buckets in all",
        )
