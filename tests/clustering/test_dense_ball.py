"""Dense balls: coverage where it is proved, privacy as charged, and nothing learned from their number."""

from __future__ import annotations

import inspect
import math
from fractions import Fraction

import numpy as np
import pytest

from retrodp.clustering import dense_ball
from retrodp.clustering.dense_ball import (
    FACTOR,
    RADIUS,
    clipped_steps,
    dense_balls,
)
from retrodp.clustering.domain import Domain
from retrodp.clustering.one_cluster import iterative, one_cluster
from retrodp.clustering.scales import Scales, least_counts
from retrodp.clustering.solver import Floats
from retrodp.clustering.spending import ONCE, Part, loss_of, processes
from retrodp.errors import DataError, PlanError
from retrodp.noise.key import KeyTree
from retrodp.noise.tails import upper_tail
from retrodp.privacy.accountant import delta_of
from retrodp.privacy.budget import ApproxDP, PureDP, zCDP
from retrodp.privacy.norms import Norms

BUDGET = ApproxDP(1, "1e-6")


def keys(number: int) -> KeyTree:
    return KeyTree.from_root(bytes([number]) * 32, b"balls", 1)


def in_ball(rng: np.random.Generator, number: int, dimensions: int) -> Floats:
    raw = rng.normal(size=(number, dimensions))
    raw /= np.sqrt((raw**2).sum(axis=1, keepdims=True))
    return raw * rng.random((number, 1)) ** (1 / dimensions)


def planted(seed: int, dimensions: int, tau: int, radius: float) -> tuple[Floats, Floats]:
    """A ball of tau points among 5,000 others, and its middle."""
    rng = np.random.default_rng(seed)
    middle = in_ball(rng, 1, dimensions)[0] * 0.4
    ball = middle + in_ball(rng, tau, dimensions) * radius
    return np.vstack([ball, in_ball(rng, 5000, dimensions) * 0.5]), middle


def distance(found: Floats, middle: Floats) -> float:
    return float(np.sqrt(((found - middle) ** 2).sum(axis=1)).min())


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_balls_of_the_proved_size_are_covered_within_the_proved_factor(dimensions: int) -> None:
    """Twelve trials, each of which misses with at most 0.002: two misses have a chance of 3e-4."""
    missed, factor = 0, 0.0
    for seed in range(12):
        radius = 0.03 * 2 ** (seed % 3)
        empty = dense_balls(np.zeros((0, dimensions)), 1, 0.03, BUDGET, keys=keys(seed))
        assert empty.proved_tau is not None
        assert empty.factor is not None
        factor = empty.factor
        points, middle = planted(seed, dimensions, empty.proved_tau, radius)
        found = dense_balls(points, 1, 0.03, BUDGET, keys=keys(seed))
        missed += distance(found.centres, middle) > factor * radius
    assert missed <= 1
    assert factor == pytest.approx(1 + math.sqrt(2 * dimensions))


def test_in_the_plane_the_proved_factor_is_the_papers_three() -> None:
    found = dense_balls(np.zeros((0, 2)), 1, 0.05, BUDGET, keys=keys(0))
    assert found.factor == FACTOR


def test_twin_scales_a_factor_of_two_apart_would_not_reach_the_papers_three() -> None:
    # A ball of radius r may then need cells as wide as 4 r.
    assert 1 + 4 * math.sqrt(2) / 2 > FACTOR


def test_every_radius_has_a_scale_that_the_proof_needs() -> None:
    found = []
    for least in (0.003, 0.01, 0.04):
        scales = Scales.between(2, narrowest=2 * least, widest=1 / FACTOR, ratio=math.sqrt(2))
        radii = np.geomspace(least, 1 / (2 * FACTOR), 200)
        found += [
            any(
                2 * r <= w * (1 + 1e-9) and w < 2 * math.sqrt(2) * r * (1 + 1e-9)
                for w in scales.widths
            )
            for r in radii
        ]
    assert all(found)
    assert len(found) == 600


@pytest.mark.parametrize(("dimensions", "tau"), [(10, 900), (30, 1200)])
def test_many_dimensions_find_a_dense_ball_by_its_mean(dimensions: int, tau: int) -> None:
    hits = []
    for seed in range(6):
        points, middle = planted(seed, dimensions, tau, 0.1)
        found = dense_balls(points, tau, 0.1, BUDGET, keys=keys(seed))
        hits.append(distance(found.centres, middle) <= FACTOR * 0.1)
    assert sum(hits) >= 5


def test_a_larger_target_means_fewer_places() -> None:
    points, _ = planted(3, 2, 3000, 0.05)
    few, many = (dense_balls(points, tau, 0.02, BUDGET, keys=keys(1)) for tau in (4000, 100))
    assert len(few.balls) < len(many.balls)


