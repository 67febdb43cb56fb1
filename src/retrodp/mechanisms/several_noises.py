"""What a mechanism says of itself when its values are made of several noises on one factor."""

from __future__ import annotations

from abc import ABC, abstractmethod

from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.contract import Adaptive, Retroactive
from retrodp.mechanisms.guarantee import adaptive_guarantee
from retrodp.noise.processes import AnyFactor
from retrodp.privacy.loss import PrivacyLoss


class SeveralNoises(ABC):
    """The part of `contract.Described` that follows from the noises of a frozen mechanism."""

    __slots__ = ()

    @property
    @abstractmethod
    def noises(self) -> tuple[CalibratedNoise, ...]:
        """Of all parts, which share one factor and one law; at least one."""

    @property
    def factor(self) -> AnyFactor:
        """Nodes of the noise of all parts."""
        return self.noises[0].process.factor

    @property
    def retroactive(self) -> Retroactive:
        """Exactly retroactive: memoryless post-processing of counters."""
        return "exact"

    @property
    def adaptive(self) -> Adaptive:
        """As for the counters."""
        return adaptive_guarantee(self.noises[0].process)

    def cost(self) -> tuple[PrivacyLoss, ...]:
        """All parts over the whole horizon for one unit; the delta of a threshold is apart."""
        return tuple(loss for noise in self.noises for loss in noise.losses())
