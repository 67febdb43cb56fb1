"""From a resolved plan to the statistics and mechanisms that run it.

The only place that knows all kinds of release: a new kind is a new entry of `_KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from retrodp.engine import ordered, vectors
from retrodp.errors import KeyDestroyedError
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.contract import Mechanism
from retrodp.mechanisms.counter import Counter
from retrodp.mechanisms.histogram import Histogram, SparseHistogram
from retrodp.mechanisms.mean import MeanOfBins
from retrodp.noise.key import NoiseKeys
from retrodp.plan import kinds
from retrodp.plan.plan import Plan
from retrodp.plan.releases import Release
from retrodp.plan.resolved import ResolvedPlan
from retrodp.statistics.contract import PURPOSE, Keyed, Statistic
from retrodp.statistics.counts import Count, Sum
from retrodp.statistics.label import BinLabels
from retrodp.statistics.means import CentredMean


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledRelease:
    """One release, ready to run.

    Attributes:
        statistic: What is measured.
        mechanism: Where the measure meets noise.
        window: Rounds for which a record counts after its stamp, or None for ever.
    """

    statistic: Statistic
    mechanism: Mechanism
    window: int | None

    @property
    def name(self) -> str:
        """Name of the release."""
        return self.mechanism.name

    def live(self, stamp: int, round_: int) -> bool:
        """Whether a record with this stamp counts in this round (KKMNS definition 5.6)."""
        return self.window is None or round_ - stamp < self.window


def compile_plan(plan: Plan, resolved: ResolvedPlan) -> tuple[CompiledRelease, ...]:
    """Statistics from the plan, mechanisms from what was resolved; nothing is recomputed."""
    compiled = []
    for release, entry in zip(plan.releases, resolved.releases, strict=True):
        compiled.append(
            CompiledRelease(
                statistic=statistic_of(plan, release),
                mechanism=mechanism_of(plan, release, entry),
                window=release.window,
            )
        )
    return tuple(compiled)


def keyed(releases: Sequence[CompiledRelease], keys: NoiseKeys) -> tuple[CompiledRelease, ...]:
    """The same releases, ready to encode: statistics that hash are bound to their secret.

    After the lasting key was destroyed they stay unbound; nothing is released from them again.
    """
    return tuple(_keyed(release, keys) for release in releases)


def _keyed(release: CompiledRelease, keys: NoiseKeys) -> CompiledRelease:
    if not isinstance(release.statistic, Keyed):
        return release
    try:
        key = keys.lasting_key(release=release.name, purpose=PURPOSE)
    except KeyDestroyedError:
        return release
    return replace(release, statistic=release.statistic.keyed(key))


def statistic_of(plan: Plan, release: Release) -> Statistic:
    """The statistic that a release of the plan measures."""
    return _KINDS[type(release.statistic)].statistic(plan, release)


def mechanism_of(plan: Plan, release: Release, entry: Mapping[str, Any]) -> Mechanism:
    """The mechanism of a release, from its entry in the resolved plan."""
    noises = tuple(CalibratedNoise.from_spec(spec) for spec in (entry["noise"], *entry["further"]))
    return _KINDS[type(release.statistic)].mechanism(plan, release, noises, entry)


def settled_of(plan: Plan, release: Release, noises: Noises) -> Mapping[str, Any]:
    """What the resolved plan stores of a release beyond its noise; JSON values."""
    return _KINDS[type(release.statistic)].settled(plan, release, noises)


def is_sparse(plan: Plan, release: Release) -> bool:
    """Whether the release's bins are decided by the data, through a threshold."""
    match release.statistic:
        case kinds.Histogram(by=by):
            return not plan.is_public(by)
        case kinds.Cube(marginals=marginals):
            return not all(map(plan.is_public, marginals))
        case _:
            return False


Noises = tuple[CalibratedNoise, ...]  # one a component of the statistic


