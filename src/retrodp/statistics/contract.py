"""What a statistic is: a frozen, public description of a linear map; it knows no noise.

A statistic sends every surviving record to integer weights on labelled coordinates and adds them
up. It is linear, so a deletion is the negative of the addition and there is no second code path.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Protocol

from retrodp.stream.batch import Batch

Totals = Mapping[bytes, int]


class Statistic(Protocol):
    """A linear statistic of the surviving data, in whole steps."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the plan that `encode` reads."""

    @property
    def step(self) -> Fraction:
        """Size of a step, in units of the statistic."""

    @property
    def amount(self) -> int:
        """Most that one record can add to the one coordinate it touches, in steps, absolutely."""

    def encode(self, batch: Batch) -> dict[bytes, int]:
        """Sum of the batch's records on each coordinate they touch, multiplicities included.

        Sees: exact records. Coordinates that cancel may be left out or be zero.
        """
