"""The plan's `[stream]` and `[privacy]` tables as frozen values, checked as wholes."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from retrodp.errors import PlanError
from retrodp.plan.calendar import Calendar
from retrodp.plan.duration import Duration, RoundLength
from retrodp.plan.open_horizon import OPEN, OpenHorizon, read_epochs
from retrodp.plan.schema import (
    MaxPerBinTable,
    PrivacyTable,
    StreamTable,
    number,
    read_table,
    refuse_choice,
    shown,
)

Unit: TypeAlias = Literal["record", "operation", "person_round", "person"]
SameTime: TypeAlias = Literal["delete_first", "add_first"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxPerBin:
    """At most `max` records of one person and round with equal values in the columns `by`."""

    by: tuple[str, ...]
    max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPlan:
    """What arrives, when rounds close, and what one unit of privacy is.

    Attributes:
        start: Date, local time or (rounds of "1h") instant that round 1 begins with, ISO 8601.
        round: Length of a round.
        timezone: IANA name of the zone of local times.
        horizon: T, rounds; of the first epoch if the horizon is open.
        epochs: The epochs of an open horizon; None if the horizon is known.
        unit: What two neighbouring streams differ in.
        ids: Whether records carry ids; false: stamped values with multiplicities.
        person: Name of the plan's column that names the person, or None.
        max_records: Ids of one person taken per round (person units).
        max_per_bin: How many of them may share a bin; None: no bound of its own.
        max_rounds: R, rounds in which a person adds; declared, never enforced (unit person).
        same_time: Order of the updates of one id at equal `at`.
        date_only_at: Whether `at` may be a date without a time, because the plan states
            `same_time` or has no ids.
        out_of_bounds: What happens to a number outside its column's bounds.
        remember_deleted: For how many rounds a deleted id is remembered, so that a redelivered
            addition does not revive it; None: not at all.
        forgetting: Whether every release forgets what is deleted; "partial": some are not
            retroactive, and the plan says so.
    """

    start: str
    round: RoundLength
    timezone: str
    horizon: int
    epochs: OpenHorizon | None = None
    unit: Unit
    ids: bool
    person: str | None
    max_records: int | None
    max_per_bin: MaxPerBin | None
    max_rounds: int | None
    same_time: SameTime
    date_only_at: bool
    out_of_bounds: Literal["clamp", "reject"]
    remember_deleted: int | None
    forgetting: Literal["complete", "partial"]

    def rounds_in(self, text: str, *, key: str, usual: int, without: str) -> int:
        """How many rounds a duration is, at most the horizon.

        Args:
            text: The duration.
            key: Dotted path of its key, for the error.
            usual: Rounds of an example, likewise.
            without: What leaving the key out does, likewise.
        """
        length = Duration.parse(self.round, key="stream.round")
        rounds = Duration.parse(text, key=key).in_rounds_of(length)
        if not rounds:
            raise PlanError(
                f"{key} is {text!r}, no whole number of rounds of {length}.",
                expected=f"a duration such as '{length.times(usual)}'",
            )
        if rounds > self.horizon:
            raise PlanError(
                f"{key} is {text!r}, {rounds} rounds, longer than the horizon.",
                expected=f"at most {self.horizon} rounds",
                do=without,
            )
        return rounds

    @property
    def person_unit(self) -> bool:
        """Whether ids live in the namespace of a person, whose records are bounded."""
        return self.unit in {"person_round", "person"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyPlan:
    """The budget of the whole horizon, exact.

    Attributes:
        model: Gaussian noise accounted in zCDP, or pure epsilon with Laplace noise.
        epsilon: Above 0.
        delta: Strictly between 0 and 1; may be None under "pure".
        forward_secrecy: Whether past noise must become underivable as rounds close.
    """

    model: Literal["zcdp", "pure"]
    epsilon: Fraction
    delta: Fraction | None
    forward_secrecy: bool

    @property
    def law(self) -> Literal["gaussian", "laplace"]:
        """Of the noise that the model accounts for."""
        return "gaussian" if self.model == "zcdp" else "laplace"


def read_stream(raw: object) -> StreamPlan:
    """Check `[stream]`; that its columns exist is checked with the columns."""
    table = read_table(StreamTable, raw, "stream")
    unit = table.unit or ("record" if table.ids else "operation")
    _check_ids(table, unit)
    max_per_bin = _max_per_bin(table, unit)
    if not isinstance(table.start, str | dt.date):
        raise PlanError(
            f"stream.start is {shown(table.start)}.",
            expected="a date or an instant in ISO 8601, such as 2010-12-01",
        )
    calendar = Calendar.of(start=table.start, round_=table.round, timezone=table.timezone)
    epochs = _epochs(table, calendar)
    return StreamPlan(
        start=calendar.start,
        round=table.round,
        timezone=table.timezone,
        horizon=table.horizon if epochs is None else epochs.first,
        epochs=epochs,
        unit=unit,
        ids=table.ids,
        person=table.person,
        max_records=table.max_records,
        max_per_bin=max_per_bin,
        max_rounds=table.max_rounds,
        same_time=table.same_time or "delete_first",
        date_only_at=table.same_time is not None or not table.ids,
        out_of_bounds=table.out_of_bounds,
        remember_deleted=_remember_deleted(table),
        forgetting=table.forgetting,
    )


def _epochs(table: StreamTable, calendar: Calendar) -> OpenHorizon | None:
    if table.horizon == OPEN:
        return read_epochs(table.epochs, calendar.holds)
    if type(table.horizon) is not int or table.horizon < 1:
        raise PlanError(
            f"stream.horizon is {shown(table.horizon)}.",
            expected=f'a whole number of at least 1, or "{OPEN}" for epochs',
        )
    if table.epochs is not None:
        raise PlanError(
            "stream.epochs divides an open horizon, but this one is known.",
            do=f'Leave it out, or set horizon = "{OPEN}".',
        )
    calendar.check_end(table.horizon)
    return None


def _check_ids(table: StreamTable, unit: Unit) -> None:
    if not table.ids and unit != "operation":
        raise refuse_choice("stream.unit with ids = false", unit, ["operation"])
    if table.ids and unit == "operation":
        raise PlanError(
            'stream.unit is "operation", which only streams without ids protect.',
            expected="one of record, person_round, person",
            do="Set ids = false, or protect another unit.",
        )
    if not table.ids and table.same_time is not None:
        raise PlanError(
            "stream.same_time orders the updates of one id, but ids = false.",
            do="Leave it out: without ids the additions of a round come before its deletions.",
        )


def _max_per_bin(table: StreamTable, unit: Unit) -> MaxPerBin | None:
    by_person = unit in {"person_round", "person"}
    needed = {
        "person": (by_person, table.person, "the column that names the person"),
        "max_records": (by_person, table.max_records, "records of one person per round"),
        "max_rounds": (unit == "person", table.max_rounds, "rounds in which a person adds"),
    }
    for key, (necessary, value, meaning) in needed.items():
        if necessary and value is None:
            raise PlanError(f'stream.{key} is missing: unit = "{unit}" needs it.', expected=meaning)
        if not necessary and value is not None and key != "person":
            raise _only_with_person(key, unit)
    if table.max_per_bin is None:
        return None
    if not by_person:
        raise _only_with_person("max_per_bin", unit)
    inner = read_table(MaxPerBinTable, table.max_per_bin, "stream.max_per_bin")
    if inner.max > (table.max_records or 0):
        raise PlanError(
            f"stream.max_per_bin.max is {inner.max}, above stream.max_records.",
            expected=f"at most {table.max_records}",
        )
    return MaxPerBin(by=names(inner.by, "stream.max_per_bin.by"), max=inner.max)


def _only_with_person(key: str, unit: Unit) -> PlanError:
    units = '"person"' if key == "max_rounds" else '"person_round" or "person"'
    return PlanError(
        f'stream.{key} bounds a person, but unit = "{unit}" protects none.',
        do=f"Leave it out, or set unit = {units}.",
    )


def names(value: str | list[str], path: str) -> tuple[str, ...]:
    """A name or a list of names as a tuple without repetition."""
    listed = (value,) if isinstance(value, str) else tuple(value)
    if len(set(listed)) < len(listed):
        raise PlanError(f"{path} names a column twice.", expected="each column once")
    return listed


def read_privacy(raw: object) -> PrivacyPlan:
    """Check `[privacy]`; whether a release needs delta is checked with the releases."""
    table = read_table(PrivacyTable, raw, "privacy")
    epsilon = number(table.epsilon, "privacy.epsilon")
    if not epsilon > 0:
        raise PlanError(f"privacy.epsilon is {shown(table.epsilon)}.", expected="above 0")
    delta = None if table.delta is None else number(table.delta, "privacy.delta")
    if delta is None and table.model == "zcdp":
        raise PlanError(
            'privacy.delta is missing: model = "zcdp" needs it.',
            expected="a number between 0 and 1, both excluded, such as 1e-9",
        )
    if delta is not None and not 0 < delta < 1:
        raise PlanError(
            f"privacy.delta is {shown(table.delta)}.",
            expected="a number between 0 and 1, both excluded, such as 1e-9",
            do='For pure epsilon leave delta out and set model = "pure".' if delta == 0 else "",
        )
    return PrivacyPlan(
        model=table.model,
        epsilon=epsilon,
        delta=delta,
        forward_secrecy=table.forward_secrecy,
    )


def _remember_deleted(table: StreamTable) -> int | None:
    if table.remember_deleted is None:
        return None
    if not table.ids:
        raise PlanError(
            "stream.remember_deleted needs ids, but the stream has none.",
            do="Remove it: without ids a deletion takes one copy and nothing is revived.",
        )
    key = "stream.remember_deleted"
    length = Duration.parse(table.remember_deleted, key=key)
    rounds = length.in_rounds_of(Duration.parse(table.round, key="stream.round"))
    if rounds is None:
        raise PlanError(
            f"{key} is {table.remember_deleted!r}, no whole number of rounds.",
            expected=f"a multiple of stream.round ({table.round})",
        )
    return rounds
