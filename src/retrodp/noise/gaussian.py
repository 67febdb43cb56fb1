"""The exact discrete Gaussian law, drawn as a pure function of key and coordinate.

Promise: a draw equals k with probability proportional to exp(-k^2 / (2 variance)), exactly, given
uniform blocks. Knows no factor, no statistic and no data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from retrodp._check import exact, positive
from retrodp.errors import PlanError
from retrodp.noise.exact import MOST_BITS, Exponent
from retrodp.noise.prf import Blocks, Coordinates
from retrodp.noise.sampler import sampler

MOST_VARIANCE = 2**80


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussian:
    """P(k) proportional to exp(-k^2 / (2 variance)) on the integers.

    Attributes:
        variance: s^2 of the law's formula, an exact rational of at most 2**80, in squared steps.
    """

    variance: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", exact("variance", self.variance))
        positive(variance=self.variance)
        if self.variance > MOST_VARIANCE:
            raise PlanError(
                f"variance must be at most 2**80 squared steps, got {float(self.variance):g}."
            )

    @property
    def exponent(self) -> Exponent:
        """Minus the logarithm of the weight."""
        return Exponent(Fraction(0), 1 / (2 * self.variance))

    @property
    def variance_exactish(self) -> float:
        """The law's own variance, a little below s^2, in squared steps, to about 1e-15."""
        if self.variance >= 4:  # the difference is below 4 pi^2 s^4 exp(-2 pi^2 s^2)
            return float(self.variance)
        rate = float(1 / (2 * self.variance)) if self.variance > Fraction(1, 2**20) else math.inf
        weights = [math.exp(-rate * k * k) for k in range(1, 40)]
        squares = math.fsum(k * k * weight for k, weight in enumerate(weights, 1))
        return 2 * squares / (1 + 2 * math.fsum(weights))

    @property
    def max_magnitude(self) -> int:
        """No draw is larger: deciding it would take more than `MOST_BITS` zero bits in a row."""
        square = 2 * self.variance * (MOST_BITS + 1) * Fraction(7, 10)
        deviation = math.isqrt(math.ceil(self.variance)) + 1
        return math.isqrt(math.ceil(square)) + 1 + math.ceil(Fraction(deviation, 64))

    def draw(self, prf: Blocks, where: Coordinates) -> NDArray[np.int64]:
        """One draw a coordinate.

        Args:
            prf: Blocks of one key.
            where: n coordinates; the same coordinate gives the same draw in any batch.

        Returns:
            int64, shape (n,), in grid steps.

        Time: some 10 to 30 ns a draw; it depends a little on the draws (rejections, narrow
        decisions), so it is told to nobody beyond the total of a public number of draws.
        Source: Canonne, Kamath, Steinke (2020), for the law; `noise.sampler` for the method.
        """
        return sampler(self.exponent).draw(prf, where)
