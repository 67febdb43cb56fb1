"""Tables of the plan's grammar: their keys and types, and errors that say what was expected.

Promise: a key that the grammar does not have, or a value of the wrong type, is refused with the
key's dotted path, what was expected and the nearest accepted spelling. Knows single keys only;
what several keys mean together is checked where the table becomes a frozen value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import msgspec

from retrodp._check import exact
from retrodp.errors import NotInThisVersionError, PlanError
from retrodp.plan.duration import RoundLength

Text = Annotated[str, msgspec.Meta(min_length=1, description="text in quotes")]
Flag = Annotated[bool, msgspec.Meta(description="true or false")]
Whole = Annotated[int, msgspec.Meta(ge=1, description="a whole number of at least 1")]
Names = Annotated[
    list[Text], msgspec.Meta(min_length=1, description='a list of names, such as ["product"]')
]
NameOrNames = Annotated[
    Text | Names, msgspec.Meta(description="a column's name, or a list of them")
]
Number = Annotated[Any, msgspec.Meta(description='a finite number, or an exact text such as "1/3"')]
"""Converted by `number`, which keeps it exact."""

_LARGEST_POWER = 400


class StreamTable(msgspec.Struct, frozen=True, kw_only=True):
    """`[stream]`."""

    start: Any
    round: RoundLength
    timezone: Text = "UTC"
    horizon: Annotated[
        Any, msgspec.Meta(description='a whole number of at least 1, or "open" for epochs')
    ]
    epochs: Any = None
    unit: Literal["record", "operation", "person_round", "person"] | None = None
    ids: Flag = True
    person: Text | None = None
    max_records: Whole | None = None
    max_per_bin: Any = None
    max_rounds: Whole | None = None
    same_time: Literal["delete_first", "add_first"] | None = None
    out_of_bounds: Literal["clamp", "reject"] = "clamp"
    remember_deleted: Text | None = None
    forgetting: Literal["complete", "partial"] = "complete"


class EpochsTable(msgspec.Struct, frozen=True, kw_only=True):
    """`stream.epochs`."""

    first: Whole
    number: Whole | None = None
    shares: (
        Annotated[list[Any], msgspec.Meta(min_length=1, description="a list of numbers")] | None
    ) = None


class MaxPerBinTable(msgspec.Struct, frozen=True, kw_only=True):
    """`stream.max_per_bin`."""

    by: NameOrNames
    max: Whole


class ColumnTable(msgspec.Struct, frozen=True, kw_only=True):
    """One column, written as a table."""

    type: Literal["text", "category", "integer", "number", "boolean", "date"]
    min: Number = None
    max: Number = None
    step: Number = None
    values: (
        Annotated[list[str], msgspec.Meta(min_length=1, description="a list of texts")] | None
    ) = None
    other: Flag = False
    nullable: Flag | None = None
    from_: Text | None = msgspec.field(default=None, name="from")


class ReservedTable(msgspec.Struct, frozen=True, kw_only=True):
    """Where the file keeps `id`, `op`, `at`, `time` or `n`."""

    from_: Text = msgspec.field(name="from")


class PrivacyTable(msgspec.Struct, frozen=True, kw_only=True):
    """`[privacy]`."""

    model: Literal["zcdp", "pure"] = "zcdp"
    epsilon: Number
    delta: Number = None
    forward_secrecy: Flag = True


class ReleaseTable(msgspec.Struct, frozen=True, kw_only=True):
    """The keys that `[release.NAME]` has for every kind."""

    kind: Text
    share: Number = 1
    where: Text | None = None
    window: Text | None = None
    factor: Literal["auto", "haar", "delannoy", "binary", "dense"] = "auto"
    level: Number = Decimal("0.95")
    revised: Flag = False
    shape: Literal["per_stamp", "cumulative"] | None = None
    last: Any = None


Table = TypeVar("Table", bound=msgspec.Struct)


def read_table(kind: type[Table], raw: object, path: str, *, also: Iterable[str] = ()) -> Table:
    """Read a table of the grammar strictly.

    Args:
        kind: The table's struct.
        raw: What TOML or a dict gave.
        path: Dotted path of the table.
        also: Further keys that belong to the same table and are read elsewhere.
    """
    table = as_table(raw, path)
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    refuse_unknown(table, [*fields, *also], path)
    values: dict[str, Any] = {}
    for key, field in fields.items():
        if table.get(key) is not None:
            values[field.name] = _converted(table[key], field.type, f"{path}.{key}")
        elif field.required:
            raise PlanError(f"{path}.{key} is missing.", expected=_expectation(field.type))
    return kind(**values)


def as_table(raw: object, path: str) -> Mapping[str, Any]:
    """The value as a table, or an error that says it should be one."""
    if not isinstance(raw, Mapping):
        raise PlanError(f"{path} is {shown(raw)}.", expected=f"a table, [{path}]")
    return raw


def refuse_unknown(table: Mapping[str, Any], accepted: Iterable[str], path: str) -> None:
    """Refuse a key that the table does not have."""
    known = list(accepted)
    for key in table:
        if key not in known:
            place = f"{path}.{key}" if path else str(key)
            raise PlanError(
                f"{place} is not a key that a plan has there.",
                expected=_listed(known),
                do=did_you_mean(str(key), known),
            )


def refuse_choice(path: str, got: object, accepted: Iterable[str]) -> PlanError:
    """The error for a value that is not one of the accepted ones."""
    known = list(accepted)
    return PlanError(
        f"{path} is {shown(got)}.", expected=_listed(known), do=did_you_mean(got, known)
    )


def not_yet(path: str) -> NotInThisVersionError:
    """The error for a part of the grammar that this version does not have."""
    return NotInThisVersionError(
        f"{path} is not in this version.", do="Leave it out, or use a later version."
    )


def number(value: object, path: str) -> Fraction:
    """The exact number of a plan's key."""
    try:
        if isinstance(value, int | float | Decimal | Fraction | str) and _of_sane_size(value):
            return exact(path, value)
    except PlanError:
        pass
    raise PlanError(
        f"{path} is {shown(value)}.", expected='a finite number, or an exact text such as "1/3"'
    )


