"""A first plan from the columns of a file: their names and types, and nothing that they hold.

Promise: valid TOML in which everything that only knowledge of the domain can tell (bounds, steps,
calendar, budget) is open and says so, so that `check` refuses it until somebody has filled it in.
It sees no values: a bound or a list of categories that was looked up in the data would tell what
the data hold.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from retrodp.errors import UsageError
from retrodp.plan.column_tables import RESERVED
from retrodp.plan.schema import did_you_mean
from retrodp.plan.toml import toml_key, toml_value

Kind: TypeAlias = Literal["text", "integer", "number", "boolean", "date", "time"]

OPEN = "FILL IN: "
"""Begins every value that is still to be filled in."""

MEANING: Mapping[str, str] = {
    "id": "names a record; its deletion names it again",
    "op": "add (default), delete or replace",
    "at": "when the update arrived; decides its round",
    "time": "when it happened, if earlier than it arrived",
    "n": "how many equal records the row stands for",
}
QUESTIONS: Mapping[str, str] = {
    "stream.start": "first day, such as 2026-01-01",
    "stream.horizon": "number of rounds, such as 365",
    "privacy.epsilon": "budget of all rounds together, such as 1.0",
    "privacy.delta": "far below one over the number of people, such as 1e-9",
}
"""Keys that no file can tell, and what is to be said."""

# Spellings of names in files, without case and punctuation; the first that is there is taken.
_NAMES: Mapping[str, Sequence[str]] = {
    "id": ("id", "recordid", "rowid", "lineid", "eventid", "uuid"),
    "op": ("op", "operation", "action"),
    "at": (
        *("at", "arrivedat", "receivedat", "updatedat", "createdat", "timestamp", "ts"),
        *("datetime", "eventtime", "date", "time"),
    ),
    "time": ("occurredat", "happenedat", "originaltime", "time"),
    "n": ("n", "multiplicity"),
}
_LABEL = re.compile(r"(id|no|nr|code|number|key|zip|postcode|phone)$")
_WIDTH = 30  # where comments begin


@dataclass(frozen=True, slots=True)
class FileColumn:
    """A column of a file: its name there, and the type that its cells have the form of."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """Which columns of the file are the fields of an update.

    Attributes:
        names: Column of each of `id`, `op`, `at`, `time`, `n` that there is.
        ids: Whether records have ids.
        person: Column that names the person, if one does.
    """

    names: Mapping[str, str]
    ids: bool = True
    person: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A drafted plan.

    Attributes:
        text: TOML.
        open: Dotted keys that are still to be filled in.
        columns: Type of each column of the plan.
        left_out: Columns of the file that a plan cannot hold.
    """

    text: str
    open: tuple[str, ...]
    columns: Mapping[str, str]
    left_out: tuple[str, ...]


def guess_fields(names: Sequence[str], given: Mapping[str, str | None], *, ids: bool) -> Fields:
    """The fields of an update among the columns of a file: as given, else by their names.

    Args:
        names: Columns of the file.
        given: Column of a reserved field, or of "person"; None where nothing was said.
        ids: Whether records have ids.

    Raises:
        UsageError: A column was given that the file does not have, or for two fields.
    """
    said = {field_: name for field_, name in given.items() if name is not None}
    for field_, name in said.items():
        if name not in names:
            raise UsageError(
                f"--{field_} names {name!r}, which is no column of the file.",
                expected=", ".join(names),
                do=did_you_mean(name, names),
            )
    found = {field_: said[field_] for field_ in RESERVED if field_ in said}
    if len(set(found.values())) < len(found):
        raise UsageError("One column was named for two fields.", expected="a column for each")
    spelled = {_plain(name): name for name in reversed(names)}
    for field_ in (name for name in RESERVED if name != ("n" if ids else "id")):
        free = [spelled[own] for own in _NAMES[field_] if own in spelled]
        free = [name for name in free if name not in {*found.values(), said.get("person")}]
        if field_ not in found and free:
            found[field_] = free[0]
    return Fields(names=found, ids=ids, person=said.get("person"))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def draft(
    columns: Sequence[FileColumn],
    fields: Fields,
    *,
    source: str,
    answers: Mapping[str, str] | None = None,
) -> Draft:
    """Write a plan for a file with these columns.

    Args:
        columns: Of the file.
        fields: From `guess_fields`.
        source: What the file is called.
        answers: TOML values, as texts, of dotted keys; a key without one stays open.
    """
    return _Writing(columns=columns, fields=fields, answers=answers or {}).draft(source)


def open_keys(columns: Sequence[FileColumn], fields: Fields) -> dict[str, str]:
    """Dotted keys that a draft of these columns leaves open, and what is to be said."""
    writing = _Writing(columns=columns, fields=fields, answers={})
    writing.draft("")
    return writing.asked


