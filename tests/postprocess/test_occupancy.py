"""Bounds on a number of items from seen and unseen buckets: never wrong more often than stated."""

from __future__ import annotations

import math
from decimal import Decimal
from functools import cache

import numpy as np
import pytest

from retrodp.postprocess.occupancy import (
    MOST,
    Seeing,
    fewest,
    fewest_by_median,
    most,
    most_by_median,
    most_that_fill,
)

RARITY = Decimal(math.log(20))  # a miss of 5 %
MISS = 0.05


@cache
def filled_law(items: int, buckets: int) -> list[float]:
    """Exact law of the number of filled buckets: one item after another."""
    law = [1.0] + [0.0] * buckets
    for _ in range(items):
        law = [
            law[n] * n / buckets + (law[n - 1] * (buckets - n + 1) / buckets if n else 0)
            for n in range(buckets + 1)
        ]
    return law


@pytest.mark.parametrize("buckets", [1, 2, 4, 16, 64])
def test_too_many_seen_buckets_are_as_rare_as_stated_by_the_exact_law(buckets: int) -> None:
    misses = []
    for items in range(120):
        law = filled_law(items, buckets)
        misses.append(sum(law[n] for n in range(buckets + 1) if fewest(n, buckets, RARITY) > items))
    assert max(misses) <= MISS


@pytest.mark.parametrize("buckets", [1, 2, 4, 16, 64])
def test_too_few_filled_buckets_are_as_rare_as_stated_by_the_exact_law(buckets: int) -> None:
    misses = []
    for items in range(120):
        law = filled_law(items, buckets)
        misses.append(
            sum(law[n] for n in range(buckets + 1) if most_that_fill(n, buckets, RARITY) < items)
        )
    assert max(misses) <= MISS


def test_seen_buckets_alone_are_already_a_bound() -> None:
    assert [fewest(n, 64, RARITY) >= n for n in range(65)] == [True] * 65
    assert fewest(0, 64, RARITY) == 0
    assert fewest(1, 1, RARITY) == 1


def test_bounds_close_in_on_the_truth_as_buckets_become_many() -> None:
    ratios = []
    for size in (256, 4096, 65536):
        seen = round(size * -math.expm1(size * math.log1p(-1 / size)))
        ratios.append(most_that_fill(seen, size, RARITY) / fewest(seen, size, RARITY))
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[-1] < 1.04


@pytest.mark.parametrize(("buckets", "tau"), [(1, 5), (8, 5), (64, 20), (512, 3)])
def test_too_many_unseen_buckets_are_as_rare_as_stated(buckets: int, tau: int) -> None:
    """10,000 hashes: a miss of 5 % shows up to 5.9 % with probability below 1e-4."""
    rng = np.random.default_rng(5)
    seeing = Seeing(tau=tau)
    missed = {}
    for load in (1, 2, 2.3, 2.6, 3, 4):
        items = round(load * tau * buckets)
        runs = 10_000 if buckets < 512 else 1_000
        counts = rng.multinomial(items, np.full(buckets, 1 / buckets), size=runs)
        unseen = (counts <= 2 * tau).sum(axis=1)
        highs = {n: most(n, buckets, seeing, RARITY) for n in set(unseen.tolist())}
        missed[load] = np.mean([highs[n] < items for n in unseen.tolist()])
    assert max(missed.values()) <= 0.059


def test_a_bucket_that_was_not_seen_holds_few_items_and_no_bucket_tells_nothing() -> None:
    assert most(1, 1, Seeing(tau=7), RARITY) == 14
    assert most(0, 8, Seeing(tau=7), RARITY) == MOST


@pytest.mark.parametrize("tau", [0, 1, 3, 20])
def test_the_bound_on_signed_sums_holds_for_equal_and_for_unequal_counts(tau: int) -> None:
    """Littlewood and Offord by the exact law of equal counts, the worst case, and by simulation."""
    rng = np.random.default_rng(7)
    found = []
    for items in (16, 64, 41 * (tau + 1) ** 2):
        # The sum of n signs is 2 B - n with B binomial.
        inside = [
            math.comb(items, heads)
            for heads in range(items + 1)
            if abs(2 * heads - items) <= 2 * tau
        ]
        bound = float(Seeing(tau=tau, signed=True).unseen(items, 1))
        found.append(sum(inside) / 2**items <= bound)
        if items <= 700:
            amounts = rng.integers(1, 4, items) * rng.choice([-1, 1], items)
            sums = rng.choice([-1, 1], (2_000, items)) @ amounts
            found.append(bool((np.abs(sums) <= 2 * tau).mean() <= bound + 0.05))
    assert all(found)


@pytest.mark.parametrize("tau", [1, 10, 100, 1000])
def test_41_times_the_squared_threshold_is_seen_in_three_cases_of_four(tau: int) -> None:
    """The constant behind theorem 4.1; 40 would not do for large thresholds."""
    seeing = Seeing(tau=tau, signed=True)
    assert seeing.heavy == 41 * (tau + 1) ** 2
    assert seeing.unseen(seeing.heavy, 1) <= Decimal("0.25")
    assert (2 * tau + 1) * math.sqrt(2 / (math.pi * 40 * (tau + 1) ** 2)) > 0.25 or tau < 100


def test_unseen_chances_fall_in_the_number_of_items() -> None:
    for signed in (False, True):
        seeing = Seeing(tau=3, signed=signed)
        chances = [seeing.unseen(items, 8) for items in range(1, 20_000, 7)]
        assert chances == sorted(chances, reverse=True)
        assert chances[-1] < chances[0]


@pytest.mark.parametrize("instances", [1, 3, 9])
def test_medians_of_levels_are_as_rare_as_stated(instances: int) -> None:
    """Some 1,000 medians each: a miss of 5 % shows up to 8 % with probability below 1e-4."""
    rng = np.random.default_rng(11)
    tau, levels = 6, 20
    missed_low, missed_high = [], []
    for items in (1, 5, 40, 300, 2000):
        runs = 10_000 // instances if items <= 300 else 1_000 // instances
        level = np.minimum(rng.geometric(0.5, (runs * instances, items)) - 1, levels - 1)
        counts = np.zeros((runs * instances, levels), np.int64)
        for column in range(levels):
            counts[:, column] = (level == column).sum(axis=1)
        shapes = {"often": counts > 0, "once": counts > 2 * tau}  # the extremes of what is seen
        for name, seen in shapes.items():
            highest = np.where(
                seen.any(axis=1), levels - 1 - np.argmax(seen[:, ::-1], axis=1), -1
            ).reshape(runs, instances)
            medians = np.sort(highest, axis=1)[:, instances // 2].tolist()
            if name == "often":
                missed_low.append(
                    np.mean([fewest_by_median(m, instances, RARITY) > items for m in medians])
                )
            else:
                highs = [
                    most_by_median(m, instances, Seeing(tau=tau), RARITY) < items for m in medians
                ]
                missed_high.append(np.mean(highs))
    assert max(missed_low) <= 0.08
    assert max(missed_high) <= 0.08
    assert max(missed_low) > 0.001  # the bound is not vacuous
