"""The kinds that publish many numbers of one record's vector: `query`, `cube` and `gram`.

Their keys, checked against the plan's columns, and the frozen descriptions that come of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import msgspec

from retrodp.errors import PlanError
from retrodp.plan import matrix
from retrodp.plan.arithmetic import LARGEST_STEPS, Arithmetic
from retrodp.plan.decimals import common_step
from retrodp.plan.place import Place
from retrodp.plan.schema import NameOrNames, Number, Whole, did_you_mean, number, shown
from retrodp.plan.settings import names

PLANNED_BINS = 100_000_000
"""Labels that open bins are planned for unless the plan says otherwise."""

MOST_CELLS = 100_000
"""Public cells of all marginals of a cube together; all of them are published every round."""

MOST_EXPRESSIONS = 64
MOST_NUMBERS = 50
_COORDINATE = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Weighted sums of surviving records: F times their histogram, F public (KKMNS theorem 3.2).

    Attributes:
        matrix: Rows of F by values of columns, canonical; see `retrodp.plan.matrix`. Empty with
            `linear`.
        linear: Name and expression of each coordinate, sorted by name. Empty with `matrix`.
        norm: Public bound to which a record's vector is clipped; None: only its columns' bounds.
    """

    matrix: matrix.Rows = ()
    linear: tuple[tuple[str, str], ...] = ()
    norm: Fraction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cube:
    """Numbers of surviving records in the cells of several marginal tables.

    Attributes:
        by: Columns, at least one.
        marginals: Columns of each table, in the order of `by`; () is the total.
        max_bins: As for `Histogram`; for all open marginals together.
    """

    by: tuple[str, ...]
    marginals: tuple[tuple[str, ...], ...]
    max_bins: int = PLANNED_BINS


@dataclass(frozen=True, slots=True, kw_only=True)
class Gram:
    """Count, sums, squares and products of bounded vectors.

    Attributes:
        of: Columns that make the vector.
        norm: Public bound on its Euclidean norm, in the columns' own unit; longer ones are clipped.
    """

    of: tuple[str, ...]
    norm: Fraction


class QueryKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Keys of a `query`."""

    matrix: Any = None
    linear: Any = None
    norm: Number = None


class CubeKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Keys of a `cube`."""

    by: NameOrNames
    marginals: Any = None
    max_bins: Whole = PLANNED_BINS


class GramKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Keys of a `gram`."""

    of: NameOrNames
    norm: Number


def read_query(keys: QueryKeys, place: Place) -> Query:
    """The description of a `query`."""
    if (keys.matrix is None) == (keys.linear is None):
        raise PlanError(
            f"{place.path} has {'neither' if keys.matrix is None else 'both'} of matrix and linear.",
            expected='matrix = "weights.csv", or linear = { name = "amount * [gift]" }',
        )
    norm = None if keys.norm is None else _norm(keys.norm, place)
    if keys.matrix is not None:
        if norm is not None:
            raise PlanError(
                f"{place.path}.norm is for linear; the norms of a matrix are known.",
                do="Leave norm out.",
            )
        rows = matrix.canonical(keys.matrix, place.columns, f"{place.path}.matrix")
        return Query(matrix=rows)
    return Query(linear=_expressions(keys.linear, place), norm=norm)


def _expressions(raw: object, place: Place) -> tuple[tuple[str, str], ...]:
    path = f"{place.path}.linear"
    # A resolved plan holds pairs: sorting the keys of a JSON document must not change the order.
    listed = [*raw.items()] if isinstance(raw, Mapping) else raw
    sane = isinstance(listed, list) and all(
        isinstance(one, tuple | list) and len(one) == 2 and all(isinstance(e, str) for e in one)
        for one in listed
    )
    if not sane or not listed:
        raise PlanError(f"{path} is {shown(raw)}.", expected='{ name = "expression" }')
    assert isinstance(listed, list)
    if len(dict(listed)) < len(listed):
        raise PlanError(f"{path} has a name twice.", expected="each once")
    if len(listed) > MOST_EXPRESSIONS:
        raise PlanError(f"{path} has {len(listed)} names.", expected=f"at most {MOST_EXPRESSIONS}")
    for name, text in listed:
        if _COORDINATE.fullmatch(name) is None:
            raise PlanError(
                f"{path} has the name {name!r}.",
                expected="at most 64 letters, digits and _, beginning with a letter",
            )
        Arithmetic.parse(text, [*place.columns.values()], key=f"{path}.{name}")
    return tuple(sorted((name, text) for name, text in listed))


def _norm(raw: object, place: Place) -> Fraction:
    norm = number(raw, f"{place.path}.norm")
    if not norm > 0:
        raise PlanError(f"{place.path}.norm is {shown(raw)}.", expected="above 0")
    return norm


def read_cube(keys: CubeKeys, place: Place) -> Cube:
    """The description of a `cube`."""
    by = place.bins(keys.by)
    listed = (
        [own for many in (1, 2) for own in combinations(by, many)]
        if keys.marginals is None
        else _marginals(keys.marginals, by, f"{place.path}.marginals")
    )
    cells = 0
    for own in listed:
        sizes = [place.columns[name].public_values for name in own]
        if all(values is not None for values in sizes):
            cells += math.prod(len(values or ()) for values in sizes)
    if cells > MOST_CELLS:
        raise PlanError(
            f"{place.path} has {cells} public cells, each published every round.",
            expected=f"at most {MOST_CELLS}",
            do="Name fewer marginals, or columns with fewer values.",
        )
    return Cube(by=by, marginals=tuple(listed), max_bins=keys.max_bins)


def _marginals(raw: object, by: tuple[str, ...], path: str) -> list[tuple[str, ...]]:
    """Each marginal in the order of `by`, the smallest first."""
    sane = isinstance(raw, list) and all(
        isinstance(own, list) and all(isinstance(name, str) for name in own) for own in raw
    )
    if not sane or not raw:
        raise PlanError(
            f"{path} is {shown(raw)}.", expected=f'a list of lists, such as [["{by[0]}"]]'
        )
    assert isinstance(raw, list)
    found: dict[tuple[str, ...], None] = {}
    for own in raw:
        unknown = [name for name in own if name not in by]
        if unknown:
            raise PlanError(
                f"{path} names {unknown[0]!r}, which by does not.",
                expected=f"columns of by: {', '.join(by)}",
                do=did_you_mean(unknown[0], by),
            )
        ordered = tuple(name for name in by if name in own)
        if len(ordered) < len(own) or ordered in found:
            raise PlanError(f"{path} has {list(own)} twice over.", expected="each once")
        found[ordered] = None
    unused = [name for name in by if not any(name in own for own in found)]
    if unused:
        raise PlanError(
            f"{path} has no marginal with {unused[0]!r}.",
            do=f"Leave {unused[0]!r} out of by, or name a marginal with it.",
        )
    return sorted(found, key=lambda own: (len(own), [by.index(name) for name in own]))


def read_gram(keys: GramKeys, place: Place) -> Gram:
    """The description of a `gram`."""
    listed = names(keys.of, f"{place.path}.of")
    of = tuple(place.column(name, "of", "number", "integer") for name in listed)
    if len(of) > MOST_NUMBERS:
        raise PlanError(
            f"{place.path}.of has {len(of)} columns.", expected=f"at most {MOST_NUMBERS}"
        )
    norm = _norm(keys.norm, place)
    step = common_step(place.columns[name].grid[0] for name in of)
    if (norm / step).denominator != 1:
        below = math.floor(norm / step) * step
        raise PlanError(
            f"{place.path}.norm is {shown(keys.norm)}, no multiple of the columns' step {step}.",
            expected=f"such as {float(below or step):g}",
        )
    if norm / step > LARGEST_STEPS:
        raise PlanError(
            f"{place.path}.norm is too many steps of {step}.",
            expected="at most 2^53 steps",
            do="Choose coarser steps or a smaller norm.",
        )
    return Gram(of=of, norm=norm)
