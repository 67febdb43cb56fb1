"""How wide the intervals of each way to count different values will be: from public numbers alone.

The measure of a method is the ratio between the ends of its interval, the lower end counted as 1
where it is less: the one number that means the same for an additive and for a multiplicative
guarantee. It is the largest over the expected numbers of items and over all data: every item once,
often, or so often that each is seen. Predictions use average counts; what is published uses none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import bdtr, bdtrc

from retrodp.mechanisms import ladder, minhash
from retrodp.mechanisms.bracket import Sureness
from retrodp.mechanisms.calibrate import choose_factor, gaussian_process, laplace_process
from retrodp.noise.factors.contract import Factor
from retrodp.noise.factors.fresh import FreshFactor
from retrodp.noise.process import NoiseProcess
from retrodp.noise.tails import half_widths
from retrodp.postprocess.occupancy import MOST, Seeing

INSTANCES = (1, 3, 5, 7, 9, 11, 15)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a method is planned for.

    Attributes:
        horizon: Rounds.
        window: Rounds in which a record counts.
        law: Of the noise.
        budget: rho or epsilon of the release.
        records: Of one unit.
        factor: The plan's word for the factor of counters.
        low: Least number of items expected.
        high: Greatest.
        level: Of the intervals.
    """

    horizon: int
    window: int
    law: Literal["gaussian", "laplace"]
    budget: Fraction
    records: int
    factor: str
    low: int
    high: int
    level: Fraction


class Outlook(NamedTuple):
    """What is predicted for one method.

    Attributes:
        ratio: Largest ratio between the ends of the interval for a round.
        half: Largest half of the distance between them.
        half_all: The same for the interval for all rounds.
    """

    ratio: float
    half: int
    half_all: int


def some_numbers(low: int, high: int) -> tuple[int, ...]:
    """Some numbers of items from the least to the greatest that is expected, both among them."""
    between = np.geomspace(max(low, 1), max(high, low, 1), 5)
    return tuple(sorted({round(number) for number in between.tolist()}))


@lru_cache(maxsize=64)
def fresh(ground: Ground) -> Outlook:
    """Of the exact number with noise of its own every round."""
    factor = FreshFactor(horizon=ground.horizon, window=ground.window)
    process = _process(factor, ground, (ground.records,))
    miss = float(1 - ground.level)
    half = int(half_widths(process, miss).max())
    half_all = int(half_widths(process, miss / ground.horizon).max())
    # The worst number is the one whose lower end is just above nothing, if it is expected.
    worst = min(max(half + 1, ground.low, 1), max(ground.high, 1))
    ratio = (worst + half) / max(worst - half, 1)
    return Outlook(ratio, half, half_all)


@lru_cache(maxsize=64)
def ladder_ahead(ground: Ground) -> Outlook | None:
    """Of a ladder of the height that suits the expected numbers; None if that is too many buckets."""
    height = ladder.height_for(ground.high)
    if height > ladder.MOST_HEIGHT:
        return None
    process = _process(_tree(ground), ground, (ground.records,) * (height + 1))
    sureness = ladder.sureness_of(process, height=height, level=ground.level, signed=False)
    return of_ladder(some_numbers(ground.low, ground.high), sureness, height)


