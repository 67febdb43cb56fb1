"""Units charge the exact worst case of the windows they move."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

from retrodp.errors import PlanError
from retrodp.privacy import (
    ApproxDP,
    GaussianLoss,
    GaussianNorm,
    Protection,
    PureLoss,
    delta_of,
    epsilon_of,
    gaussian_losses,
    group_guarantee,
    group_losses,
    group_rho,
    total_rho,
    worst_split_tail,
)
from tests.privacy.reference import FloatArray, haar_variances, pinned_haar

HEIGHT = 4
SHAPE = ((2, 1), (1, 2 * HEIGHT - 2))
NORM = 2 * HEIGHT + 2

PERSON = Protection(unit="person_round", max_records=16, max_per_bin=1, bin_columns=("product",))


def windows_of(start: int) -> list[FloatArray]:
    """Node shifts of every window that begins at `start`, ends included."""
    return list(np.cumsum(pinned_haar(HEIGHT)[start:], axis=0))


def test_the_shape_dominates_every_window() -> None:
    shape = [2, *[1] * (2 * HEIGHT - 2)]
    moved = [
        np.sort(np.abs(window))[::-1]
        for start in range(2**HEIGHT - 1)
        for window in windows_of(start)
    ]
    assert len(moved) == 15 * 16 // 2
    assert all((one[: len(shape)] <= shape).all() and not one[len(shape) :].any() for one in moved)


def test_several_windows_of_one_bin_cost_exactly_the_square() -> None:
    """Two windows with one start: four times the squared norm, attained, never exceeded."""
    norms = [
        float(((one + other) ** 2).sum())
        for start in range(2**HEIGHT - 1)
        for one, other in itertools.combinations_with_replacement(windows_of(start), 2)
    ]
    assert (
        max(norms)
        == 4 * NORM
        == Protection(unit="person_round", max_records=2).l2_squared(()) * NORM
    )


def test_the_shifts_of_two_windows_are_not_below_twice_the_shape() -> None:
    """Why several windows in one bin are charged by their norm."""
    twice = np.array([4, *[2] * (2 * HEIGHT - 2)], dtype=np.float64)
    exceeding = [
        moved
        for start in range(2**HEIGHT - 1)
        for one, other in itertools.combinations_with_replacement(windows_of(start), 2)
        for moved in [np.sort(np.abs(one + other))[::-1]]
        if (moved[: len(twice)] > twice).any() or moved[len(twice) :].any()
    ]
    assert len(exceeding) > 0


@pytest.mark.parametrize(
    ("columns", "split"),
    [
        (("product",), (1,) * 16),
        (("country", "product"), (1,) * 16),
        (("country",), (16,)),
        ((), (16,)),
    ],
)
def test_root_k_is_charged_only_where_the_partition_refines_the_bound(
    columns: tuple[str, ...], split: tuple[int, ...]
) -> None:
    """Attack 11: norms 4 against 16 for sixteen records."""
    assert PERSON.worst_split(columns) == split
    assert math.sqrt(PERSON.l2_squared(columns)) == (4 if len(split) > 1 else 16)
    assert PERSON.l1 == 16


def test_the_worst_split_fills_bins_to_their_bound() -> None:
    unit = Protection(
        unit="person_round", max_records=7, max_per_bin=3, bin_columns=("product", "day")
    )
    splits = [
        split
        for size in range(1, 8)
        for split in itertools.product(range(1, 4), repeat=size)
        if sum(split) == 7
    ]
    assert unit.worst_split(["day", "product"]) == (3, 3, 1)
    assert unit.l2_squared(["day", "product"]) == max(sum(m * m for m in s) for s in splits)
    assert unit.l2_squared(["product"]) == 49


def test_losses_of_a_record_keep_their_shifts() -> None:
    losses = gaussian_losses(SHAPE, variance=Fraction(9), scale=3)
    assert losses == (
        GaussianLoss(shift=6, variance=Fraction(9), count=1),
        GaussianLoss(shift=3, variance=Fraction(9), count=2 * HEIGHT - 2),
    )


def test_losses_of_a_split_add_up_to_its_squared_norm() -> None:
    losses = gaussian_losses(SHAPE, variance=Fraction(100), split=(3, 3, 1))
    assert total_rho(losses) == Fraction(19 * NORM, 200)
    assert [type(loss) for loss in losses] == [GaussianLoss, GaussianLoss, GaussianNorm]


def test_losses_of_many_single_bins_are_exact() -> None:
    losses = gaussian_losses(SHAPE, variance=Fraction(100), split=(1,) * 16)
    assert {type(loss) for loss in losses} == {GaussianLoss}
    assert total_rho(losses) == Fraction(16 * NORM, 200)


def test_the_threshold_of_one_record_is_far_too_low_for_fifty() -> None:
    """Attack 12: with k records of a unit the true delta is 50 to 850 times the record's."""
    deviations = np.sqrt(haar_variances(9, 365) * 375)

    def tail(tau: float, records: int) -> float:
        return float(ndtr(-(tau - records) / deviations).sum())

    for_record = tail(107, 1)
    spread = worst_split_tail(lambda m: tail(107, m), records=50, max_per_bin=1)
    together = worst_split_tail(lambda m: tail(107, m), records=50)
    assert spread == pytest.approx(50 * for_record, rel=1e-6)
    assert together > 850 * for_record


