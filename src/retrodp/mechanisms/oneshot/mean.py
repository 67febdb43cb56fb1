"""The mean of a bounded column from one sample, by two noisy sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from retrodp._check import positive
from retrodp.errors import PlanError
from retrodp.mechanisms.oneshot.contract import Values, require_grid
from retrodp.noise.coins import Coins
from retrodp.privacy.sampling import OneShot


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMean:
    """Mean of the sampled values.

    A value x adds ``x - low`` to one sum and ``high - x`` to another: together always the width, so
    that discrete Laplace noise of scale width / epsilon on both costs epsilon, with nothing to
    split between sum and number. The mean is ``low + width A / (A + B)``.

    Attributes:
        epsilon: For adding or removing one record.
        low: Lower bound of the column, in steps.
        high: Upper bound.
        step: Size of a step.
    """

    epsilon: Fraction
    low: int
    high: int
    step: Fraction

    def __post_init__(self) -> None:
        positive(epsilon=self.epsilon)
        require_grid(self.low, self.high, self.step)
        if not self.low < self.high:
            raise PlanError("A mean needs a column with more than one value.")

    @property
    def guarantee(self) -> OneShot:
        """``epsilon``; a replacement moves both sums by up to the width."""
        return OneShot(epsilon=self.epsilon)

    @property
    def labels(self) -> None:
        """One number."""
        return None

    def answer(self, sample: Sequence[Values], coins: Coins) -> Sequence[int | None]:
        """The mean in whole steps, ties to the even one; None if the noise leaves no records."""
        width = self.high - self.low
        values = [value for (value,) in sample if isinstance(value, int)]
        above = sum(value - self.low for value in values) + coins.laplace(width / self.epsilon)
        below = sum(self.high - value for value in values) + coins.laplace(width / self.epsilon)
        if above + below <= 0:
            return (None,)
        mean = self.low + round(Fraction(width * above, above + below))
        return (min(max(mean, self.low), self.high),)

    def describe(self) -> dict[str, Any]:
        """Public facts."""
        return {
            "mechanism": "noisy mean",
            "epsilon_once": str(self.epsilon),
            "law": "discrete Laplace",
            "scale_once": str((self.high - self.low) / self.epsilon),
        }
