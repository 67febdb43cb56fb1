"""Lengths of rounds and windows, as a plan writes them: "6h", "30d", "2w", "1mo".

Promise: a window is a whole number of rounds, or it is refused. Knows no instants and no zones: a
day is a calendar day, whatever its hours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from retrodp.errors import PlanError

Unit: TypeAlias = Literal["h", "d", "w", "mo"]
RoundLength: TypeAlias = Literal["1h", "6h", "1d", "1w", "1mo"]

ROUND_LENGTHS: tuple[RoundLength, ...] = ("1h", "6h", "1d", "1w", "1mo")

_FORM = re.compile(r"([1-9][0-9]{0,6})(h|d|w|mo)")
_HOURS = {"h": 1, "d": 24, "w": 7 * 24}


@dataclass(frozen=True, slots=True)
class Duration:
    """A number of calendar units.

    Attributes:
        number: How many; at least 1.
        unit: Hours, days, weeks or months of the calendar.
    """

    number: int
    unit: Unit

    @classmethod
    def parse(cls, text: str, *, key: str) -> Duration:
        """Read "30d"; `key` is the plan's key, for the error."""
        match = _FORM.fullmatch(text)
        if match is None:
            raise PlanError(
                f"{key} is {text!r}.",
                expected="a whole number of at least 1 and a unit (h, d, w or mo), such as '30d'",
            )
        return cls(int(match[1]), cast("Unit", match[2]))

    def __str__(self) -> str:
        return f"{self.number}{self.unit}"

    def times(self, number: int) -> Duration:
        """`number` of these, one after the other."""
        return Duration(self.number * number, self.unit)

    def in_rounds_of(self, length: Duration) -> int | None:
        """How many rounds of `length` this is, or None if it is no whole number of them.

        Months have no fixed number of days, so they only measure months; days measure as the 24
        hours that the calendar counts.
        """
        if (self.unit == "mo") != (length.unit == "mo"):
            return None
        own = self.number * _HOURS.get(self.unit, 1)
        rounds, rest = divmod(own, length.number * _HOURS.get(length.unit, 1))
        return None if rest else rounds