@pytest.mark.parametrize("cap", [1, 2, 3, 7])
def test_the_worst_split_of_tails_is_the_maximum_over_all_splits(cap: int) -> None:
    tails = {1: 1.0, 2: 1.9, 3: 3.3, 4: 3.4, 5: 4.0, 6: 6.5, 7: 6.6}
    splits = [
        split
        for size in range(1, 8)
        for split in itertools.product(range(1, cap + 1), repeat=size)
        if sum(split) == 7
    ]
    expected = max(sum(tails[m] for m in split) for split in splits)
    found = worst_split_tail(tails.__getitem__, records=7, max_per_bin=cap)
    assert found == pytest.approx(expected, rel=1e-8)
    assert found >= expected


def test_a_group_of_one_is_the_guarantee_itself() -> None:
    alone = group_guarantee(ApproxDP(1, "1e-9"), 1)
    assert alone.epsilon == 1
    assert alone.delta == pytest.approx(1e-9, rel=1e-8)
    assert Fraction(alone.delta) >= Fraction(1, 10**9)


@pytest.mark.parametrize("size", [2, 5, 10])
def test_group_delta_is_the_geometric_sum(size: int) -> None:
    group = group_guarantee(ApproxDP("0.5", "1e-9"), size)
    expected = 1e-9 * sum(math.exp(0.5 * lower) for lower in range(size))
    assert group.epsilon == 0.5 * size
    assert group.delta == pytest.approx(expected, rel=1e-8)
    assert group.delta >= expected * (1 - 1e-15)


def test_a_group_too_large_is_promised_nothing() -> None:
    assert group_guarantee(ApproxDP(1, "1e-9"), 10**6).delta == 1


def test_groups_of_concentrated_losses_grow_by_the_square() -> None:
    losses = [
        *gaussian_losses(SHAPE, variance=Fraction(400)),
        GaussianNorm(norm_squared=Fraction(1, 2), variance=Fraction(400)),
        PureLoss(epsilon=Fraction(1, 10)),
    ]
    grown = group_losses(losses, 3)
    assert total_rho(grown) == group_rho(total_rho(losses), 3)
    assert group_losses(losses, 1) == tuple(losses)


def test_group_losses_cover_every_pair_of_windows() -> None:
    shape = gaussian_losses(SHAPE, variance=Fraction(100))
    bound = delta_of(group_losses(shape, 2), 1.0)
    pairs = [one + other for one in windows_of(3) for other in (*windows_of(3), *windows_of(9))]
    deltas = [
        delta_of([GaussianLoss(shift=int(k), variance=Fraction(100)) for k in pair], 1.0)
        for pair in pairs
    ]
    assert max(deltas) <= bound


def test_group_losses_promise_more_than_the_generic_bound() -> None:
    shape = gaussian_losses(SHAPE, variance=Fraction(600))
    one = epsilon_of(shape, 1e-9)
    both = group_guarantee(ApproxDP(one, "1e-9"), 2)
    assert epsilon_of(group_losses(shape, 2), both.delta) < both.epsilon * 1.05


def test_what_must_be_printed_for_each_unit() -> None:
    units = [
        Protection(unit="record"),
        Protection(unit="operation"),
        PERSON,
        Protection(unit="person", max_records=5, max_rounds=30),
    ]
    assert [[size for _, size in unit.group_sizes] for unit in units] == [
        [1, 2],
        [1],
        [1],
        [1, 30, 60],
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"unit": "record", "max_records": 2},
        {"unit": "operation", "max_per_bin": 1, "bin_columns": ("a",)},
        {"unit": "person_round", "max_records": 0},
        {"unit": "person_round", "max_per_bin": 1},
        {"unit": "person_round", "bin_columns": ("a",)},
        {"unit": "person_round", "max_per_bin": 0, "bin_columns": ("a",)},
        {"unit": "person_round", "max_rounds": 3},
        {"unit": "person", "max_records": 3},
    ],
)
def test_bounds_that_do_not_belong_to_the_unit_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(PlanError):
        Protection(**wrong)
