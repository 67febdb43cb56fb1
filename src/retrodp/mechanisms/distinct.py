"""How many different values survive: the exact number, with noise of its own every round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.calibrate import DEFAULT_LEVEL, process_of
from retrodp.mechanisms.calibrated import ONE_RECORD, CalibratedNoise
from retrodp.mechanisms.one_noise import OneNoise
from retrodp.noise.factors.fresh import FreshFactor
from retrodp.noise.key import NoiseKeys
from retrodp.noise.prf import Coordinates
from retrodp.privacy.budget import PureDP, zCDP


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshDistinct(OneNoise):
    """Number of items with a positive count, plus noise that is independent from round to round.

    Guarantee: a life changes the number by one in any subset of its rounds, at most T (W with a
    window of W rounds), so by sqrt(T) in L2 and T in L1; k records of a unit change it k times as
    much. Exactly retroactive: a function of the surviving data, and noise that knows none. Holds
    against streams that react to earlier answers: every round's noise is its own. Source:
    docs/kinds/distinct.md.

    Attributes:
        noise: Over a factor with one node a round; no other hides arbitrary subsets of rounds.
        facts: Public facts about the choice of the method.
    """

    noise: CalibratedNoise
    facts: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.noise.process.factor, FreshFactor):
            raise TypeError("A number of items needs noise of its own every round.")

    @classmethod
    def of(
        cls,
        *,
        horizon: int,
        budget: zCDP | PureDP,
        window: int | None = None,
        name: str = "distinct",
        level: Fraction = DEFAULT_LEVEL,
    ) -> FreshDistinct:
        """Calibrate the noise for one record a unit.

        Args:
            horizon: Rounds covered.
            budget: `zCDP(rho)` for Gaussian noise, `PureDP(epsilon)` for Laplace noise.
            window: Rounds for which a record counts; None: to the horizon.
            name: Label of the noise.
            level: Coverage of the intervals.
        """
        factor = FreshFactor(horizon=horizon, window=window or horizon)
        process = process_of(factor, budget)
        noise = CalibratedNoise.of(
            name, process, step=Fraction(1), amount=1, split=ONE_RECORD, level=level
        )
        return cls(noise=noise)

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        """The answer of one round; `exact` holds the records of each item."""
        present = sum(total > 0 for total in exact.values())
        noise = self.noise.draw(round_, keys, Coordinates.of_indices(1))
        return self.noise.answer(round_, None, [present + int(noise[0])])

    def describe(self) -> dict[str, Any]:
        """Public facts about the mechanism."""
        return {"mechanism": "fresh distinct count", **self.noise.describe(), **dict(self.facts)}
