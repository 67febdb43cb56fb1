"""Online k-means and k-median: centres that hardly move, of all points that ever arrived.

A private sketch turns arrivals into weighted representatives, block by block; a consistent
clustering picks centres among them (Cohen et al. 2026, corollary 11). Both remember: the sketch its
counters, the clustering its centres. So nothing here is retroactive: a point that is deleted stays
in the counters. The points themselves are never kept, nor ids, nor draws of noise.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from retrodp import _check
from retrodp.clustering.consistent import Consistent
from retrodp.clustering.coreset import Coreset
from retrodp.clustering.representatives import MOST_REPRESENTATIVES
from retrodp.clustering.retroactive import Row, answer_of, exactly, label, step_of
from retrodp.clustering.sketch import PracticalSketch
from retrodp.errors import StoreCorruptError
from retrodp.mechanisms.answer import Answer, Bounds
from retrodp.mechanisms.band import Band
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.contract import Adaptive, Retroactive, Seen
from retrodp.noise.factors.gathered import BlockKeys, Blocks
from retrodp.noise.key import NoiseKeys
from retrodp.noise.processes import AnyFactor
from retrodp.plan.columns import Column
from retrodp.privacy.loss import PrivacyLoss
from retrodp.statistics.arrivals import ArrivingPoints

_FORMAT = 1


class Shown(NamedTuple):
    """What the last block published, in whole numbers; all of it is public.

    Attributes:
        block: From 1; 0 before the first.
        phase: Of the sketch.
        points: Where representatives lie, in steps of each column, one row each.
        means: Noisy means of the points that each stands for, likewise.
        weights: Signed noisy numbers of points.
        births: Block at whose end each was born.
        centres: In steps of each column, one row each.
        changed: Centres that the block before did not have.
        recourse: The same, added up over all blocks.
    """

    block: int
    phase: int
    points: list[list[int]]
    means: list[list[int]]
    weights: list[int]
    births: list[int]
    centres: list[list[int]]
    changed: int
    recourse: int

    @classmethod
    def nothing(cls) -> Self:
        """Before the first block has ended."""
        return cls(0, 0, [], [], [], [], [], 0, 0)


class Memory(msgspec.Struct, frozen=True, array_like=True):
    """The state: that of the sketch, that of the centres, and what was published last."""

    format: int
    sketch: bytes
    centres: bytes
    shown: Shown

    def to_bytes(self) -> bytes:
        """Canonical: whole numbers and byte strings alone."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def from_bytes(cls, state: bytes) -> Memory:
        """What `to_bytes` wrote.

        Raises:
            StoreCorruptError: Anything else.
        """
        try:
            found = msgspec.msgpack.decode(state, type=cls)
        except msgspec.DecodeError:
            found = None
        if found is None or found.format != _FORMAT:
            raise StoreCorruptError(
                "The state of an online clustering cannot be read.",
                do="Restore the store from a back-up.",
            )
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlineClusters:
    """Weighted representatives and at most k centres among them, from one block to the next.

    Guarantee: all counters of the sketch over all rounds form one vector mechanism, and a record
    moves them once, when it arrives (docs/online-clustering.md). Everything published is
    post-processing of the noisy counters. Adaptive, since the noise is causal. Not retroactive.

    Attributes:
        name: Of the release.
        statistic: Of the arriving points.
        sketch: From points to representatives.
        consistent: From representatives to centres.
        gathered: How rounds are gathered into blocks.
        weights: Noise of the weights, by block.
        band: Of sums of weights.
        level: Coverage of the intervals.
    """

    name: str
    statistic: ArrivingPoints
    sketch: PracticalSketch
    consistent: Consistent
    gathered: Blocks
    weights: CalibratedNoise
    band: Band
    level: Fraction

    @property
    def step(self) -> Fraction:
        """The grid that holds 1 and every column."""
        return step_of(self.statistic.of)

    @property
    def factor(self) -> AnyFactor:
        """Nodes of the noise of all parts, by block."""
        return self.weights.process.factor

    @property
    def retroactive(self) -> Retroactive:
        """The counters keep every point that ever arrived."""
        return "no"

    @property
    def adaptive(self) -> Adaptive:
        """As the sketch, which reads its own answers and so needs no less."""
        return "yes"

    @property
    def instead(self) -> str:
        """What to plan to have every deletion forgotten."""
        return f'kind = "{"kmeans" if self.consistent.power == 2 else "kmedian"}"'

    @property
    def watches(self) -> bool:
        """Points are seen as they begin."""
        return True

    def begin(self) -> bytes:
        """No point has arrived."""
        memory = Memory(_FORMAT, self.sketch.begin(), self.consistent.begin(), Shown.nothing())
        return memory.to_bytes()

    def advance(
        self, round_: int, seen: Seen, keys: NoiseKeys, state: bytes
    ) -> tuple[Answer, bytes]:
        """The answer of one round; new where a block ends, else that of the round before."""
        _check.round_within(round_, self.gathered.horizon)
        memory, block = Memory.from_bytes(state), self.gathered.of(round_)
        arrived = self.statistic.arrived(seen.begun)
        own = BlockKeys(keys, self.gathered)
        if not self.gathered.ends(round_):
            sketch = self.sketch.absorb(block, *arrived, own, memory.sketch)
            memory = Memory(_FORMAT, sketch, memory.centres, memory.shown)
            return self.answer(round_, memory.shown), memory.to_bytes()
        coreset, sketch = self.sketch.advance(block, *arrived, own, memory.sketch)
        many = self._multiples
        scaled = replace(coreset, points=coreset.points * many, centres=coreset.centres * many)
        step = self.consistent.advance(scaled, memory.centres)  # distances need one unit
        shown = Shown(
            block=block,
            phase=coreset.phase,
            points=coreset.points.tolist(),
            means=coreset.centres.tolist(),
            weights=coreset.weights.tolist(),
            births=coreset.births.tolist(),
            centres=(step.centres // many).tolist(),
            changed=step.recourse,
            recourse=memory.shown.recourse + step.recourse,
        )
        memory = Memory(_FORMAT, sketch, step.state, shown)
        return self.answer(round_, shown), memory.to_bytes()

    def answer(self, round_: int, shown: Shown) -> Answer:
        """What a round publishes of the last block."""
        rows = self._rows(shown)
        return answer_of(rows, name=self.name, round_=round_, step=self.step, level=self.level)

    def _rows(self, shown: Shown) -> Iterator[Row]:
        one = int(1 / self.step)
        for what, count in (
            ("centres", len(shown.centres)),
            ("changed", shown.changed),
            ("phase", shown.phase),
            ("recourse", shown.recourse),
            ("representatives", len(shown.points)),
        ):
            yield self._exact(label(what), count * one)
        for number, centre in enumerate(shown.centres, start=1):
            yield from self._place(("centre", number), centre)
        yield from self._sizes(shown)
        rows = zip(shown.points, shown.means, shown.weights, shown.births, strict=True)
        for number, (point, mean, weight, birth) in enumerate(rows, start=1):
            who = ("representative", number)
            yield from self._place((*who, "at"), point)
            yield from self._place((*who, "mean"), mean)
            yield self._exact(label(*who, "born"), self.gathered.end(birth) * one if birth else 0)
            at = shown.block - 1
            halves = self.weights.half[at], self.weights.half_all[at]
            yield self._weight(label(*who, "weight"), weight, self.weights.stddev[at], halves)

    def _sizes(self, shown: Shown) -> Iterator[Row]:
        """Weights of the representatives that are nearest to each centre, added up."""
        if not shown.centres:
            return
        points, centres = np.array(shown.points), np.array(shown.centres)
        nearest = _nearest(points * self._multiples, centres * self._multiples)
        for number in range(len(shown.centres)):
            own = [
                weight for weight, at in zip(shown.weights, nearest, strict=True) if at == number
            ]
            many = Fraction(len(own))
            halves = self.band.half(shown.block, many, many)
            stddev = math.sqrt(len(own)) * float(self.weights.stddev[shown.block - 1])
            ends = math.ceil(halves[0]), math.ceil(halves[1])
            yield self._weight(label("size", number + 1), sum(own), f"{stddev:.6g}", ends)

    @property
    def _multiples(self) -> NDArray[np.int64]:
        """Published steps in a step of each column."""
        steps = (column.grid[0] for column in self.statistic.of)
        return np.array([int(step / self.step) for step in steps], dtype=np.int64)

    def _place(self, who: tuple[str | int, ...], place: list[int]) -> Iterator[Row]:
        many = self._multiples.tolist()
        for name, value, multiple in zip(self.statistic.names, place, many, strict=True):
            yield self._exact(label(*who, name), value * multiple)

    def _exact(self, key: str, value: int) -> Row:
        return Row(key, value, exactly(value))

    def _weight(self, key: str, weight: int, stddev: str, halves: tuple[int, int]) -> Row:
        one = int(1 / self.step)
        half, half_all = halves
        ends = (weight - half, weight + half, weight - half_all, weight + half_all)
        return Row(key, weight * one, Bounds(stddev, *(end * one for end in ends)))

    def cost(self) -> tuple[PrivacyLoss, ...]:
        """All counters over the whole horizon for one unit."""
        return self.sketch.cost()

    def describe(self) -> dict[str, Any]:
        """Public facts; the errors are those of a weight.

        `representatives_a_phase`: a phase ends when so many thresholds are sampled, k times `cap`,
        and a representative takes a threshold of them at each level of the cells at most.
        """
        levels = len(self.sketch.box.grid.counted)
        return {
            "mechanism": f"online {'kmeans' if self.consistent.power == 2 else 'kmedian'}",
            "of": [*self.statistic.names],
            "k": self.consistent.k,
            "algorithm": self.consistent.algorithm,
            "blocks": self.gathered.number,
            "rounds_a_block": self.gathered.length,
            "least_count": self.sketch.tau,
            "representatives_a_phase": self.sketch.cap * self.consistent.k * levels,
            "representatives_max": MOST_REPRESENTATIVES,
            **self.weights.describe(),
            "parts": self.sketch.describe()["parts"],
        }


def _nearest(points: NDArray[np.int64], centres: NDArray[np.int64]) -> list[int]:
    """Place of the nearest centre of each point, the first of equals; exact."""
    away = points[:, None, :].astype(object) - centres[None, :, :].astype(object)
    squares = (away * away).sum(axis=2)
    return [min(range(len(row)), key=row.__getitem__) for row in squares.tolist()]


def published_coreset(answer: Answer, of: Sequence[Column]) -> Coreset:
    """The representatives of an answer, as a consumer elsewhere has them; see `feed.deliveries`.

    Blocks are told by rounds: where rounds are gathered into blocks, a round within a block repeats
    the coreset of the block before.

    Args:
        answer: Of an online clustering.
        of: Columns of its points, in the order of the plan.
    """
    found = {tuple(json.loads(one.key)): one for one in answer.figures()}

    def value(*key: str | int) -> Fraction:
        figure = found[key].value
        assert figure is not None
        return figure * answer.step

    def places(what: str) -> NDArray[np.int64]:
        rows = [
            [
                int(value("representative", number, what, column.name) / column.grid[0])
                for column in of
            ]
            for number in numbers
        ]
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(of))

    numbers = range(1, int(value("representatives")) + 1)
    first = found.get(("representative", 1, "weight"))
    return Coreset(
        block=answer.round,
        phase=int(value("phase")),
        points=places("at"),
        centres=places("mean"),
        weights=np.array([int(value("representative", n, "weight")) for n in numbers], np.int64),
        births=np.array([int(value("representative", n, "born")) for n in numbers], np.int64),
        weight_stddev=0.0 if first is None else float(first.bounds.stddev),
    )
