"""The kinds that make another private algorithm retroactive: `sample` and `masked`.

Their keys, checked against the plan's columns, and the frozen descriptions that come of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias, get_args

import msgspec

from retrodp.errors import PlanError
from retrodp.plan.place import Place
from retrodp.plan.schema import (
    Flag,
    NameOrNames,
    Number,
    Text,
    Whole,
    as_table,
    number,
    shown,
)
from retrodp.plan.settings import names

Base: TypeAlias = Literal["quantile", "median", "interior_point", "mean", "kmeans"]
Sampling: TypeAlias = Literal["poisson", "fixed", "persistent"]

MOST_SAMPLED = 1_000_000
"""Records of one sample, which a release reads in every round."""

MOST_CENTRES = 100
ONE_COLUMN = frozenset({"quantile", "median", "interior_point", "mean"})
MASKABLE = ("distinct",)
REMEMBERING = ("flippancy", "recompute")
MOST_ALPHA = 20
ReadBase: TypeAlias = Callable[[str, Mapping[str, Any], Place], Any]
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A one-shot private mechanism on a sample of the live records of each round.

    Attributes:
        of: Columns whose values the mechanism is given.
        mechanism: One of the package's, or None with `function`.
        function: "module:name" of a function of the user's own, or None with `mechanism`.
        at: Share of a quantile.
        k: Centres of `kmeans`.
        sampling: How records are drawn.
        rate: Poisson: probability of each record. Otherwise the largest part of the live records
            that a sample may be in a released round, None if the gate decides.
        size: Records in a sample; not for Poisson.
        gate: Whether rounds with few live records release nothing; None for Poisson.
    """

    of: tuple[str, ...]
    mechanism: Base | None
    function: str | None
    at: Fraction | None
    k: int | None
    sampling: Sampling
    rate: Fraction | None
    size: int | None
    gate: bool | None

    @property
    def by(self) -> tuple[str, ...]:
        """It has no bins."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Masked:
    """A release that remembers, hidden under fresh noise.

    Attributes:
        base: What is measured and how, by its own kind.
        base_kind: The grammar's word for it.
        alpha: Closeness of one answer to what it would be without what was deleted, in nats.
        beta: Additive part of that closeness.
        block: Rounds of the blocks that `check` tells of.
        drift: Declared: how far the base's answer may be off besides its noise, in its units.
    """

    base: Any
    base_kind: str
    alpha: Fraction
    beta: Fraction
    block: int
    drift: Fraction

    @property
    def of(self) -> Any:
        """The base's column or columns."""
        return getattr(self.base, "of", None)

    @property
    def by(self) -> tuple[str, ...]:
        """A masked release is one number."""
        return ()

    def keys(self) -> dict[str, Any]:
        """The keys as a plan writes them."""
        own = {key.name: getattr(self.base, key.name) for key in fields(self.base)}
        base = {name: list(one) if isinstance(one, tuple) else one for name, one in own.items()}
        known = {name: value for name, value in base.items() if value not in (None, [])}
        return {
            "base": {"kind": self.base_kind, **known},
            "alpha": self.alpha,
            "beta": self.beta,
            "block": self.block,
            "drift": self.drift,
        }


class SampleKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Keys of `sample`."""

    of: NameOrNames
    mechanism: (
        Annotated[Text, msgspec.Meta(description=f"one of {', '.join(get_args(Base))}")] | None
    ) = None
    function: Text | None = None
    at: Number = None
    k: Whole | None = None
    sampling: Sampling = "poisson"
    rate: Number = None
    size: Whole | None = None
    gate: Flag | None = None


class MaskedKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Keys of `masked`."""

    base: Annotated[
        Any,
        msgspec.Meta(
            description='a table, such as { kind = "distinct", of = "product", method = "flippancy" }'
        ),
    ]
    alpha: Number
    drift: Number
    beta: Number = "1e-6"
    block: Whole = 7


def read_masked(keys: MaskedKeys, place: Place, read_base: ReadBase) -> Masked:
    """The description of a `masked`.

    Args:
        keys: Its keys.
        place: Where it stands.
        read_base: Makes the description of the base from its kind, its own keys and its place.
    """
    path = f"{place.path}.base"
    table = dict(as_table(keys.base, path))
    kind = table.pop("kind", None)
    if kind not in MASKABLE:
        raise PlanError(
            f"{path}.kind is {shown(kind)}.",
            expected=f"a release that remembers: {', '.join(MASKABLE)}",
        )
    base = read_base(kind, table, Place(path, place.columns))
    method = getattr(base, "method", None)
    if method not in REMEMBERING:
        raise PlanError(
            f"{path}.method is {shown(method)}, which is retroactive as it is: a mask would only add "
            "noise.",
            expected=f"one of {', '.join(REMEMBERING)}",
            do="Plan the base as a release of its own.",
        )
    alpha, beta = number(keys.alpha, f"{place.path}.alpha"), number(keys.beta, f"{place.path}.beta")
    if not 0 < alpha <= MOST_ALPHA:
        raise PlanError(
            f"{place.path}.alpha is {shown(keys.alpha)}.",
            expected=f"above 0 and at most {MOST_ALPHA}, such as 0.5",
        )
    if not 0 < beta < 1:
        raise PlanError(
            f"{place.path}.beta is {shown(keys.beta)}.", expected="between 0 and 1, such as 1e-6"
        )
    drift = number(keys.drift, f"{place.path}.drift")
    if not drift >= 0:
        raise PlanError(
            f"{place.path}.drift is {shown(keys.drift)}.",
            expected="how far the base's answer may be off besides its noise, at least 0",
        )
    return Masked(base=base, base_kind=kind, alpha=alpha, beta=beta, block=keys.block, drift=drift)


