"""The calendar of a running plan: which round an instant belongs to.

Promise: the boundaries are those it was given; nothing is recomputed from zone data once a plan
is resolved. Times in a file are read with the installed zone data. Never reads the time of day:
`now` is an argument.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from retrodp.errors import DataError, PlanError, StoreCorruptError, UsageError
from retrodp.plan.calendar import Calendar
from retrodp.plan.duration import ROUND_LENGTHS
from retrodp.plan.settings import StreamPlan
from retrodp.plan.zone import (
    MICROS_PER_HOUR,
    Moment,
    TimeReader,
    local_of_instant,
    moment_of_local,
    moment_of_value,
    zone,
)

Integers: TypeAlias = npt.NDArray[np.int64]

NOT_A_TIME = "not an ISO 8601 date or time"
"""The only reason for refusing a time; it quotes no value."""


@dataclass(frozen=True, slots=True)
class Moments:
    """Instants read from a column.

    Attributes:
        micros: Microseconds since 1970-01-01 UTC; None where null or refused.
        reasons: Per row the reason for refusing it, else None; None if no row is refused.
            A null is not refused here.
        date_only: Per row whether only a date was given; None if none was.
        ambiguous: How many local times happened twice; the first was taken.
        nonexistent: How many local times never happened; they were shifted forward by the gap.
        ambiguous_rows: Per row whether its local time happened twice; None if none did.
        nonexistent_rows: Per row whether its local time never happened; None if all did.
    """

    micros: list[int | None]
    reasons: list[str | None] | None
    date_only: list[bool] | None
    ambiguous: int
    nonexistent: int
    ambiguous_rows: list[bool] | None = None
    nonexistent_rows: list[bool] | None = None


class LocalTimes(NamedTuple):
    """Local times on the time line, one entry a row.

    Attributes:
        micros: Microseconds since 1970-01-01 UTC.
        ambiguous: It happened twice; the first was taken.
        nonexistent: It never happened; it was shifted forward by the gap.
    """

    micros: Integers
    ambiguous: npt.NDArray[np.bool_]
    nonexistent: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Rounds 1..T on the time line.

    Attributes:
        boundaries: T+1 strictly increasing instants, microseconds since 1970-01-01 UTC; round l
            is from `boundaries[l-1]` (included) to `boundaries[l]` (excluded).
        timezone: IANA name of the zone of local times.
        past: When the rounds before round 1 began, in order, if a store goes on from an earlier
            one: the last of them began round 0, a stamp that its records may have.
        own: How many of these rounds, the last ones, the store itself closed, in earlier epochs.
    """

    boundaries: tuple[int, ...]
    timezone: str
    past: tuple[int, ...] = ()
    own: int = 0

    @classmethod
    def of(
        cls,
        *,
        start: str | dt.date | dt.datetime,
        round: str,  # noqa: A002  # the plan's own word
        timezone: str = "UTC",
        horizon: int,
    ) -> Clock:
        """Compute the boundaries from the calendar.

        Args:
            start: Date or instant that round 1 begins with; ISO 8601 if text.
            round: "1h", "6h", "1d", "1w" or "1mo".
            timezone: IANA name.
            horizon: T, rounds.
        """
        if round not in ROUND_LENGTHS:
            raise PlanError(
                f"stream.round is {round!r}.", expected=f"one of {', '.join(ROUND_LENGTHS)}"
            )
        calendar = Calendar.of(start=start, round_=round, timezone=timezone)
        return cls(boundaries=calendar.boundaries(horizon), timezone=timezone)

    @classmethod
    def of_stream(cls, stream: StreamPlan) -> Clock:
        """The clock of a plan that is about to be resolved."""
        return cls.of(
            start=stream.start,
            round=stream.round,
            timezone=stream.timezone,
            horizon=stream.horizon,
        )

    @classmethod
    def from_boundaries(
        cls,
        boundaries: Sequence[int],
        *,
        timezone: str = "UTC",
        past: Sequence[int] = (),
        own: int = 0,
    ) -> Clock:
        """The clock of a resolved plan: nothing is recomputed."""
        instants = (*past, *boundaries)
        if len(boundaries) < 2 or any(not early < late for early, late in pairwise(instants)):
            raise StoreCorruptError("The round boundaries of the resolved plan do not increase.")
        return cls(boundaries=tuple(boundaries), timezone=timezone, past=tuple(past), own=own)

    @property
    def horizon(self) -> int:
        """T, rounds."""
        return len(self.boundaries) - 1

    def round_of(self, instant: int) -> int:
        """Round of an instant; 0 before the start, T+1 from the end on."""
        return bisect_right(self.boundaries, instant)

    def rounds_of(self, instants: Sequence[int]) -> list[int]:
        """`round_of` for many instants, in their order."""
        rounds: list[int] = self.rounds_at(np.asarray(instants, np.int64)).tolist()
        return rounds

    def rounds_at(self, instants: Integers) -> Integers:
        """`round_of` for many instants, shape `(n,)`."""
        return _places(self.boundaries, instants)

    @property
    def first_stamp(self) -> int:
        """Least stamp that a record may have: 1, or less if there is a past."""
        return 1 - len(self.past)

    def stamps_at(self, instants: Integers) -> Integers:
        """Round of each instant, those of the past included; `first_stamp - 1` before all; shape `(n,)`."""
        return _places((*self.past, *self.boundaries), instants) - len(self.past)

    def last_ended(self, now: int) -> int:
        """Last round that has ended at `now`; 0 if none has."""
        return max(self.round_of(now) - 1, 0)

    def start_of(self, round_: int) -> int:
        """First instant of a round."""
        return self.boundaries[round_ - 1]

    def end_of(self, round_: int) -> int:
        """First instant after a round."""
        return self.boundaries[round_]

    def round_for_date(self, value: str | dt.date | dt.datetime) -> int:
        """The round that `--through` means; 0 before the start, T+1 after the horizon.

        An instant means its round, a date the last round that begins on it or before.
        """
        moment = self._moment(value)
        if moment is None:
            raise UsageError(f"{value!r} is {NOT_A_TIME}.", expected="such as 2011-12-09")
        if not moment.date_only:
            return self.round_of(moment.micros)
        try:
            day = (
                dt.date.fromisoformat(value) if isinstance(value, str) else value
            ) + dt.timedelta(days=1)
        except OverflowError:
            return self.horizon + 1
        return self.round_of(moment_of_value(day, zone(self.timezone)).micros - 1)

    def parse(self, value: str | dt.date | dt.datetime) -> int:
        """One instant of a row, microseconds since 1970-01-01 UTC.

        Raises:
            DataError: The value is no time.
        """
        moment = self._moment(value)
        if moment is None:
            raise DataError(f"A time is {NOT_A_TIME}.")
        return moment.micros

    def parse_many(self, values: Sequence[object]) -> Moments:
        """Read a column of instants.

        Args:
            values: ISO 8601 texts with an offset or in the plan's zone, datetimes (naive ones
                are local), dates; None, the empty text and a frame's missing markers are null.

        Time: linear; a text that occurs often is read once.
        """
        reader = TimeReader(zone(self.timezone))
        read: dict[str, _Cell] = {}
        cells: list[_Cell] = []
        for value in values:
            if type(value) is str:
                cell = read.get(value)
                if cell is None:
                    cell = read[value] = _cell(value, reader.read(value))
            else:
                cell = _cell(value, self._moment(value))
            cells.append(cell)
        reasons = [cell.reason for cell in cells]
        dates = [cell.date_only for cell in cells]
        twice = [cell.ambiguous for cell in cells]
        never = [cell.nonexistent for cell in cells]
        return Moments(
            [cell.micros for cell in cells],
            reasons if any(reasons) else None,
            dates if any(dates) else None,
            sum(twice),
            sum(never),
            twice if any(twice) else None,
            never if any(never) else None,
        )

    def instants_of_local(self, local: Integers) -> LocalTimes:
        """Instants of many local times, as `parse_many` reads them one by one.

        Args:
            local: Microseconds since a local 1970-01-01, shape `(n,)`. What no calendar of the
                years 1 to 9999 shows is taken for UTC: it lies in no round.

        Time: linear; the zone is asked once for each local hour in which its clocks stand still.
        """
        reader = TimeReader(zone(self.timezone))
        hours, of_hour = np.unique(local // MICROS_PER_HOUR, return_inverse=True)
        offsets = [reader.steady_offset_at(hour) for hour in hours.tolist()]
        steady = np.array([offset or 0 for offset in offsets], np.int64)
        micros = local - steady[of_hour]
        ambiguous, nonexistent = np.zeros((2, len(local)), np.bool_)
        changing = np.array([offset is None for offset in offsets], np.bool_)
        for row in np.flatnonzero(changing[of_hour]).tolist():
            moment = moment_of_local(int(local[row]), zone(self.timezone))
            micros[row] = moment.micros
            ambiguous[row] = moment.local == "ambiguous"
            nonexistent[row] = moment.local == "nonexistent"
        return LocalTimes(micros, ambiguous, nonexistent)

    def text_of(self, instant: int) -> str:
        """An instant as ISO 8601 with the offset of the plan's zone."""
        return local_of_instant(instant, zone(self.timezone)).isoformat()

    def _moment(self, value: object) -> Moment | None:
        in_zone = zone(self.timezone)
        if isinstance(value, str):
            return TimeReader(in_zone).read(value)
        # A frame's marker of a missing time is a datetime that does not equal itself.
        if isinstance(value, dt.date) and value == value:  # noqa: PLR0124
            return moment_of_value(value, in_zone)
        return None


def _places(boundaries: Sequence[int], instants: Integers) -> Integers:
    """How many of the boundaries lie at or before each instant."""
    places = np.searchsorted(np.asarray(boundaries, np.int64), instants, side="right")
    return places.astype(np.int64, copy=False)


class _Cell(NamedTuple):
    micros: int | None
    reason: str | None
    date_only: bool
    ambiguous: bool
    nonexistent: bool


_NULL = _Cell(None, None, date_only=False, ambiguous=False, nonexistent=False)
_REFUSED = _NULL._replace(reason=NOT_A_TIME)


def _cell(value: object, moment: Moment | None) -> _Cell:
    if moment is not None:
        ambiguous = moment.local == "ambiguous"
        nonexistent = moment.local == "nonexistent"
        return _Cell(moment.micros, None, moment.date_only, ambiguous, nonexistent)
    if type(value).__name__ in {"NoneType", "NaTType", "NAType"}:
        return _NULL
    return _NULL if isinstance(value, str) and not value else _REFUSED
