"""What something says of itself that answers in the place of a mechanism."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from retrodp.mechanisms.contract import Adaptive, Described, Retroactive
from retrodp.noise.processes import AnyFactor
from retrodp.privacy.loss import PrivacyLoss


class StandIn:
    """Everything of `contract.Described` as the mechanism behind it has it.

    Attributes:
        inner: The mechanism; a field of what stands in for it.
    """

    __slots__ = ()
    inner: Described

    @property
    def name(self) -> str:
        """Name of the release."""
        return self.inner.name

    @property
    def retroactive(self) -> Retroactive:
        """What the mechanism promises."""
        return self.inner.retroactive

    @property
    def adaptive(self) -> Adaptive:
        """What the mechanism promises."""
        return self.inner.adaptive

    @property
    def step(self) -> Fraction:
        """Size of a step of the published values."""
        return self.inner.step

    @property
    def factor(self) -> AnyFactor:
        """Nodes of the noise."""
        return self.inner.factor

    def cost(self) -> tuple[PrivacyLoss, ...]:
        """Loss of the whole horizon for one unit, as the mechanism states it."""
        return self.inner.cost()

    def describe(self) -> dict[str, Any]:
        """Public facts about the mechanism."""
        return self.inner.describe()
