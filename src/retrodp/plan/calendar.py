"""Boundaries of rounds, calendar-true in the plan's zone.

"1h" counts elapsed hours from the start. "6h" begins rounds at local 00, 06, 12 and 18, the
others at local midnight, so that days at a change of clocks have 23 or 25 hours. A midnight that
never happened is shifted forward by the gap; of two the first counts. A day that a zone skipped
altogether has no round.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Literal, assert_never
from zoneinfo import ZoneInfo

from retrodp.errors import PlanError
from retrodp.plan.duration import RoundLength
from retrodp.plan.zone import (
    TimeReader,
    instant_of_local,
    local_of_instant,
    moment_of_value,
    zone,
)

_HOUR = 3600 * 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """The first round and how the others follow.

    Attributes:
        first: Start of round 1, microseconds since 1970-01-01 UTC.
        first_local: The same as naive local time, on the calendar's grid.
        round: Length of a round.
        zone: The plan's zone.
    """

    first: int
    first_local: dt.datetime
    round: RoundLength
    zone: ZoneInfo

    @classmethod
    def of(
        cls, *, start: str | dt.date | dt.datetime, round_: RoundLength, timezone: str
    ) -> Calendar:
        """The calendar of a plan's `start`, `round` and `timezone`."""
        in_zone = zone(timezone, key="stream.timezone")
        moment = (
            TimeReader(in_zone).read(start)
            if isinstance(start, str)
            else moment_of_value(start, in_zone)
        )
        if moment is None:
            raise PlanError(
                f"stream.start is {start!r}.",
                expected="a date or an instant in ISO 8601, such as 2010-12-01",
            )
        local = local_of_instant(moment.micros, in_zone).replace(tzinfo=None, fold=0)
        on_grid = _on_grid(local, round_)
        if round_ != "1h" and instant_of_local(on_grid, in_zone)[0] != moment.micros:
            raise PlanError(
                f"stream.start is {start}, which no round of {round_} begins with in {timezone}.",
                expected="local 00:00, 06:00, 12:00 or 18:00"
                if round_ == "6h"
                else "a date, or an instant at local midnight",
            )
        if round_ == "1mo" and on_grid.day > 28:
            raise PlanError(
                f"stream.start is day {on_grid.day} of a month.",
                expected="day 1 to 28, which every month has, for rounds of 1mo",
            )
        return cls(first=moment.micros, first_local=on_grid, round=round_, zone=in_zone)

    @property
    def start(self) -> str:
        """The start on the calendar's grid: the same whatever later zone data say of the offset.

        A date where round 1 begins with its day, else local time; with "1h" an instant in UTC.
        """
        if self.round == "1h":
            return local_of_instant(self.first, zone("UTC")).isoformat()
        local = self.first_local.isoformat()
        return local[:10] if local.endswith("T00:00:00") else local

    def boundaries(self, horizon: int) -> tuple[int, ...]:
        """Starts of rounds 1..T and the end of round T, microseconds since 1970-01-01 UTC.

        Raises:
            PlanError: The horizon ends after the year 9999.
        """
        if self.round == "1h":
            self.check_end(horizon)
            return tuple(self.first + hours * _HOUR for hours in range(horizon + 1))
        ends = [self.first]
        try:
            for local in self._local_starts(self.round):
                if len(ends) > horizon:
                    break
                instant, _ = instant_of_local(local, self.zone)
                if instant > ends[-1]:
                    ends.append(instant)
        except (OverflowError, ValueError):
            raise _too_far(horizon) from None
        return tuple(ends)

    def check_end(self, horizon: int) -> None:
        """Refuse a horizon that ends after the year 9999, without computing the boundaries."""
        if not self.holds(horizon):
            raise _too_far(horizon)

    def holds(self, horizon: int) -> bool:
        """Whether so many rounds end before the year 9999 does, with a year to spare."""
        days = {"1h": horizon / 24, "6h": horizon / 4, "1d": horizon, "1w": 7 * horizon}
        try:
            self.first_local + dt.timedelta(days=days.get(self.round, 31 * horizon) + 366)
        except OverflowError:
            return False
        return True

    def _local_starts(self, round_: Literal["6h", "1d", "1w", "1mo"]) -> Iterator[dt.datetime]:
        """Local starts of rounds 2, 3, ..."""
        match round_:
            case "6h":
                length = dt.timedelta(hours=6)
            case "1d":
                length = dt.timedelta(days=1)
            case "1w":
                length = dt.timedelta(weeks=1)
            case "1mo":
                for months in count(self.first_local.month):
                    yield self.first_local.replace(
                        year=self.first_local.year + months // 12, month=months % 12 + 1
                    )
            case _:
                assert_never(round_)
        for rounds in count(1):
            yield self.first_local + rounds * length


def _on_grid(local: dt.datetime, round_: RoundLength) -> dt.datetime:
    if round_ == "1h":
        return local
    hour = local.hour // 6 * 6 if round_ == "6h" else 0
    return local.replace(hour=hour, minute=0, second=0, microsecond=0)


def _too_far(horizon: int) -> PlanError:
    return PlanError(
        f"stream.horizon is {horizon}, which ends after the year 9999.",
        expected="a horizon that the calendar can express",
    )
