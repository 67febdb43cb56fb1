"""What a mechanism says of itself when all its values carry one kind of noise."""

from __future__ import annotations

from fractions import Fraction

from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.contract import Adaptive, Retroactive
from retrodp.mechanisms.guarantee import adaptive_guarantee
from retrodp.noise.processes import AnyFactor
from retrodp.privacy.loss import PrivacyLoss


class OneNoise:
    """The part of `contract.Described` that follows from the noise of a frozen mechanism.

    Attributes:
        noise: Of every coordinate; a field of the mechanism.
    """

    __slots__ = ()
    noise: CalibratedNoise

    @property
    def name(self) -> str:
        """Name of the release."""
        return self.noise.release

    @property
    def step(self) -> Fraction:
        """Size of a step of the published values, in units of the statistic."""
        return self.noise.step

    @property
    def factor(self) -> AnyFactor:
        """Nodes of the noise."""
        return self.noise.process.factor

    @property
    def retroactive(self) -> Retroactive:
        """Exactly retroactive: noise and hashes know no data, and nothing is remembered."""
        return "exact"

    @property
    def adaptive(self) -> Adaptive:
        """As far as the proof covers streams that react to earlier answers."""
        return adaptive_guarantee(self.noise.process)

    def cost(self) -> tuple[PrivacyLoss, ...]:
        """Loss of the whole horizon for one unit."""
        return self.noise.losses()
