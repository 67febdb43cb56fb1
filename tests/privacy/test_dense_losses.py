"""Losses of releases of which only the norm of a window is known."""

from __future__ import annotations

from fractions import Fraction

import pytest

from retrodp.errors import PlanError
from retrodp.privacy import (
    GaussianLoss,
    GaussianNorm,
    delta_of,
    epsilon_of,
    gaussian_norm,
    group_losses,
    total_rho,
)

VARIANCE = Fraction(10**8)
NORM = 2 * 10**8  # shifts of thousands of steps, as on the grid of a root


def test_the_norm_grows_with_the_squares_of_windows_and_amounts() -> None:
    loss = gaussian_norm(NORM, nodes=365, variance=VARIANCE, split=(2, 1), scale=3)
    assert loss.norm_squared == NORM * 9 * (4 + 1)
    assert loss.rho == Fraction(NORM * 45, 2 * 10**8)
    assert loss.coordinates == 3 * 365


def test_few_coordinates_with_large_shifts_cost_less_than_many_with_small_ones() -> None:
    """On a fine grid the loss is that of the continuous Gaussian; counting steps would charge more."""
    known = gaussian_norm(NORM, nodes=365, variance=VARIANCE)
    unknown = GaussianNorm(norm_squared=Fraction(NORM), variance=VARIANCE)
    continuous = delta_of(
        [GaussianLoss(shift=1, variance=Fraction(10**8, NORM) * 10**6, count=10**6)], 3
    )
    assert known.rho == unknown.rho
    assert delta_of([known], 3) < delta_of([unknown], 3)
    assert delta_of([known], 3) == pytest.approx(continuous, rel=0.3)


def test_a_bound_on_the_coordinates_never_exceeds_what_the_norm_gives() -> None:
    assert GaussianNorm(norm_squared=Fraction(7), variance=VARIANCE, moved=100).coordinates == 7
    assert GaussianNorm(norm_squared=Fraction(7), variance=VARIANCE, moved=3).coordinates == 3
    with pytest.raises(PlanError):
        GaussianNorm(norm_squared=Fraction(7), variance=VARIANCE, moved=0)


def test_groups_move_as_many_times_more() -> None:
    losses = [
        gaussian_norm(NORM, nodes=365, variance=VARIANCE),
        gaussian_norm(NORM, nodes=365, variance=VARIANCE, split=(1, 1)),
    ]
    (grown,) = group_losses(losses, 3)
    assert isinstance(grown, GaussianNorm)
    assert grown.norm_squared == 9 * 3 * NORM
    assert grown.moved == 3 * 3 * 365
    assert total_rho([grown]) == 9 * total_rho(losses)
    assert epsilon_of([grown], 1e-6) > epsilon_of(losses, 1e-6)


@pytest.mark.parametrize(
    "other",
    [
        GaussianLoss(shift=2, variance=VARIANCE, count=4),
        GaussianNorm(norm_squared=Fraction(16), variance=VARIANCE),
    ],
)
def test_a_group_with_an_unknown_part_counts_by_the_norm(
    other: GaussianLoss | GaussianNorm,
) -> None:
    known = gaussian_norm(NORM, nodes=365, variance=VARIANCE)
    for order in ([known, other], [other, known]):
        (grown,) = group_losses(order, 2)
        assert isinstance(grown, GaussianNorm)
        assert grown.moved is None
        assert grown.norm_squared == 4 * (NORM + 16)
