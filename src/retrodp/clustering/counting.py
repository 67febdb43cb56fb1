"""Continual counts that never fall, of a whole stream at once, with an accuracy that is proved.

Promise: the count at a time depends on the bits up to that time and on noise alone, every bit adds to
at most `levels` noisy sums, and with the stated probability no count is farther off than `accuracy`
at any time. Knows bits, and nothing of what they mean.

Source: Dwork et al. (2010), Chan, Shi, Song (2011); Cohen et al. (2026), theorem 23.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from retrodp import _check
from retrodp.errors import PlanError
from retrodp.noise.gaussian import DiscreteGaussian
from retrodp.noise.laplace import DiscreteLaplace
from retrodp.noise.prf import BlockPRF, Coordinates
from retrodp.privacy.budget import PureDP, zCDP

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """A binary tree of noisy sums over n times.

    Attributes:
        times: n.
        budget: Spent when one bit of the stream changes; also if that is chosen, and all later bits
            are, in view of what was published before.
    """

    times: int
    budget: PureDP | zCDP

    def __post_init__(self) -> None:
        _check.whole(least=1, times=self.times)

    @property
    def levels(self) -> int:
        """Noisy sums that a bit can add to; also the most that a count is made of."""
        return self.times.bit_length()

    @property
    def law(self) -> DiscreteLaplace | DiscreteGaussian:
        """Of the noise in each sum: scale levels / epsilon, or variance levels / (2 rho)."""
        if isinstance(self.budget, PureDP):
            return DiscreteLaplace(scale=self.levels / self.budget.epsilon)
        return DiscreteGaussian(variance=Fraction(self.levels) / (2 * self.budget.rho))

    def accuracy(self, failure: float) -> int:
        """Farthest from the truth at any time, but with probability `failure`.

        Laplace of scale b: `sqrt(2) b (ln(2 n / failure) + levels ln 2)`, from the moment generating
        function at 1 / (sqrt(2) b), which is at most 2 for each sum; that of the discrete law is at
        most that of the continuous one. Gaussian: `s sqrt(2 levels ln(2 n / failure))`.
        """
        if not 0 < failure < 1:
            raise PlanError(f"failure must lie between 0 and 1, got {failure!r}.")
        tail = math.log(2 * self.times) - math.log(failure)
        match self.law:
            case DiscreteLaplace(scale=scale):
                return math.ceil(math.sqrt(2) * float(scale) * (tail + self.levels * math.log(2)))
            case DiscreteGaussian(variance=variance):
                return math.ceil(math.sqrt(2 * self.levels * tail * float(variance)))

    def noise(self, key: bytes) -> Ints:
        """Noise of the count at each time, shape (n,)."""
        prf, law = BlockPRF(key), self.law
        times = np.arange(1, self.times + 1)
        found = np.zeros(self.times, dtype=np.int64)
        first = 0
        for level in range(self.levels):
            # A prefix ends with a sum of this level if that bit of its length is set.
            many = ((self.times >> level) + 1) // 2
            where = Coordinates.of_indices(np.arange(first, first + many, dtype=np.int64))
            sums = law.draw(prf, where)
            used = (times >> level & 1) == 1
            found[used] += sums[(times[used] >> level) // 2]
            first += many
        return found

    def counts(self, bits: NDArray[np.bool_] | Ints, key: bytes) -> Ints:
        """Noisy counts that never fall and begin at 0 or above, shape (n,).

        The running maximum is as accurate as the counts that it is of, as the truth never falls.
        """
        noisy = np.cumsum(bits, dtype=np.int64) + self.noise(key)
        found: Ints = np.maximum(np.maximum.accumulate(noisy), 0)
        return found
