"""What every mechanism promises: protocols only."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Literal, Protocol

from retrodp.mechanisms.answer import Answer
from retrodp.noise.key import NoiseKeys
from retrodp.noise.processes import AnyFactor
from retrodp.privacy.loss import PrivacyLoss

Retroactive = Literal["exact", "no"]
Adaptive = Literal["yes", "integer-order RDP", "no"]


class Mechanism(Protocol):
    """A frozen description of how exact totals become one published answer a round.

    `release` is a pure function of its arguments; a mechanism holds no state, so it cannot
    remember a deleted record (KKMNS definition 2.8).
    """

    @property
    def name(self) -> str:
        """Name of the release; part of the label of all its noise."""

    @property
    def retroactive(self) -> Retroactive:
        """Whether uniting histories give identically distributed answers."""

    @property
    def adaptive(self) -> Adaptive:
        """Which streams the privacy guarantee covers (KKMNS appendix B)."""

    @property
    def step(self) -> Fraction:
        """Size of a step of the published values, in units of the statistic."""

    @property
    def factor(self) -> AnyFactor:
        """Nodes of the noise, for whoever asks which keys are still needed."""

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        """The answer of one round.

        Args:
            round_: From 1 to the horizon.
            exact: Totals of the surviving data by coordinate; what is absent is 0.
            keys: Source of the noise; the same keys give the same answer.
        """

    def cost(self) -> tuple[PrivacyLoss, ...]:
        """What the answers of all rounds together reveal about one unit."""

    def describe(self) -> dict[str, Any]:
        """Public facts: mechanism, factor, law, scale, threshold, predicted errors."""
