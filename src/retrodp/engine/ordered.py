"""Statistics and mechanisms of the kinds that look at the order of a column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

from retrodp.mechanisms.band import Band
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.cdf import (
    CumulativeCounts,
    cumulative_band,
    is_flat,
    moved_by_one,
    worst_errors,
)
from retrodp.mechanisms.histogram import Histogram
from retrodp.mechanisms.ordered import labelled
from retrodp.mechanisms.quantiles import Quantiles, quantile_band, rank_errors
from retrodp.plan import kinds
from retrodp.plan.columns import Column
from retrodp.plan.plan import Plan
from retrodp.plan.releases import Release
from retrodp.postprocess.halving import depth
from retrodp.statistics.label import BinLabels
from retrodp.statistics.ordered import EdgeCells, GridCells, OrderedCounts, RangeCounts

Groups = tuple[str, ...] | None


def quantile_counts(plan: Plan, release: Release, by: BinLabels | None) -> OrderedCounts:
    """Counts on the grid of the column; a record moves the total and one difference a level."""
    of, cells = _grid(plan, release)
    moved = depth(cells.count) + 1
    return OrderedCounts(of=of, cells=cells, moved=moved, by=by, where=release.where)


def quantiles(
    plan: Plan, release: Release, groups: Groups, noise: CalibratedNoise, entry: Mapping[str, Any]
) -> Quantiles:
    """The mechanism of `quantiles`."""
    assert isinstance(release.statistic, kinds.Quantiles)
    of, cells = _grid(plan, release)
    step, _ = of.grid
    return Quantiles(
        cells=cells,
        at=tuple(map(Fraction, release.statistic.at)),
        texts=release.statistic.at,
        groups=groups,
        noise=noise,
        band=Band.from_spec(entry["band"]),
        column_step=step,
        level=release.level,
    )


def settled_quantiles(plan: Plan, release: Release, noise: CalibratedNoise) -> dict[str, Any]:
    """What is decided for `quantiles` beyond its noise."""
    assert isinstance(release.statistic, kinds.Quantiles)
    _, cells = _grid(plan, release)
    shares = tuple(map(Fraction, release.statistic.at))
    return {
        "band": quantile_band(noise, cells.count).spec(),
        "errors": rank_errors(noise, cells.count, shares),
    }


def cumulative_cells(plan: Plan, release: Release, by: BinLabels | None) -> OrderedCounts:
    """Counts in the cells that end at each edge; what lies above the last edge is not counted."""
    assert isinstance(release.statistic, kinds.Cdf)
    of = plan.column(release.statistic.of)
    _, (least, _) = of.grid
    edges = _steps(of, release.statistic.edges)
    moved = moved_by_one(len(edges), flat=_flat(plan, release.statistic))
    cells = EdgeCells(edges=(least, *(edge + 1 for edge in edges)))
    return OrderedCounts(of=of, cells=cells, moved=moved, by=by, where=release.where)


def cumulative_counts(
    plan: Plan, release: Release, groups: Groups, noise: CalibratedNoise, entry: Mapping[str, Any]
) -> CumulativeCounts:
    """The mechanism of `cdf`."""
    assert isinstance(release.statistic, kinds.Cdf)
    texts = release.statistic.edges
    return CumulativeCounts(
        texts=texts,
        groups=groups,
        flat=_flat(plan, release.statistic),
        noise=noise,
        band=Band.from_spec(entry["band"]),
        level=release.level,
    )


def settled_cumulative(plan: Plan, release: Release, noise: CalibratedNoise) -> dict[str, Any]:
    """What is decided for `cdf` beyond its noise."""
    assert isinstance(release.statistic, kinds.Cdf)
    edges, flat = len(release.statistic.edges), _flat(plan, release.statistic)
    band = cumulative_band(noise, edges)
    errors = worst_errors(noise, band, edges, flat=flat)
    return {"band": band.spec(), "errors": errors, "flat": flat}


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledCdf(kinds.Cdf):
    """A `cdf` of which it was decided whether each cell has a counter or a tree is summed."""

    flat: bool


def cumulative_as_settled(release: Release, entry: Mapping[str, Any]) -> Release:
    """The release with what was decided when its plan was resolved."""
    keys = release.statistic
    assert isinstance(keys, kinds.Cdf)
    settled = SettledCdf(of=keys.of, edges=keys.edges, by=keys.by, flat=entry["flat"])
    return replace(release, statistic=settled)


def range_counts(plan: Plan, release: Release, by: BinLabels | None) -> RangeCounts:
    """Counts between edges under the labels that are published; what lies outside is not counted."""
    assert isinstance(release.statistic, kinds.Range)
    of = plan.column(release.statistic.of)
    cells = EdgeCells(edges=_steps(of, release.statistic.edges))
    counts = OrderedCounts(of=of, cells=cells, moved=1, by=by, where=release.where)
    return RangeCounts(counts=counts, labels=_range_labels(release.statistic))


def ranges(release: Release, groups: Groups, noise: CalibratedNoise) -> Histogram:
    """The mechanism of `range`: ranges do not overlap, so a record moves one of them."""
    assert isinstance(release.statistic, kinds.Range)
    return Histogram.of(noise, tuple(labelled(groups, _range_labels(release.statistic))))


def _range_labels(statistic: kinds.Range) -> tuple[str, ...]:
    return tuple(f"[{low}, {high})" for low, high in pairwise(statistic.edges))


def _grid(plan: Plan, release: Release) -> tuple[Column, GridCells]:
    assert isinstance(release.statistic, kinds.Quantiles)
    of = plan.column(release.statistic.of)
    _, (least, greatest) = of.grid
    return of, GridCells(least=least, greatest=greatest)


def _steps(of: Column, edges: tuple[str, ...]) -> tuple[int, ...]:
    step, _ = of.grid
    return tuple(int(Fraction(edge) / step) for edge in edges)


def _flat(plan: Plan, keys: kinds.Cdf) -> bool:
    """Decided once; what is stored is never decided again."""
    if isinstance(keys, SettledCdf):
        return keys.flat
    return is_flat(len(keys.edges), plan.privacy.law)
