"""The rules of form: which rows of a batch are taken, refused or too late.

Promise: what happens to a row depends on the plan, the calendar, the first open round and the row
itself, never on other rows or on what the ledger holds. A refused row is told by file, line, field
and reason, without a value or an id. Duplicates and bounds on a person are decided elsewhere, when
the round closes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import compress
from typing import TypeVar

import numpy as np

from retrodp.plan.columns import Canonical, Column
from retrodp.plan.plan import Plan
from retrodp.stream.cells import picked
from retrodp.stream.clock import Clock
from retrodp.stream.coded import CodedColumn, Payloads, spread
from retrodp.stream.fields import (
    MISSING,
    Flags,
    Ints,
    Read,
    Times,
    read_column,
    read_counts,
    read_ids,
    read_ops,
    read_times,
)
from retrodp.stream.rejected import RefusedRow
from retrodp.stream.sources import Layout, RawBatch
from retrodp.stream.update import Arrivals, Op

ROUND_CLOSED = "round_closed"

BEFORE_START = "before the first round"
AFTER_HORIZON = "after the horizon"
AFTER_ARRIVAL = "after the round of its arrival"
DATE_ONLY = "a date without a time needs same_time in the plan"
NO_REPLACE = "a stream without ids has no replace"
ONLY_DELETES = "missing: a source without the plan's columns can only delete"

_RANKS: Mapping[str, tuple[int, int, int]] = {  # by Op: add, delete, replace
    "delete_first": (2, 0, 1),
    "add_first": (0, 2, 1),
}

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Rows counted, for the operator only.

    Attributes:
        read: Rows of the source.
        accepted: Rows that wait for their round now.
        refused: Malformed rows.
        ignored: Well-formed rows not taken, by reason.
        clamped: Accepted values moved to a bound, by column.
        ambiguous: Accepted local times that happened twice.
        nonexistent: Accepted local times that never happened.
        date_only: Accepted rows whose `at` is a date without a time.
    """

    read: int = 0
    accepted: int = 0
    refused: int = 0
    ignored: Mapping[str, int] = field(default_factory=dict)
    clamped: Mapping[str, int] = field(default_factory=dict)
    ambiguous: int = 0
    nonexistent: int = 0
    date_only: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            read=self.read + other.read,
            accepted=self.accepted + other.accepted,
            refused=self.refused + other.refused,
            ignored=dict(Counter(self.ignored) + Counter(other.ignored)),
            clamped=dict(Counter(self.clamped) + Counter(other.clamped)),
            ambiguous=self.ambiguous + other.ambiguous,
            nonexistent=self.nonexistent + other.nonexistent,
            date_only=self.date_only + other.date_only,
        )


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a batch."""

    arrivals: Arrivals
    refused: list[RefusedRow]
    tally: Tally


class _Refusals:
    """The first reason against each row of a batch."""

    def __init__(self, rows: int) -> None:
        self.first: dict[int, tuple[str, str]] = {}
        self.alive: Flags = np.ones(rows, np.bool_)

    def add(self, name: str, reasons: Mapping[int, str]) -> None:
        """Refuse rows by position; a row refused before keeps its reason."""
        for row, reason in reasons.items():
            self.first.setdefault(row, (name, reason))
            self.alive[row] = False

    def where(self, flags: Flags, name: str, reason: str) -> None:
        """Refuse the flagged rows."""
        self.add(name, dict.fromkeys(np.flatnonzero(flags).tolist(), reason))

    def rows(self, raw: RawBatch) -> list[RefusedRow]:
        """All refused rows of the batch, those without cells included, by line."""
        told = [
            RefusedRow(raw.file, raw.lines[row], name, reason)
            for row, (name, reason) in self.first.items()
        ]
        return sorted((*raw.refused, *told), key=lambda refused: refused.line)


@dataclass(frozen=True, slots=True)
class Intake:
    """Takes batches for one plan.

    Attributes:
        plan: Names of the columns, ids, units and bounds.
        clock: Calendar of the rounds.
    """

    plan: Plan
    clock: Clock

    def layout(self, *, has_default_at: bool = False) -> Layout:
        """The columns to look for in a source.

        Args:
            has_default_at: Rows without `at` get one from the caller.
        """
        id_, op, at, time, n = map(self._name, ("id", "op", "at", "time", "n"))
        arrival = () if has_default_at else (at,)
        contents = [column.from_ for column in self.plan.columns]
        if not self.plan.stream.ids:  # a deletion names all columns of its point
            return Layout(
                required=(*arrival, *contents), optional=(op, at, time, n), contents=(), op=op
            )
        person = self._person_column()
        by_person = (person.from_,) if person is not None and self.plan.stream.person_unit else ()
        return Layout(
            required=(id_, *arrival, *by_person),
            optional=(op, at, time),
            contents=tuple(name for name in contents if name not in by_person),
            op=op,
        )

    def take(self, raw: RawBatch, *, first_open: int, default_at: int | None = None) -> Taken:
        """Apply the rules of form to a batch.

        A row that is malformed is refused even if its round is closed, so that the same file gives
        the same refusals whenever it is read.

        Args:
            raw: Cells by the source's names, as read with `layout`.
            first_open: First round that takes updates; horizon + 1 if none does.
            default_at: Instant of rows without `at`, microseconds since 1970 UTC.
        """
        refusals = _Refusals(len(raw))
        ops = self._ops(raw, refusals)
        ids = self._ids(raw, refusals)
        at, arrived = self._arrival(raw, refusals, default_at)
        # Without ids a deletion names a stamped point, so it is read like an addition.
        writes = ops != Op.DELETE if self.plan.stream.ids else np.ones(len(raw), np.bool_)
        time, stamp = self._stamps(raw, refusals, writes, arrived)
        counts = self._counts(raw, refusals)
        persons = self._persons(raw, refusals)
        contents = self._contents(raw, refusals, writes)

        is_open = arrived >= first_open
        taken = refusals.alive & is_open
        if not self.plan.stream.person_unit:
            persons = contents.persons
        nowhere = CodedColumn.constant("", len(raw))
        spaces = persons.mapped(_or_nobody) if self.plan.stream.person_unit else nowhere
        ranks = np.array(_RANKS[self._same_time()], np.int64)[ops]
        arrivals = Arrivals(
            round=arrived[taken],
            at=at.micros[taken],
            rank=ranks[taken],
            op=ops[taken],
            space=spaces.take(taken),
            id=_kept(ids, taken),
            stamp=stamp[taken],
            person=persons.take(taken),
            payload=contents.payloads if taken.all() else contents.payloads.take(taken),
            count=_kept(counts, taken),
        )
        timed = taken & writes
        late = int(np.count_nonzero(refusals.alive & ~is_open))
        tally = Tally(
            read=len(raw) + len(raw.refused),
            accepted=len(arrivals),
            refused=len(refusals.first) + len(raw.refused),
            ignored={ROUND_CLOSED: late} if late else {},
            clamped=contents.clamped(taken),
            ambiguous=_how_many(at.ambiguous, taken) + _how_many(time.ambiguous, timed),
            nonexistent=_how_many(at.nonexistent, taken) + _how_many(time.nonexistent, timed),
            date_only=_how_many(at.date_only, taken),
        )
        return Taken(arrivals, refusals.rows(raw), tally)

    def _name(self, reserved: str) -> str:
        return self.plan.reserved.get(reserved, reserved)

    def _same_time(self) -> str:
        return self.plan.stream.same_time if self.plan.stream.ids else "add_first"

    def _person_column(self) -> Column | None:
        person = self.plan.stream.person
        return None if person is None else self.plan.column(person)

    def _ops(self, raw: RawBatch, refusals: _Refusals) -> Ints:
        name = self._name("op")
        read = read_ops(raw.cells(name))
        refusals.add(name, read.reasons)
        if not self.plan.stream.ids:
            refusals.where(read.values == Op.REPLACE, name, NO_REPLACE)
        return read.values

    def _ids(self, raw: RawBatch, refusals: _Refusals) -> list[str]:
        if not self.plan.stream.ids:
            return [""] * len(raw)
        name = self._name("id")
        read = read_ids(raw.cells(name))
        refusals.add(name, read.reasons)
        return read.values

    def _arrival(
        self, raw: RawBatch, refusals: _Refusals, default_at: int | None
    ) -> tuple[Times, Ints]:
        """When each row arrived, and in which round."""
        name = self._name("at")
        read = self._times(raw, name)
        at = read.values
        refusals.add(name, read.reasons)
        if default_at is None:
            refusals.where(at.null & refusals.alive, name, MISSING)
        else:
            at.micros[at.null & refusals.alive] = default_at
        if not self.plan.stream.date_only_at:
            refusals.where(at.date_only, name, DATE_ONLY)
        arrived = self.clock.stamps_at(at.micros)
        refusals.where(arrived < 1 - self.clock.own, name, BEFORE_START)
        refusals.where(arrived > self.clock.horizon, name, AFTER_HORIZON)
        return at, arrived

    def _stamps(
        self, raw: RawBatch, refusals: _Refusals, writes: Flags, arrived: Ints
    ) -> tuple[Times, Ints]:
        """The stamp round of each row that names one, 0 elsewhere."""
        name = self._name("time")
        read = self._times(raw, name)
        time = read.values
        refusals.add(name, {row: why for row, why in read.reasons.items() if writes[row]})
        named = self.clock.stamps_at(time.micros)
        stamp = np.where(writes, np.where(time.null, arrived, named), 0)
        refusals.where(writes & (stamp < self.clock.first_stamp), name, BEFORE_START)
        refusals.where(writes & (stamp > arrived), name, AFTER_ARRIVAL)
        return time, stamp

    def _times(self, raw: RawBatch, name: str) -> Read[Times]:
        return read_times(raw.cells(name), self.clock)

    def _counts(self, raw: RawBatch, refusals: _Refusals) -> list[int]:
        name = self._name("n")
        if self.plan.stream.ids or name not in raw.columns:
            return [1] * len(raw)
        read = read_counts(raw.cells(name))
        refusals.add(name, read.reasons)
        return read.values

    def _persons(self, raw: RawBatch, refusals: _Refusals) -> CodedColumn:
        """The person of each row under a person unit, whose deletions name it too.

        An empty text names nobody. Where the plan takes such rows (`nullable`), each id among
        them is a person of its own, and all live in the namespace "".
        """
        column = self._person_column()
        if column is None or not self.plan.stream.person_unit:
            return CodedColumn.constant(None, len(raw))
        read = read_column(raw.cells(column.from_), column)
        refusals.add(column.from_, read.reasons)
        persons = read.values.cells.mapped(_text).mapped(_or_null)
        if not column.nullable:
            absent = persons.where(lambda person: person is None)
            refusals.where(absent & refusals.alive, column.from_, MISSING)
        return persons

    def _contents(self, raw: RawBatch, refusals: _Refusals, writes: Flags) -> _Contents:
        """Payloads and persons of the rows that write a record, and what was clamped."""
        rows = np.flatnonzero(writes & refusals.alive)
        whole = len(rows) == len(raw)
        columns: list[CodedColumn] = []
        persons = CodedColumn.constant(None, len(rows))
        clamped: dict[str, Flags] = {}
        for column in self.plan.columns:
            cells = raw.cells(column.from_)
            if column.from_ not in raw.columns:
                refusals.add(column.from_, dict.fromkeys(rows.tolist(), ONLY_DELETES))
            read = read_column(cells if whole else picked(cells, rows), column)
            refusals.add(column.from_, {int(rows[row]): why for row, why in read.reasons.items()})
            columns.append(read.values.cells)
            if column.name == self.plan.stream.person:
                persons = read.values.cells.mapped(_text)
            if read.values.clamped.any():
                clamped[column.name] = np.zeros(len(raw), np.bool_)
                clamped[column.name][rows] = read.values.clamped
        if whole:
            return _Contents(Payloads(tuple(columns), None, len(rows)), persons, clamped)
        written = np.zeros(len(raw), np.bool_)
        written[rows] = True
        payloads = Payloads(tuple(spread(one, written) for one in columns), written, len(raw))
        return _Contents(payloads, _or_nulls(persons, written), clamped)


@dataclass(frozen=True, slots=True)
class _Contents:
    """What the rows of a batch write; empty where a row writes nothing."""

    payloads: Payloads
    persons: CodedColumn
    clamped_rows: Mapping[str, Flags]

    def clamped(self, taken: Flags) -> dict[str, int]:
        """Clamped values of the taken rows, by column."""
        counted = {name: _how_many(rows, taken) for name, rows in self.clamped_rows.items()}
        return {name: number for name, number in counted.items() if number}


def _kept(values: list[T], taken: Flags) -> list[T]:
    return values if taken.all() else list(compress(values, taken.tolist()))


def _how_many(flags: Flags, taken: Flags) -> int:
    return int(np.count_nonzero(flags & taken))


def _text(cell: Canonical) -> str | None:
    return None if cell is None else str(cell)


def _or_nobody(person: str | None) -> str:
    return person or ""


def _or_null(person: str | None) -> str | None:
    return person or None


def _or_nulls(persons: CodedColumn, written: Flags) -> CodedColumn:
    """The persons in the rows that are written, null elsewhere."""
    distinct = [None, *persons.distinct]
    codes = np.zeros(len(written), np.intp)
    codes[written] = persons.codes + 1
    return CodedColumn.coded(distinct, codes)
