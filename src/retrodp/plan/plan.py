"""A plan: what was promised, checked as a whole and frozen.

Promise: whatever `Plan` holds fits together, so that nothing after it checks the grammar again.
Everything in it is public. Knows no noise and no budget arithmetic: whether the budget fits is
decided when the plan is resolved.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

from retrodp import _check
from retrodp.errors import PlanError
from retrodp.plan.column_tables import RESERVED, read_columns
from retrodp.plan.columns import Column
from retrodp.plan.duration import Duration
from retrodp.plan.kinds import Masked, Revised, Statistic
from retrodp.plan.matrix import inlined
from retrodp.plan.open_horizon import OPEN
from retrodp.plan.releases import Release, read_releases
from retrodp.plan.schema import refuse_unknown
from retrodp.plan.settings import PrivacyPlan, StreamPlan, read_privacy, read_stream
from retrodp.plan.toml import toml_text

_TABLES = ("stream", "columns", "privacy", "release")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The whole plan.

    Attributes:
        stream: What arrives and when rounds close.
        columns: In the order of the file.
        reserved: Name in the file of each of `id`, `op`, `at`, `time`, `n`.
        privacy: The budget.
        releases: In the order of the file; at least one.
        text: The TOML it was read from. Not part of equality.
    """

    stream: StreamPlan
    columns: tuple[Column, ...]
    reserved: Mapping[str, str]
    privacy: PrivacyPlan
    releases: tuple[Release, ...]
    text: str = field(compare=False, repr=False)

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read a TOML file.

        Raises:
            PlanError: The file cannot be read, or names the key that is wrong and what it
                should be.
        """
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise PlanError(f"The plan {path} cannot be read: {reason}.") from None
        return cls._of_text(text, Path(path).parent, label=f"The plan {path}")

    @classmethod
    def loads(cls, text: str) -> Plan:
        """Read TOML text, which cannot name other files; errors as `load`."""
        return cls._of_text(text, None, label="The plan")

    @classmethod
    def _of_text(cls, text: str, directory: Path | None, *, label: str) -> Plan:
        try:
            # Decimal keeps a number exactly as it was written.
            tables = tomllib.loads(text, parse_float=Decimal)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise PlanError(
                f"{label} is not valid TOML: {error}.",
                do="A name may be given to one release only; texts stand in quotes; days must exist.",
            ) from None
        tables, changed = inlined(tables, directory)
        # A plan is whole in itself, also where its matrix was a file beside it.
        return cls._of_tables(tables, toml_text(tables) if changed else text)

    @classmethod
    def from_dict(cls, tables: Mapping[str, Any]) -> Plan:
        """The plan that nested dicts describe, as TOML would give them.

        None stands for a key that is left out; numbers may also be `Fraction` or `Decimal`.
        `columns` and `release` may be lists of tables with a key `name`, as `to_dict` has them.
        """
        plain = {name: _plain(table) for name, table in tables.items()}
        for name in ("columns", "release"):
            if isinstance(plain.get(name), list):
                plain[name] = _by_name(plain[name], name)
        return replace(cls._of_tables(plain, ""), text=toml_text(plain))

    @classmethod
    def _of_tables(cls, tables: Mapping[str, Any], text: str) -> Plan:
        refuse_unknown(tables, _TABLES, "")
        for name in ("stream", "privacy"):
            if tables.get(name) is None:
                raise PlanError(f"The table [{name}] is missing.", expected=f"[{name}]")
        stream = read_stream(tables["stream"])
        columns, reserved = read_columns(tables.get("columns"), stream)
        releases = read_releases(
            tables.get("release"), stream, {column.name: column for column in columns}
        )
        plan = cls(
            stream=stream,
            columns=columns,
            reserved=reserved,
            privacy=read_privacy(tables["privacy"]),
            releases=releases,
            text=text,
        )
        _check_delta(plan)
        return plan

    def of_epoch(self, number: int) -> Plan:
        """The plan as it runs in one epoch: with that epoch's rounds, and the whole budget.

        A plan with a known horizon is its own only epoch.
        """
        epochs = self.stream.epochs
        if epochs is None:
            return self
        return replace(
            self, stream=replace(self.stream, horizon=epochs.rounds(number), epochs=None)
        )

    @property
    def names(self) -> list[str]:
        """Columns in plan order, as the payloads of records hold them."""
        return [column.name for column in self.columns]

    def share_of(self, release: Release) -> Fraction:
        """A release's part of the budget."""
        return release.share / sum((own.share for own in self.releases), Fraction(0))

    def column(self, name: str) -> Column:
        """The column of that name; `KeyError` if the plan has none."""
        return {column.name: column for column in self.columns}[name]

    def release(self, name: str) -> Release:
        """The release of that name; `KeyError` if the plan has none."""
        return {release.name: release for release in self.releases}[name]

    def is_public(self, by: tuple[str, ...]) -> bool:
        """Whether the plan alone decides which bins these columns have."""
        own = _check.texts(by=by, expected="names of columns")
        return all(self.column(name).public_values is not None for name in own)

    def public_bins(self, by: tuple[str, ...]) -> list[tuple[str | bool | None, ...]]:
        """All bins of public columns: the product of their values in plan order, null last."""
        own = _check.texts(by=by, expected="names of columns")
        return list(product(*(self.column(name).public_values or () for name in own)))

    def to_dict(self) -> dict[str, Any]:
        """Canonical JSON-able tables, defaults filled in; `from_dict` of them is the same plan.

        Numbers that may be fractions are exact texts. `columns` and `release` are lists, because
        their order is part of the plan and sorting the keys of a JSON document must not lose it.
        """
        reserved = [{"name": name, "from": self.reserved[name]} for name in RESERVED]
        return {
            "stream": _stream_table(self.stream),
            "columns": reserved + [_column_table(column) for column in self.columns],
            "privacy": {
                "model": self.privacy.model,
                "epsilon": str(self.privacy.epsilon),
                "delta": None if self.privacy.delta is None else str(self.privacy.delta),
                "forward_secrecy": self.privacy.forward_secrecy,
            },
            "release": [_release_table(release, self.stream) for release in self.releases],
        }


