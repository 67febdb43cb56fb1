"""The Gaussian compiler: answers that remember, hidden under noise that is new in every round.

KKMNS theorem 5.2: once two streams agree, an algorithm that is accurate answers nearly the same on
both, whatever it remembers; noise of the size of its error hides which of them it was. Each later
answer is then nearly one that knows nothing of what was deleted (marginal approximate retroactivity,
definition 2.9), and so is a block of a few, less well. The state still remembers.

For another space of answers: a `MaskingMap` (remark 5.4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from retrodp._check import positive, probability, whole
from retrodp.errors import PlanError
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.contract import Adaptive, Retroactive, Seen, Stateful
from retrodp.mechanisms.oneshot.ranks import Segment, drawn, ratio_below
from retrodp.noise.coins import Coins
from retrodp.noise.key import NoiseKeys
from retrodp.noise.processes import AnyFactor
from retrodp.privacy.loss import PrivacyLoss
from retrodp.privacy.masking import (
    Closeness,
    block_closeness,
    least_variance,
    marginal_closeness,
    masked_error,
    paper_deviation,
    tight_block_closeness,
)

MASK = "mask"  # purpose of the key of the noise that hides


class MaskingMap(Protocol):
    """A random map K that hides a distance of 2 E between two answers (remark 5.4)."""

    @property
    def one(self) -> Closeness:
        """(alpha, beta_K): how close the laws of two hidden answers are."""

    def hide(self, answer: Sequence[int], coins: Coins) -> list[int]:
        """The hidden answer.

        Args:
            answer: Of the algorithm, in whole steps.
            coins: Used for this answer alone.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianMap:
    """Discrete Gaussian noise on every coordinate; hides whole steps at a Euclidean distance of 2 E.

    Attributes:
        error: E, in whole steps.
        coordinates: d.
        alpha: Closeness of one answer.
        beta: beta_K.
        variance: Of the noise, in squared steps.
    """

    error: int
    coordinates: int
    alpha: Fraction
    beta: Fraction
    variance: Fraction

    @classmethod
    def of(
        cls, error: int, *, alpha: Fraction, beta: Fraction, coordinates: int = 1
    ) -> GaussianMap:
        """With the least noise that does it; `paper_deviation` says what the paper's takes."""
        variance = least_variance(error, alpha=alpha, beta=beta, coordinates=coordinates)
        return cls(error=error, coordinates=coordinates, alpha=alpha, beta=beta, variance=variance)

    @property
    def one(self) -> Closeness:
        """(alpha, beta_K)."""
        return Closeness(float(self.alpha), float(self.beta))

    @property
    def deviation(self) -> float:
        """s, in steps."""
        return math.sqrt(self.variance)

    @property
    def paper(self) -> float | None:
        """The paper's s, in steps; None above alpha = 1, where its formula is not proved."""
        if self.alpha > 1:
            return None
        return paper_deviation(self.error, alpha=float(self.alpha), beta=float(self.beta))

    def hide(self, answer: Sequence[int], coins: Coins) -> list[int]:
        """The answer plus noise."""
        return [value + coins.gaussian(self.variance) for value in answer]

    def strays(self, miss: float) -> int:
        """Steps from the truth that a hidden coordinate exceeds with at most this probability.

        A discrete Gaussian is sub-Gaussian with its variance (Canonne, Kamath, Steinke 2020).
        """
        probability(miss=miss)
        return self.error + math.ceil(self.deviation * math.sqrt(2 * math.log(2 / miss)))


@dataclass(frozen=True, slots=True, kw_only=True)
class MedianMap:
    """A median drawn from the estimated cumulative counts of a grid (remark 5.5).

    Two estimates whose counts differ by at most 2 E everywhere differ in ``|2 F(y) - n|`` by at
    most 6 E, n = F(last); so the exponential mechanism at ``alpha / (12 E)`` a step makes its draw
    alpha-close, with no beta. A drawn point is farther than t from the middle rank of the estimate
    than the best one with probability at most ``X exp(-t alpha / (6 E))``, X the grid: the price grows with the
    logarithm of the domain. The paper's own map (Cohen et al. 2023) grows with its iterated
    logarithm, with constants that no domain of practical size repays.

    Attributes:
        error: E, in records.
        alpha: Closeness of one answer.
    """

    error: int
    alpha: Fraction

    def __post_init__(self) -> None:
        whole(least=1, error=self.error)
        positive(alpha=self.alpha)

    @property
    def one(self) -> Closeness:
        """(alpha, 0)."""
        return Closeness(float(self.alpha), 0.0)

    def hide(self, answer: Sequence[int], coins: Coins) -> list[int]:
        """A place of the grid; `answer` holds the cumulative count at each."""
        total = answer[-1]
        segments = [Segment(place, 1, abs(2 * count - total)) for place, count in enumerate(answer)]
        return [drawn(segments, ratio_below(self.alpha / (12 * self.error)), coins)]

    def rank_error(self, grid: int, miss: float) -> float:
        """How much farther than the best point from the middle rank, in records of the estimate."""
        probability(miss=miss)
        return 6 * self.error / float(self.alpha) * math.log(grid / miss)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mask:
    """What is promised of hidden answers, and the map that hides them.

    Attributes:
        map: K.
        base_miss: beta0: probability that the algorithm is ever farther than E from the truth.
    """

    map: MaskingMap
    base_miss: float

    def hide(
        self, answer: Sequence[int], round_: int, *, release: str, keys: NoiseKeys
    ) -> list[int]:
        """The hidden answer of a round: a pure function of answer, key, release and round."""
        key = keys.fresh_key(release=release, purpose=MASK, round=round_)
        return self.map.hide(answer, Coins(key))

    @property
    def marginal(self) -> Closeness:
        """Of a single answer, as in corollary 5.3."""
        return marginal_closeness(self.map.one, base_miss=self.base_miss)

    def block(self, length: int, *, slack: float) -> Closeness:
        """Of so many consecutive answers, as in theorem 5.2."""
        return block_closeness(length, self.map.one, base_miss=self.base_miss, slack=slack)

    def tight_block(self, length: int, *, beta: float) -> Closeness:
        """The same by composing the noise itself; for `GaussianMap` alone."""
        if not isinstance(self.map, GaussianMap):
            raise PlanError("Only Gaussian noise is composed exactly.", do="Use `block`.")
        return tight_block_closeness(
            length,
            self.map.error,
            variance=self.map.variance,
            beta=beta,
            base_miss=self.base_miss,
            coordinates=self.map.coordinates,
        )


