"""Meyerson's sketch, the yardstick: its size, its cost, and coins that hear of nobody else."""

from __future__ import annotations

import math

import numpy as np
import pytest

from retrodp.clustering.meyerson_reference import coins, meyerson
from retrodp.clustering.solver import Floats, lengths
from retrodp.errors import PlanError, UsageError

KEY = b"m" * 32
N, K = 4000, 4


def points() -> tuple[Floats, Floats]:
    generator = np.random.default_rng(3)
    middles = generator.uniform(0.2, 0.8, (K, 2))
    return middles[generator.integers(0, K, N)] + 0.01 * generator.normal(size=(N, 2)), middles


def far(some: Floats, centres: Floats) -> Floats:
    nearest: Floats = np.array([lengths(some - centre) for centre in centres]).min(axis=0)
    return nearest


def sampled(
    some: Floats, *, power: int, estimate: float, key: bytes = KEY, phase: int = 0
) -> list[int]:
    names = [b"%d" % round(1e9 * float(one)) for one in some[:, 0]]
    found = meyerson(
        some, names, k=K, power=power, estimate=estimate, most_points=N, key=key, phase=phase
    )
    return [int(place) for place in found]


def one_by_one(some: Floats, *, power: int, estimate: float) -> list[int]:
    """The algorithm as the paper writes it down."""
    names = [b"%d" % round(1e9 * float(one)) for one in some[:, 0]]
    units = coins(names, key=KEY, phase=0)
    chosen: list[int] = []
    for place, point in enumerate(some):
        away = min((math.dist(point, some[other]) ** power for other in chosen), default=math.inf)
        if units[place] < min(1.0, K * math.log(N) / estimate * away):
            chosen.append(place)
    return chosen


@pytest.mark.parametrize("power", [1, 2])
def test_it_is_the_algorithm_of_the_paper(power: int) -> None:
    some = points()[0][:600]
    assert sampled(some, power=power, estimate=0.05) == one_by_one(some, power=power, estimate=0.05)


@pytest.mark.parametrize("power", [1, 2])
def test_few_points_are_sampled_and_they_serve_all(power: int) -> None:
    """Size O(k log n) and cost O(opt) in expectation; means of twelve keys, with room."""
    some, middles = points()
    best = float((far(some, middles) ** power).sum())
    sizes, costs = [], []
    for number in range(12):
        chosen = sampled(some, power=power, estimate=best, key=bytes([number]) * 32)
        sizes.append(len(chosen))
        costs.append(float((far(some, some[chosen]) ** power).sum()))
    assert np.mean(sizes) < 12 * K * math.log(N)
    assert np.mean(costs) < 2 * best


def test_a_guess_too_low_samples_more() -> None:
    some, _ = points()
    assert len(sampled(some, power=2, estimate=0.01)) > 3 * len(
        sampled(some, power=2, estimate=1.0)
    )


def test_the_first_point_is_sampled_and_phases_have_other_coins() -> None:
    some, _ = points()
    assert sampled(some, power=2, estimate=1.0)[0] == 0
    assert sampled(some, power=2, estimate=0.05) != sampled(some, power=2, estimate=0.05, phase=1)


def test_coins_hear_of_nobody_else() -> None:
    names = [b"%d" % number for number in range(50)]
    whole = coins(names, key=KEY, phase=3).tolist()
    assert coins(names[:9] + names[10:], key=KEY, phase=3).tolist() == whole[:9] + whole[10:]


def test_what_cannot_be_is_refused() -> None:
    some, _ = points()
    with pytest.raises(PlanError):
        sampled(some, power=3, estimate=1.0)
    with pytest.raises(PlanError):
        sampled(some, power=2, estimate=math.nan)
    with pytest.raises(UsageError):
        meyerson(some, [], k=1, power=2, estimate=1.0, most_points=N, key=KEY)
