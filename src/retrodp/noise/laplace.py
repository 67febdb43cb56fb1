"""The exact discrete Laplace law, drawn as a pure function of key and coordinate.

Promise: a draw equals k with probability proportional to exp(-|k| / scale), exactly, given uniform
blocks. Knows no factor, no statistic and no data.
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

MOST_SCALE = 2**40


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplace:
    """P(k) proportional to exp(-|k| / scale) on the integers.

    Attributes:
        scale: b, an exact rational of at most 2**40, in grid steps.
    """

    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", exact("scale", self.scale))
        positive(scale=self.scale)
        if self.scale > MOST_SCALE:
            raise PlanError(f"scale must be at most 2**40 steps, got {float(self.scale):g}.")

    @property
    def exponent(self) -> Exponent:
        """Minus the logarithm of the weight."""
        return Exponent(1 / self.scale, Fraction(0))

    @property
    def variance_exactish(self) -> float:
        """1 / (2 sinh(1 / (2 scale))^2), in squared steps, to a few units in the last place."""
        rate = float(1 / self.scale) if self.scale > Fraction(1, 2**20) else math.inf
        return 2 * math.exp(-rate) / math.expm1(-rate) ** 2

    @property
    def max_magnitude(self) -> int:
        """No draw is larger: deciding it would take more than `MOST_BITS` zero bits in a row."""
        return math.ceil(self.scale * Fraction(MOST_BITS + 1) * Fraction(7, 10)) + math.ceil(
            self.scale / 64
        )

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
