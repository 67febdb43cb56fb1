"""Every release that the engine can make, as plans: derived from the registry of kinds.

Promise: a kind, a key of a kind or a factor that is added to the package is audited from then on,
or the audit stops and says what it cannot fill in; nothing is left out in silence. Kinds that
want an optional dependency which is not installed are left out, and said to be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, get_args

import msgspec

from retrodp.audit.compiled import COMPILED
from retrodp.audit.revised import REVISED
from retrodp.engine.compile import factor_of, statistic_of
from retrodp.engine.resolve import resolve
from retrodp.errors import ExtraMissingError, NotInThisVersionError, UsageError
from retrodp.plan.kinds import KINDS
from retrodp.plan.plan import Plan
from retrodp.plan.releases import FactorChoice
from retrodp.plan.revised_kind import REVISABLE

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
    "weight": {"type": "number", "min": 0, "max": 10, "step": "1"},
}

# What the audit fills into the keys that a kind has of its own; None leaves the key out, and so it
# does with every optional key that is not listed. "kind.key" goes before "key".
FILLINGS: Mapping[str, tuple[Any, ...]] = {
    "of": ("amount",),
    "by": (None, "country", "product", ["product", "country"]),
    "query.linear": ({"net": "2 * amount - 3", "gifts": "[gift]"},),
    "cube.by": (["country", "gift"], ["product", "country"]),
    "gram.of": (["amount", "weight"],),
    "gram.norm": (25,),
    "kmeans.of": (["amount", "weight"],),
    "kmedian.of": (["amount", "weight"],),
    "kmeans.k": (2,),
    "kmedian.k": (2,),
    "kmeans.levels": ([1, 3],),
    "kmedian.levels": ([1, 2],),
    "kmedian.variant": ("lths",),
    "kmeans.coreset": (True,),
    "kmedian.coreset": (True,),
    "online_kmeans.of": (["amount", "weight"],),
    "online_kmedian.of": (["amount", "weight"],),
    "online_kmeans.k": (2,),
    "online_kmedian.k": (2,),
    "online_kmedian.algorithm": ("robust",),
    "distinct.of": ("product",),
    "distinct.method": ("fresh", "ladder", "minhash", "signed", "flippancy", "recompute"),
    "distinct.expect": ([1, 20],),
    "second_moment.of": ("product",),
    "second_moment.method": ("median", "mean", "dense"),
    "second_moment.rows": (3,),
    "second_moment.buckets": (128,),
    "heavy_hitters.of": ("product",),
    "heavy_hitters.top": (2,),
    "heavy_hitters.rows": (3,),
    "heavy_hitters.buckets": (64,),
    "heavy_hitters.length": (4,),
    "quantiles.by": (None, "country"),
    "at": ([0.25, 0.5],),
    "cdf.by": (None,),
    "range.by": (None,),
    "edges": ([0, 5, 10, 20],),
}
ENDLESS = ("online_kmeans", "online_kmedian")
"""Kinds that keep what arrived to the horizon, and so have no window."""

LASTING = "dense"
"""A factor that only a plan without forward secrecy, and with few bins, may name."""

FEW_BINS = 1_000
_COMPILED_KINDS = frozenset(table["kind"] for table in COMPILED.values())

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

    Kinds of `left_out` are not among them.

    Raises:
        UsageError: A kind has a required key that `FILLINGS` does not know, or no filling of it
            makes a plan.
    """
    found = []
    for kind, entry in KINDS.items():
        if entry is None or kind in _COMPILED_KINDS:
            continue
        try:
            own = [
                table
                for table in _own_keys(kind, entry.keys)
                if _buildable({"kind": kind, **table})
            ]
        except ExtraMissingError:
            continue  # see `left_out`
        for keys in own:
            named_kind = " ".join([kind, *_listed(keys.get("method"))])
            words = " by ".join([named_kind, *_listed(keys.get("by"))])
            table = {"kind": kind, **keys}
            free = _chooses_factor(table)
            for factor in get_args(FactorChoice) if free else ("auto",):
                few = {"max_bins": FEW_BINS} if "max_bins" in entry.names else {}
                named = {**table, "factor": factor, **(few if factor == LASTING else {})}
                found.append(Filling(title=f"{words}, {factor}", table=named))
            if kind not in ENDLESS:
                found.append(Filling(title=f"{words}, window", table={**table, "window": WINDOW}))
            found.append(Filling(title=f"{words}, where", table={**table, "where": WHERE}))
            if kind in REVISABLE:
                found += [
                    Filling(title=f"{words}, {how}", table={**table, **added})
                    for how, added in REVISED.items()
                ]
            if free:
                table = {**table, "window": WINDOW, "factor": "binary"}
                found.append(Filling(title=f"{words}, window, binary", table=table))
    return found


def left_out() -> dict[str, str]:
    """Kinds that nobody can make here for want of an optional dependency, and what to install."""
    found = {}
    for kind, entry in KINDS.items():
        if entry is None or kind in _COMPILED_KINDS:
            continue
        try:
            _buildable({"kind": kind, **next(_own_keys(kind, entry.keys))})
        except ExtraMissingError as error:
            found[kind] = error.do
    return found


def compiled_fillings() -> list[Filling]:
    """Releases of the compilers, of whose kinds `fillings` has none."""
    return [Filling(title=title, table=table) for title, table in COMPILED.items()]


def fits(filling: Filling, model: Model) -> bool:
    """Whether the release exists under the model: dense noise is Gaussian."""
    return model == "zcdp" or filling.table.get("factor") != LASTING


def _chooses_factor(table: Mapping[str, Any]) -> bool:
    """Whether the plan may name a factor, or the release's method dictates it."""
    plan = plan_of({"r": table}, model="zcdp", horizon=3)
    return factor_of(plan, plan.releases[0]) is None


def _buildable(table: Mapping[str, Any]) -> bool:
    """Whether this version makes the release at all; sums by open columns it does not."""
    try:
        plan = plan_of({"r": table}, model="pure", horizon=3, epsilon=100)
        statistic_of(plan, plan.releases[0])
        resolve(plan)
    except NotInThisVersionError:
        return False
    except KeyError:  # of the grammar, but the engine does not make it yet
        return False
    return True


def _listed(by: str | list[str] | None) -> list[str]:
    return [] if by is None else [by if isinstance(by, str) else " and ".join(by)]


def _own_keys(kind: str, keys: type[msgspec.Struct]) -> Iterator[dict[str, Any]]:
    choices: dict[str, tuple[Any, ...]] = {}
    for field in msgspec.structs.fields(keys):
        name = field.encode_name
        known = FILLINGS.get(f"{kind}.{name}", FILLINGS.get(name))
        if known is None and field.required:
            raise UsageError(
                f"The audit does not know how to fill in {name} of kind {kind!r}.",
                do="Add the key to FILLINGS in retrodp.audit.subjects.",
            )
        choices[name] = tuple(
            value for value in known or (None,) if value is not None or not field.required
        )
    for values in product(*choices.values()):
        own = dict(zip(choices, values, strict=True))
        yield {name: value for name, value in own.items() if value is not None}


def plan_of(
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
            "forgetting": "partial",  # so that releases that remember are admitted too
            **_STREAMS[stream],
        },
        "columns": _COLUMNS,
        "privacy": {
            "model": model,
            "epsilon": str(epsilon),
            "delta": str(delta),
            "forward_secrecy": all(one.get("factor") != LASTING for one in tables.values()),
        },
        "release": tables,
    }
    return Plan.from_dict(plan)
