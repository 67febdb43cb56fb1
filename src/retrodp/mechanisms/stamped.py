"""Noise of a revised series: what one round draws for every stamp it publishes.

Promise: a pure function of keys, round and public labels; all stamps are drawn in every round,
whether anything changed there or not, because which stamps changed is data. Two forms, after the two
shapes of a series: `StampNoise` has a counter for every stamp, `PrefixNoise` one family of nodes for
all pairs of a round and a stamp.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from retrodp.mechanisms.answer import Spread
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.noise.factors.axis import WalkAxis
from retrodp.noise.factors.blocks import BlockKeys, StampBlocks
from retrodp.noise.key import NoiseKeys
from retrodp.noise.prf import Coordinates
from retrodp.noise.process import NoiseProcess
from retrodp.noise.product import ProductFactor, ProductProcess
from retrodp.plan.decimals import decimal_text
from retrodp.statistics.revised import seven_bits

IntArray = NDArray[np.int64]

PARTS = 10**6
"""Parts of the widest stamp's noise that the noise of others is stated in."""


class SeriesNoise(Protocol):
    """What the mechanisms ask of either form."""

    @property
    def noise(self) -> CalibratedNoise:
        """Name, law, step and errors."""
        ...

    @property
    def factor(self) -> StampBlocks | ProductFactor:
        """Nodes, for whoever asks which keys are still needed; rounds, and stamps of a round."""
        ...

    @property
    def cumulative(self) -> bool:
        """Whether a value counts the stamps before its own as well."""
        ...

    def first_stamp(self, round_: int) -> int:
        """Oldest stamp that the round publishes; the newest is its own."""
        ...

    def draw(self, round_: int, keys: NoiseKeys, bins: int) -> IntArray:
        """Rounded noise, shape (stamps, bins), of public bins 0, 1, ..."""
        ...

    def draw_labels(
        self,
        round_: int,
        keys: NoiseKeys,
        labels: Sequence[bytes],
        pairs: tuple[IntArray, IntArray],
    ) -> IntArray:
        """Rounded noise of open labels.

        Args:
            round_: From 1.
            keys: Source of the noise.
            labels: Each once.
            pairs: Stamps, and places in `labels`, of the n values wanted.

        Returns:
            Shape (n,).
        """
        ...

    def spreads(self, round_: int) -> tuple[Spread, ...]:
        """Uncertainty of every stamp that the round publishes, oldest first."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StampNoise:
    """A counter for every stamp.

    Attributes:
        noise: Of a block of stamps, by the rounds of the block.
        blocks: How the stamps are cut.
    """

    noise: CalibratedNoise
    blocks: StampBlocks

    @property
    def factor(self) -> StampBlocks:
        """Of all blocks."""
        return self.blocks

    @property
    def cumulative(self) -> bool:
        """No."""
        return False

    def first_stamp(self, round_: int) -> int:
        """Oldest stamp that the round publishes."""
        return self.blocks.first_stamp(round_)

    def draw(self, round_: int, keys: NoiseKeys, bins: int) -> IntArray:
        """Every stamp and bin of a block is a coordinate of the block's nodes."""
        drawn = []
        for block, first, last in self._parts(round_):
            start = self.blocks.start(block)
            where = np.arange((first - start - 1) * bins, (last - start) * bins)
            noise = self._draw(round_, keys, block, Coordinates.of_indices(where))
            drawn.append(noise.reshape(last - first + 1, bins))
        return np.concatenate(drawn)

    def draw_labels(
        self,
        round_: int,
        keys: NoiseKeys,
        labels: Sequence[bytes],
        pairs: tuple[IntArray, IntArray],
    ) -> IntArray:
        """A coordinate is the keyed hash of stamp and label."""
        stamps, where = pairs
        key = keys.lasting_key(release=self.noise.release, purpose="labels")
        noise = np.zeros(len(stamps), dtype=np.int64)
        for block, first, last in self._parts(round_):
            mine = np.flatnonzero((stamps >= first) & (stamps <= last))
            named = [
                seven_bits(stamp) + labels[place]
                for stamp, place in zip(stamps[mine].tolist(), where[mine].tolist(), strict=True)
            ]
            noise[mine] = self._draw(round_, keys, block, Coordinates.of_labels(named, key))
        return noise

    def _draw(self, round_: int, keys: NoiseKeys, block: int, where: Coordinates) -> IntArray:
        own = BlockKeys(keys, self.blocks, block)
        return self.noise.draw(round_ - self.blocks.start(block), own, where)

    def _parts(self, round_: int) -> list[tuple[int, int, int]]:
        """Blocks that the round publishes, each with its first and last stamp in it."""
        oldest, length = self.first_stamp(round_), self.blocks.length
        return [
            (block, max(oldest, block * length + 1), min(round_, (block + 1) * length))
            for block in self.blocks.blocks(round_)
        ]

    def spreads(self, round_: int) -> tuple[Spread, ...]:
        """Alike for all stamps of a block."""
        found: list[Spread] = []
        for block, first, last in self._parts(round_):
            own = round_ - self.blocks.start(block) - 1
            noise = self.noise
            one = Spread(noise.stddev[own], noise.half[own], noise.half_all[own])
            found += [one] * (last - first + 1)
        return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixNoise:
    """One family of nodes for all pairs of a round and a stamp.

    Attributes:
        noise: Errors by round are those of the widest stamp.
        widths: Noise of each stamp, in parts of that of the widest, rounded up.
        reaches: The same for half widths of intervals: the whole, where tails do not scale.
    """

    noise: CalibratedNoise
    widths: tuple[int, ...]
    reaches: tuple[int, ...]

    @property
    def _process(self) -> ProductProcess:
        process = self.noise.process
        assert isinstance(process, ProductProcess)
        return process

    @property
    def factor(self) -> ProductFactor:
        """Arrival nodes times stamp slots."""
        return self._process.factor

    @property
    def cumulative(self) -> bool:
        """Yes."""
        return True

    def first_stamp(self, round_: int) -> int:
        """Oldest stamp that the round publishes."""
        return self._process.factor.first_stamp(round_)

    def draw(self, round_: int, keys: NoiseKeys, bins: int) -> IntArray:
        """Every slot and bin is a coordinate."""
        where = Coordinates.of_indices(self._process.slots(round_) * bins)
        return self.noise.draw(round_, keys, where)

    def draw_labels(
        self,
        round_: int,
        keys: NoiseKeys,
        labels: Sequence[bytes],
        pairs: tuple[IntArray, IntArray],
    ) -> IntArray:
        """A coordinate is the keyed hash of slot and label; all stamps of a label are drawn."""
        key = keys.lasting_key(release=self.noise.release, purpose="labels")
        slots = range(1, self._process.slots(round_) + 1)
        named = [seven_bits(slot) + label for slot in slots for label in labels]
        noise = self.noise.draw(round_, keys, Coordinates.of_labels(named, key))
        stamps, where = pairs
        picked: IntArray = noise[stamps - self.first_stamp(round_), where]
        return picked

    def spreads(self, round_: int) -> tuple[Spread, ...]:
        """Those of the widest stamp, each in its parts; Gaussian tails scale with the deviation."""
        noise, place = self.noise, round_ - 1
        deviation = float(noise.stddev[place])
        half, half_all = noise.half[place], noise.half_all[place]
        return tuple(
            Spread(
                f"{deviation * width / PARTS:.3g}",
                _part_of(half, reach),
                _part_of(half_all, reach),
            )
            for width, reach in zip(
                self.widths[self.first_stamp(round_) - 1 : round_],
                self.reaches[self.first_stamp(round_) - 1 : round_],
                strict=True,
            )
        )


