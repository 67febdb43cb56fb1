"""Centres among weighted places: every step against brute force, in whole numbers."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from retrodp.clustering.medoids import SUM_BITS, Ints, Medoids, Power
from retrodp.errors import UsageError

POWERS: tuple[Power, ...] = (1, 2)


def places(seed: int, many: int = 9, columns: int = 2, width: int = 50) -> tuple[Ints, Ints]:
    generator = np.random.default_rng(seed)
    return (
        generator.integers(-width, width, (many, columns), dtype=np.int64),
        generator.integers(0, 20, many, dtype=np.int64),
    )


def medoids(seed: int, power: Power = 2, many: int = 9) -> Medoids:
    return Medoids.of(*places(seed, many), power)


def brute_cost(own: Medoids, centres: list[int]) -> int:
    return sum(
        weight * min(row[centre] for centre in centres)
        for weight, row in zip(own.weights.tolist(), own.distances.tolist(), strict=True)
    )


@pytest.mark.parametrize("power", POWERS)
def test_distances_are_exact_powers_in_one_unit(power: Power) -> None:
    points, weights = places(1)
    own = Medoids.of(points, weights, power)
    expected = [
        [
            math.isqrt(2**32 * sum((x - y) ** 2 for x, y in zip(a, b, strict=True)))
            if power == 1
            else sum((x - y) ** 2 for x, y in zip(a, b, strict=True))
            for b in points.tolist()
        ]
        for a in points.tolist()
    ]
    assert own.distances.tolist() == expected


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("seed", range(4))
def test_every_step_is_the_best_one_and_ties_go_to_the_least_place(power: Power, seed: int) -> None:
    own = medoids(seed, power)
    centres = [1, 4, 6]
    assert own.cost(centres) == brute_cost(own, centres)
    added = [brute_cost(own, [*centres, place]) for place in range(9)]
    assert own.addition(centres) == added.index(min(added))
    alone = [brute_cost(own, [place]) for place in range(9)]
    assert own.addition([]) == alone.index(min(alone))
    swaps = {
        (leaves, place): brute_cost(own, [*centres[:leaves], place, *centres[leaves + 1 :]])
        for leaves, place in itertools.product(range(3), range(9))
    }
    best = own.swap(centres)
    assert best.cost == min(swaps.values())
    assert (best.leaves, best.enters) == min(
        pair for pair, cost in swaps.items() if cost == best.cost
    )
    (_, three), (cost, two), (_, one) = own.removals(centres)
    left = {
        leaves: brute_cost(own, centres[:leaves] + centres[leaves + 1 :]) for leaves in range(3)
    }
    assert three == centres
    assert cost == min(left.values())
    assert two == [c for c in centres if c != centres[min(left, key=lambda at: left[at])]]
    assert len(one) == 1


@pytest.mark.parametrize("power", POWERS)
def test_weights_may_lie_beside_their_places(power: Power) -> None:
    """Then a cost is that of the means, and a place is taken only by a centre that is there."""
    points, weights = places(2)
    means, _ = places(12)
    own = Medoids.of(points, weights, power, means=means)
    both = Medoids.of(np.concatenate([points, means]), np.tile(weights, 2), power)
    assert own.distances.tolist() == both.distances[9:, :9].tolist()
    assert own.cost([2, 5]) == brute_cost(own, [2, 5])
    assert own.lengths(3).tolist() == both.lengths(3)[:9].tolist()
    assert own.taken(2, [2, 5])
    assert not own.taken(3, [2, 5])
    assert not own.taken(3, [])
    added = [brute_cost(own, [2, 5, place]) for place in range(9)]
    assert own.addition([2, 5]) == added.index(min(added))


def test_a_single_centre_is_swapped_for_the_best_one() -> None:
    own = medoids(5)
    alone = [brute_cost(own, [place]) for place in range(9)]
    assert own.swap([2]).enters == alone.index(min(alone))
    assert own.swap([2]).cost == min(alone)


@pytest.mark.parametrize("power", POWERS)
def test_settled_centres_are_near_the_best_of_all(power: Power) -> None:
    """Local search with single swaps: within 1 % of the optimum for 29 of 30 instances or more."""
    ratios = []
    for seed in range(30):
        own = medoids(seed, power, many=10)
        best = min(brute_cost(own, list(three)) for three in itertools.combinations(range(10), 3))
        ratios.append(own.cost(own.settled(3)) / best if best else 1.0)
    assert min(ratios) == 1
    assert max(ratios) <= 5  # the bound of Arya et al. for k-median; k-means does as well here
    assert sorted(ratios)[25] <= 1.01


def test_swaps_stop_at_the_gain_that_is_asked_for() -> None:
    own = medoids(7, many=30)
    begun = [0, 1, 2, 3]
    settled = own.improved(begun, gain=Fraction(1, 8))
    after = own.swap(settled)
    assert own.cost(settled) < own.cost(begun)
    assert own.cost(settled) - after.cost < Fraction(1, 8) * own.cost(settled)


def test_fewer_centres_where_fewer_places_differ() -> None:
    own = Medoids.of(np.array([[1, 1], [1, 1], [5, 5]]), np.array([2, 3, 1]), 2)
    assert len(own.settled(3)) == 2
    assert own.cost(own.settled(3)) == 0


def test_costs_beyond_64_bits_are_measured_in_a_coarser_unit() -> None:
    points = np.array([[0, 0], [2**52, 0], [0, 2**50]], dtype=np.int64)
    own = Medoids.of(points, np.full(3, 2**40, dtype=np.int64), 2)
    assert 0 < own.cost([0]) < 2**SUM_BITS
    assert own.swap([2]).cost == own.cost([0])
    exact = 2**104 + 2**100
    scale = Fraction(exact, own.cost([0]) // 2**40)
    assert abs(own.cost([1]) // 2**40 * scale / (2**104 + 2**104 + 2**100) - 1) < Fraction(1, 1000)


def test_lengths_have_one_unit_for_both_powers() -> None:
    points, weights = places(3)
    one, two = (Medoids.of(points, weights, power) for power in POWERS)
    assert one.lengths(4).tolist() == two.lengths(4).tolist()
    apart = [length for place in range(9) for length in one.lengths(place).tolist() if length]
    assert one.least_length() == two.least_length() == min(apart)


def test_weights_below_zero_are_refused() -> None:
    with pytest.raises(UsageError):
        Medoids.of(np.zeros((2, 1), dtype=np.int64), np.array([1, -1]), 1)
