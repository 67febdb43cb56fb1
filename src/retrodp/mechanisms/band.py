"""How far sums over several coordinates of one noise stray, decided when a plan is resolved."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from retrodp.noise.processes import Process
from retrodp.noise.weighted import reaches, rounding_reach

DIGITS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Certified half widths of weighted sums of noise, one-sided, by round.

    A sum of rounded noises with weights w exceeds ``reach |w|_2 + rounding |w|_1`` with at most
    the probability that the band was made for, and so does minus the sum.

    Attributes:
        reach: For a round alone, in steps, shape (horizon,).
        reach_all: For all rounds together, likewise.
        rounding: 1/2 where coordinates are rounded, else 0.
    """

    reach: tuple[Fraction, ...]
    reach_all: tuple[Fraction, ...]
    rounding: Fraction

    @classmethod
    def of(cls, process: Process, *, miss: Fraction, coordinates: int) -> Band:
        """The band of one-sided miss `miss`, for sums over at most so many coordinates.

        All rounds together miss with at most `miss`: each gets an equal part of it.
        """
        horizon = process.factor.horizon
        alone, together = (
            reaches(process, float(part), coordinates=coordinates)
            for part in (miss, miss / horizon)
        )
        return cls(
            reach=tuple(_above(value) for value in alone.tolist()),
            reach_all=tuple(_above(value) for value in together.tolist()),
            rounding=rounding_reach(process),
        )

    def half(self, round_: int, squared: Fraction, absolute: Fraction) -> tuple[Fraction, Fraction]:
        """Half widths of a sum for the round alone and for all rounds, in steps.

        Args:
            round_: From 1.
            squared: Sum of the squared weights.
            absolute: Sum of the absolute weights.
        """
        edge = self.rounding * absolute
        return (
            root_above(self.reach[round_ - 1] ** 2 * squared) + edge,
            root_above(self.reach_all[round_ - 1] ** 2 * squared) + edge,
        )

    def worst(self) -> Band:
        """A band of one round that is as wide as that of any round."""
        return Band(
            reach=(max(self.reach),), reach_all=(max(self.reach_all),), rounding=self.rounding
        )

    def spec(self) -> dict[str, Any]:
        """What the resolved plan stores."""
        return {
            "reach": [str(value) for value in self.reach],
            "reach_all": [str(value) for value in self.reach_all],
            "rounding": str(self.rounding),
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Band:
        """Read what `spec` wrote."""
        return cls(
            reach=tuple(map(Fraction, spec["reach"])),
            reach_all=tuple(map(Fraction, spec["reach_all"])),
            rounding=Fraction(spec["rounding"]),
        )


def root_above(square: Fraction) -> Fraction:
    """Least thousandth that is not below the root; a function of the exact number alone."""
    scaled = math.ceil(square * 1_000_000)
    return Fraction(math.isqrt(scaled - 1) + 1 if scaled else 0, 1000)


def _above(value: float) -> Fraction:
    """A decimal of `DIGITS` significant digits that is not below the value."""
    digits = DIGITS - 1 - math.floor(math.log10(value)) if value else 0
    exact = Fraction(value)
    power = Fraction(10) ** digits
    return Fraction(math.ceil(exact * power)) / power
