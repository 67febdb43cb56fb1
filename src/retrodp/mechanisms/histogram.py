"""Histograms: all bins of a public set, or the bins of an open domain that are frequent enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from retrodp import _check
from retrodp.errors import PlanError
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.calibrate import DEFAULT_LEVEL, calibrated
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.contract import Adaptive
from retrodp.mechanisms.one_noise import OneNoise
from retrodp.mechanisms.threshold import thresholds_for
from retrodp.mechanisms.wide_totals import WideTotals
from retrodp.noise.key import NoiseKeys
from retrodp.noise.prf import Coordinates, collision_bound
from retrodp.privacy.budget import PureDP, zCDP

DEFAULT_MAX_BINS = 10**8


@dataclass(frozen=True, slots=True, init=False)
class Histogram(OneNoise):
    """Counts or sums of a public set of bins; empty bins are released like full ones.

    Guarantee: as `Counter`; bins compose in parallel, since a record touches one bin.
    """

    noise: CalibratedNoise
    bins: tuple[str, ...]

    def __init__(  # noqa: PLR0913  every argument is a public choice with a default
        self,
        bins: tuple[str, ...],
        *,
        horizon: int,
        budget: zCDP | PureDP,
        name: str = "histogram",
        step: Fraction = Fraction(1),
        sensitivity: int = 1,
        factor: str = "auto",
        level: Fraction = DEFAULT_LEVEL,
    ) -> None:
        """Calibrate the noise; the arguments are those of `Counter`, and `bins` the public set."""
        noise = calibrated(
            name,
            horizon=horizon,
            budget=budget,
            step=step,
            amount=sensitivity,
            factor=factor,
            level=level,
        )
        self._set(noise, bins)

    def _set(self, noise: CalibratedNoise, bins: tuple[str, ...]) -> None:
        bins = _check.texts(bins=bins, expected="labels of bins")
        if len(set(bins)) != len(bins) or not bins:
            raise PlanError("A public histogram needs at least one bin, and no bin twice.")
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "bins", tuple(sorted(bins, key=str.encode)))

    @classmethod
    def of(cls, noise: CalibratedNoise, bins: tuple[str, ...]) -> Histogram:
        """A histogram with noise that was calibrated before."""
        histogram = cls.__new__(cls)
        histogram._set(noise, bins)  # noqa: SLF001  its own class
        return histogram

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        """One value a bin, zeros included; totals of labels outside the set are not looked at."""
        noise = self.noise.draw(round_, keys, Coordinates.of_indices(len(self.bins)))
        values = [
            exact.get(label.encode(), 0) + draw
            for label, draw in zip(self.bins, noise.tolist(), strict=True)
        ]
        return self.noise.answer(round_, self.bins, values)

    def describe(self) -> dict[str, Any]:
        """Public facts about the mechanism."""
        return {"mechanism": "histogram", "bins": len(self.bins), **self.noise.describe()}


@dataclass(frozen=True, slots=True, init=False)
class SparseHistogram(OneNoise):
    """Counts of an open domain: only bins with records, and only those that reach a threshold.

    Guarantee: as `Counter`, plus `delta` for the threshold (KKMNS theorem 4.1, with the exact
    tail of the noise instead of a union bound). Exactly retroactive. Proved for oblivious streams
    only: with deletions an adversary may choose among many emptied bins the likeliest to cross.
    """

    noise: CalibratedNoise
    thresholds: tuple[int, ...]
    max_bins: int

    def __init__(  # noqa: PLR0913  every argument is a public choice with a default
        self,
        *,
        horizon: int,
        budget: zCDP | PureDP,
        delta: float | str | Fraction,
        name: str = "histogram",
        max_bins: int = DEFAULT_MAX_BINS,
        factor: str = "auto",
        level: Fraction = DEFAULT_LEVEL,
    ) -> None:
        """Calibrate noise and threshold.

        Args:
            horizon: Rounds covered.
            budget: Of the noise.
            delta: Of the threshold, for all rounds together; label collisions come on top.
            name: Label of the noise.
            max_bins: Planned maximum of labels, for the bound on collisions of labels.
            factor: As for `Counter`.
            level: Coverage of the intervals.
        """
        noise = calibrated(name, horizon=horizon, budget=budget, factor=factor, level=level)
        self._set(noise, thresholds_for(noise.process, delta=delta, records=1), max_bins)

    def _set(self, noise: CalibratedNoise, thresholds: tuple[int, ...], max_bins: int) -> None:
        if len(thresholds) != noise.process.factor.horizon:
            raise PlanError("A sparse histogram needs one threshold a round.")
        _check.whole(least=1, max_bins=max_bins)
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "thresholds", thresholds)
        object.__setattr__(self, "max_bins", max_bins)

    @classmethod
    def of(
        cls, noise: CalibratedNoise, *, threshold: int | tuple[int, ...], max_bins: int
    ) -> SparseHistogram:
        """A sparse histogram with noise and thresholds that were calibrated before.

        Args:
            noise: Of the release.
            threshold: One a round, or one for all rounds.
            max_bins: Planned maximum of labels.
        """
        histogram = cls.__new__(cls)
        each = (
            (threshold,) * noise.process.factor.horizon if isinstance(threshold, int) else threshold
        )
        histogram._set(noise, each, max_bins)  # noqa: SLF001  its own class
        return histogram

    @property
    def threshold(self) -> int:
        """The highest threshold of a round."""
        return max(self.thresholds)

    @property
    def adaptive(self) -> Adaptive:
        """The threshold's delta is proved for oblivious streams."""
        return "no"

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        """Bins with a count of at least 1 whose noisy count reaches the threshold.

        Time and memory: a label hash and a draw a node for every bin with records, some 0.2
        microseconds and 100 bytes; text only for what is released.
        """
        labels: Sequence[bytes]
        if isinstance(exact, WideTotals):
            labels, counts = exact.labels, exact.numbers
        else:
            labels = list(exact)
            counts = np.fromiter(exact.values(), dtype=np.int64, count=len(labels))
        open_ = np.flatnonzero(counts >= 1)
        if len(open_) < len(labels):
            labels, counts = [labels[place] for place in open_.tolist()], counts[open_]
        label_key = keys.lasting_key(release=self.name, purpose="labels")
        noise = self.noise.draw(round_, keys, Coordinates.of_labels(labels, label_key))
        threshold = self.thresholds[round_ - 1]
        places = np.flatnonzero(noise >= threshold - counts)  # a sum could leave 64 bits
        released = sorted(
            (labels[place], int(counts[place]) + int(noise[place])) for place in places.tolist()
        )
        return self.noise.answer(
            round_,
            [label.decode() for label, _ in released],
            [value for _, value in released],
            threshold=threshold,
        )

    def collision_delta(self) -> Fraction:
        """Bound on the probability that two labels share their noise, at `max_bins` labels."""
        return collision_bound(self.max_bins)

    def describe(self) -> dict[str, Any]:
        """Public facts about the mechanism."""
        return {
            "mechanism": "sparse histogram",
            "threshold": self.threshold,
            "threshold_min": min(self.thresholds),
            "max_bins": self.max_bins,
            **self.noise.describe(),
        }
