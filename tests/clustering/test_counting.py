"""Continual counts: accurate as proved, never falling, and private by what one bit adds to."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from retrodp.clustering.counting import Counter
from retrodp.errors import PlanError
from retrodp.noise.gaussian import DiscreteGaussian
from retrodp.noise.laplace import DiscreteLaplace
from retrodp.noise.prf import Blocks, Coordinates
from retrodp.privacy.budget import PureDP, zCDP

BUDGETS = (PureDP(1), zCDP("0.5"))


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


@pytest.mark.parametrize("times", [1, 2, 3, 7, 8, 9, 21, 30])
def test_a_bit_adds_to_at_most_as_many_sums_as_are_charged(
    times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the draw of each sum a power of two, the noise of a time names the sums in it."""

    def named(_: DiscreteLaplace, __: Blocks, where: Coordinates) -> NDArray[np.int64]:
        return np.int64(1) << where.lo.astype(np.int64)

    monkeypatch.setattr(DiscreteLaplace, "draw", named)
    counter = Counter(times=times, budget=PureDP(1))
    used = [0, *counter.noise(key(1)).tolist()]
    held: dict[int, range] = {}
    for time in range(1, times + 1):
        before = time - (time & -time)
        # One sum more than the prefix without the lowest bit of its length, and the same others.
        assert used[time] & used[before] == used[before]
        held[used[time] ^ used[before]] = range(before + 1, time + 1)
    assert len(held) == times
    assert {one.bit_count() for one in held} == {1}
    most = max(sum(time in own for own in held.values()) for time in range(1, times + 1))
    assert most <= counter.levels
    assert max(one.bit_count() for one in used) <= counter.levels


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_law_spends_the_budget_for_all_sums_of_a_bit(budget: PureDP | zCDP) -> None:
    counter = Counter(times=1000, budget=budget)
    assert counter.levels == 10
    match counter.law:
        case DiscreteLaplace(scale=scale):
            assert budget == PureDP(counter.levels / scale)
        case DiscreteGaussian(variance=variance):
            assert budget == zCDP(Fraction(counter.levels) / (2 * variance))


@pytest.mark.parametrize("budget", BUDGETS)
def test_no_count_is_farther_off_than_proved(budget: PureDP | zCDP) -> None:
    """300 counters, failure 1e-6 each: one of them fails less than once in 3,000 runs.

    The twin: a tenth of it is exceeded by most of them.
    """
    counter = Counter(times=500, budget=budget)
    bits = np.arange(500) % 3 == 0
    exact = np.cumsum(bits)
    off = np.array([np.abs(counter.counts(bits, key(n)) - exact).max() for n in range(300)])
    most = counter.accuracy(1e-6)
    assert off.max() <= most
    assert (off > most / 10).sum() > 150


def test_lemma_34_the_running_maximum_is_as_accurate_as_the_counts() -> None:
    counter = Counter(times=400, budget=PureDP("0.2"))
    bits = np.arange(400) % 7 == 0
    exact = np.cumsum(bits)
    raw = np.array([np.abs(counter.noise(key(n))).max() for n in range(100)])
    running = np.array([np.abs(counter.counts(bits, key(n)) - exact).max() for n in range(100)])
    assert (running <= raw).all()
    assert (running > 0).any()


def test_counts_never_fall_and_follow_from_the_bits_so_far() -> None:
    counter = Counter(times=300, budget=zCDP("0.1"))
    generator = np.random.default_rng(0)
    bits = generator.random(300) < 0.4
    other = bits.copy()
    other[200:] = ~other[200:]
    counts, changed = counter.counts(bits, key(5)), counter.counts(other, key(5))
    assert (np.diff(counts) >= 0).all()
    assert counts[0] >= 0
    assert np.array_equal(counts[:200], changed[:200])
    assert not np.array_equal(counts[200:], changed[200:])


@pytest.mark.parametrize("failure", [0.0, 1.0, float("nan")])
def test_a_failure_that_is_no_probability_is_refused(failure: float) -> None:
    with pytest.raises(PlanError):
        Counter(times=8, budget=PureDP(1)).accuracy(failure)
