"""From a resolved plan to the kinds that publish centres of points.

Rows of `kmeans` and `kmedian` for `retrodp.engine.compile`: statistic, what is settled when the plan
is resolved, mechanism.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retrodp.clustering import solver
from retrodp.clustering.retroactive import Bands, Clusters, bands_of, least_counts
from retrodp.errors import StoreCorruptError
from retrodp.mechanisms.band import Band
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.plan import kinds
from retrodp.plan.plan import Plan
from retrodp.plan.releases import Release
from retrodp.statistics.cells import Cells

Noises = tuple[CalibratedNoise, ...]


def cells(plan: Plan, release: Release) -> Cells:
    """The nested cells of a clustering; how many grids depends on the horizon alone."""
    keys = release.statistic
    assert isinstance(keys, kinds.KMeans)
    boosted = max(1, plan.stream.horizon.bit_length() - 1)
    return Cells(
        of=tuple(map(plan.column, keys.of)),
        levels=keys.levels,
        instances=boosted if keys.variant == "lths" else 1,
        where=release.where,
    )


def settled_clusters(plan: Plan, release: Release, noises: Noises) -> Mapping[str, Any]:
    """Geometry, thresholds, bands and the errors of each part.

    Raises:
        ExtraMissingError: scikit-learn is missing, before anything is promised.
    """
    if not isinstance(release.statistic, kinds.KMedian):
        solver.require()
    statistic = cells(plan, release)
    bits = max(map(statistic.grid.branching, statistic.grid.counted))
    entry = {
        "geometry": statistic.grid.spec(),
        "instances": statistic.instances,
        "least_counts": list(least_counts(noises[0], bits)),
        "bands": [band.spec() for band in bands_of(noises, release.level)],
    }
    return entry | {"parts": clusters(plan, release, noises, entry).describe()["parts"]}


def clusters(plan: Plan, release: Release, noises: Noises, entry: Mapping[str, Any]) -> Clusters:
    """The mechanism of a `kmeans` or `kmedian`.

    Raises:
        StoreCorruptError: The plan gives other cells than those that were resolved.
    """
    keys, statistic = release.statistic, cells(plan, release)
    assert isinstance(keys, kinds.KMeans)
    if (statistic.grid.spec(), statistic.instances) != (entry["geometry"], entry["instances"]):
        raise StoreCorruptError(
            f"The cells of release {release.name} are not those that the store was created with.",
            do="Open the store with the version of retrodp that wrote it.",
        )
    count, sums, square = noises
    return Clusters(
        name=release.name,
        statistic=statistic,
        objective="kmedian" if isinstance(keys, kinds.KMedian) else "kmeans",
        k=keys.k,
        count=count,
        sums=sums,
        square=square,
        thresholds=tuple(entry["least_counts"]),
        bands=Bands(*map(Band.from_spec, entry["bands"])),
        coreset=keys.coreset,
        level=release.level,
    )
