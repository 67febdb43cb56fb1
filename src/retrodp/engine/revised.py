"""Statistics, factors and mechanisms of releases with `revised = true`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from retrodp.errors import PlanError
from retrodp.mechanisms.calibrate import choose_factor
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.contract import AnyMechanism
from retrodp.mechanisms.revised import RevisedSeries, SparseRevised
from retrodp.mechanisms.stamped import series_noise, stored
from retrodp.noise.factors.axis import MOST_STAMPS, best_root, best_walk
from retrodp.noise.factors.blocks import block_length
from retrodp.noise.processes import AnyFactor
from retrodp.noise.product import ProductFactor
from retrodp.plan import kinds
from retrodp.plan.plan import Plan
from retrodp.plan.releases import Release
from retrodp.statistics.counts import Count, Sum
from retrodp.statistics.label import BinLabels
from retrodp.statistics.revised import ByStamp

Noises = tuple[CalibratedNoise, ...]


def _keys(release: Release) -> kinds.Revised:
    assert isinstance(release.statistic, kinds.Revised)
    return release.statistic


def bins_of(plan: Plan, release: Release) -> tuple[str, ...] | None:
    """Public labels in the order of publication; () for a scalar, None for an open domain."""
    if not plan.is_public(release.by):
        return None
    labels = BinLabels(columns=tuple(plan.column(name) for name in release.by))
    if not release.by:
        return ()
    return tuple(sorted(map(labels.text, plan.public_bins(release.by)), key=str.encode))


def statistic(plan: Plan, release: Release) -> ByStamp:
    """What is measured, split by stamp."""
    keys = _keys(release)
    columns = tuple(plan.column(name) for name in release.by)
    by = BinLabels(columns=columns) if columns else None
    inner: Count | Sum = Count(by=by, where=release.where)
    if isinstance(keys.inner, kinds.Sum):
        inner = Sum(of=plan.column(keys.inner.of), by=by, where=release.where)
    oldest = 1 if keys.shape == "cumulative" else None
    return ByStamp(inner=inner, bins=bins_of(plan, release), oldest=oldest)


def factor(plan: Plan, release: Release) -> AnyFactor:
    """The factor of a block of stamps, or the product of arrival and stamp factors."""
    keys, horizon, law = _keys(release), plan.stream.horizon, plan.privacy.law
    if release.factor == "dense":
        raise PlanError(
            f'release.{release.name}.factor = "dense" does not serve a revised release, which draws '
            "every node for every stamp.",
            expected="auto, haar, delannoy or binary",
        )
    rounds = keys.rounds(horizon)
    if keys.shape == "per_stamp":
        covered = min(horizon, rounds + block_length(horizon, rounds) - 1)
        return choose_factor(release.factor, horizon=covered, law=law)
    rooted = law == "gaussian" and horizon <= MOST_STAMPS
    return ProductFactor(
        arrival=choose_factor(release.factor, horizon=horizon, law=law),
        axis=best_root(horizon) if rooted else best_walk(horizon),
        rounds=rounds,
    )


def settled(plan: Plan, release: Release, noises: Noises) -> dict[str, Any]:
    """What is decided beyond the noise."""
    horizon = plan.stream.horizon
    rounds = _keys(release).rounds(horizon)
    length = block_length(horizon, rounds)
    return {"stamps": stored(noises[0], horizon=horizon, rounds=rounds, length=length)}


def mechanism(
    plan: Plan, release: Release, noises: Noises, entry: Mapping[str, Any]
) -> AnyMechanism:
    """The mechanism of a revised release."""
    (noise,) = noises
    series, bins = series_noise(noise, entry["stamps"]), bins_of(plan, release)
    if bins is None:
        return SparseRevised(
            series=series,
            threshold=entry["threshold"],
            max_bins=entry["max_bins"],
        )
    return RevisedSeries(series=series, bins=bins or None)


def as_settled(release: Release, entry: Mapping[str, Any]) -> Release:
    """A record stops to count once its stamp is no longer published, unless stamps add up."""
    keys = _keys(release)
    if keys.shape == "cumulative" or keys.last is None:
        return release
    return replace(release, window=entry["stamps"]["rounds"])


def notes(releases: Sequence[Mapping[str, Any]]) -> list[str]:
    """How much a plan's revised releases publish, in sentences.

    Args:
        releases: Facts of each, as `check` has them.
    """
    found = []
    for facts in releases:
        if "published_pairs" not in facts:
            continue
        again = f"{facts['name']}: every round publishes up to {facts['stamps_a_round']:,} stamps again, "
        within = f"{facts['horizon']:,} rounds"
        if "numbers" in facts:
            found.append(
                f"{again}{facts['numbers']:,} numbers in {within}, "
                f"{_size(facts['bytes_at_least'])} or more in the store."
            )
        else:
            found.append(
                f"{again}up to {facts['published_pairs']:,} numbers a label in {within}; its "
                "threshold pays for all."
            )
    return found


def _size(count: int) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 10_000:
            return f"{count:,} {unit}"
        count //= 1000
    return f"{count:,} GB"