def mask_miss(level: Fraction, base_miss: float) -> float:
    """What the level of an interval leaves to the mask, the base being beyond E so often.

    Raises:
        PlanError: It leaves nothing.
    """
    left = float(1 - level) - base_miss
    if not left > 0:
        raise PlanError(
            f"The base strays beyond its error with probability {base_miss:.3g}, more than the "
            f"level {float(level):g} allows.",
            do="Lower beta or the level.",
        )
    return left


@dataclass(frozen=True, slots=True, kw_only=True)
class Masked:
    """Another mechanism's single number, hidden under fresh Gaussian noise.

    Guarantee: privacy is the base's, whose answers are post-processed. Marginally retroactive with
    the closeness of `mask`, for histories in which the base stays within E of the truth but for
    beta0; E is its noise and the declared `drift`, which nothing enforces. The base's own interval
    may tell what it remembers, so none of it is published: the interval is E and the mask.

    Attributes:
        base: What remembers.
        mask: With a `GaussianMap` of one coordinate.
        level: Of the intervals.
        block: Length of the blocks that `describe` tells of.
        facts: Further public facts.
    """

    base: Stateful
    mask: Mask
    level: Fraction
    block: int
    facts: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """Name of the release."""
        return self.base.name

    @property
    def step(self) -> Fraction:
        """The base's step."""
        return self.base.step

    @property
    def factor(self) -> AnyFactor:
        """The base's."""
        return self.base.factor

    @property
    def retroactive(self) -> Retroactive:
        """Each later answer nearly, all of them together less so."""
        return "marginal"

    @property
    def adaptive(self) -> Adaptive:
        """As the base: masking is post-processing."""
        return self.base.adaptive

    @property
    def instead(self) -> str:
        """What to plan to have every deletion forgotten."""
        return self.base.instead

    @property
    def watches(self) -> bool:
        """As the base."""
        return self.base.watches

    def begin(self) -> bytes:
        """The base's state."""
        return self.base.begin()

    def advance(
        self, round_: int, seen: Seen, keys: NoiseKeys, state: bytes
    ) -> tuple[Answer, bytes]:
        """The base's answer, hidden; the base's state, as it is."""
        answer, state = self.base.advance(round_, seen, keys, state)
        (value,) = answer.values
        assert value is not None
        (hidden,) = self.mask.hide([value], round_, release=self.name, keys=keys)
        gaussian = self.mask.map
        assert isinstance(gaussian, GaussianMap)
        miss = mask_miss(self.level, self.mask.base_miss)
        return (
            Answer(
                release=self.name,
                round=round_,
                keys=None,
                values=(hidden,),
                step=self.step,
                stddev=f"{gaussian.deviation * float(self.step):.6g}",
                half=gaussian.strays(miss),
                half_all=gaussian.strays(miss / self.horizon),
                level=self.level,
            ),
            state,
        )

    @property
    def horizon(self) -> int:
        """Rounds covered."""
        return self.factor.horizon

    def cost(self) -> tuple[PrivacyLoss, ...]:
        """The base's."""
        return self.base.cost()

    def describe(self) -> dict[str, Any]:
        """Public facts: the promise for one answer and for a block, and both deviations."""
        gaussian = self.mask.map
        assert isinstance(gaussian, GaussianMap)
        one = self.mask.marginal
        miss = mask_miss(self.level, self.mask.base_miss)
        step = float(self.step)
        slack = max(one.beta, 1e-300)
        paper = self.mask.block(self.block, slack=slack)
        tight = self.mask.tight_block(self.block, beta=self.block * gaussian.one.beta)
        return {
            **self.base.describe(),
            "mechanism": f"masked {self.base.describe()['mechanism']}",
            "alpha": float(gaussian.alpha),
            "beta": one.beta,
            "hidden_error": gaussian.error * step,
            "mask_deviation": gaussian.deviation * step,
            "mask_deviation_of_the_paper": None
            if gaussian.paper is None
            else gaussian.paper * step,
            "masked_error": masked_error(
                gaussian.error * step,
                deviation=gaussian.deviation * step,
                coordinates=1,
                miss=miss,
            ),
            "block": self.block,
            "block_alpha": tight.alpha,
            "block_beta": tight.beta,
            "block_alpha_of_the_paper": paper.alpha,
            "block_beta_of_the_paper": paper.beta,
            "error_max": gaussian.strays(miss) * step,
            "error_all_max": gaussian.strays(miss / self.horizon) * step,
            **dict(self.facts),
        }
