"""The exact probability that a bin of one unit is published, beside the delta set aside for it.

Promise: tails are sums of the discrete law itself, worked out by convolution here and not by
`noise.tails`, whose bounds they check. No sampling: a threshold that is too low by one is found
although it would take 10^8 runs to see it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from retrodp.noise.dense import DenseProcess
from retrodp.noise.factors.dense import rows_of
from retrodp.noise.process import NoiseProcess
from retrodp.noise.processes import Process

Floats = NDArray[np.float64]

LEAST = 1e-22  # mass of one draw that is left out, far below any delta
DRIFT = 1e-9  # relative error of the sums of positive terms


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundedLaw:
    """Law of the rounded noise of one round.

    Attributes:
        first: Least value.
        masses: Of `first`, `first + 1`, ...
    """

    first: int
    masses: Floats

    def tail(self, least: int) -> float:
        """P[rounded noise >= least]."""
        return float(self.masses[max(0, least - self.first) :].sum())


def rounded_law(process: NoiseProcess, round_: int) -> RoundedLaw:
    """The law of floor(N + 1/2), N the weighted sum of the round's draws."""
    weights = tuple(sorted(abs(weight) for _, weight in process.factor.nodes(round_)))
    return _law(process.law, float(process.scale), weights, process.factor.denominator)


@lru_cache(maxsize=256)
def _law(law: str, scale: float, weights: tuple[int, ...], denominator: int) -> RoundedLaw:
    draw = _draw(law, scale)
    reach = len(draw) // 2
    grain = math.gcd(denominator, *weights)
    total, least = np.ones(1), 0
    for weight in (one // grain for one in weights):
        summed = np.zeros(len(total) + 2 * reach * weight)
        for number, mass in enumerate(draw):
            summed[number * weight : number * weight + len(total)] += mass * total
        total, least = summed, least - reach * weight
    unit = denominator // grain
    values = (np.arange(least, least + len(total)) * 2 + unit) // (2 * unit)
    first = int(values[0])
    masses = np.bincount(values - first, weights=total).astype(np.float64)
    return RoundedLaw(first=first, masses=masses)


def _draw(law: str, scale: float) -> Floats:
    """Masses of one draw, symmetric about 0."""
    rest = -math.log(LEAST)
    reach = math.ceil(rest * scale if law == "laplace" else math.sqrt(2 * scale * rest))
    steps = np.abs(np.arange(-reach, reach + 1)).astype(np.float64)
    logs = -steps / scale if law == "laplace" else -(steps**2) / (2 * scale)
    masses = np.exp(logs)
    result: Floats = masses / masses.sum()
    return result


def crossing(process: Process, threshold: int | Sequence[int], records: int) -> float:
    """Sum over the rounds of P[a bin of so many records reaches the threshold].

    The threshold may be one for all rounds or one for each.

    Exact for sums of whole draws. A dense factor's noise is a combination of draws so much finer
    than a step that it is Gaussian to far below any delta.
    """
    horizon = process.factor.horizon
    each = [threshold] * horizon if isinstance(threshold, int) else threshold
    if isinstance(process, DenseProcess):
        deviations = np.sqrt(rows_of(process.factor).squares * float(process.scale))
        return float(ndtr(-(np.array(each) - records - 0.5) / deviations).sum())
    assert isinstance(process, NoiseProcess), "a product of factors has no threshold of this kind"
    kinds: Counter[tuple[int, tuple[int, ...]]] = Counter()
    example: dict[tuple[int, ...], int] = {}
    for round_ in range(1, horizon + 1):
        weights = tuple(sorted(abs(weight) for _, weight in process.factor.nodes(round_)))
        kinds[each[round_ - 1], weights] += 1
        example.setdefault(weights, round_)
    return math.fsum(
        number * rounded_law(process, example[weights]).tail(own - records)
        for (own, weights), number in kinds.items()
    )


def worst_crossing(
    process: Process, threshold: int | Sequence[int], *, records: int, per_bin: int
) -> tuple[float, Mapping[int, int]]:
    """Largest sum over all ways to split a unit's records into bins, and that split.

    Returns:
        The sum, and how many bins hold how many records.
    """
    tails = {size: crossing(process, threshold, size) for size in range(1, per_bin + 1)}
    best: tuple[float, Mapping[int, int]] = (0.0, {})
    for split in _splits(records, per_bin):
        total = math.fsum(tails[size] * number for size, number in split.items())
        best = max(best, (total, split), key=lambda pair: pair[0])
    return best


def _splits(records: int, largest: int) -> list[Counter[int]]:
    if records == 0:
        return [Counter()]
    return [
        rest + Counter([size])
        for size in range(1, min(records, largest) + 1)
        for rest in _splits(records - size, size)
    ]