def read_sample(keys: SampleKeys, place: Place) -> Sample:
    """The description of a `sample`."""
    of = tuple(place.column(name, "of") for name in names(keys.of, f"{place.path}.of"))
    if (keys.mechanism is None) == (keys.function is None):
        raise PlanError(
            f"{place.path} has {'both' if keys.function else 'neither'} of mechanism and function.",
            expected='mechanism = "median", or function = "module:name"',
        )
    mechanism = _mechanism(keys, of, place)
    rate, size, gate = _drawn(keys, place)
    return Sample(
        of=of,
        mechanism=mechanism,
        function=_function(keys, place),
        at=_share(keys, place),
        k=_centres(keys, place),
        sampling=keys.sampling,
        rate=rate,
        size=size,
        gate=gate,
    )


def _mechanism(keys: SampleKeys, of: tuple[str, ...], place: Place) -> Base | None:
    if keys.mechanism is None:
        return None
    known = get_args(Base)
    if keys.mechanism not in known:
        raise PlanError(
            f"{place.path}.mechanism is {keys.mechanism!r}.",
            expected=f"one of {', '.join(known)}",
            do='A function of your own is named by function = "module:name".',
        )
    if keys.mechanism in ONE_COLUMN and len(of) > 1:
        raise PlanError(
            f'{place.path}.of has {len(of)} columns, but mechanism = "{keys.mechanism}" takes one.',
            expected="one integer or number column",
        )
    for name in of:
        place.column(name, "of", "number", "integer")
        low, high = place.columns[name].grid[1]
        if low == high:
            raise PlanError(
                f"{place.path}.of names {name!r}, which has a single value.",
                do="Widen the column's min and max.",
            )
    return keys.mechanism  # type: ignore[return-value]  # one of the literals, as checked


def _function(keys: SampleKeys, place: Place) -> str | None:
    if keys.function is not None and _FUNCTION.fullmatch(keys.function) is None:
        raise PlanError(
            f"{place.path}.function is {keys.function!r}.",
            expected='"module:name", such as "middle:private_middle"',
        )
    return keys.function


def _share(keys: SampleKeys, place: Place) -> Fraction | None:
    path = f"{place.path}.at"
    if keys.mechanism != "quantile":
        if keys.at is not None:
            raise PlanError(f'{path} is for mechanism = "quantile" alone.', do="Leave it out.")
        return None
    if keys.at is None:
        raise PlanError(f"{path} is missing.", expected="a share between 0 and 1, such as 0.9")
    share = number(keys.at, path)
    if not 0 < share < 1 or share.denominator > 10**6:
        raise PlanError(
            f"{path} is {shown(keys.at)}.",
            expected="a number between 0 and 1, both excluded, of at most six digits",
        )
    return share


def _centres(keys: SampleKeys, place: Place) -> int | None:
    if keys.mechanism != "kmeans":
        if keys.k is not None:
            raise PlanError(
                f'{place.path}.k is for mechanism = "kmeans" alone.', do="Leave it out."
            )
        return None
    if keys.k is None or keys.k > MOST_CENTRES:
        raise PlanError(
            f"{place.path}.k is {shown(keys.k)}.", expected=f"centres, at most {MOST_CENTRES}"
        )
    return keys.k


def _drawn(keys: SampleKeys, place: Place) -> tuple[Fraction | None, int | None, bool | None]:
    rate = None if keys.rate is None else _rate(keys.rate, f"{place.path}.rate")
    if keys.sampling == "poisson":
        for name, value in (("size", keys.size), ("gate", keys.gate)):
            if value is not None:
                raise PlanError(
                    f'{place.path}.{name} is not for sampling = "poisson".',
                    do="Leave it out: it draws by rate, and needs no promise on how many live.",
                )
        if rate is None:
            raise PlanError(
                f"{place.path}.rate is missing.",
                expected="the probability with which each live record is drawn, such as 0.05",
            )
        return rate, None, None
    if keys.size is None or keys.size > MOST_SAMPLED:
        raise PlanError(
            f"{place.path}.size is {shown(keys.size)}.",
            expected=f"the records of a sample, at most {MOST_SAMPLED}",
        )
    gate = True if keys.gate is None else keys.gate
    if rate is not None and not gate:
        raise PlanError(
            f"{place.path}.rate without a gate: nothing then sees to it that enough records live.",
            do="Leave rate out, or set gate = true.",
        )
    return rate, keys.size, gate


def _rate(raw: Any, path: str) -> Fraction:
    rate = number(raw, path)
    if not 0 < rate <= 1:
        raise PlanError(f"{path} is {shown(raw)}.", expected="above 0 and at most 1")
    return rate
