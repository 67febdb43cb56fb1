"""How far sums over several coordinates of one noise stray, decided when a plan is resolved."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from retrodp.noise.processes import Process
from retrodp.noise.weighted import reaches, rounding_reach

DIGITS = 7
SPREADS = tuple(map(Fraction, (2, 3, 4, 6)))
"""Shapes of weights for which Laplace noise has reaches of their own; see `Band.narrower`."""


class Narrower(NamedTuple):
    """Reaches for weights of which none is large.

    Attributes:
        spread: Least sum of the squared weights over the largest squared weight.
        reach: As in `Band`.
        reach_all: As in `Band`.
    """

    spread: Fraction
    reach: tuple[Fraction, ...]
    reach_all: tuple[Fraction, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Certified half widths of weighted sums of noise, one-sided, by round.

    A sum of rounded noises with weights w exceeds ``reach |w|_2 + rounding |w|_1`` with at most
    the probability that the band was made for, and so does minus the sum.

    Attributes:
        reach: For a round alone, in steps, shape (horizon,).
        reach_all: For all rounds together, likewise.
        rounding: 1/2 where coordinates are rounded, else 0.
        narrower: Smaller reaches for weights of a stated spread, rising; empty for Gaussian noise,
            whose sums do not depend on it.
    """

    reach: tuple[Fraction, ...]
    reach_all: tuple[Fraction, ...]
    rounding: Fraction
    narrower: tuple[Narrower, ...] = ()

    @classmethod
    def of(cls, process: Process, *, miss: Fraction, coordinates: int) -> Band:
        """The band of one-sided miss `miss`, for sums over at most so many coordinates.

        All rounds together miss with at most `miss`: each gets an equal part of it.
        """
        parts = (miss, miss / process.factor.horizon)

        def both(spread: Fraction) -> Iterator[tuple[Fraction, ...]]:
            for part in parts:
                found = reaches(process, float(part), coordinates=coordinates, spread=float(spread))
                yield tuple(_above(value) for value in found.tolist())

        spreads = SPREADS if process.law == "laplace" else ()
        reach, reach_all = both(Fraction(1))
        return cls(
            reach=reach,
            reach_all=reach_all,
            rounding=rounding_reach(process),
            narrower=tuple(Narrower(spread, *both(spread)) for spread in spreads),
        )

    def half(
        self, round_: int, squared: Fraction, absolute: Fraction, largest: Fraction | None = None
    ) -> tuple[Fraction, Fraction]:
        """Half widths of a sum for the round alone and for all rounds, in steps.

        Args:
            round_: From 1.
            squared: Sum of the squared weights.
            absolute: Sum of the absolute weights.
            largest: The largest squared weight, or more; all of `squared` if it is not known.
        """
        edge, at = self.rounding * absolute, round_ - 1
        spread = squared / largest if largest else Fraction(1)
        reach, reach_all = self.reach[at], self.reach_all[at]
        for own in self.narrower:
            if own.spread <= spread:
                reach, reach_all = own.reach[at], own.reach_all[at]
        return (
            root_above(reach**2 * squared) + edge,
            root_above(reach_all**2 * squared) + edge,
        )

    def worst(self) -> Band:
        """A band of one round that is as wide as that of any round."""
        return Band(
            reach=(max(self.reach),),
            reach_all=(max(self.reach_all),),
            rounding=self.rounding,
            narrower=tuple(
                Narrower(own.spread, (max(own.reach),), (max(own.reach_all),))
                for own in self.narrower
            ),
        )

    def spec(self) -> dict[str, Any]:
        """What the resolved plan stores."""
        narrower = {
            str(own.spread): [[*map(str, own.reach)], [*map(str, own.reach_all)]]
            for own in self.narrower
        }
        return {
            "reach": [str(value) for value in self.reach],
            "reach_all": [str(value) for value in self.reach_all],
            "rounding": str(self.rounding),
            **({"narrower": narrower} if narrower else {}),
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Band:
        """Read what `spec` wrote."""
        return cls(
            reach=tuple(map(Fraction, spec["reach"])),
            reach_all=tuple(map(Fraction, spec["reach_all"])),
            rounding=Fraction(spec["rounding"]),
            narrower=tuple(
                sorted(
                    Narrower(Fraction(spread), *(tuple(map(Fraction, reach)) for reach in reaches_))
                    for spread, reaches_ in spec.get("narrower", {}).items()
                )
            ),
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
