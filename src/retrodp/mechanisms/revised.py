"""The revised past: every stamp of a series in every round, noisy, as it is known now.

Promise: memoryless, like every mechanism here: a round is a function of keys, round and the totals
of the surviving data by stamp, so two histories whose survivors agree, stamps included, publish the
same series from then on (KKMNS appendix A).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrodp.mechanisms.answer import Answer, Spread
from retrodp.mechanisms.contract import Adaptive, Retroactive
from retrodp.mechanisms.guarantee import adaptive_guarantee
from retrodp.mechanisms.stamped import SeriesNoise, facts, size_about
from retrodp.noise.key import NoiseKeys
from retrodp.noise.prf import collision_bound
from retrodp.noise.processes import AnyFactor
from retrodp.noise.product import ProductProcess
from retrodp.privacy.loss import PrivacyLoss
from retrodp.statistics.revised import labelled, places

IntArray = NDArray[np.int64]


class _OneSeries:
    """What follows from the noise of a series; `series` is a field of the mechanism."""

    __slots__ = ()
    series: SeriesNoise

    @property
    def name(self) -> str:
        """Name of the release."""
        return self.series.noise.release

    @property
    def step(self) -> Fraction:
        """Size of a step of the published values."""
        return self.series.noise.step

    @property
    def factor(self) -> AnyFactor:
        """Nodes of the noise."""
        return self.series.factor

    @property
    def retroactive(self) -> Retroactive:
        """Exactly retroactive: the noise knows no data, and what was erased leaves no trace."""
        return "exact"

    def cost(self) -> tuple[PrivacyLoss, ...]:
        """Loss of the noise over the whole horizon for one unit."""
        return self.series.noise.losses()


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisedSeries(_OneSeries):
    """A count or sum, whole or by public bins, of every stamp in every round.

    Guarantee: a record has one stamp. Where every stamp is a counter of its own, a record moves one
    of them through one window, and all answers of all rounds together satisfy the budget as those
    of one counter do. Where values are cumulative in stamp, its shifts are the product of a window
    and a stamp (`noise.product`). Exactly retroactive.

    Attributes:
        series: Noise by round, stamp and bin.
        bins: Public labels in the order of publication; None for a scalar.
    """

    series: SeriesNoise
    bins: tuple[str, ...] | None

    @property
    def adaptive(self) -> Adaptive:
        """As far as the proof covers streams that react to earlier answers."""
        return adaptive_of(self.series)

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        """One value a stamp and bin, zeros included.

        Time: a draw a node, stamp and bin, some 20 ns each, and 0.2 microseconds a total.
        """
        count = 1 if self.bins is None else len(self.bins)
        first = self.series.first_stamp(round_)  # refuses a round outside the horizon
        known = np.zeros((round_, count), dtype=np.int64)
        if exact:
            stamps, bins, totals = places(exact)
            inside = (stamps <= round_) & (bins < count)
            known[stamps[inside] - 1, bins[inside]] = totals[inside]
        if self.series.cumulative:
            np.cumsum(known, axis=0, out=known)
        values = known[first - 1 :] + self.series.draw(round_, keys, count)
        labels = None
        if self.bins is not None:
            labels = tuple(label for label in self.bins for _ in range(len(values)))
        return answer_of(
            self.series,
            round_,
            labels,
            stamps=tuple(range(first, round_ + 1)) * count,
            values=values.T.reshape(-1),
        )

    def describe(self) -> dict[str, Any]:
        """Public facts about the mechanism."""
        count = 1 if self.bins is None else len(self.bins)
        own = described(self.series, "revised series")
        pairs = own["published_pairs"]
        numbers = {"bins": count, "numbers": pairs * count}
        about = size_about(pairs, count, own["stddev_max"], self.step)
        return own | numbers | {"bytes_at_least": about}


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseRevised(_OneSeries):
    """Counts of an open domain by stamp: pairs with records that reach a threshold.

    Guarantee: as `RevisedSeries`, plus the threshold's delta, which pays for every pair of a round
    and a stamp at which a record can be the only one of its label. Proved for oblivious streams.

    Attributes:
        series: Noise by round, stamp and label.
        threshold: Least value that is published.
        max_bins: Planned maximum of pairs of a stamp (or slot) and a label.
    """

    series: SeriesNoise
    threshold: int
    max_bins: int

    @property
    def adaptive(self) -> Adaptive:
        """The threshold's delta is proved for oblivious streams."""
        return "no"

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        """Pairs of a stamp and a label with a count of at least 1 that reach the threshold."""
        first = self.series.first_stamp(round_)
        labels, stamps, where, counts = self._pairs(round_, first, exact)
        noise = self.series.draw_labels(round_, keys, labels, (stamps, where))
        shown = np.flatnonzero(noise >= self.threshold - counts)  # a sum could leave 64 bits
        order = shown[np.lexsort((stamps[shown], where[shown]))]
        texts = [label.decode() for label in labels]
        return answer_of(
            self.series,
            round_,
            tuple(texts[place] for place in where[order].tolist()),
            stamps=tuple(stamps[order].tolist()),
            values=counts[order] + noise[order],
            threshold=self.threshold,
        )

    def _pairs(
        self, round_: int, first: int, exact: Mapping[bytes, int]
    ) -> tuple[list[bytes], IntArray, IntArray, IntArray]:
        """Labels in order, and stamp, place and count of every pair that holds records."""
        by_label: dict[bytes, list[tuple[int, int]]] = {}
        for coordinate, total in exact.items():
            stamp, label = labelled(coordinate)
            if stamp <= round_ and (self.series.cumulative or stamp >= first):
                by_label.setdefault(label, []).append((stamp, total))
        labels = sorted(by_label)
        if self.series.cumulative:
            known = np.zeros((round_, len(labels)), dtype=np.int64)
            for place, label in enumerate(labels):
                for stamp, total in by_label[label]:
                    known[stamp - 1, place] = total
            known = np.cumsum(known, axis=0)[first - 1 :]
            rows, columns = np.nonzero(known >= 1)
            return labels, rows + first, columns, known[rows, columns]
        found = [
            (stamp, place, total)
            for place, label in enumerate(labels)
            for stamp, total in by_label[label]
            if total >= 1
        ]
        stamps, where, counts = np.array(found, dtype=np.int64).reshape(-1, 3).T
        return labels, stamps, where, counts

    def collision_delta(self) -> Fraction:
        """Bound on the probability that two pairs share their noise."""
        return collision_bound(self.max_bins)

    def describe(self) -> dict[str, Any]:
        """Public facts about the mechanism."""
        own = described(self.series, "sparse revised series")
        return own | {"threshold": self.threshold, "max_bins": self.max_bins}