def _nothing_more(_plan: Plan, _release: Release, _noises: Noises) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class _Kind:
    statistic: Callable[[Plan, Release], Statistic]
    mechanism: Callable[[Plan, Release, Noises, Mapping[str, Any]], Mechanism]
    settled: Callable[[Plan, Release, Noises], Mapping[str, Any]] = _nothing_more


def _labels(plan: Plan, by: tuple[str, ...]) -> BinLabels | None:
    return BinLabels(columns=tuple(plan.column(name) for name in by)) if by else None


def _count(_plan: Plan, release: Release) -> Statistic:
    return Count(where=release.where)


def _histogram(plan: Plan, release: Release) -> Statistic:
    return Count(by=_labels(plan, release.by), where=release.where)


def _sum(plan: Plan, release: Release) -> Statistic:
    assert isinstance(release.statistic, kinds.Sum)
    return Sum(
        of=plan.column(release.statistic.of),
        by=_labels(plan, release.by),
        where=release.where,
    )


def _mean(plan: Plan, release: Release) -> CentredMean:
    assert isinstance(release.statistic, kinds.Mean)
    return CentredMean(
        of=plan.column(release.statistic.of),
        by=_labels(plan, release.by),
        where=release.where,
    )


def _public_bins(plan: Plan, release: Release) -> tuple[str, ...] | None:
    labels = _labels(plan, release.by)
    if labels is None:
        return None
    bins = (labels.text(values) for values in plan.public_bins(release.by))
    return tuple(sorted(bins, key=str.encode))


def _linear(plan: Plan, release: Release, noises: Noises, entry: Mapping[str, Any]) -> Mechanism:
    (noise,) = noises
    if is_sparse(plan, release):
        return SparseHistogram.of(noise, threshold=entry["threshold"], max_bins=entry["max_bins"])
    bins = _public_bins(plan, release)
    return Counter.of(noise) if bins is None else Histogram.of(noise, bins)


def _quotient(plan: Plan, release: Release, noises: Noises, _entry: Mapping[str, Any]) -> Mechanism:
    total, count = noises
    return MeanOfBins(
        name=release.name,
        statistic=_mean(plan, release),
        bins=_public_bins(plan, release),
        total=total,
        count=count,
        level=release.level,
    )


_KINDS: dict[type[kinds.Statistic], _Kind] = {
    kinds.Count: _Kind(_count, _linear),
    kinds.Histogram: _Kind(_histogram, _linear),
    kinds.Sum: _Kind(_sum, _linear),
    kinds.Mean: _Kind(_mean, _quotient),
    kinds.Quantiles: _Kind(
        lambda plan, release: ordered.quantile_counts(plan, release, _labels(plan, release.by)),
        lambda plan, release, noises, entry: ordered.quantiles(
            plan, release, _public_bins(plan, release), noises[0], entry
        ),
        lambda plan, release, noises: ordered.settled_quantiles(plan, release, noises[0]),
    ),
    kinds.Cdf: _Kind(
        lambda plan, release: ordered.cumulative_cells(plan, release, _labels(plan, release.by)),
        lambda plan, release, noises, entry: ordered.cumulative_counts(
            plan, release, _public_bins(plan, release), noises[0], entry
        ),
        lambda plan, release, noises: ordered.settled_cumulative(plan, release, noises[0]),
    ),
    kinds.Range: _Kind(
        lambda plan, release: ordered.range_counts(plan, release, _labels(plan, release.by)),
        lambda plan, release, noises, _: ordered.ranges(
            release, _public_bins(plan, release), noises[0]
        ),
    ),
    kinds.Query: _Kind(vectors.query, vectors.weighted_sums, vectors.settled_query),
    kinds.Cube: _Kind(vectors.cube, vectors.marginal_tables, vectors.settled_cube),
    kinds.Gram: _Kind(vectors.gram, vectors.moments, vectors.settled_gram),
}
