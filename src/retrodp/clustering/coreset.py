"""What an online clustering publishes of a block: representatives with noisy weights.

Promise: published numbers alone, in whole grid steps and whole points; whatever is computed from
coresets is post-processing. Knows no point, no key and no noise, and does not say how close a
coreset comes to the points it stands for (definition 4 of Cohen et al. 2026 says what closeness is).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from retrodp.errors import UsageError

Ints = NDArray[np.int64]

MONOTONE_DEVIATIONS = 2.5
"""Standard deviations that monotone weights stay below the noisy ones."""


class Changes(NamedTuple):
    """What became of the representatives since an earlier block.

    Attributes:
        born: Places of the representatives that were not there; they are the last ones.
        weights: What each weight grew by, signed, shape (m,); a new one's whole weight.
        moved: Places of earlier representatives whose `centres` are others now.
    """

    born: range
    weights: Ints
    moved: Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coreset:
    """Weighted representatives of all points that arrived up to a block.

    A representative stays where it was born and is never taken away, so the representatives of a
    later block begin with those of an earlier one.

    Attributes:
        block: From 1 to the horizon.
        phase: From 0; how often the estimated cost was doubled.
        points: Where representatives lie, in grid steps, shape (m, d), in the order of their birth.
        centres: Noisy means of the points that each stands for, in grid steps, shape (m, d); the
            representative itself where a mean would be mostly noise.
        weights: Noisy numbers of points, signed, shape (m,): errors are as often above as below.
        births: Block at whose end each was born, shape (m,), rising; 0 for one that needs no data.
        weight_stddev: Of the noise in each weight, in points.
    """

    block: int
    phase: int
    points: Ints
    centres: Ints
    weights: Ints
    births: Ints
    weight_stddev: float

    def __post_init__(self) -> None:
        many = len(self.weights)
        shapes = (self.weights.shape, self.births.shape, self.points.shape[:1])
        if any(shape != (many,) for shape in shapes) or self.points.ndim != 2:
            raise UsageError(
                "A coreset needs one weight, one birth and one point a representative."
            )
        if self.centres.shape != self.points.shape:
            raise UsageError("A coreset needs one centre a representative.")
        if not 0 <= self.weight_stddev < math.inf:
            raise UsageError(
                f"weight_stddev must be finite and at least 0, got {self.weight_stddev!r}."
            )
        for array in (self.points, self.centres, self.weights, self.births):
            if array.dtype != np.int64:
                raise UsageError("A coreset holds whole numbers of 64 bits.")
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.weights)

    @classmethod
    def empty(cls, columns: int) -> Self:
        """Of no block: no representative."""
        none = np.zeros((0, columns), dtype=np.int64)
        zero = np.zeros(0, dtype=np.int64)
        return cls(
            block=0,
            phase=0,
            points=none,
            centres=none.copy(),
            weights=zero,
            births=zero.copy(),
            weight_stddev=0.0,
        )

    @property
    def signed(self) -> Ints:
        """The noisy weights as they are: unbiased, some of them below 0."""
        return self.weights

    @property
    def positive(self) -> Ints:
        """Places of representatives whose weight stands out of the noise, by 2.5 deviations."""
        found: Ints = np.flatnonzero(self.weights > self._margin)
        return found

    def monotone(self, previous: Ints | None = None) -> Ints:
        """Weights that never fall, for consumers that can only add points.

        The largest so far of 0 and the noisy weight less 2.5 standard deviations. A running maximum
        of the noisy weights themselves is biased up by all that the noise ever added; this one
        stays below the true weight in all but the worst blocks, and is low by 2.5 deviations when
        points stop coming.

        Args:
            previous: What this gave for the block before, or nothing before the first.
        """
        now = np.maximum(self.weights - self._margin, 0)
        if previous is not None:
            if len(previous) > len(now):
                raise UsageError("Monotone weights of an earlier block belong here.")
            now[: len(previous)] = np.maximum(now[: len(previous)], previous)
        return now

    def changes(self, previous: Coreset) -> Changes:
        """What changed since an earlier block of the same sketch.

        Raises:
            UsageError: The earlier representatives are not the first ones of these.
        """
        many = len(previous)
        if many > len(self) or not np.array_equal(self.points[:many], previous.points):
            raise UsageError("The earlier coreset is of another sketch or of a later block.")
        weights = self.weights.copy()
        weights[:many] -= previous.weights
        moved = np.flatnonzero((self.centres[:many] != previous.centres).any(axis=1))
        return Changes(range(many, len(self)), weights, moved)

    @property
    def _margin(self) -> int:
        return math.ceil(MONOTONE_DEVIATIONS * self.weight_stddev)
