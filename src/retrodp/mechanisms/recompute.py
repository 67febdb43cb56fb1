"""How many different values survive, counted anew at the head of each block of rounds only.

Between two heads the last answer stands. A record is then seen at few rounds, so that the noise is
small; the answer is old, and what is deleted keeps its influence until the next head. Jain et al.
(2023) choose blocks of about (T log T / rho)^(1/3) rounds, where what one update a round can change
within a block is as large as the noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.contract import Retroactive, Seen
from retrodp.mechanisms.one_noise import OneNoise
from retrodp.noise.factors.fresh import FreshFactor
from retrodp.noise.key import NoiseKeys
from retrodp.noise.prf import Coordinates


@dataclass(frozen=True, slots=True, kw_only=True)
class Recompute(OneNoise):
    """Publishes the noisy number of items at rounds 1, B + 1, 2 B + 1, ... and repeats it between.

    Guarantee: a life changes the number by one at any of the heads in which it counts; their noise
    is independent. Holds against streams that react. Not retroactive: only from the next head on is
    an answer what it would be without a deleted record. The interval is about the number at the
    last head. The state is the last noisy number, which was published.

    Attributes:
        noise: Over a factor with one node a round, charged for as many as a life meets heads.
        block: B, rounds.
        facts: Public facts about the choice of the method.
    """

    noise: CalibratedNoise
    block: int
    facts: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.noise.process.factor, FreshFactor):
            raise TypeError("A number of items needs noise of its own at every head.")

    @property
    def retroactive(self) -> Retroactive:
        """Only from the next head on; where every round is a head, at once."""
        return "no" if self.block > 1 else "exact"

    @property
    def instead(self) -> str:
        """What to plan to have every deletion forgotten."""
        return 'kind = "distinct" with method = "fresh" or "ladder"'

    @property
    def watches(self) -> bool:
        """The totals tell what is there."""
        return False

    def begin(self) -> bytes:
        """Round 1 is a head, so nothing is needed."""
        return b""

    def advance(
        self, round_: int, seen: Seen, keys: NoiseKeys, state: bytes
    ) -> tuple[Answer, bytes]:
        """The answer of one round; `seen.totals` holds the records of each item."""
        if (round_ - 1) % self.block == 0:
            present = sum(total > 0 for total in seen.totals.values())
            (noise,) = self.noise.draw(round_, keys, Coordinates.of_indices(1)).tolist()
            state = (present + noise).to_bytes(8, "big", signed=True)
        value = int.from_bytes(state, "big", signed=True)
        return self.noise.answer(round_, None, [value]), state

    def describe(self) -> dict[str, Any]:
        """Public facts about the mechanism."""
        return {
            "mechanism": "distinct count once a block",
            **self.noise.describe(),
            "block": self.block,
            **dict(self.facts),
        }
