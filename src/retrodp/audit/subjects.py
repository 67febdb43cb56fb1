"""Every release that the engine can make, as plans: derived from the registry of kinds.

Promise: a kind, a key of a kind or a factor that is added to the package is audited from then on,
or the audit stops and says what it cannot fill in; nothing is left out in silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, get_args

import msgspec

from retrodp.engine.resolve import resolve
from retrodp.errors import NotInThisVersionError, UsageError
from retrodp.plan.kinds import KINDS
from retrodp.plan.plan import Plan
from retrodp.plan.releases import FactorChoice

Stream = Literal["ids", "points", "persons"]
Model = Literal["zcdp", "pure"]
STREAMS: tuple[Stream, ...] = ("ids", "points", "persons")
MODELS: tuple[Model, ...] = ("zcdp", "pure")

MAX_RECORDS, MAX_PER_BIN = 3, 2

_STREAMS: Mapping[Stream, Mapping[str, Any]] = {
    "ids": {"person": "who"},
    "points": {"ids": False, "person": "who"},
    "persons": {
        "unit": "person_round",
        "person": "who",
        "max_records": MAX_RECORDS,
        "max_per_bin": {"by": ["product"], "max": MAX_PER_BIN},
    },
}
_COLUMNS: Mapping[str, Any] = {
    "who": "text",
    "product": "text",
    "country": {"type": "category", "values": ["DE", "FR"], "nullable": False},
    "amount": {"type": "number", "min": -5, "max": 20, "step": "0.5"},
    "gift": {"type": "boolean", "nullable": False},
}

# What the audit fills into the keys that a kind has of its own; None leaves the key out.
FILLINGS: Mapping[str, tuple[Any, ...]] = {
    "of": ("amount",),
    "by": (None, "country", "product", ["product", "country"]),
    "max_bins": (None,),
}
WINDOW = "3d"
WHERE = "country == 'DE' and gift"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """One way to write a release.

    Attributes:
        title: For people: kind, keys, factor, and what else is special.
        table: Of the plan.
    """

    title: str
    table: Mapping[str, Any]


def fillings() -> list[Filling]:
    """Every kind of this version with every filling of its keys, factor, window and condition.

    Raises:
        UsageError: A kind has a key of its own that `FILLINGS` does not know.
    """
    found = []
    for kind, entry in KINDS.items():
        if entry is None:
            continue
        for own in _own_keys(kind, entry.keys):
            words = " by ".join([kind, *_listed(own.get("by"))])
            table = {"kind": kind, **own}
            found += [
                Filling(title=f"{words}, {factor}", table={**table, "factor": factor})
                for factor in get_args(FactorChoice)
            ]
            found += [
                Filling(title=f"{words}, window", table={**table, "window": WINDOW}),
                Filling(
                    title=f"{words}, window, binary",
                    table={**table, "window": WINDOW, "factor": "binary"},
                ),
                Filling(title=f"{words}, where", table={**table, "where": WHERE}),
            ]
    return found


def _listed(by: str | list[str] | None) -> list[str]:
    return [] if by is None else [by if isinstance(by, str) else " and ".join(by)]


def _own_keys(kind: str, keys: type[msgspec.Struct]) -> Iterator[dict[str, Any]]:
    fields = msgspec.structs.fields(keys)
    missing = [field.encode_name for field in fields if field.encode_name not in FILLINGS]
    if missing:
        raise UsageError(
            f"The audit does not know how to fill in {', '.join(missing)} of kind {kind!r}.",
            do="Add the key to FILLINGS in retrodp.audit.subjects.",
        )
    names = [field.encode_name for field in fields]
    for values in product(*(FILLINGS[name] for name in names)):
        own = dict(zip(names, values, strict=True))
        if all(own[field.encode_name] is not None for field in fields if field.required):
            yield {name: value for name, value in own.items() if value is not None}


def plan_of(  # noqa: PLR0913  what distinguishes the audited plans
    tables: Mapping[str, Mapping[str, Any]],
    *,
    model: Model,
    horizon: int,
    stream: Stream = "ids",
    epsilon: float | str = 1,
    delta: float | str = "1e-6",
) -> Plan:
    """A plan in days with these releases.

    Raises:
        NotInThisVersionError: A release that no plan can have yet.
    """
    plan = {
        "stream": {
            "start": "2024-01-01",
            "round": "1d",
            "horizon": horizon,
            **_STREAMS[stream],
        },
        "columns": _COLUMNS,
        "privacy": {"model": model, "epsilon": str(epsilon), "delta": str(delta)},
        "release": tables,
    }
    return Plan.from_dict(plan)


def resolvable(filling: Filling) -> bool:
    """Whether this version can make the release at all; sums by open columns it cannot."""
    try:
        resolve(plan_of({"r": filling.table}, model="pure", horizon=3, epsilon=100))
    except NotInThisVersionError:
        return False
    return True
