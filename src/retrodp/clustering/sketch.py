"""A private sketch of points that only arrive: representatives where they are dense, with weights.

The practical form of algorithms 2 and 5 of Cohen et al. (2026). Every arrival counts with its
nearest representative. Far ones are sampled; the sample feeds the counters of nested cells, and a
cell whose noisy count stands out becomes a representative. When the noisy size of the sample passes
a cap, the estimated cost doubles and a new phase begins with an empty sample.

Guarantee: one vector of counters with causal noise; see docs/online-clustering.md for the proof.
It remembers: nothing of it is retroactive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrodp import _check
from retrodp.clustering.absorbing import Arrivals, counted
from retrodp.clustering.arrivals import Part, check_process, facts_of, losses_of
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
    birth_labels,
    parts_of,
)
from retrodp.clustering.means import noisy_means
from retrodp.clustering.memory import Memory, counts_of
from retrodp.clustering.places import Box
from retrodp.clustering.representatives import Worth, far_means, full_cells, with_born
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
_PHASE_BITS = 6


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
        if isinstance(self.power, bool) or self.power not in {1, 2}:
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
        noises = {CELLS: self.cells, WEIGHTS: self.weights, SUMS: self.sums, SIZE: self.size}
        if part not in noises:
            raise UsageError(f"A sketch has no part {part!r}.")
        return noises[part]

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
        return Memory.first(self.box.middle, self.tau).to_bytes()

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
        after = counted(memory, arrivals, self.box, self._grid(keys), self.sampled)
        return after.to_bytes()

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
        after = counted(memory, arrivals, self.box, grid, self.sampled)
        born, memory = self._looked(replace(after, block=block), counters, grid)
        coreset = self._published(memory, counters)
        taken = np.concatenate([memory.points, born])
        # Worth a k-th of the estimated cost, which their points would gain by it.
        worth = Worth(self._cost, self._estimate(memory.doublings) / self.k)
        means = far_means(self.box, coreset, taken, self.stddev(SUMS, block), worth)
        return with_born(coreset, memory, np.concatenate([born, means]))

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
            limit = self.threshold[index - 1]

            def full(codes: Ints) -> NDArray[np.bool_]:
                labels = self.cell_labels(memory.phase, codes)
                exact = counts_of(memory.cells, memory.counts, codes)
                return counters.read(CELLS, index, labels, exact) >= limit

            born, accepted = full_cells(self.box, grid, memory, full)
            memory = replace(memory, accepted=accepted, mark=max(size, 0) + self.tau)
        most = self.cap * self.k * self.tau
        if size > most and memory.phase + 1 < MOST_PHASES:
            memory = memory.begun(self.tau)
        return born, memory

    def _published(self, memory: Memory, counters: Counters) -> Coreset:
        """Noisy weights and means of the representatives that the block's arrivals could meet."""
        block, labels = memory.block, birth_labels(memory.births)
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

    # Labels: of counters that could ever differ in what they count, no two are equal.

    def size_label(self, phase: int) -> int:
        """Of the number of sampled points of a phase."""
        return phase

    def cell_labels(self, phase: int, codes: Ints) -> Ints:
        """Of cells of a phase: number, level, phase."""
        return codes << _PHASE_BITS | phase

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
            "parts": [facts_of(part, self.process(part.name)) for part in self.parts],
        }