def of_ladder(numbers: tuple[int, ...], sureness: Sureness, height: int) -> Outlook:
    """Of a ladder with a given threshold."""
    tau = sureness.seeing.tau

    def ends(number: int, copies: int) -> Iterator[tuple[int, int]]:
        sizes = [1 << scale for scale in range(height + 1)]
        if sureness.seeing.signed:
            shares = [_seen_through_signs(number / size, tau / copies) for size in sizes]
        else:  # a bucket is seen with more items than tau // copies
            least = min(tau // copies, number)
            shares = [float(bdtrc(least, number, 1 / size)) for size in sizes]
        seen = [_typical(size, share) for size, share in zip(sizes, shares, strict=True)]
        total = None if sureness.seeing.signed else number * copies
        for rarity in (sureness.rarity, sureness.rarity_all):
            yield ladder.ends_of(seen, sureness, rarity, total=total)

    return _worst(numbers, tau, ends)


def minhash_ahead(ground: Ground) -> Outlook:
    """Of hashes by low bits, as many as suit."""
    return _minhash_of(ground, instances_for(ground))


def instances_for(ground: Ground) -> int:
    """Number of hashes of the least ratio; the fewest of equals."""
    return min(INSTANCES, key=lambda instances: _minhash_of(ground, instances).ratio)


@lru_cache(maxsize=256)
def _minhash_of(ground: Ground, instances: int) -> Outlook:
    levels = minhash.levels_for(ground.high)
    unit = _unit_tau(ground, max(INSTANCES) * levels)
    price = math.sqrt(instances) if ground.law == "gaussian" else instances
    sureness = Sureness.at(
        Seeing(tau=math.ceil(unit * price)), miss=1 - ground.level, bounds=1, horizon=ground.horizon
    )
    return of_minhash(some_numbers(ground.low, ground.high), sureness, instances, levels)


@lru_cache(maxsize=64)
def _unit_tau(ground: Ground, buckets: int) -> int:
    """Threshold of so many buckets of which a record moves one; near enough for a comparison."""
    process = _process(_tree(ground), ground, (ground.records,))
    whole = Sureness.of(process, miss=1 - ground.level, buckets=buckets, bounds=1)
    return whole.seeing.tau


def of_minhash(
    numbers: tuple[int, ...], sureness: Sureness, instances: int, levels: int
) -> Outlook:
    """Of hashes with a given threshold."""
    tau = sureness.seeing.tau

    def ends(number: int, copies: int) -> Iterator[tuple[int, int]]:
        chances = np.ldexp(1.0, -np.append(np.arange(1, levels), levels - 1))
        unseen = bdtr(min(tau // copies, number), number, chances)
        reached = 1 - np.cumprod(unseen[::-1])[::-1]  # the highest seen is at least that
        median = int(np.flatnonzero(np.append(1.0, reached) >= 0.5)[-1]) - 1
        for all_rounds in (False, True):
            yield minhash.ends_of(
                median,
                sureness,
                instances=instances,
                levels=levels,
                records=number * copies + levels * tau,
                all_rounds=all_rounds,
            )

    return _worst(numbers, tau, ends)


def _worst(
    numbers: tuple[int, ...], tau: int, ends: Callable[[int, int], Iterator[tuple[int, int]]]
) -> Outlook:
    ratios, halves, halves_all = [], [], []
    for number in numbers:
        for copies in _copies(tau):
            alone, together = ends(number, copies)
            ratios.append(alone[1] / max(alone[0], 1))
            halves.append((alone[1] - alone[0] + 1) // 2)
            halves_all.append((together[1] - together[0] + 1) // 2)
    return Outlook(max(ratios), min(max(halves), MOST), min(max(halves_all), MOST))


def _typical(size: int, share: float) -> int:
    """Median number of seen buckets; of few, or few unseen ones, it is below the mean."""
    if share < 0.5:
        return math.floor(size * share + 1 / 3)
    return size - math.floor(size * (1 - share) + 1 / 3)


def _seen_through_signs(items: float, tau: float) -> float:
    """Chance that a bucket is seen that holds so many items on average, each of one record."""
    return -math.expm1(-items) * math.erfc(tau / math.sqrt(2 * max(items, 1)))


def _copies(tau: int) -> list[int]:
    """Records an item: from one to more than any noise hides."""
    found = [1]
    while found[-1] <= 2 * tau:
        found.append(4 * found[-1])
    return found


def _tree(ground: Ground) -> Factor:
    named = ground.factor if ground.factor != "dense" else "auto"
    return choose_factor(
        named,
        horizon=ground.horizon,
        law=ground.law,
        window=None if ground.window == ground.horizon else ground.window,
    )


def _process(factor: Factor, ground: Ground, split: tuple[int, ...]) -> NoiseProcess:
    if ground.law == "gaussian":
        return gaussian_process(factor, rho=ground.budget, amount=1, split=split)
    return laplace_process(factor, epsilon=ground.budget, amount=1, split=split)
