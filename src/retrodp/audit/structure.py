"""What a factor reveals about a window, from its weights alone: exact, without noise.

Promise: computed from `nodes` of every round and nothing else a factor says about itself, so that
a declared sensitivity that is too small is found here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrodp.noise.factors.dense import DenseFactor, rows_of
from retrodp.noise.key import Node
from retrodp.noise.processes import AnyFactor

Floats = NDArray[np.float64]

SINGULAR = 1e-9  # of the largest; smaller singular values are zero


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """Weights of all rounds, and what they make of windows.

    Attributes:
        weights: Over the denominator, shape ``(rounds, nodes)``.
        inverse: Pseudo-inverse, shape ``(nodes, rounds)``: released noise to node noise.
        full_rank: Whether every vector of noise can occur: no round is a fixed sum of others.
        square: Whether the nodes can be told exactly from the released noise.
    """

    weights: Floats
    inverse: Floats
    full_rank: bool
    square: bool

    @classmethod
    def of(cls, factor: AnyFactor) -> Structure:
        """Read off the nodes of every round."""
        if isinstance(factor, DenseFactor):
            return cls._of_weights(rows_of(factor).weights)
        columns: dict[Node, int] = {}
        entries: list[tuple[int, int, int]] = []
        for round_ in range(1, factor.horizon + 1):
            for node, weight in factor.nodes(round_):
                column = columns.setdefault(node, len(columns))
                entries.append((round_ - 1, column, weight))
        weights = np.zeros((factor.horizon, len(columns)))
        for row, column, weight in entries:
            weights[row, column] += weight / factor.denominator
        return cls._of_weights(weights)

    @classmethod
    def _of_weights(cls, weights: Floats) -> Structure:
        singular = np.linalg.svd(weights, compute_uv=False)
        rank = int(np.count_nonzero(singular > SINGULAR * singular[0]))
        return cls(
            weights=weights,
            inverse=np.linalg.pinv(weights, rcond=SINGULAR).astype(np.float64),
            full_rank=rank == len(weights),
            square=rank == weights.shape[1],
        )

    @property
    def horizon(self) -> int:
        """Rounds."""
        return len(self.weights)

    def shift(self, change: Floats) -> Floats:
        """Least node shifts (in L2) that change the released sequence like that."""
        return self.inverse @ change

    def l2_squared(self, change: Floats) -> float:
        """Least squared L2 shift: the exact loss of Gaussian noise, times twice its variance."""
        return float(np.square(self.shift(change)).sum())

    def l1(self, change: Floats) -> float:
        """L1 of the least shift; the only shift there is where the nodes can be told."""
        return float(np.abs(self.shift(change)).sum())


def window(horizon: int, begin: int, end: int) -> Floats:
    """1 in rounds begin..end - 1, else 0; `end` is at most horizon + 1."""
    change = np.zeros(horizon)
    change[begin - 1 : end - 1] = 1
    return change


def windows(horizon: int, longest: int | None) -> list[tuple[int, int]]:
    """(begin, end) of every window of rounds, up to a length."""
    return [
        (begin, end)
        for begin in range(1, horizon + 1)
        for end in range(begin + 1, horizon + 2)
        if longest is None or end - begin <= longest
    ]


def worst_windows(
    structure: Structure, *, law: str, longest: int | None, most: int
) -> list[tuple[int, int]]:
    """Windows that an adversary would choose, the worst first.

    By the norm of the law: the shortest of the worst, the longest of the worst, the worst that
    never ends, the worst of length one, then the rest.
    """
    size = structure.l1 if law == "laplace" and structure.square else structure.l2_squared
    horizon = structure.horizon

    def order(pair: tuple[int, int]) -> tuple[float, int, int]:
        # Of equals the shortest in the middle: rounds on either side tell what the noise was.
        begin, end = pair
        exact = round(size(window(horizon, begin, end)), 9)
        return -exact, end - begin, abs(begin + end - horizon - 2)

    ranked = sorted(windows(horizon, longest), key=order)
    worst = [pair for pair in ranked if order(pair)[0] == order(ranked[0])[0]]
    longest_worst = max(worst, key=lambda pair: pair[1] - pair[0])
    endless = [pair for pair in ranked if pair[1] == horizon + 1]
    single = [pair for pair in ranked if pair[1] == pair[0] + 1]
    kinds = [*endless[:1], *single[:1]]
    chosen = dict.fromkeys([ranked[0], longest_worst, *kinds, *ranked])
    return list(chosen)[:most]


def worst_size(structure: Structure, *, law: str, longest: int | None) -> float:
    """Largest size of any window: L1 of the shift for Laplace, squared L2 for Gaussian noise."""
    size = structure.l1 if law == "laplace" else structure.l2_squared
    return max(
        size(window(structure.horizon, *pair)) for pair in windows(structure.horizon, longest)
    )