@dataclass(slots=True, kw_only=True)
class _Writing:
    """A draft on its way to text."""

    columns: Sequence[FileColumn]
    fields: Fields
    answers: Mapping[str, str]
    asked: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def draft(self, source: str) -> Draft:
        shown = "".join(letter if letter.isprintable() else "?" for letter in source)
        lines = [
            f"# Drafted from the columns of {shown}: their names and types, none of their values.",
            f'# Replace what says "{OPEN.strip()}" by what you know of the domain, never by what',
            "# the data hold: a bound or a list of values looked up in the data gives people away.",
            "# Then: retrodp check THIS-FILE. It spends nothing and shows how large errors will be.",
            "",
            *self._stream(),
            "",
            *self._columns(),
            "",
            *self._privacy(),
            "",
            *self._releases(),
        ]
        still = tuple(key for key in self.asked if key not in self.answers)
        return Draft(
            text="\n".join(lines) + "\n",
            open=still,
            columns=dict(self.types),
            left_out=tuple(self.left_out),
        )

    def _value(self, key: str, question: str) -> str:
        """The answer for a dotted key, or its open place."""
        self.asked[key] = question
        return self.answers.get(key) or toml_value(OPEN + question)

    def _known(self, key: str) -> str:
        return self._value(key, QUESTIONS[key])

    def _stream(self) -> Iterable[str]:
        yield "[stream]"
        yield _line("start", self._known("stream.start"), "the first round begins with it")
        yield _line("round", '"1d"', "1h, 6h, 1d, 1w or 1mo; one release each")
        yield _line("timezone", '"UTC"', 'of midnights and local times, such as "Europe/London"')
        yield _line("horizon", self._known("stream.horizon"), "the budget lasts so many rounds")
        if self.fields.ids:
            yield _line("unit", '"record"', "what is protected; or person_round, person")
        else:
            yield _line("ids", "false", "records have no ids; a deletion repeats the columns")
        person = self._person()
        if person is not None:
            yield _line("person", toml_value(person), "whom `forget --person` means")
        else:
            yield '# person = "..."              # column that names the person, if one does'
        at = self.fields.names.get("at")
        dates = any(own.name == at and own.kind == "date" for own in self.columns)
        if self.fields.ids and dates:
            yield _line("same_time", '"delete_first"', "`at` is a date: order within the day")

    def _columns(self) -> Iterable[str]:
        yield "[columns]"
        if any(self._kind(own) == "text" for own in self.columns):
            yield "# Of text only frequent values are ever named. Where all values are public, list them:"
            yield '# NAME = { type = "category", values = ["...", "..."], other = true }'
        needed = ("id", "at") if self.fields.ids else ("at",)
        for name in RESERVED:
            column = self.fields.names.get(name)
            if column is None and name in needed:
                question = f"column of the file that {MEANING[name]}"
                where = self._value(f"columns.{name}", question)
                yield _line(name, where, f'{{ from = "..." }}; {MEANING[name]}')
            elif column is not None and column != name:
                yield _line(name, f"{{ from = {toml_value(column)} }}", MEANING[name])
            elif column is None and name in {own.name for own in self.columns}:
                # Its own name belongs to another field of this file.
                yield _line(name, f'{{ from = "no column: {name}" }}', "not in this file")
        names = self._names()
        taken = set(self.fields.names.values())
        for column_ in self.columns:
            if column_.name not in taken:
                yield from self._column(column_, names[column_.name])

    def _person(self) -> str | None:
        return None if self.fields.person is None else self._names()[self.fields.person]

    def _names(self) -> dict[str, str]:
        """Name in the plan of each column: its own where a plan can have it."""
        names: dict[str, str] = {}
        for column in self.columns:
            name = unicodedata.normalize("NFC", column.name).replace("`", "'")
            name = "".join(letter if letter.isprintable() else " " for letter in name).strip()
            name = name or "column"
            while name in {*RESERVED, *names.values()}:
                name += "_"
            names[column.name] = name
        return names

    def _column(self, column: FileColumn, name: str) -> Iterable[str]:
        kind = self._kind(column)
        if kind == "time" or not column.name:
            self.left_out.append(column.name)
            what = "a time; columns hold dates at most" if column.name else "it has no name"
            yield f"# {toml_key(name)} is left out: {what}."
            return
        self.types[name] = kind
        parts = {"type": toml_value(kind)}
        path = f"columns.{name}"
        if kind in {"integer", "number"}:
            parts["min"] = self._value(f"{path}.min", "least possible")
            parts["max"] = self._value(f"{path}.max", "greatest possible")
        if kind == "number":
            parts["step"] = self._value(f"{path}.step", "precision, such as 0.01")
        if name != column.name:
            parts["from"] = toml_value(column.name)
        table = ", ".join(f"{key} = {value}" for key, value in parts.items())
        yield _line(toml_key(name), parts["type"] if len(parts) == 1 else f"{{ {table} }}", "")

    def _kind(self, column: FileColumn) -> Kind:
        """A column of labels is text, whatever its cells look like."""
        label = column.name == self.fields.person or _LABEL.search(_plain(column.name))
        return "text" if label and column.kind in {"integer", "number"} else column.kind

    def _privacy(self) -> Iterable[str]:
        yield "[privacy]"
        yield _line("epsilon", self._known("privacy.epsilon"), "nothing refunds it")
        yield _line("delta", self._known("privacy.delta"), "")

    def _releases(self) -> Iterable[str]:
        yield '# A count is of what survives so far; per day it needs window = "1d".'
        yield "[release.records]"
        yield 'kind = "count"'
        yield ""
        yield "# More, as you need them; each takes its share of the budget (docs/plan.md):"
        for name, kind in self.types.items():
            if kind in {"integer", "number"}:
                yield from _commented(f"total_{name}", kind="sum", of=name)
            elif kind == "boolean" or (kind == "text" and name != self._person()):
                yield from _commented(f"by_{name}", kind="histogram", by=name)


def _line(key: str, value: str, comment: str) -> str:
    text = f"{key} = {value}"
    return f"{text:<{_WIDTH - 1}} # {comment}" if comment else text


def _commented(release: str, **keys: str) -> Iterable[str]:
    yield f"# [release.{toml_key(release)}]"
    for key, value in keys.items():
        yield f"# {key} = {toml_value(value)}"
