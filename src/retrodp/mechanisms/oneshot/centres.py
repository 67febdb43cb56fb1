"""k-means centres from one sample: Lloyd's steps with noisy sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from retrodp import _check
from retrodp._check import positive, whole
from retrodp.errors import PlanError
from retrodp.mechanisms.oneshot.contract import Values, require_grid
from retrodp.noise.coins import Coins
from retrodp.plan.decimals import common_step, decimal_text
from retrodp.privacy.sampling import OneShot

Point = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyLloyd:
    """k centres of vectors of bounded integers.

    The first centres are uniform in the box, by the coins. Each of `steps` steps gives every
    record to its nearest centre (distances in units of the columns' ranges, exact, ties to the
    first) and publishes, within, noisy numbers and noisy sums of deviations from the middle of the
    box. A record adds one to a number and at most half a range to the sum of each of d columns, so
    that with an equal part of ``epsilon / steps`` for numbers and for sums, discrete Laplace noise
    of scale ``2 steps / epsilon`` for numbers and ``d range steps / epsilon`` for sums pays for all.

    Source: Blum, Dwork, McSherry, Nissim 2005 (SuLQ k-means), with exact integer noise.

    Attributes:
        epsilon: For adding or removing one record.
        k: Centres.
        columns: Names, for labels.
        ranges: (low, high) of each column, in steps of the column.
        steps_of: Size of a step of each column.
        steps: Of Lloyd's algorithm.
    """

    epsilon: Fraction
    k: int
    columns: tuple[str, ...]
    ranges: tuple[tuple[int, int], ...]
    steps_of: tuple[Fraction, ...]
    steps: int = 5

    def __post_init__(self) -> None:
        positive(epsilon=self.epsilon)
        whole(least=1, k=self.k, steps=self.steps)
        _check.texts(columns=self.columns, expected="names of columns")
        for (low, high), step in zip(self.ranges, self.steps_of, strict=True):
            require_grid(low, high, step)
        if not all(low < high for low, high in self.ranges):
            raise PlanError("Centres need columns with more than one value.")

    @property
    def guarantee(self) -> OneShot:
        """``epsilon``; a replacement is two steps."""
        return OneShot(epsilon=self.epsilon)

    @property
    def labels(self) -> tuple[str, ...]:
        """Number of the centre and column."""
        return tuple(sorted(self._places(), key=str.encode))

    def _places(self) -> dict[str, tuple[int, int]]:
        digits = len(str(self.k))
        return {
            f"{centre + 1:0{digits}d} {name}": (centre, column)
            for centre in range(self.k)
            for column, name in enumerate(self.columns)
        }

    @property
    def step(self) -> Fraction:
        """The largest step of which all columns' steps are multiples."""
        return common_step(self.steps_of)

    @property
    def _units(self) -> tuple[int, ...]:
        return tuple(int(step / self.step) for step in self.steps_of)

    @property
    def low(self) -> int:
        """Least lower end of the columns, in common steps."""
        return min(low * unit for (low, _), unit in zip(self.ranges, self._units, strict=True))

    @property
    def high(self) -> int:
        """Greatest upper end."""
        return max(high * unit for (_, high), unit in zip(self.ranges, self._units, strict=True))

    def answer(self, sample: Sequence[Values], coins: Coins) -> Sequence[int | None]:
        """The coordinates of the centres, sorted, so that equal centres get equal numbers."""
        points = [tuple(value for value in values if isinstance(value, int)) for values in sample]
        centres = sorted(
            tuple(low + coins.below(high - low + 1) for low, high in self.ranges)
            for _ in range(self.k)
        )
        for _ in range(self.steps):
            centres = sorted(self._moved(points, centres, coins))
        units, places = self._units, self._places()
        found = (places[name] for name in self.labels)
        return [centres[own][column] * units[column] for own, column in found]

    def _moved(
        self, points: Sequence[Point], centres: Sequence[Point], coins: Coins
    ) -> list[Point]:
        widths = [high - low for low, high in self.ranges]
        common = math.lcm(*widths)
        weights = [(common // width) ** 2 for width in widths]
        counts = [0] * self.k
        sums = [[0] * len(widths) for _ in range(self.k)]
        for point in points:
            nearest = min(
                range(self.k),
                key=lambda own: sum(
                    weight * (x - c) ** 2
                    for weight, x, c in zip(weights, point, centres[own], strict=True)
                ),
            )
            counts[nearest] += 1
            for column, (x, (low, high)) in enumerate(zip(point, self.ranges, strict=True)):
                sums[nearest][column] += 2 * x - low - high  # half steps from the middle
        rate = self.epsilon / self.steps
        moved = []
        for own in range(self.k):
            count = counts[own] + coins.laplace(2 / rate)
            noisy = [
                # In half steps a deviation is at most the width.
                total + coins.laplace(2 * len(widths) * width / rate)
                for total, width in zip(sums[own], widths, strict=True)
            ]
            moved.append(centres[own] if count < 1 else self._mean(noisy, count))
        return moved

    def _mean(self, sums: Sequence[int], count: int) -> Point:
        return tuple(
            min(max(round(Fraction(low + high, 2) + Fraction(total, 2 * count)), low), high)
            for total, (low, high) in zip(sums, self.ranges, strict=True)
        )

    def describe(self) -> dict[str, Any]:
        """Public facts."""
        return {
            "mechanism": "k-means by noisy sums",
            "centres": self.k,
            "steps": self.steps,
            "columns": list(self.columns),
            "epsilon_once": str(self.epsilon),
            "unit": decimal_text(1, self.step),
        }
