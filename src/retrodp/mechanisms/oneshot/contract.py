"""What the sampling compiler needs of a mechanism that sees a sample once."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

from retrodp._check import instance, positive
from retrodp.errors import PlanError
from retrodp.noise.coins import Coins
from retrodp.privacy.sampling import OneShot

Value: TypeAlias = bool | int | str | None
Values: TypeAlias = tuple[Value, ...]
"""Canonical values of one record's columns: numbers in whole steps of their column."""


class OneShotMechanism(Protocol):
    """A frozen description of a private answer from one multiset of records."""

    @property
    def guarantee(self) -> OneShot:
        """Privacy of one answer, for adding, removing and replacing one record."""

    @property
    def labels(self) -> tuple[str, ...] | None:
        """One label a number, in the order of their UTF-8 bytes; None for a single number."""

    @property
    def step(self) -> Fraction:
        """Size of a step of the numbers."""

    @property
    def low(self) -> int:
        """Public lower end of every number, in steps."""

    @property
    def high(self) -> int:
        """Public upper end of every number, in steps."""

    def answer(self, sample: Sequence[Values], coins: Coins) -> Sequence[int | None]:
        """One number a label, in steps, or None where there is nothing to say.

        Args:
            sample: Records in the order of their canonical bytes, which says nothing about who
                they are or when they came. It may be empty.
            coins: Used for this answer alone.
        """

    def describe(self) -> dict[str, Any]:
        """Public facts: what it does, its guarantee, its predicted error."""


def require_grid(low: int, high: int, step: Fraction) -> None:
    """Raise unless a grid has whole ends, the lower first, and steps of a size above 0."""
    if not (type(low) is int and type(high) is int and low <= high):
        raise PlanError(
            f"low and high must be whole steps with low <= high, got {low!r}, {high!r}."
        )
    instance(Fraction, expected="an exact fraction", step=step)
    positive(step=step)
