"""All blocks of a sketch in one go: the same bytes as block by block, at a fraction of the time.

Promise: what is kept between blocks are draws of noise that the keys give again, in memory alone; it
ends with the call. Knows no rule of the sketch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from retrodp.clustering.absorbing import Arrivals
from retrodp.clustering.coins import coins, require_copies
from retrodp.clustering.coreset import Coreset
from retrodp.clustering.counters import KeyedCounters
from retrodp.clustering.memory import Memory
from retrodp.clustering.sketch import PracticalSketch
from retrodp.noise.dense import DenseProcess, combined
from retrodp.noise.key import NoiseKeys
from retrodp.noise.prf import Coordinates
from retrodp.statistics.contract import PURPOSE

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_KEPT = 1 << 24
"""Draws kept for a part, 128 megabytes; beyond that they are made again."""


def run(
    sketch: PracticalSketch, blocks: Iterable[tuple[Ints, Sequence[bytes]]], keys: NoiseKeys
) -> Iterator[Coreset]:
    """What `PracticalSketch.advance` gives for one block after the other.

    Args:
        sketch: The description.
        blocks: Points and identities of each block, from the first on.
        keys: Source of noise, coins and the place of the cells.
    """
    memory = Memory.from_bytes(sketch.begin(), sketch.box.columns)
    grid = sketch.box.grid.placed(keys.lasting_key(release=sketch.name, purpose=PURPOSE), 0)
    counters = RunningCounters(sketch, keys)
    for block, (points, identities) in enumerate(blocks, start=1):
        require_copies(points, identities)
        arrivals = Arrivals(
            sketch.box.positions(points),
            coins(identities, release=sketch.name, block=block, phase=memory.phase, keys=keys),
        )
        counters.block = block
        coreset, memory = sketch.closed(block, arrivals, memory, counters=counters, grid=grid)
        yield coreset


@dataclass(slots=True, eq=False)
class RunningCounters:
    """As `KeyedCounters`, with the draws of dense factors kept from block to block.

    Attributes:
        sketch: Whose processes.
        keys: Source of the noise.
        block: That is being closed.
    """

    sketch: PracticalSketch
    keys: NoiseKeys
    block: int = 1
    kept: dict[str, _Kept] = field(default_factory=dict)

    def read(self, part: str, index: int, labels: Ints, exact: Ints) -> Ints:
        """Exact values and the noise of their labels."""
        process = self.sketch.process(part)
        plain = KeyedCounters(self.sketch, self.keys, self.block)
        if not isinstance(process, DenseProcess) or not len(labels):
            return plain.read(part, index, labels, exact)
        kept = self.kept.get(part)
        if kept is None or kept.filled > index:  # a part that began anew has other labels
            kept = self.kept[part] = _Kept(process, self.sketch.noise_name(part))
        new = kept.unknown(labels)
        if (len(kept.labels) + len(new)) * index > MOST_KEPT:
            return plain.read(part, index, labels, exact)
        found: Ints = exact + kept.noise(index, labels, new, self.keys)
        return found


@dataclass(slots=True, eq=False)
class _Kept:
    """Draws of a part's labels, all of them up to one round."""

    process: DenseProcess
    release: str
    filled: int = 0
    labels: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    places: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    draws: Floats = field(default_factory=lambda: np.empty((0, 0)))
    largest: Floats = field(default_factory=lambda: np.empty(0))

    def unknown(self, labels: Ints) -> Ints:
        """Those of the labels that have no draws yet."""
        if not len(self.labels):
            return np.sort(labels)
        place = np.minimum(np.searchsorted(self.labels, labels), len(self.labels) - 1)
        return np.sort(labels[self.labels[place] != labels])

    def noise(self, index: int, labels: Ints, new: Ints, keys: NoiseKeys) -> Ints:
        """Noise of a round, drawing what is not there yet."""
        have = len(self.labels)
        self._room(index, have + len(new))
        if index > self.filled and have:
            order = np.argsort(self.places)
            self._fill(range(self.filled + 1, index + 1), slice(0, have), self.labels[order], keys)
        self.filled = index
        if len(new):
            self._fill(range(1, index + 1), slice(have, have + len(new)), new, keys)
            at = np.searchsorted(self.labels, new)
            self.labels = np.insert(self.labels, at, new)
            self.places = np.insert(self.places, at, np.arange(have, have + len(new)))
        asked = self.places[np.searchsorted(self.labels, labels)]
        return combined(
            self.process.factor,
            np.take(self.draws[:index], asked, axis=1),
            self.largest[:index].copy(),
        )

    def _room(self, rounds: int, labels: int) -> None:
        have = self.draws.shape
        if rounds <= have[0] and labels <= have[1]:
            return
        shape = (self.process.factor.horizon, max(labels, 2 * have[1]))
        rounds = min(shape[0], max(rounds, 2 * have[0]))
        draws = np.zeros((rounds, shape[1]))
        kept = (slice(0, self.filled), slice(0, len(self.labels)))
        draws[kept] = self.draws[kept]
        largest = np.zeros(rounds)
        largest[: self.filled] = self.largest[: self.filled]
        self.draws, self.largest = draws, largest

    def _fill(self, rounds: range, which: slice, labels: Ints, keys: NoiseKeys) -> None:
        where = Coordinates.of_indices(labels)
        fresh = self.process.node_draws(release=self.release, rounds=rounds, keys=keys, where=where)
        rows = slice(rounds.start - 1, rounds.stop - 1)
        self.draws[rows, which] = fresh
        np.maximum(self.largest[rows], np.abs(fresh).max(axis=1, initial=0), out=self.largest[rows])