def shown(value: object) -> str:
    """A public value for an error message."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, list) and any(isinstance(own, Decimal) for own in value):
        value = [
            float(own) if isinstance(own, Decimal) and not own.is_snan() else own for own in value
        ]
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def did_you_mean(got: object, accepted: Iterable[str]) -> str:
    """The nearest accepted spelling, as a sentence; empty if none is near."""
    close = get_close_matches(got, list(accepted), n=1) if isinstance(got, str) else []
    return f"Did you mean {close[0]!r}?" if close else ""


def _converted(value: Any, kind: Any, path: str) -> Any:
    try:
        return msgspec.convert(value, kind, strict=True)
    except msgspec.ValidationError:
        choices = _choices(kind)
        if choices:
            raise refuse_choice(path, value, choices) from None
        raise PlanError(f"{path} is {shown(value)}.", expected=_expectation(kind)) from None


def _choices(kind: Any) -> tuple[str, ...]:
    """Accepted values of a `Literal`, itself or beside None."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    return next((found for part in _parts(kind) if (found := _choices(part))), ())


def _expectation(kind: Any) -> str:
    if isinstance(kind, msgspec.Meta):
        return kind.description or ""
    choices = _choices(kind)
    if choices:
        return _listed(choices)
    if get_origin(kind) is Annotated:
        return next(text for meta in kind.__metadata__ if (text := _expectation(meta)))
    return next((text for part in _parts(kind) if (text := _expectation(part))), "a value")


def _parts(kind: Any) -> tuple[Any, ...]:
    return () if get_origin(kind) in {Annotated, None} else get_args(kind)


def _listed(accepted: Iterable[str]) -> str:
    return f"one of {', '.join(accepted)}"


def _of_sane_size(value: float | str | Decimal | Fraction) -> bool:
    """Whether the number can be made exact without astronomical digits."""
    if isinstance(value, int | Fraction):
        return True
    if isinstance(value, str) and "/" in value:
        return len(value) <= _LARGEST_POWER
    try:
        decimal = Decimal(str(value))
    except InvalidOperation:
        return False
    return decimal.is_finite() and abs(decimal.adjusted()) <= _LARGEST_POWER