def adaptive_of(series: SeriesNoise) -> Adaptive:
    """Whether the past settles how far a node moves is up to the arrival nodes alone."""
    process = series.noise.process
    if isinstance(process, ProductProcess):
        causal = process.factor.arrival.name in {"binary", "fresh"}
        return "yes" if process.law == "laplace" or causal else "integer-order RDP"
    return adaptive_guarantee(process)


def described(series: SeriesNoise, what: str) -> dict[str, Any]:
    """Public facts that both mechanisms have."""
    return {"mechanism": what, **series.noise.describe(), **facts(series)}


def answer_of(
    series: SeriesNoise,
    round_: int,
    keys: tuple[str, ...] | None,
    *,
    stamps: tuple[int, ...],
    values: IntArray,
    threshold: int | None = None,
) -> Answer:
    """Noisy values of a round with the uncertainty of every stamp."""
    spreads: tuple[Spread, ...] = series.spreads(round_)
    noise = series.noise
    return Answer(
        release=noise.release,
        round=round_,
        keys=keys,
        values=tuple(values.tolist()),
        step=noise.step,
        stddev=max((spread.stddev for spread in spreads), key=float),
        half=max(spread.half for spread in spreads),
        half_all=max(spread.half_all for spread in spreads),
        level=noise.level,
        threshold=threshold,
        stamps=stamps,
        spreads=spreads,
    )