def test_no_points_give_hardly_a_place_but_the_middle() -> None:
    spurious = [
        len(dense_balls(np.zeros((0, 2)), 1, 0.01, BUDGET, keys=keys(seed)).balls) - 1
        for seed in range(20)
    ]
    assert sum(spurious) <= 30  # half a cell each is planned for: mean 10, at most


@pytest.mark.parametrize("scales", [3, 9])
def test_the_losses_of_all_parts_stay_within_the_budget(scales: int) -> None:
    parts = (
        Part(share=Fraction(3, 10), norms=Norms(scales, scales), moved=scales),
        Part(share=Fraction(7, 10), norms=Norms(9000, RADIUS**2), moved=5),
    )
    made = processes(BUDGET, parts)
    losses = [loss_of(part, process) for part, process in zip(parts, made, strict=True)]
    assert 0.99e-6 < delta_of(losses, 1) <= 1e-6
    pure = processes(PureDP(1), parts)
    spent = sum(part.norms.l1 / process.scale for part, process in zip(parts, pure, strict=True))
    assert spent == 1
    squares = processes(zCDP("0.02"), parts)
    rho = sum(
        Fraction(part.norms.l2_squared) / (2 * process.scale)
        for part, process in zip(parts, squares, strict=True)
    )
    assert Fraction("0.01999") < rho <= Fraction("0.02")
    assert ONCE.window_l1 == 1


def test_a_point_moves_one_cell_a_scale_and_one_mean_by_the_norm_at_most() -> None:
    rng = np.random.default_rng(4)
    offsets = rng.normal(size=(3000, 7)) * rng.uniform(0, 2, size=(3000, 1))
    offsets[:50] /= np.sqrt((offsets[:50] ** 2).sum(axis=1, keepdims=True))  # right on the norm
    steps = clipped_steps(offsets, 1.0)
    assert int((steps * steps).sum(axis=1).max()) <= RADIUS * RADIUS
    short = (offsets**2).sum(axis=1) < 0.9
    assert np.abs(steps[short] / RADIUS - offsets[short]).max() <= 1 / RADIUS
    scales = Scales.between(2, narrowest=0.02, widest=0.3, ratio=math.sqrt(2))
    numbers = scales.placed(bytes(32)).numbers(rng.normal(size=(400, 2)) / 5)
    assert len(numbers) == len(scales.widths)
    assert all(
        one.min() >= 0 and one.max() < cells
        for one, cells in zip(numbers, scales.cells, strict=True)
    )


def test_where_a_point_falls_is_its_own_business_to_the_last_bit() -> None:
    """In a matrix product another point more may change the last bits of all, and move them."""
    scales = Scales.between(50, narrowest=0.1, widest=1.0, ratio=2.0)
    points = in_ball(np.random.default_rng(0), 300, 50) * 0.5
    for seed in range(3):
        placed = scales.placed(bytes([seed]) * 32)
        together = placed._signed_sums(points)
        alone = np.concatenate([placed._signed_sums(one[None, :]) for one in points])
        assert together.tolist() == alone.tolist()
        assert placed.signs is not None
        assert np.allclose(together, points @ placed.signs.T)


def test_no_point_is_so_far_away_that_it_moves_more_than_one_point_may() -> None:
    """An offset that overflows has no direction; as a whole number it would outweigh all noise."""
    domain = Domain(centre=(0.0,) * 5, diameter=0.1)
    far = np.array([[1e308] * 5, [-1.7e308, 0, 0, 0, 0], [1e200] * 5, [0.01] * 5])
    inside = domain.inward(far)
    assert np.isfinite(inside).all()
    assert float((inside**2).sum(axis=1).max()) <= 0.25 * (1 + 1e-12)
    steps = clipped_steps(inside, 0.5)
    assert int((steps * steps).sum(axis=1).max()) <= RADIUS * RADIUS


def test_the_origin_serves_every_wider_ball_within_the_proved_factor() -> None:
    """On a line the factor is below 3, so that grids must go on to wider balls."""
    for dimensions in (1, 2, 3):
        found = dense_balls(np.zeros((0, dimensions)), 1, 0.05, BUDGET, keys=keys(0))
        shape = dense_ball.Shape.of(np.zeros((0, dimensions)), 1, 0.05, None)
        assert found.factor is not None
        widest_served = max(shape.scales.widths) / 2
        assert widest_served * found.factor >= 0.5 * (1 - 1e-9)


