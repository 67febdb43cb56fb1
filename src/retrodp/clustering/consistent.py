"""Centres that hardly move: consistent clustering of a stream of published coresets.

Promise: centres are representatives of the coreset, and they and the number of centres that changed
are a function of the coresets published so far. So this is post-processing and costs no privacy.
Knows no point, no key and no noise; the state that it hands over holds published numbers alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple, assert_never, get_args

import numpy as np

from retrodp import _check
from retrodp.clustering.coreset import MONOTONE_DEVIATIONS, Coreset
from retrodp.clustering.medoids import Ints, Medoids, Power
from retrodp.clustering.robust import Spell
from retrodp.errors import PlanError, UsageError

Algorithm = Literal["swaps", "hysteresis", "robust"]
Where = Literal["representatives", "means"]

MEANS_FROM = 4
"""Columns from which the cells of a sketch are so wide that means tell more."""

GROWTH = 2
"""Factor between the weights at which a representative arrives again: 1 + eta."""

WORSE = Fraction(3, 2)
"""Cost, over that of a fresh clustering, above which `hysteresis` takes the fresh one."""


class Step(NamedTuple):
    """Centres after one block.

    Attributes:
        centres: In the grid steps of the coreset, shape (c, d) with c at most k, in the order of
            their representatives' birth.
        recourse: How many of them were no centres before; |C_t minus C_(t-1)|.
        state: For the next block.
    """

    centres: Ints
    recourse: int
    state: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Consistent:
    """A rule that keeps k centres near the points and changes few of them.

    Centres change only in blocks with arrivals: a representative arrives when its weight passes u,
    2 u, 4 u and so on for the first time, u being 2.5 deviations of the noise. Weights are the
    coreset's monotone ones. So a representative of last weight w arrives at most `log2(w / u) + 1`
    times, for the least u of any block, and in all at most `k` centres change for every block with
    an arrival. What each algorithm adds to that:

    - `swaps`: the best single exchange, as long as it saves a part of `1 / (2 k)` of the cost. At
      most `2 k ln(b / a)` exchanges in a block whose cost they lower from b to a (Guo et al. 2021).
    - `hysteresis`: all centres anew when they cost over 3/2 of what centres found afresh would
      (Lattanzi, Vassilvitskii 2017).
    - `robust`: spells (epochs, in the literature) that remove what is hardly missed, take arrivals
      as centres, and then change as few as they can; at most 4 changes for each arrival
      (Fichtenberger, Lattanzi, Norouzi-Fard, Svensson 2021).

    Attributes:
        k: Most centres.
        power: 1 for k-median, 2 for k-means.
        algorithm: As above.
        grid: Grid steps to whose multiples representatives are moved toward 0 first (definition 16
            of Cohen et al. 2026); 1 for none.
        gain: Part of the cost that a swap of `swaps` must save; by default 1 / (2 k). A larger one
            means fewer changes and higher costs.
        costs_at: Where the weights of representatives are taken to lie when centres are compared:
            at the "representatives", or at the noisy "means" of what each stands for, which is
            better where cells are wide. By default at the means from four columns on.
    """

    k: int
    power: Power = 2
    algorithm: Algorithm = "swaps"
    grid: int = 1
    gain: Fraction | None = None
    costs_at: Where | None = None

    def __post_init__(self) -> None:
        _check.whole(least=1, k=self.k, grid=self.grid)
        if self.gain is not None:
            _check.probability(gain=self.gain)
        for name, value, known in (
            ("power", self.power, get_args(Power)),
            ("algorithm", self.algorithm, get_args(Algorithm)),
            ("costs_at", self.costs_at, (*get_args(Where), None)),
        ):
            if isinstance(value, bool) or value not in known:
                raise PlanError(f"Unknown {name} {value!r}.", expected=", ".join(map(str, known)))

    @property
    def least_gain(self) -> Fraction:
        """Part of the cost that a swap must save."""
        return Fraction(1, 2 * self.k) if self.gain is None else self.gain

    def begin(self) -> bytes:
        """The state before the first block: no centre."""
        return _State.first().to_bytes()

    def advance(self, coreset: Coreset, state: bytes) -> Step:
        """Centres after a block, and what is needed for the next.

        Args:
            coreset: Of that block.
            state: What the block before gave, or `begin()`.

        Time: some `m * m * (k + d)` steps for m representatives, and as many for every change.

        Raises:
            UsageError: The state is not one of an earlier block of this sketch and this algorithm.
        """
        before = _State.from_bytes(state, coreset)
        weights = coreset.monotone(np.array(before.weights, dtype=np.int64))
        points = snapped(coreset.points, self.grid)
        levels = _levels(weights, _least(coreset.weight_stddev))
        known = np.full(len(levels), -1, dtype=np.int64)
        known[: len(before.levels)] = before.levels
        arrivals = np.flatnonzero(levels > known).tolist()
        centres, spell = list(before.centres), before.spell
        if arrivals:
            medoids = self.medoids(coreset, weights)
            centres, spell = self._changed(medoids, centres, arrivals, spell)
        centres = sorted(centres)
        after = _State(
            block=coreset.block,
            weights=weights.tolist(),
            levels=np.maximum(levels, known).tolist(),
            centres=centres,
            spell=spell,
        )
        old, new = (set(map(tuple, points[own].tolist())) for own in (before.centres, centres))
        return Step(points[centres], len(new - old), after.to_bytes())

    def medoids(self, coreset: Coreset, weights: Ints) -> Medoids:
        """What costs are worked out with.

        Args:
            coreset: Of a block.
            weights: Its monotone ones.
        """
        means = self.costs_at == "means"
        if self.costs_at is None:
            means = coreset.points.shape[1] >= MEANS_FROM
        return Medoids.of(
            snapped(coreset.points, self.grid),
            weights,
            self.power,
            means=snapped(coreset.centres, self.grid) if means else None,
        )

    def _changed(
        self, medoids: Medoids, centres: list[int], arrivals: list[int], spell: Spell
    ) -> tuple[list[int], Spell]:
        match self.algorithm:
            case "swaps":
                full = medoids.filled(centres, self.k)
                return medoids.improved(full, gain=self.least_gain), spell
            case "hysteresis":
                full = medoids.filled(centres, self.k)
                anew = medoids.settled(self.k)
                worse = medoids.cost(full) > WORSE * medoids.cost(anew)
                return (anew if worse else full), spell
            case "robust":
                fresh = medoids.cost(medoids.settled(self.k))
                for place in arrivals:
                    centres, spell = spell.arrived(
                        medoids, centres, place, k=self.k, fresh_cost=fresh
                    )
                return centres, spell
            case _:
                assert_never(self.algorithm)


def snapped(points: Ints, grid: int) -> Ints:
    """Each coordinate moved toward 0 to a multiple of `grid`, so that none grows.

    Source: Cohen et al. (2026), definition 16; there the grid is `1 / (n d)` of the diameter, and
    the cost of n points changes by at most 1 at power 1 (lemma 17).
    """
    found: Ints = np.sign(points) * (np.abs(points) // grid * grid)
    return found


def grid_of(diameter: int, points: int, columns: int) -> int:
    """Definition 16's grid in whole steps: the diameter over n d, or 1 where it is finer.

    Args:
        diameter: Of the domain, in grid steps.
        points: n, public; of the coreset, so its total weight and not the length of the stream.
        columns: d.
    """
    _check.whole(least=1, diameter=diameter, points=points, columns=columns)
    return max(1, diameter // (points * columns))


def most_arrivals(weights: Ints, weight_stddev: float) -> int:
    """Most arrivals that representatives with these weights can have had.

    Args:
        weights: Monotone, of the last block, shape (m,).
        weight_stddev: The least that any block had.
    """
    levels = _levels(weights, _least(weight_stddev))
    return int((levels + 1).sum())


def _least(weight_stddev: float) -> int:
    """Weight from which a representative has arrived."""
    if not 0 <= weight_stddev < math.inf:
        raise UsageError(f"weight_stddev must be finite and at least 0, got {weight_stddev!r}.")
    return max(1, int(np.ceil(MONOTONE_DEVIATIONS * weight_stddev)))


def _levels(weights: Ints, least: int) -> Ints:
    """How often each weight has doubled from the least that counts; -1 for one below it."""
    borders = [least]
    while borders[-1] <= weights.max(initial=0):
        borders.append(borders[-1] * GROWTH)
    found: Ints = np.searchsorted(borders, weights, side="right").astype(np.int64) - 1
    return found


class _State(NamedTuple):
    """What is handed from block to block; lists of whole numbers."""

    block: int
    weights: list[int]
    levels: list[int]
    centres: list[int]
    spell: Spell

    @classmethod
    def first(cls) -> _State:
        return cls(0, [], [], [], Spell())

    def to_bytes(self) -> bytes:
        pieces = {**self._asdict(), "spell": self.spell._asdict()}
        return json.dumps(pieces, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, state: bytes, coreset: Coreset) -> _State:
        try:
            pieces: Mapping[str, object] = json.loads(state)
            found = cls(**{**pieces, "spell": Spell(**pieces["spell"])})  # type: ignore[arg-type]
        except (KeyError, TypeError, ValueError):
            raise UsageError("The state is not one that an earlier block gave.") from None
        places = [*found.centres, *found.spell.initial, *found.spell.fresh]
        known = len(found.weights)
        if max(places, default=-1) >= known or len(found.levels) != known:
            raise UsageError("The state is not one that an earlier block gave.")
        if known > len(coreset) or found.block >= coreset.block:
            raise UsageError(
                f"The state is of block {found.block} and cannot be advanced by one of block "
                f"{coreset.block}.",
                do="Advance each block once, in order.",
            )
        return found
