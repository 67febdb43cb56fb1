"""A private sketch of points that only arrive: representatives where they are dense, with weights.

The practical form of algorithms 2 and 5 of Cohen et al. (2026). Every arrival counts with its
nearest representative. Far ones are sampled; the sample feeds the counters of nested cells, and a
cell whose noisy count stands out becomes a representative. When the noisy size of the sample passes
a cap, the estimated cost doubles and a new phase begins with an empty sample.

Guarantee: one vector of counters with causal noise; see docs/online-clustering.md for the proof.
It remembers: nothing of it is retroactive.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrodp import _check
from retrodp.clustering.arrivals import Part, check_process, losses_of
from retrodp.clustering.coins import coins, require_copies
from retrodp.clustering.coreset import MONOTONE_DEVIATIONS, Coreset
from retrodp.clustering.counters import (
    CELLS,
    PARTS,
    SHARES,
    SIZE,
    SUMS,
    WEIGHTS,
    Counters,
    KeyedCounters,
    parts_of,
)
from retrodp.clustering.means import apart, noise_of_means, noisy_means, unlike
from retrodp.clustering.memory import Memory, added, among, counts_of
from retrodp.clustering.places import Box
from retrodp.errors import PlanError, UsageError
from retrodp.mechanisms.contract import Adaptive, Retroactive
from retrodp.noise.key import NoiseKeys
from retrodp.noise.processes import AnyFactor, Process
from retrodp.privacy.loss import PrivacyLoss
from retrodp.statistics.contract import PURPOSE
from retrodp.statistics.grid import Placed

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

FIRST_WIDTH = Fraction(1, 16)
MOST_PHASES = 64
_PHASE_BITS, _LEVEL_BITS, _PLACE_BITS = 6, 6, 24
MOST_REPRESENTATIVES = 1 << 13
MOST_LOOKED_AT = 1 << 20
"""Cells of one level whose counts are looked at in one block."""


class Arrivals(NamedTuple):
    """The points of one block.

    Attributes:
        positions: In the box, shape (n, d).
        coins: In [0, 1), shape (n,).
    """

    positions: Ints
    coins: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class PracticalSketch:
    """Representatives and noisy weights of all points that arrived, block by block.

    Blocks are closed by the clock: how many points a block has decides nothing else.

    Attributes:
        name: Of the release.
        box: Public box of the points, with its nested cells.
        k: Number of clusters the sketch is made for.
        power: 2 for k-means, 1 for k-median.
        horizon: Blocks.
        cells: Noise of the cells' counts.
        weights: Noise of the numbers of arrivals.
        sums: Noise of their offsets' sums.
        size: Noise of the number of sampled points.
        threshold: Noisy count from which a cell becomes a representative, by rounds of its phase.
        eagerness: An arrival at distance r is sampled with probability
            eagerness * k * tau * r^power / (estimated cost), tau the largest threshold.
        cap: A phase ends when the noisy size of its sample passes so many times k * tau.
        first_width: The first estimated cost is that of k * tau points at this part of the width
            of the box.
        records: Arrivals of one unit, all in one block.
        shares: Of the budget, by part; facts for `describe`.
    """

    name: str
    box: Box
    k: int
    power: int
    horizon: int
    cells: Process
    weights: Process
    sums: Process
    size: Process
    threshold: tuple[int, ...]
    eagerness: int = 6
    cap: int = 12
    first_width: Fraction = FIRST_WIDTH
    records: int = 1
    shares: tuple[tuple[str, Fraction], ...] = tuple(SHARES.items())

    def __post_init__(self) -> None:
        _check.whole(least=1, k=self.k, horizon=self.horizon, records=self.records)
        _check.whole(least=1, eagerness=self.eagerness, cap=self.cap)
        _check.positive(first_width=self.first_width)
        if self.power not in {1, 2}:
            raise PlanError(f"power must be 1 (k-median) or 2 (k-means), got {self.power!r}.")
        for part in PARTS:
            process = self.process(part)
            check_process(process)
            if process.factor.horizon != self.horizon:
                raise PlanError(
                    f"The noise of the {part} is made for {process.factor.horizon} blocks.",
                    expected=f"as many as the sketch has, {self.horizon}",
                )
        if len(self.threshold) != self.horizon or min(self.threshold) < 1:
            raise PlanError("A sketch needs a threshold of at least 1 for every round of a phase.")

    def process(self, part: str) -> Process:
        """Noise of a part."""
        match part:
            case "cells":
                return self.cells
            case "weights":
                return self.weights
            case "sums":
                return self.sums
            case "size":
                return self.size
        raise UsageError(f"A sketch has no part {part!r}.")

    def noise_name(self, part: str) -> str:
        """Release that the noise of a part is labelled with."""
        return f"{self.name}/{part}"

    def stddev(self, part: str, index: int) -> float:
        """Standard deviation of a part's noise, to six digits: the same on every machine."""
        return float(f"{self.process(part).stddev(index):.6g}")

    @property
    def tau(self) -> int:
        """Noisy count from which a cell is a representative in any round."""
        return max(self.threshold)

    @property
    def parts(self) -> tuple[Part, ...]:
        """What one unit adds to the counters of each part, over all phases."""
        return parts_of(self.box, dict(self.shares), self.records)

    @property
    def factor(self) -> AnyFactor:
        """Nodes of the noise of all parts."""
        return self.weights.factor

    @property
    def retroactive(self) -> Retroactive:
        """The sample remembers."""
        return "no"

    @property
    def adaptive(self) -> Adaptive:
        """Noise that would not hold is refused when the sketch is made."""
        return "yes"

    def cost(self) -> tuple[PrivacyLoss, ...]:
        """All counters of all blocks and phases for one unit, as one vector mechanism."""
        return tuple(losses_of(part, self.process(part.name)) for part in self.parts)

    def begin(self) -> bytes:
        """The state before block 1; public."""
        return Memory.first(self.box.middle, self._next_mark(0)).to_bytes()

    def advance(
        self,
        block: int,
        points: Ints,
        identities: Sequence[bytes],
        keys: NoiseKeys,
        state: bytes,
    ) -> tuple[Coreset, bytes]:
        """What is published of a block, and the state after it: a pure function of the arguments.

        Args:
            block: One more than the state's.
            points: Arrivals in grid steps of their columns, shape (n, d), int64.
            identities: Canonical bytes of each; equal ones are copies of equal points, and refused
                in one call if their points differ.
            keys: Source of noise, coins and the place of the cells.
            state: After the block before.

        Sees: exact points. Time: some 3 microseconds a point of ten columns, and its noise: under a
        dense factor half a millisecond for each block so far, which `running.run` pays once.
        """
        memory = Memory.from_bytes(state, self.box.columns)
        arrivals = self._arrived(block, points, identities, keys, memory)
        coreset, after = self.closed(
            block,
            arrivals,
            memory,
            counters=KeyedCounters(self, keys, block),
            grid=self._grid(keys),
        )
        return coreset, after.to_bytes()

    def absorb(
        self,
        block: int,
        points: Ints,
        identities: Sequence[bytes],
        keys: NoiseKeys,
        state: bytes,
    ) -> bytes:
        """The state with arrivals of a block that is not closed yet; nothing is published of them.

        So a block may be longer than what is handed over at once: absorbing its arrivals in parts,
        in any order, and advancing with none gives what advancing with all of them gives.

        Args: As `advance`.
        """
        memory = Memory.from_bytes(state, self.box.columns)
        arrivals = self._arrived(block, points, identities, keys, memory)
        after = self._counted(block, arrivals, memory, self._grid(keys))
        return replace(after, block=memory.block).to_bytes()

    def _arrived(
        self,
        block: int,
        points: Ints,
        identities: Sequence[bytes],
        keys: NoiseKeys,
        memory: Memory,
    ) -> Arrivals:
        self._check_block(block, memory)
        require_copies(points, identities)
        return Arrivals(
            self.box.positions(points),
            coins(identities, release=self.name, block=block, phase=memory.phase, keys=keys),
        )

    def _check_block(self, block: int, memory: Memory) -> None:
        _check.round_within(block, self.horizon)
        if block != memory.block + 1:
            raise UsageError(f"Block {block} cannot follow block {memory.block}.")

    def _grid(self, keys: NoiseKeys) -> Placed:
        return self.box.grid.placed(keys.lasting_key(release=self.name, purpose=PURPOSE), 0)

    def closed(
        self, block: int, arrivals: Arrivals, memory: Memory, *, counters: Counters, grid: Placed
    ) -> tuple[Coreset, Memory]:
        """The same, with whoever tells noisy counts given.

        Everything published, and everything that a later block asks for, is a function of what
        `counters` tells; exact counters go nowhere else.
        """
        self._check_block(block, memory)
        memory = self._counted(block, arrivals, memory, grid)
        born, memory = self._looked(memory, counters, grid)
        coreset = self._published(memory, counters)
        born = np.concatenate([born, self._refined(memory, coreset, born)])
        return self._with_born(coreset, memory, born)

    # What arrives.

    def _counted(self, block: int, arrivals: Arrivals, memory: Memory, grid: Placed) -> Memory:
        """The exact counters after a block's arrivals."""
        positions = arrivals.positions
        representatives = self.box.positions(memory.points)
        places, squares = self.box.nearest(positions, representatives)
        many = len(memory.points)
        offsets = self.box.offsets(positions, representatives[places])
        # Whole numbers below 2^53, so that sums of floats are exact in any order.
        sums = [np.bincount(places, column, many) for column in offsets.T]
        chosen = self.sampled(memory, squares, arrivals.coins)
        codes = [
            numbers << _LEVEL_BITS | level for level, numbers in grid.numbers(positions[chosen])
        ]
        cells, counts = added(memory.cells, memory.counts, np.concatenate(codes))
        return replace(
            memory,
            block=block,
            size=memory.size + len(chosen),
            weights=memory.weights + np.bincount(places, minlength=many),
            sums=memory.sums + np.stack(sums, axis=1).astype(np.int64),
            cells=cells,
            counts=counts,
        )

    def sampled(self, memory: Memory, squares: Floats, coins: Floats) -> NDArray[np.intp]:
        """Places of the arrivals that are sampled: each by its own distance and coin."""
        # One product and, for the median, one root: each is rounded in one way on every machine.
        chance = self.eagerness * self.k * self.tau / self._estimate(memory.doublings)
        return np.flatnonzero(coins < self._cost(squares) * chance)

    def _cost(self, squares: Floats) -> Floats:
        """Of a point at a squared distance."""
        return squares if self.power == 2 else np.sqrt(squares)

    def _estimate(self, doublings: int) -> float:
        """The estimated cost, in units of distance to the power."""
        unit = Fraction(self.box.unit) * self.first_width
        return float(self.k * self.tau * unit**self.power * (1 << doublings))

    # What is seen of it.

    def _looked(self, memory: Memory, counters: Counters, grid: Placed) -> tuple[Ints, Memory]:
        """New representatives, in grid steps, and the memory of what was published for them.

        The cells are looked at when the noisy size of the sample has grown by tau.
        """
        index = memory.block - memory.start
        label = np.array([self.size_label(memory.phase)])
        size = int(counters.read(SIZE, index, label, np.array([memory.size]))[0])
        born = np.zeros((0, self.box.columns), dtype=np.int64)
        if size >= memory.mark:
            born, accepted = self._full_cells(memory, counters, grid)
            memory = replace(memory, accepted=accepted, mark=self._next_mark(size))
        most = self.cap * self.k * self.tau
        if size > most and memory.phase + 1 < MOST_PHASES:
            memory = self.begun(memory)
        return born, memory

    def begun(self, memory: Memory) -> Memory:
        """A new phase: nothing of the sample is left, and all labels are new."""
        none = np.zeros(0, dtype=np.int64)
        return replace(
            memory,
            phase=memory.phase + 1,
            doublings=memory.doublings + 1,
            start=memory.block,
            size=0,
            mark=self._next_mark(0),
            cells=none,
            counts=none,
            accepted=none,
        )

    def _next_mark(self, size: int) -> int:
        return max(size, 0) + self.tau

    def _full_cells(self, memory: Memory, counters: Counters, grid: Placed) -> tuple[Ints, Ints]:
        """Places of cells that stand out for the first time in this phase, and all that did.

        All children of accepted cells are looked at, empty ones too, and all cells of the first
        level: which they are follows from what was published.
        """
        index = memory.block - memory.start
        levels = self.box.grid.counted
        born, accepted = [], [memory.accepted]
        room = MOST_REPRESENTATIVES - len(memory.points)
        parents = np.zeros(1, dtype=np.int64)
        for level in levels:
            bits = (
                self.box.grid.bits(level) if level == levels[0] else self.box.grid.branching(level)
            )
            sides = np.arange(1 << bits, dtype=np.int64)
            parents = parents[: max(1, MOST_LOOKED_AT >> bits)]
            numbers = (parents[:, None] << bits | sides[None, :]).reshape(-1)
            numbers = grid.inside(level, numbers)
            codes = numbers << _LEVEL_BITS | level
            before = among(codes, memory.accepted)
            new, asked = numbers[~before], codes[~before]
            noisy = counters.read(
                CELLS,
                index,
                self.cell_labels(memory.phase, asked),
                counts_of(memory.cells, memory.counts, asked),
            )
            full = np.flatnonzero(noisy >= self.threshold[index - 1])[:room]
            room -= len(full)  # whoever is left out is looked at again
            accepted.append(asked[full])
            parents = np.sort(np.concatenate([numbers[before], new[full]]))
            if len(full):
                born.append(self.box.middles(grid, level, new[full]))
        found = np.concatenate(born) if born else np.zeros((0, self.box.columns), dtype=np.int64)
        return unlike(found, memory.points), np.sort(np.concatenate(accepted))

    def _published(self, memory: Memory, counters: Counters) -> Coreset:
        """Noisy weights and means of the representatives that the block's arrivals could meet."""
        block, labels = memory.block, self.weight_labels(memory.births)
        weights = counters.read(WEIGHTS, block, labels, memory.weights)
        deviation = self.stddev(WEIGHTS, block)
        heavy = np.flatnonzero(weights > MONOTONE_DEVIATIONS * deviation)
        columns = self.box.columns
        asked = (labels[heavy, None] * columns + np.arange(columns)).reshape(-1)
        sums = counters.read(SUMS, block, asked, memory.sums[heavy].reshape(-1))
        centres = memory.points.copy()
        centres[heavy] = noisy_means(
            self.box,
            memory.points[heavy],
            weights[heavy],
            sums.reshape(-1, columns),
            self.stddev(SUMS, block),
        )
        return Coreset(
            block=block,
            phase=memory.phase,
            points=memory.points.copy(),
            centres=centres,
            weights=weights,
            births=memory.births.copy(),
            weight_stddev=deviation,
        )

    def _refined(self, memory: Memory, coreset: Coreset, born: Ints) -> Ints:
        """Means that become representatives of their own: where cells are wide, middles lie far off.

        A mean does whose points would gain a k-th of the estimated cost by it, and whose distance
        neither its noise nor another representative explains. All of that was published.
        """
        heavy = coreset.positive
        heavy = heavy[(coreset.centres[heavy] != coreset.points[heavy]).any(axis=1)]
        taken = np.concatenate([memory.points, born])
        centres, weights = coreset.centres[heavy], coreset.weights[heavy]
        noise = noise_of_means(self.box, weights, self.stddev(SUMS, memory.block))
        _, squares = self.box.nearest(self.box.positions(centres), self.box.positions(taken))
        worth = weights * self._cost(squares) >= self._estimate(memory.doublings) / self.k
        far = np.flatnonzero(worth & (squares >= 4 * noise))
        order = far[np.argsort(-squares[far], kind="stable")]
        room = MOST_REPRESENTATIVES - len(taken)
        chosen: Ints = order[apart(self.box, centres[order], noise[order])][:room]
        found: Ints = centres[chosen]
        return found

    def _with_born(self, coreset: Coreset, memory: Memory, born: Ints) -> tuple[Coreset, Memory]:
        """The new representatives at the end; they have no arrivals yet, which tells nothing."""
        zeros = np.zeros(len(born), dtype=np.int64)
        points = np.concatenate([memory.points, born])
        births = np.concatenate([memory.births, zeros + memory.block])
        return replace(
            coreset,
            points=points,
            centres=np.concatenate([coreset.centres, born]),
            weights=np.concatenate([coreset.weights, zeros]),
            births=births.copy(),
        ), replace(
            memory,
            points=points.copy(),
            births=births,
            weights=np.concatenate([memory.weights, zeros]),
            sums=np.concatenate([memory.sums, np.zeros_like(born)]),
        )

    # Labels: of counters that could ever differ in what they count, no two are equal.

    def size_label(self, phase: int) -> int:
        """Of the number of sampled points of a phase."""
        return phase

    def cell_labels(self, phase: int, codes: Ints) -> Ints:
        """Of cells of a phase: number, level, phase."""
        return codes << _PHASE_BITS | phase

    def weight_labels(self, births: Ints) -> Ints:
        """Of representatives: block of birth, and place among those born with it."""
        _, firsts, often = np.unique(births, return_index=True, return_counts=True)
        places = np.arange(len(births)) - np.repeat(firsts, often)
        labels: Ints = births << _PLACE_BITS | places
        return labels

    def describe(self) -> dict[str, Any]:
        """Public facts."""
        return {
            "mechanism": "private Meyerson sketch",
            "k": self.k,
            "power": self.power,
            "levels": [*self.box.grid.levels],
            "tau": self.tau,
            "cap": self.cap * self.k * self.tau,
            "factor": self.factor.name,
            "law": f"discrete {'Laplace' if self.weights.law == 'laplace' else 'Gaussian'}",
            "parts": [
                {
                    "part": part.name,
                    "share": str(part.share),
                    "scale": str(self.process(part.name).scale),
                    "stddev_max": math.sqrt(self.process(part.name).max_variance),
                }
                for part in self.parts
            ],
        }
