"""From a resolved plan to the statistics and mechanisms that run it.

The only place that knows all kinds of release: a new kind is a new entry of `_KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from retrodp.engine import (
    clusters,
    distinct,
    masked,
    online,
    ordered,
    revised,
    sampled,
    sketches,
    vectors,
)
from retrodp.errors import KeyDestroyedError, StoreCorruptError
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.contract import AnyMechanism
from retrodp.mechanisms.counter import Counter
from retrodp.mechanisms.histogram import Histogram, SparseHistogram
from retrodp.mechanisms.mean import MeanOfBins
from retrodp.noise.key import NoiseKeys
from retrodp.noise.processes import AnyFactor
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
    mechanism: AnyMechanism
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
        settled = as_settled(release, entry)
        found = CompiledRelease(
            statistic=statistic_of(plan, settled),
            mechanism=mechanism_of(plan, settled, entry),
            window=settled.window,
        )
        _require_as_settled(found, entry)
        compiled.append(found)
    return tuple(compiled)


def _require_as_settled(release: CompiledRelease, entry: Mapping[str, Any]) -> None:
    """Raise `StoreCorruptError` if this version would publish on another grid than was decided.

    What does not stand in the plan and is no number of the noise: the step of what is published,
    which holds how much finer than the column it is, and the grain of products.
    """
    derived = {
        "step": str(release.mechanism.step),
        "grain": getattr(release.statistic, "grain", None),
    }
    changed = sorted(name for name, value in derived.items() if entry.get(name, value) != value)
    if changed:
        raise StoreCorruptError(
            f"This version would give {release.name} another {' and '.join(changed)} than was "
            "decided when its plan was resolved.",
            expected=", ".join(f"{name} {entry[name]}" for name in changed),
            do="Open the store with the version of retrodp that made it.",
        )


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


def mechanism_of(plan: Plan, release: Release, entry: Mapping[str, Any]) -> AnyMechanism:
    """The mechanism of a release, from its entry in the resolved plan."""
    specs = (entry["noise"], *entry["further"])  # None: nothing that adds noise of its own
    noises = tuple(CalibratedNoise.from_spec(spec) for spec in specs if spec is not None)
    return _KINDS[type(release.statistic)].mechanism(plan, release, noises, entry)


def decided(plan: Plan, release: Release) -> Release:
    """The release with what its plan leaves open decided, from the plan alone."""
    return _KINDS[type(release.statistic)].decided(plan, release)


def as_settled(release: Release, entry: Mapping[str, Any]) -> Release:
    """The release with what was decided when its entry was resolved."""
    return _KINDS[type(release.statistic)].as_settled(release, entry)


def in_later_epoch(plan: Plan, release: Release, entry: Mapping[str, Any]) -> Release:
    """The release in an epoch after that of an entry: as it was decided, charged for its rounds."""
    return _KINDS[type(release.statistic)].later(plan, as_settled(release, entry))


def factor_of(plan: Plan, release: Release) -> AnyFactor | None:
    """The factor that the release's method dictates; None: the plan's `factor` chooses."""
    return _KINDS[type(release.statistic)].factor(plan, release)


def settled_of(plan: Plan, release: Release, noises: Noises) -> Mapping[str, Any]:
    """What the resolved plan stores of a release beyond its noise; JSON values."""
    return _KINDS[type(release.statistic)].settled(plan, release, noises)


def is_sparse(plan: Plan, release: Release) -> bool:
    """Whether the release's bins are decided by the data, through a threshold."""
    match release.statistic:
        case kinds.Histogram(by=by) | kinds.Revised(inner=kinds.Histogram(by=by)):
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
    mechanism: Callable[[Plan, Release, Noises, Mapping[str, Any]], AnyMechanism]
    settled: Callable[[Plan, Release, Noises], Mapping[str, Any]] = _nothing_more
    decided: Callable[[Plan, Release], Release] = lambda _, release: release
    as_settled: Callable[[Release, Mapping[str, Any]], Release] = lambda release, _: release
    factor: Callable[[Plan, Release], AnyFactor | None] = lambda *_: None
    later: Callable[[Plan, Release], Release] = lambda _, release: release


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


def _linear(plan: Plan, release: Release, noises: Noises, entry: Mapping[str, Any]) -> AnyMechanism:
    (noise,) = noises
    if is_sparse(plan, release):
        each = tuple(entry["thresholds"])
        return SparseHistogram.of(noise, threshold=each, max_bins=entry["max_bins"])
    bins = _public_bins(plan, release)
    return Counter.of(noise) if bins is None else Histogram.of(noise, bins)


def _quotient(
    plan: Plan, release: Release, noises: Noises, _entry: Mapping[str, Any]
) -> AnyMechanism:
    total, count = noises
    return MeanOfBins(
        name=release.name,
        statistic=_mean(plan, release),
        bins=_public_bins(plan, release),
        total=total,
        count=count,
        level=release.level,
    )


_DISTINCT = _Kind(
    distinct.statistic,
    distinct.mechanism,
    distinct.settled,
    distinct.decided,
    distinct.as_settled,
    distinct.factor,
    distinct.in_later_epoch,
)
_MASKED = _Kind(
    masked.statistic,
    masked.mechanism,
    masked.settled,
    masked.decided,
    masked.as_settled,
    masked.factor,
    masked.in_later_epoch,
)
_CDF = _Kind(
    lambda plan, release: ordered.cumulative_cells(plan, release, _labels(plan, release.by)),
    lambda plan, release, noises, entry: ordered.cumulative_counts(
        plan, release, _public_bins(plan, release), noises[0], entry
    ),
    lambda plan, release, noises: ordered.settled_cumulative(plan, release, noises[0]),
    as_settled=ordered.cumulative_as_settled,
)
_ONLINE = _Kind(online.points, online.online, online.settled, factor=online.factor)
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
    kinds.Cdf: _CDF,
    kinds.Range: _Kind(
        lambda plan, release: ordered.range_counts(plan, release, _labels(plan, release.by)),
        lambda plan, release, noises, _: ordered.ranges(
            release, _public_bins(plan, release), noises[0]
        ),
    ),
    kinds.Query: _Kind(vectors.query, vectors.weighted_sums, vectors.settled_query),
    kinds.Cube: _Kind(vectors.cube, vectors.marginal_tables, vectors.settled_cube),
    ordered.SettledCdf: _CDF,
    kinds.Gram: _Kind(vectors.gram, vectors.moments, vectors.settled_gram),
    kinds.KMeans: _Kind(clusters.cells, clusters.clusters, clusters.settled_clusters),
    kinds.KMedian: _Kind(clusters.cells, clusters.clusters, clusters.settled_clusters),
    kinds.OnlineKMeans: _ONLINE,
    kinds.OnlineKMedian: _ONLINE,
    kinds.Revised: _Kind(
        revised.statistic,
        revised.mechanism,
        revised.settled,
        as_settled=revised.as_settled,
        factor=revised.factor,
    ),
    kinds.Distinct: _DISTINCT,
    kinds.SecondMoment: _Kind(
        sketches.sketched_items,
        sketches.second_moment,
        sketches.settled_moment,
        sketches.decided_moment,
        sketches.moment_as_settled,
    ),
    kinds.HeavyHitters: _Kind(
        sketches.sketched_prefixes, sketches.heavy_hitters, sketches.settled_hitters
    ),
    kinds.Masked: _MASKED,
    kinds.Sample: _Kind(sampled.live_records, sampled.sampled, factor=sampled.factor),
    distinct.Decided: _DISTINCT,
}
