"""Two worlds under one transcript: what was told is held fixed, and exact counters are compared.

In the first world noise is made up; what it makes is told, and kept. In the second world the same is
told again, whatever is true there. If the sketch is a function of what is told, both worlds ask the
same questions, and what a neighbour can learn are the differences of the exact answers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrodp.clustering.absorbing import Arrivals
from retrodp.clustering.arrivals import arrival_norms
from retrodp.clustering.coins import coins
from retrodp.clustering.coreset import Coreset
from retrodp.clustering.memory import Memory
from retrodp.clustering.practical import box_columns, practical
from retrodp.clustering.sketch import PracticalSketch
from retrodp.noise.key import KeyTree
from retrodp.noise.process import NoiseProcess
from retrodp.privacy.budget import zCDP
from retrodp.privacy.loss import total_rho

Ints = NDArray[np.int64]

BLOCKS = 4
KEYS = KeyTree.from_root(b"k" * 32, b"s" * 16, BLOCKS)
OUTCOMES = (-2, -1, 0, 0, 1, 2, 4)
"""Noise that is made up; some of it makes empty cells stand out and phases end."""


class Point(NamedTuple):
    """One arrival."""

    block: int
    place: tuple[int, ...]


Stream = tuple[Point, ...]
Question = tuple[str, int, int]


def identity(point: Point) -> bytes:
    """Equal points of a block are copies."""
    return repr(point).encode()


def tiny(sketch: type[PracticalSketch] = PracticalSketch, *, columns: int = 1) -> PracticalSketch:
    """A sketch whose thresholds are so low that three points make a representative and a phase."""
    of = box_columns([0] * columns, [64] * columns, "1")
    made = practical(
        "tiny", of=of, k=1, horizon=BLOCKS, budget=zCDP(20), factor="binary", levels=(1, 2)
    )
    own = {name: getattr(made, name) for name in PracticalSketch.__dataclass_fields__}
    own |= {"threshold": (2,) * BLOCKS, "cap": 1, "eagerness": 10**6}
    return sketch(**own)


@dataclass(slots=True)
class Told:
    """Counters of a world: made up, or told again.

    Attributes:
        seed: Of what is made up.
        again: What was told in the other world, by question.
        exact: Truth of this world, in the order of the questions.
    """

    seed: int
    again: dict[Question, int] | None = None
    exact: list[tuple[Question, int]] = field(default_factory=list)
    told: dict[Question, int] = field(default_factory=dict)

    def read(self, part: str, index: int, labels: Ints, exact: Ints) -> Ints:
        """See `retrodp.clustering.counters.Counters`."""
        found = []
        for label, value in zip(labels.tolist(), exact.tolist(), strict=True):
            question = (part, label, index)
            if question in self.told:
                raise BrokenProofError(f"{question} is asked twice")
            if self.again is None:
                found.append(value + self._made_up(question))
            elif question in self.again:
                found.append(self.again[question])
            else:
                raise BrokenProofError(f"{question} is asked in one world only")
            self.exact.append((question, value))
            self.told[question] = found[-1]
        return np.array(found, dtype=np.int64)

    def _made_up(self, question: Question) -> int:
        digest = hashlib.blake2b(repr((self.seed, question)).encode(), digest_size=2).digest()
        return OUTCOMES[int.from_bytes(digest, "big") % len(OUTCOMES)]


class BrokenProofError(AssertionError):
    """What a proof needs and two worlds do not show."""


Blocks = Sequence[Sequence[Point]]


def by_clock(stream: Stream) -> Blocks:
    """Blocks as the clock closes them."""
    return [[point for point in stream if point.block == block] for block in range(1, BLOCKS + 1)]


def played(sketch: PracticalSketch, blocks: Blocks, told: Told) -> list[Coreset]:
    """All coresets of a world."""
    memory = Memory.from_bytes(sketch.begin(), sketch.box.columns)
    grid = sketch.box.grid.placed(b"g" * 32, 0)
    coresets = []
    for block, points in enumerate(blocks, start=1):
        steps = np.array([point.place for point in points], dtype=np.int64)
        arrivals = Arrivals(
            sketch.box.positions(steps.reshape(len(points), sketch.box.columns)),
            coins(
                [identity(point) for point in points],
                release=sketch.name,
                block=block,
                phase=memory.phase,
                keys=KEYS,
            ),
        )
        coreset, memory = sketch.closed(block, arrivals, memory, counters=told, grid=grid)
        coresets.append(coreset)
    return coresets


def moved(first: Told, second: Told) -> dict[tuple[str, int], int]:
    """By how much each counter differs for good, by part and label.

    Raises:
        BrokenProofError: Other questions, or a difference that does not begin once and stay.
    """
    if [question for question, _ in first.exact] != [question for question, _ in second.exact]:
        raise BrokenProofError("the worlds ask other questions")
    series: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for ((part, label, index), one), (_, other) in zip(first.exact, second.exact, strict=True):
        series.setdefault((part, label), []).append((index, one - other))
    found = {}
    for counter, differences in series.items():
        indices = [index for index, _ in differences]
        if indices != sorted(set(indices)) or not 1 <= indices[0] <= indices[-1] <= BLOCKS:
            raise BrokenProofError(f"{counter} goes back in time")
        values = [value for _, value in differences]
        last = values[-1]
        if values != [0] * values.count(0) + [last] * (len(values) - values.count(0)):
            raise BrokenProofError(f"{counter} differs by {values}, which is no arrival")
        if last:
            found[counter] = last
    return found


def spent(sketch: PracticalSketch, vector: dict[tuple[str, int], int]) -> Fraction:
    """Zero-concentrated loss that a difference of counters costs, from the noise alone."""
    total = Fraction(0)
    for (part, _), value in vector.items():
        process = sketch.process(part)
        assert isinstance(process, NoiseProcess)
        total += Fraction(value**2 * arrival_norms(process.factor).l2_squared) / (2 * process.scale)
    return total


def compare(
    sketch: PracticalSketch, world: Blocks, neighbour: Blocks, seed: int
) -> dict[tuple[str, int], int]:
    """Differences of the exact counters of two worlds under a transcript of the first.

    Raises:
        BrokenProofError: A neighbour can learn more than the budget says, or something else entirely.
    """
    first = Told(seed)
    shown = played(sketch, world, first)
    second = Told(seed, again=first.told)
    again = played(sketch, neighbour, second)
    vector = moved(first, second)
    for one, other in zip(shown, again, strict=True):
        for name in ("points", "centres", "weights", "births"):
            if not np.array_equal(getattr(one, name), getattr(other, name)):
                raise BrokenProofError(
                    f"{name} of block {one.block} is no function of what was told"
                )
    charged = total_rho(sketch.cost())
    if spent(sketch, vector) > charged:
        raise BrokenProofError(
            f"{dict(vector)} costs {spent(sketch, vector)}, charged is {charged}"
        )
    return vector
