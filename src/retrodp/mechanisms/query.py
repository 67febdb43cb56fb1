"""Weighted sums of the surviving records on named coordinates: KKMNS theorem 3.2 for any public F."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from retrodp.mechanisms.answer import Answer, Bounds
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.contract import Adaptive, Retroactive
from retrodp.mechanisms.guarantee import adaptive_guarantee
from retrodp.mechanisms.parts import part_of
from retrodp.noise.key import NoiseKeys
from retrodp.noise.prf import Coordinates
from retrodp.noise.processes import AnyFactor
from retrodp.plan.decimals import common_step
from retrodp.privacy.loss import PrivacyLoss


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Coordinates that share their noise.

    Attributes:
        noise: Of each coordinate.
        keys: Labels that are published, in the order of the noise's coordinates.
        coordinates: Where the exact totals stand, one for each label.
    """

    noise: CalibratedNoise
    keys: tuple[str, ...]
    coordinates: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedSums:
    """Counters on the coordinates of F h(Data), all of them published every round.

    Guarantee: one vector mechanism, charged by the largest norm of a record's column of F; exactly
    retroactive, since the noise is a function of key, names and round alone. Source: KKMNS theorem
    3.2, with window sensitivity; see docs/guarantees.md.

    Attributes:
        name: Of the release.
        blocks: One with a common noise, or one a coordinate.
        level: Coverage of the intervals.
    """

    name: str
    blocks: tuple[Block, ...]
    level: Fraction

    @property
    def step(self) -> Fraction:
        """The coarsest grid that holds the values of all coordinates."""
        return common_step(block.noise.step for block in self.blocks)

    @property
    def factor(self) -> AnyFactor:
        """Nodes of the noise of every block."""
        return self.blocks[0].noise.process.factor

    @property
    def retroactive(self) -> Retroactive:
        """Exactly retroactive: the noise knows no data."""
        return "exact"

    @property
    def adaptive(self) -> Adaptive:
        """As far as the proof covers streams that react to earlier answers."""
        return adaptive_guarantee(self.blocks[0].noise.process)

    def release(self, round_: int, exact: Mapping[bytes, int], keys: NoiseKeys) -> Answer:
        """One value a coordinate, zeros included."""
        step, at = self.step, round_ - 1
        found: list[tuple[str, int, Bounds]] = []
        for block in self.blocks:
            noise = block.noise
            draws = noise.draw(round_, keys, Coordinates.of_indices(len(block.keys))).tolist()
            factor = int(noise.step / step)
            half, half_all = noise.half[at] * factor, noise.half_all[at] * factor
            for key, place, draw in zip(block.keys, block.coordinates, draws, strict=True):
                value = (exact.get(place, 0) + draw) * factor
                bounds = Bounds(
                    noise.stddev[at], value - half, value + half, value - half_all, value + half_all
                )
                found.append((key, value, bounds))
        found.sort(key=lambda one: one[0].encode())
        return Answer(
            release=self.name,
            round=round_,
            keys=tuple(key for key, _, _ in found),
            values=tuple(value for _, value, _ in found),
            step=step,
            stddev="",
            half=max(bounds.high - value for _, value, bounds in found),
            half_all=max(bounds.high_all - value for _, value, bounds in found),
            level=self.level,
            each=tuple(bounds for _, _, bounds in found),
        )

    def cost(self) -> tuple[PrivacyLoss, ...]:
        """All coordinates over the whole horizon for one unit."""
        return tuple(loss for block in self.blocks for loss in block.noise.losses())

    def describe(self) -> dict[str, Any]:
        """Public facts; the errors are the largest of any coordinate."""
        facts = [block.noise.describe() for block in self.blocks]
        worst = max(facts, key=lambda one: one["error_max"])
        return {
            "mechanism": "weighted sums",
            "coordinates": sum(len(block.keys) for block in self.blocks),
            **worst,
            "step": str(self.step),
            "parts": [
                part_of(block.noise, block.keys[0] if len(block.keys) == 1 else "")
                for block in self.blocks
            ],
        }
