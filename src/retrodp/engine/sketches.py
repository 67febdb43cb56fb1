"""Statistics and mechanisms of the kinds that are read off a sketch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from retrodp.errors import PlanError
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.heavy_hitters import HeavyHitters, Reach
from retrodp.mechanisms.second_moment import SecondMoment, Spread, fits, stored_variances
from retrodp.mechanisms.spread import normal_reach, share_of_variance, squared_reach
from retrodp.plan import kinds
from retrodp.plan.plan import Plan
from retrodp.plan.releases import Release
from retrodp.plan.sketch_kinds import MOST_COUNTERS, MOST_DENSE_COUNTERS
from retrodp.statistics.codes import Codes
from retrodp.statistics.items import Items
from retrodp.statistics.label import BinLabels
from retrodp.statistics.sketch import SketchedItems, SketchedPrefixes

ROWS, BUCKETS = 5, 1024
"""Of a second moment, unless the plan says otherwise."""

Noises = tuple[CalibratedNoise, ...]


def decided_moment(plan: Plan, release: Release) -> Release:
    """The release with its sizes: the plan's, or those that its accuracy needs."""
    keys = _moment(release)
    rows = keys.rows or (1 if keys.method == "mean" else ROWS)
    buckets = keys.buckets or BUCKETS
    if keys.accuracy is not None:
        # m = 8 z^2 / eta^2 counters: z deviations sqrt(2 / m) F2 are half of eta F2, and the
        # other half is what the noise may take, an additive part of 8 z^2 kappa / eta.
        reach = float(normal_reach(float(1 - release.level)))
        buckets = math.ceil(8 * reach**2 / float(keys.accuracy) ** 2 / rows)
    most = MOST_DENSE_COUNTERS if keys.method == "dense" else MOST_COUNTERS
    if rows * buckets > most:
        raise PlanError(
            f"release.{release.name} would need {rows} rows of {buckets} buckets.",
            expected=f"at most {most} buckets in all",
            do="Ask for less accuracy.",
        )
    spread = _spread(plan, release, rows, middle=keys.method != "mean")
    if not fits(spread, buckets):
        raise PlanError(
            f"release.{release.name}: with {rows} x {buckets} buckets no interval holds for all "
            f"{plan.stream.horizon} rounds.",
            expected=f"at least {math.ceil(Fraction(20, 9) * max(spread[:2]))} buckets a row",
            do='Plan more buckets, or more rows with method = "median".',
        )
    return replace(release, statistic=replace(keys, rows=rows, buckets=buckets))


def moment_as_settled(release: Release, entry: Mapping[str, Any]) -> Release:
    """The release with the sizes that were stored."""
    keys = replace(_moment(release), rows=entry["rows"], buckets=entry["buckets"])
    return replace(release, statistic=keys)


def sketched_items(plan: Plan, release: Release) -> SketchedItems:
    """What a `second_moment` measures."""
    keys = _moment(release)
    if keys.rows is None or keys.buckets is None:
        keys = _moment(decided_moment(plan, release))
    assert keys.rows is not None
    assert keys.buckets is not None
    of = BinLabels(columns=tuple(map(plan.column, keys.of)))
    return SketchedItems(
        items=Items(of=of, where=release.where),
        rows=keys.rows,
        buckets=keys.buckets,
        dense=keys.method == "dense",
    )


def second_moment(
    _plan: Plan, release: Release, noises: Noises, entry: Mapping[str, Any]
) -> SecondMoment:
    """The mechanism of a `second_moment`."""
    (noise,) = noises
    method = _moment(release).method
    return SecondMoment(
        noise=noise,
        rows=entry["rows"],
        buckets=entry["buckets"],
        dense=method == "dense",
        middle=method != "mean",
        variances=tuple(entry["variances"]),
        spread=Spread(*map(Fraction, entry["spread"])),
    )


def settled_moment(plan: Plan, release: Release, noises: Noises) -> Mapping[str, Any]:
    """Sizes, variances and spread."""
    keys = _moment(release)
    assert keys.rows is not None
    spread = _spread(plan, release, keys.rows, middle=keys.method != "mean")
    return {
        "rows": keys.rows,
        "buckets": keys.buckets,
        "variances": stored_variances(noises[0]),
        "spread": [str(one) for one in spread],
    }


def _spread(plan: Plan, release: Release, rows: int, *, middle: bool) -> Spread:
    miss = float(1 - release.level)
    return Spread(
        squared_reach(rows, median=middle, miss=miss),
        squared_reach(rows, median=middle, miss=miss / plan.stream.horizon),
        share_of_variance(rows, median=middle),
    )


def _moment(release: Release) -> kinds.SecondMoment:
    assert isinstance(release.statistic, kinds.SecondMoment)
    return release.statistic


def sketched_prefixes(plan: Plan, release: Release) -> SketchedPrefixes:
    """What `heavy_hitters` measures."""
    keys = release.statistic
    assert isinstance(keys, kinds.HeavyHitters)
    codes = Codes(column=plan.column(keys.of), length=keys.length)
    return SketchedPrefixes(codes=codes, rows=keys.rows, buckets=keys.buckets, where=release.where)


def heavy_hitters(
    plan: Plan, release: Release, noises: Noises, entry: Mapping[str, Any]
) -> HeavyHitters:
    """The mechanism of `heavy_hitters`."""
    keys = release.statistic
    assert isinstance(keys, kinds.HeavyHitters)
    return HeavyHitters(
        noise=noises[0],
        sketch=sketched_prefixes(plan, release),
        top=keys.top,
        variances=tuple(entry["variances"]),
        reach=Reach.from_spec(entry["reach"]),
    )


def settled_hitters(plan: Plan, release: Release, noises: Noises) -> Mapping[str, Any]:
    """Variances and reach."""
    keys = release.statistic
    assert isinstance(keys, kinds.HeavyHitters)
    reach = Reach.of(
        keys.rows,
        top=keys.top,
        horizon=plan.stream.horizon,
        miss=float(1 - release.level),
    )
    return {"variances": stored_variances(noises[0]), "reach": reach.spec()}
