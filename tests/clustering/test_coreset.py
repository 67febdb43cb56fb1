"""What a coreset says of itself and of its past."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from retrodp.clustering.coreset import Coreset
from retrodp.errors import UsageError


def coreset(weights: list[int], block: int = 1, *, points: int | None = None) -> Coreset:
    many = len(weights) if points is None else points
    place = np.arange(2 * many, dtype=np.int64).reshape(many, 2)
    return Coreset(
        block=block,
        phase=0,
        points=place,
        centres=place + 1,
        weights=np.array(weights, dtype=np.int64),
        births=np.zeros(len(weights), dtype=np.int64),
        weight_stddev=4.0,
    )


def test_signed_weights_are_the_noisy_ones_and_positive_ones_stand_out() -> None:
    made = coreset([-3, 10, 11, 500])
    assert made.signed.tolist() == [-3, 10, 11, 500]
    assert made.positive.tolist() == [2, 3]


def test_monotone_weights_never_fall_and_stay_low() -> None:
    first = coreset([-3, 30]).monotone()
    second = coreset([40, 20, 11], 2).monotone(first)
    assert first.tolist() == [0, 20]
    assert second.tolist() == [30, 20, 1]


def test_a_running_maximum_is_biased_up_and_monotone_weights_are_not() -> None:
    """A weight of 1,000 that stays, over 200 blocks of fresh noise of deviation 4."""
    noise = np.rint(np.random.default_rng(1).normal(0, 4, (200, 50))).astype(np.int64)
    monotone, largest = None, np.zeros(50, np.int64)
    for row in noise:
        now = 1000 + row
        monotone = coreset(now.tolist()).monotone(monotone)
        largest = np.maximum(largest, now)
    assert monotone is not None
    assert 990 < monotone.mean() < 1002
    assert largest.mean() > 1009


def test_changes_name_births_growth_and_moved_means() -> None:
    one, two = coreset([5, 6]), coreset([7, 4, 9], 2)
    centres = two.centres.copy()
    centres[1] += 3
    changes = replace(two, centres=centres).changes(one)
    assert list(changes.born) == [2]
    assert changes.weights.tolist() == [2, -2, 9]
    assert changes.moved.tolist() == [1]


def test_everything_is_new_after_nothing() -> None:
    assert list(coreset([5, 6]).changes(Coreset.empty(2)).born) == [0, 1]
    assert len(Coreset.empty(3)) == 0


def test_another_past_is_refused() -> None:
    with pytest.raises(UsageError):
        coreset([5]).changes(coreset([1, 2]))
    with pytest.raises(UsageError):
        coreset([5]).monotone(np.array([1, 2]))
    moved = replace(coreset([5]), points=np.array([[7, 7]]))
    with pytest.raises(UsageError):
        coreset([5, 6]).changes(moved)


def test_shapes_and_types_are_checked_and_arrays_are_read_only() -> None:
    with pytest.raises(UsageError):
        coreset([1, 2], points=3)
    with pytest.raises(UsageError):
        replace(coreset([1]), weights=np.array([1.5]))
    with pytest.raises(UsageError):
        replace(coreset([1]), centres=np.zeros((2, 2), np.int64))
    with pytest.raises(ValueError, match="read-only"):
        coreset([1]).weights[0] = 3
