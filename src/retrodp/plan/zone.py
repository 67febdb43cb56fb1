"""Local time and instants: what "2018-11-04" in São Paulo means on the time line.

Promise: an ambiguous local time is its first occurrence, a local time that never happened is
shifted forward by the gap, and both are reported. The zone data are those of the installed
`tzdata` package on every machine, never the operating system's, so that the recorded version
says what was used. Knows no rounds.
"""

from __future__ import annotations

import datetime as dt
import re
from difflib import get_close_matches
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Literal, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

from retrodp.errors import PlanError

Local: TypeAlias = Literal["once", "ambiguous", "nonexistent"]

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  # local times are measured from a local time
_EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_NO_OFFSET = dt.timedelta(0)
MICROS_PER_HOUR = 3_600_000_000
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATE_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,12})?)?"
    r"([Zz]|[+-][0-9]{2}(:?[0-9]{2})?)?"
)


class Moment(NamedTuple):
    """An instant and how it was written.

    Attributes:
        micros: Microseconds since 1970-01-01 UTC.
        date_only: Only a date was given; the instant is the first of that day.
        local: How often its local time happened; "once" if it came with an offset.
    """

    micros: int
    date_only: bool
    local: Local


def tzdata_version() -> str:
    """Version of the zone data, such as "2025.2"."""
    return version("tzdata")


@cache
def zone(name: str, *, key: str = "timezone") -> ZoneInfo:
    """The zone of an IANA name; `key` is the plan's key, for the error."""
    names = (files("tzdata") / "zones").read_text(encoding="utf-8").split()
    if name not in names:
        close = get_close_matches(name, names, n=1)
        raise PlanError(
            f"{key} is {name!r}.",
            expected="an IANA name such as 'Europe/London'",
            do=f"Did you mean {close[0]!r}?" if close else "",
        )
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as data:
        return ZoneInfo.from_file(data, key=name)


def instant_of_local(local: dt.datetime, in_zone: ZoneInfo) -> tuple[int, Local]:
    """Microseconds since 1970-01-01 UTC of a naive local time, and how often it happened."""
    first = _offset(local.replace(tzinfo=in_zone, fold=0))
    second = _offset(local.replace(tzinfo=in_zone, fold=1))
    # In a gap the first offset is the one before it, so the instant reads as local time + gap.
    micros = (local - _EPOCH - first) // _MICROSECOND
    if first == second:
        return micros, "once"
    return micros, "ambiguous" if first > second else "nonexistent"


def local_of_instant(micros: int, in_zone: ZoneInfo) -> dt.datetime:
    """What the zone's clocks show at an instant, with its offset."""
    return (_EPOCH_UTC + dt.timedelta(microseconds=micros)).astimezone(in_zone)


def moment_of_value(value: dt.date | dt.datetime, in_zone: ZoneInfo) -> Moment:
    """The moment of a date, a naive local time or a time with offset."""
    if not isinstance(value, dt.datetime):
        midnight = dt.datetime(value.year, value.month, value.day)  # noqa: DTZ001
        micros, local = instant_of_local(midnight, in_zone)
        return Moment(micros, date_only=True, local=local)
    if value.utcoffset() is not None:
        micros = (value - _EPOCH_UTC) // _MICROSECOND
        return Moment(micros, date_only=False, local="once")
    micros, local = instant_of_local(value.replace(tzinfo=None), in_zone)
    return Moment(micros, date_only=False, local=local)


def moment_of_local(micros: int, in_zone: ZoneInfo) -> Moment:
    """The moment of a local time, in microseconds since a local 1970-01-01."""
    return moment_of_value(_EPOCH + micros * _MICROSECOND, in_zone)


class TimeReader:
    """Reads ISO 8601 texts in one zone; quick on many, and to be thrown away after them.

    It remembers the offset of each local hour in which the clocks did not change.
    """

    def __init__(self, in_zone: ZoneInfo) -> None:
        self._zone = in_zone
        self._offsets: dict[dt.datetime, dt.timedelta | None] = {}

    def read(self, text: str) -> Moment | None:
        """The moment that a date or time names; None if it names none.

        A time without offset is local. Digits after the microseconds are cut off.
        """
        try:
            if _DATE_TIME.fullmatch(text) is not None:
                # Only in a file's own letters may "t" and "z" be small.
                return self._moment(dt.datetime.fromisoformat(text.upper()))
            if _DATE.fullmatch(text) is not None:
                return moment_of_value(dt.date.fromisoformat(text), self._zone)
        except ValueError:
            return None
        return None

    def steady_offset_at(self, hour: int) -> int | None:
        """Offset of the zone, in microseconds, through a local hour since 1970-01-01.

        None if the clocks change in it. An hour of no calendar has the offset 0.
        """
        try:
            start = _EPOCH + dt.timedelta(hours=hour)
            offset = self._steady_offset(start)
        except OverflowError:
            return 0
        return None if offset is None else offset // _MICROSECOND

    def _moment(self, value: dt.datetime) -> Moment:
        if value.tzinfo is not None:
            return moment_of_value(value, self._zone)
        hour = value.replace(minute=0, second=0, microsecond=0)
        if hour not in self._offsets:
            self._offsets[hour] = self._steady_offset(hour)
        offset = self._offsets[hour]
        if offset is None:
            return moment_of_value(value, self._zone)
        since = value - _EPOCH - offset
        seconds = since.days * 86_400 + since.seconds
        return Moment(seconds * 1_000_000 + since.microseconds, date_only=False, local="once")

    def _steady_offset(self, hour: dt.datetime) -> dt.timedelta | None:
        ends = (hour, hour.replace(minute=59, second=59, microsecond=999_999))
        offsets = {
            _offset(end.replace(tzinfo=self._zone, fold=fold)) for end in ends for fold in (0, 1)
        }
        return offsets.pop() if len(offsets) == 1 else None


def _offset(local: dt.datetime) -> dt.timedelta:
    return local.utcoffset() or _NO_OFFSET
