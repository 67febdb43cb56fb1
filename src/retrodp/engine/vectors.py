"""From a resolved plan to the kinds that publish many numbers of a record's vector.

Rows of `query`, `cube` and `gram` for `retrodp.engine.compile`: statistic, what is settled when the
plan is resolved, mechanism.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retrodp.errors import PlanError
from retrodp.mechanisms.band import Band
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.cube import MarginalTables, cells_band
from retrodp.mechanisms.gram import Halves, NoisyMoments, narrow_halves
from retrodp.mechanisms.query import Block, WeightedSums
from retrodp.plan import kinds, matrix
from retrodp.plan.arithmetic import Arithmetic
from retrodp.plan.plan import Plan
from retrodp.plan.releases import Release
from retrodp.statistics.label import bare_or_array
from retrodp.statistics.marginals import Cube, Marginal
from retrodp.statistics.moments import Moments
from retrodp.statistics.queries import ArithmeticQuery, ClippedQuery, MatrixQuery, coordinate

Noises = tuple[CalibratedNoise, ...]
Query = MatrixQuery | ArithmeticQuery | ClippedQuery


def query(plan: Plan, release: Release) -> Query:
    """Weighted sums, by matrix or by expressions."""
    keys = release.statistic
    assert isinstance(keys, kinds.Query)
    if keys.matrix:
        by = tuple(plan.column(name) for name in matrix.named_columns(keys.matrix))
        weights = matrix.weights_of(keys.matrix, by)
        if not any(weight for row in weights.values() for weight in row.values()):
            raise PlanError(
                f"release.{release.name}.matrix has no weight but 0.",
                expected="a weight that is not 0",
            )
        return MatrixQuery(by=by, weights=weights, where=release.where)
    expressions = tuple(
        (name, Arithmetic.parse(text, plan.columns, key=f"release.{release.name}.linear.{name}"))
        for name, text in keys.linear
    )
    if keys.norm is None:
        return ArithmeticQuery(expressions=expressions, where=release.where)
    clipped = ClippedQuery(
        expressions=expressions,
        norm=keys.norm,
        kind="l2" if plan.privacy.model == "zcdp" else "l1",
        where=release.where,
    )
    if keys.norm < clipped.step:
        raise PlanError(
            f"release.{release.name}.norm is below a step of {float(clipped.step):g}: every record "
            "would be clipped to 0.",
            expected="a larger norm",
        )
    return clipped


def weighted_sums(
    plan: Plan, release: Release, noises: Noises, _: Mapping[str, Any]
) -> WeightedSums:
    """The mechanism of a `query`."""
    found = query(plan, release)
    if isinstance(found, ArithmeticQuery):
        several = len(found.expressions) > 1
        blocks = tuple(
            Block(noise=noise, keys=(name,), coordinates=(coordinate(name, several=several),))
            for (name, _), noise in zip(found.expressions, noises, strict=True)
        )
    else:
        (noise,) = noises
        names = (
            tuple(name for name, _ in found.expressions)
            if isinstance(found, ClippedQuery)
            else tuple(sorted({name for row in found.weights.values() for name in row}))
        )
        keys = tuple(map(bare_or_array, names))
        blocks = (
            Block(noise=noise, keys=keys, coordinates=tuple(name.encode() for name in names)),
        )
    return WeightedSums(name=release.name, blocks=blocks, level=release.level)


def settled_query(plan: Plan, release: Release, noises: Noises) -> Mapping[str, Any]:
    """What is known of a matrix, and the errors of each part."""
    keys = release.statistic
    assert isinstance(keys, kinds.Query)
    named = {"matrix_sha256": matrix.digest(keys.matrix)} if keys.matrix else {}
    return {**named, "parts": weighted_sums(plan, release, noises, {}).describe()["parts"]}


def cube(plan: Plan, release: Release) -> Cube:
    """Counts by several marginals."""
    keys = release.statistic
    assert isinstance(keys, kinds.Cube)
    return Cube(
        by=tuple(map(plan.column, keys.by)),
        marginals=tuple(
            Marginal(columns=tuple(map(plan.column, names))) for names in keys.marginals
        ),
        where=release.where,
    )


def settled_cube(plan: Plan, release: Release, noises: Noises) -> Mapping[str, Any]:
    """The band of consistent cells, and the errors of each table."""
    found = cube(plan, release)
    band = cells_band(noises[0], found) if found.public else None
    entry = {"band": None if band is None else band.spec(), "threshold": 1}
    return {
        "band": entry["band"],
        "parts": marginal_tables(plan, release, noises, entry).describe()["parts"],
    }


def marginal_tables(
    plan: Plan, release: Release, noises: Noises, entry: Mapping[str, Any]
) -> MarginalTables:
    """The mechanism of a `cube`."""
    keys, found = release.statistic, cube(plan, release)
    assert isinstance(keys, kinds.Cube)
    rest = list(noises)
    public = rest.pop(0) if found.public else None
    open_ = rest.pop(0) if found.unlisted else None
    band = entry["band"]
    return MarginalTables(
        name=release.name,
        statistic=found,
        public=public,
        open=open_,
        band=None if band is None else Band.from_spec(band),
        threshold=None if open_ is None else entry["threshold"],
        max_bins=keys.max_bins,
        level=release.level,
    )


def gram(plan: Plan, release: Release) -> Moments:
    """Moments of clipped vectors."""
    keys = release.statistic
    assert isinstance(keys, kinds.Gram)
    return Moments(of=tuple(map(plan.column, keys.of)), norm=keys.norm, where=release.where)


def settled_gram(plan: Plan, release: Release, noises: Noises) -> Mapping[str, Any]:
    """The half widths that means and covariances are made of, and the errors of each part."""
    halves = narrow_halves(noises, release.level)
    entry = dict(zip(("halves", "halves_all"), ([*map(list, one)] for one in halves), strict=True))
    parts = moments(plan, release, noises, entry).describe()["parts"]
    return {**entry, "parts": parts, "grain": gram(plan, release).grain}


def moments(plan: Plan, release: Release, noises: Noises, entry: Mapping[str, Any]) -> NoisyMoments:
    """The mechanism of a `gram`."""
    count, sums, products = noises
    return NoisyMoments(
        name=release.name,
        statistic=gram(plan, release),
        count=count,
        sums=sums,
        products=products,
        halves=Halves(*map(tuple, entry["halves"])),
        halves_all=Halves(*map(tuple, entry["halves_all"])),
        level=release.level,
    )