def _part_of(half: int, reach: int) -> int:
    """Least q with q + 1/2 at least `reach` parts of half + 1/2: noise is rounded to whole steps."""
    return max(0, -(-((2 * half + 1) * reach - PARTS) // (2 * PARTS)))


def series_noise(noise: CalibratedNoise, stamps: Mapping[str, Any]) -> SeriesNoise:
    """The noise of a series from what its resolved plan stores, see `stored`."""
    if isinstance(noise.process, ProductProcess):
        return PrefixNoise(
            noise=noise, widths=tuple(stamps["widths"]), reaches=tuple(stamps["reaches"])
        )
    assert isinstance(noise.process, NoiseProcess)
    blocks = StampBlocks(
        inner=noise.process.factor,
        horizon=stamps["horizon"],
        length=stamps["length"],
        rounds=stamps["rounds"],
    )
    return StampNoise(noise=noise, blocks=blocks)


def stored(noise: CalibratedNoise, *, horizon: int, rounds: int, length: int) -> dict[str, Any]:
    """What the resolved plan stores beside the noise; JSON values.

    Args:
        noise: Of the release.
        horizon: Rounds of the plan.
        rounds: Stamps that a round publishes.
        length: Stamps in a block, where every stamp has a counter.
    """
    found: dict[str, Any] = {"horizon": horizon, "rounds": rounds}
    if not isinstance(noise.process, ProductProcess):
        return found | {"length": length}
    axis = noise.process.factor.axis
    squares = axis.squares
    widths = [min(PARTS, int(part) + 1) for part in np.sqrt(squares / squares.max()) * PARTS]
    reaches = [PARTS] * len(widths) if isinstance(axis, WalkAxis) else widths
    return found | {"widths": widths, "reaches": reaches}


def published_pairs(horizon: int, rounds: int) -> int:
    """Pairs of a round and a stamp that a series publishes."""
    return rounds * horizon - rounds * (rounds - 1) // 2


def facts(series: SeriesNoise) -> dict[str, Any]:
    """What is public about the series beyond its noise."""
    noise, horizon, rounds = series.noise, series.factor.horizon, series.factor.rounds
    return {
        "horizon": horizon,
        "shape": "cumulative" if series.cumulative else "per_stamp",
        "stamps_a_round": rounds,
        "published_pairs": published_pairs(horizon, rounds),
        "error_typical": decimal_text(_median(noise.half), noise.step),
    }


def _median(halves: Sequence[int]) -> int:
    return sorted(halves)[len(halves) // 2]


def size_about(pairs: int, bins: int, deviation: float, step: Fraction) -> int:
    """Bytes that the numbers take at least: the bits of their noise, for six deviations either way."""
    bits = max(1, int(12 * deviation / float(step)).bit_length())
    return pairs * bins * bits // 8
