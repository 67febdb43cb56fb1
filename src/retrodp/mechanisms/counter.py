"""A number a round: the continual counter of KKMNS theorem 3.2 with window sensitivity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from retrodp import _check
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.calibrate import DEFAULT_LEVEL, calibrated
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.one_noise import OneNoise
from retrodp.noise.key import NoiseKeys
from retrodp.noise.prf import Coordinates
from retrodp.privacy.budget import PureDP, zCDP

SCALAR = b""


@dataclass(frozen=True, slots=True, init=False)
class Counter(OneNoise):
    """Releases an exact integer plus keyed noise, every round of a horizon.

    Guarantee: the sequence of all answers satisfies `budget` for streams that differ in one life
    (its addition and deletion together); exactly retroactive, since the noise is a function of
    key, name and round alone. Source: KKMNS theorem 3.2; window sensitivity and factors as in
    docs/guarantees.md.
    """

    noise: CalibratedNoise

    def __init__(  # noqa: PLR0913  every argument is a public choice with a default
        self,
        *,
        horizon: int,
        budget: zCDP | PureDP,
        name: str = "count",
        step: Fraction = Fraction(1),
        sensitivity: int = 1,
        factor: str = "auto",
        level: Fraction = DEFAULT_LEVEL,
    ) -> None:
        """Calibrate the noise.

        Args:
            horizon: Rounds covered, T; round T + 1 is refused.
            budget: `zCDP(rho)` for Gaussian noise, `PureDP(epsilon)` for Laplace noise.
            name: Label of the noise; two counters under one key need two names.
            step: Size of a step; exact values are given in whole steps.
            sensitivity: Most that one record moves the exact value, in steps.
            factor: "auto", "haar", "delannoy" or "binary"; or "dense", least error for Gaussian
                noise over at most 1,000 rounds, whose keys must last to the horizon.
            level: Coverage of the intervals.
        """
        noise = calibrated(
            name,
            horizon=horizon,
            budget=budget,
            step=step,
            amount=sensitivity,
            factor=factor,
            level=level,
        )
        object.__setattr__(self, "noise", noise)

    @classmethod
    def of(cls, noise: CalibratedNoise) -> Counter:
        """A counter with noise that was calibrated before."""
        counter = cls.__new__(cls)
        object.__setattr__(counter, "noise", noise)
        return counter

    def release(self, round_: int, exact: int | Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        """The answer of one round; `exact` in steps, as a number or as the total of label ""."""
        if isinstance(exact, Mapping):
            exact = exact.get(SCALAR, 0)
        total = _check.integer(exact=exact, expected="a whole number of steps")
        noise = self.noise.draw(round_, keys, Coordinates.of_indices(1))
        return self.noise.answer(round_, None, [total + int(noise[0])])

    def describe(self) -> dict[str, Any]:
        """Public facts about the mechanism."""
        return {"mechanism": "counter", **self.noise.describe()}