def _check_delta(plan: Plan) -> None:
    for release in plan.releases:
        if plan.privacy.delta is None and not plan.is_public(release.by):
            raise PlanError(
                f"privacy.delta is missing: release.{release.name} has an open domain, whose"
                " threshold needs it under pure epsilon too.",
                expected="a number between 0 and 1, both excluded, such as 1e-9",
                do="Give a delta, or group by category or boolean columns only.",
            )


def _by_name(tables: list[Any], path: str) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for table in tables:
        if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
            raise PlanError(f"{path} is a list.", expected="tables with a key name in it")
        if table["name"] in named:
            raise PlanError(f"{path}.{table['name']} is there twice.", expected="one of each name")
        named[table["name"]] = {key: value for key, value in table.items() if key != "name"}
    return named


def _plain(table: Any) -> Any:
    """Tuples as lists and mappings as dicts, for one way of reading."""
    if isinstance(table, Mapping):
        return {key: _plain(value) for key, value in table.items() if value is not None}
    return [_plain(value) for value in table] if isinstance(table, list | tuple) else table


def _stream_table(stream: StreamPlan) -> dict[str, Any]:
    per_bin = stream.max_per_bin
    epochs = {} if stream.epochs is None else {"epochs": stream.epochs.to_dict()}
    return epochs | {
        "start": stream.start,
        "round": stream.round,
        "timezone": stream.timezone,
        "horizon": stream.horizon if stream.epochs is None else OPEN,
        "unit": stream.unit,
        "ids": stream.ids,
        "person": stream.person,
        "max_records": stream.max_records,
        "max_per_bin": per_bin and {"by": list(per_bin.by), "max": per_bin.max},
        "max_rounds": stream.max_rounds,
        "same_time": stream.same_time if stream.ids and stream.date_only_at else None,
        "out_of_bounds": stream.out_of_bounds,
        "remember_deleted": _in_rounds(stream.remember_deleted, stream),
        "forgetting": stream.forgetting,
    }


def _column_table(column: Column) -> dict[str, Any]:
    table: dict[str, Any] = {
        "name": column.name,
        "type": column.type,
        "nullable": column.nullable,
        "from": column.from_,
    }
    if column.step is not None:
        table |= {"min": str(column.min), "max": str(column.max), "step": str(column.step)}
    if column.type == "category":
        table |= {"values": list(column.values), "other": column.other}
    return table


def _in_rounds(number: int | None, stream: StreamPlan) -> str | None:
    """So many rounds as a duration."""
    if number is None:
        return None
    return str(Duration.parse(stream.round, key="stream.round").times(number))


def _release_table(release: Release, stream: StreamPlan) -> dict[str, Any]:
    own = _own_keys(release.statistic, stream)
    return {
        "name": release.name,
        "kind": release.kind,
        "share": str(release.share),
        "where": release.where and release.where.text,
        "window": _in_rounds(release.window, stream),
        "factor": release.factor,
        "level": str(release.level),
    } | {key: _own_value(value) for key, value in own.items()}


def _own_keys(statistic: Statistic, stream: StreamPlan) -> dict[str, Any]:
    if isinstance(statistic, Revised):
        return statistic.keys(stream.round)
    if isinstance(statistic, Masked):
        return statistic.keys()
    return {key.name: getattr(statistic, key.name) for key in fields(statistic)}


def _own_value(value: Any) -> Any:
    """A key that only one kind has, as JSON holds it; None if it is left out."""
    if isinstance(value, Fraction):
        return str(value)
    return _plain(value) if value != () else None
