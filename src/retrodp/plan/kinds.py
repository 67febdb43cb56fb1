"""Kinds of release: what each measures and which keys it has.

Adding a kind is a row of `KINDS`: its struct of keys and a function that makes the frozen
description from them. None would stand at a kind of the grammar that a version does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from retrodp.plan.cluster_kinds import (
    ClusterKeys,
    KMeans,
    KMedian,
    read_kmeans,
    read_kmedian,
)
from retrodp.plan.compiled_kinds import (
    Masked,
    MaskedKeys,
    Sample,
    SampleKeys,
    read_masked,
    read_sample,
)
from retrodp.plan.distinct_kind import Distinct, DistinctKeys, read_distinct
from retrodp.plan.online_kinds import (
    OnlineKeys,
    OnlineKMeans,
    OnlineKMedian,
    read_online_kmeans,
    read_online_kmedian,
)
from retrodp.plan.ordered_kinds import (
    Cdf,
    EdgesKeys,
    Quantiles,
    QuantilesKeys,
    Range,
    read_cdf,
    read_quantiles,
    read_range,
)
from retrodp.plan.place import Place
from retrodp.plan.revised_kind import Revised
from retrodp.plan.schema import NameOrNames, Text, Whole, read_table, refuse_unknown
from retrodp.plan.sketch_kinds import (
    HeavyHitters,
    HeavyHittersKeys,
    SecondMoment,
    SecondMomentKeys,
    read_heavy_hitters,
    read_second_moment,
)
from retrodp.plan.vector_kinds import (
    PLANNED_BINS,
    Cube,
    CubeKeys,
    Gram,
    GramKeys,
    Query,
    QueryKeys,
    read_cube,
    read_gram,
    read_query,
)

__all__ = [
    "KINDS",
    "Cdf",
    "Count",
    "Cube",
    "Distinct",
    "Gram",
    "HeavyHitters",
    "Histogram",
    "KMeans",
    "KMedian",
    "Kind",
    "Masked",
    "Mean",
    "OnlineKMeans",
    "OnlineKMedian",
    "Place",
    "Quantiles",
    "Query",
    "Range",
    "Revised",
    "Sample",
    "SecondMoment",
    "Statistic",
    "Sum",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Number of surviving records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """Sum of the column `of`, as one number or per bin of the columns `by`."""

    of: str
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """Mean of the column `of`, as one number or per bin of the columns `by`."""

    of: str
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Number of surviving records per bin of the columns `by`.

    Attributes:
        by: At least one column.
        max_bins: Planned maximum of labels, which the probability of their collision counts on.
    """

    by: tuple[str, ...]
    max_bins: int = PLANNED_BINS


Statistic: TypeAlias = (
    Count
    | Sum
    | Mean
    | Histogram
    | Query
    | Cube
    | Gram
    | Quantiles
    | Cdf
    | Range
    | Distinct
    | Revised
    | SecondMoment
    | HeavyHitters
    | KMeans
    | KMedian
    | OnlineKMeans
    | OnlineKMedian
    | Sample
    | Masked
)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of this version.

    Attributes:
        keys: Struct of the keys that only this kind has.
        statistic: Makes the description from the struct.
    """

    keys: type[msgspec.Struct]
    statistic: Callable[[Any, Place], Statistic]

    @property
    def names(self) -> list[str]:
        """Names of the keys that only this kind has."""
        return [key.encode_name for key in msgspec.structs.fields(self.keys)]

    def read(self, own: Mapping[str, Any], place: Place) -> Statistic:
        """The description of one release from its own keys."""
        return self.statistic(read_table(self.keys, own, place.path), place)


class _NoKeys(msgspec.Struct, frozen=True, kw_only=True):
    pass


class _AmountKeys(msgspec.Struct, frozen=True, kw_only=True):
    of: Text
    by: NameOrNames | None = None


class _HistogramKeys(msgspec.Struct, frozen=True, kw_only=True):
    by: NameOrNames
    max_bins: Whole = PLANNED_BINS


def _count(_: _NoKeys, __: Place) -> Count:
    return Count()


def _sum(keys: _AmountKeys, place: Place) -> Sum:
    return Sum(of=place.column(keys.of, "of", "number", "integer"), by=place.bins(keys.by))


def _mean(keys: _AmountKeys, place: Place) -> Mean:
    return Mean(of=place.column(keys.of, "of", "number", "integer"), by=place.bins(keys.by))


def _histogram(keys: _HistogramKeys, place: Place) -> Histogram:
    return Histogram(by=place.bins(keys.by), max_bins=keys.max_bins)


def _masked(keys: MaskedKeys, place: Place) -> Masked:
    return read_masked(keys, place, _base)


def _base(kind: str, own: Mapping[str, Any], place: Place) -> Statistic:
    found = KINDS[kind]
    assert found is not None
    refuse_unknown(own, found.names, place.path)
    return found.read(own, place)


KINDS: Mapping[str, Kind | None] = {
    "count": Kind(_NoKeys, _count),
    "sum": Kind(_AmountKeys, _sum),
    "mean": Kind(_AmountKeys, _mean),
    "histogram": Kind(_HistogramKeys, _histogram),
    "query": Kind(QueryKeys, read_query),
    "cube": Kind(CubeKeys, read_cube),
    "quantiles": Kind(QuantilesKeys, read_quantiles),
    "cdf": Kind(EdgesKeys, read_cdf),
    "range": Kind(EdgesKeys, read_range),
    "distinct": Kind(DistinctKeys, read_distinct),
    "second_moment": Kind(SecondMomentKeys, read_second_moment),
    "heavy_hitters": Kind(HeavyHittersKeys, read_heavy_hitters),
    "gram": Kind(GramKeys, read_gram),
    "kmeans": Kind(ClusterKeys, read_kmeans),
    "kmedian": Kind(ClusterKeys, read_kmedian),
    "online_kmeans": Kind(OnlineKeys, read_online_kmeans),
    "online_kmedian": Kind(OnlineKeys, read_online_kmedian),
    "sample": Kind(SampleKeys, read_sample),
    "masked": Kind(MaskedKeys, _masked),
}