def test_thresholds_are_those_that_empty_cells_reach_half_a_time() -> None:
    scales = Scales.between(2, narrowest=0.02, widest=0.3, ratio=math.sqrt(2))
    many = len(scales.widths)
    (process,) = processes(BUDGET, (Part(share=Fraction(1), norms=Norms(many, many), moved=many),))
    least = least_counts(process, scales)
    expected = sum(
        cells * upper_tail(process, 1, one) for cells, one in zip(scales.cells, least, strict=True)
    )
    assert 0.2 < expected <= 0.5


@pytest.mark.parametrize("budget", [BUDGET, PureDP(2), zCDP("0.05")])
def test_one_cluster_is_small_and_has_the_points(budget: ApproxDP | PureDP | zCDP) -> None:
    good = []
    for seed in range(6):
        points, _ = planted(seed, 2, 1500, 0.03)
        found = one_cluster(points, 1000, 0.02, budget, keys=keys(seed))
        inside = np.sqrt(((points - found.centre) ** 2).sum(axis=1)) <= found.radius
        good.append(inside.sum() >= 800 and found.radius <= 4 * 0.03)
    assert sum(good) >= 5


def test_the_number_of_calls_follows_from_the_public_bound_alone() -> None:
    few, _ = planted(1, 2, 400, 0.05)
    many = np.vstack([few, few])
    found = [
        len(iterative(points, 3000, 0.05, zCDP(1), most_points=12_000, keys=keys(2)))
        for points in (few, many, np.zeros((0, 2)))
    ]
    assert found == [8, 8, 8]


def test_iterative_covers_every_dense_ball() -> None:
    rng = np.random.default_rng(0)
    middles = np.array([[0.3, 0.0], [-0.2, 0.25], [0.0, -0.35]])
    points = np.vstack([middle + in_ball(rng, 2000, 2) * 0.03 for middle in middles])
    found = iterative(points, 1500, 0.03, zCDP(2), most_points=6000, keys=keys(3))
    away = [distance(np.array([one.centre for one in found]), middle) for middle in middles]
    assert max(away) <= FACTOR * 0.03


def test_points_outside_the_domain_are_taken_out_with_their_ball() -> None:
    """They count where they are moved to; left there, they would be found in every call."""
    rng = np.random.default_rng(1)
    outside = np.array([3.0, 0.0]) + 0.01 * rng.normal(size=(2000, 2))
    inside = np.array([-0.3, 0.0]) + 0.01 * rng.normal(size=(1800, 2))
    points = np.vstack([outside, inside])
    found = iterative(points, 1500, 0.05, zCDP(20), most_points=3800, keys=keys(4))
    first, second = (one.centre for one in found[:2])
    assert abs(float(first[0] - second[0])) > 0.5


def test_twin_a_number_of_calls_from_the_points_would_tell_their_number() -> None:
    assert "most_points" in inspect.signature(iterative).parameters
    assert -(-2 * 5400 // 3000) != -(-2 * 6800 // 3000)


def test_a_domain_of_another_place_and_size_scales_the_answer() -> None:
    points, middle = planted(5, 2, 1500, 0.03)
    domain = Domain(centre=(100.0, -50.0), diameter=20.0)
    moved = points * 20 + np.array(domain.centre)
    near = dense_balls(points, 500, 0.03, BUDGET, keys=keys(5))
    far = dense_balls(moved, 500, 0.6, BUDGET, domain=domain, keys=keys(5))
    assert len(near.balls) == len(far.balls)
    assert np.allclose(near.centres * 20 + np.array(domain.centre), far.centres)
    assert distance(near.centres, middle) < 0.09


def test_the_same_key_gives_the_same_places_and_none_a_fresh_one() -> None:
    points, _ = planted(6, 2, 800, 0.05)
    one, same = (dense_balls(points, 200, 0.03, BUDGET, keys=keys(6)).centres for _ in range(2))
    assert one.tolist() == same.tolist()
    fresh = [dense_balls(points, 200, 0.03, BUDGET).centres.tolist() for _ in range(2)]
    assert fresh[0] != fresh[1]


def test_what_makes_no_sense_is_refused() -> None:
    points = np.zeros((3, 2))
    with pytest.raises(PlanError, match="cells"):
        dense_balls(points, 10, 1e-5, BUDGET)
    with pytest.raises(PlanError):
        dense_balls(points, 0, 0.1, BUDGET)
    with pytest.raises(PlanError):
        dense_balls(points, 10, math.nan, BUDGET)
    with pytest.raises(PlanError, match="shape"):
        dense_balls(np.zeros(3), 10, 0.1, BUDGET)
    with pytest.raises(DataError):
        dense_balls(np.array([[np.nan, 0.0]]), 10, 0.1, BUDGET)
    with pytest.raises(PlanError):
        Domain(centre=())
    assert dense_ball.FACTOR == 3
