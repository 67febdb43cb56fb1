"""Cumulative counts: as accurate as predicted, honest at every edge, and never falling."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.cdf import edge_weights, is_flat
from retrodp.noise.process import Law
from tests.contracts.mechanisms import Recording
from tests.mechanisms.trees import EXACT, KEYS, LEVEL, below, cumulative_counts, totals

ALPHA = 1e-9  # one false alarm in 10**9 with fresh keys
RUNS, ROUND = 600, 6
EDGES = 11
COUNTS = {0: 900, 1: 900, 2: 0, 3: 5000, 7: 900, 10: 400}
SHAPES = [("gaussian", True), ("gaussian", False), ("laplace", True), ("laplace", False)]


def group_and_edge(key: str) -> tuple[str, int]:
    group, comma, edge = key.rstrip("]").rpartition(",")
    return (group, int(edge)) if comma else ("", int(key))


def table(answer: Answer, column: int) -> NDArray[np.float64]:
    """A column of the rows, shape (runs, edges in rising order)."""
    assert answer.keys is not None
    rows = list(answer.rows())
    order = sorted(range(len(rows)), key=lambda place: group_and_edge(rows[place][0]))
    return np.array([float(rows[place][column]) for place in order]).reshape(-1, EDGES)


@pytest.mark.parametrize(("law", "flat"), SHAPES)
def test_with_hardly_any_noise_they_are_exact(law: Law, *, flat: bool) -> None:
    release = cumulative_counts(EDGES, flat=flat, law=law, budget=EXACT)
    values = table(release.release(ROUND, totals(COUNTS), KEYS), 1)[0]
    assert np.abs(values - below(COUNTS, EDGES)).max() <= 1


@pytest.mark.parametrize(("law", "flat"), SHAPES)
def test_every_interval_covers_and_every_deviation_is_as_stated(law: Law, *, flat: bool) -> None:
    release = cumulative_counts(EDGES, flat=flat, law=law, runs=RUNS)
    answer = release.release(ROUND, totals(COUNTS, runs=RUNS), KEYS)
    exact = np.array(below(COUNTS, EDGES))
    halves = EDGES / 4  # those of the factor are rounded up
    low, high, low_all, high_all = (table(answer, column) for column in (3, 4, 5, 6))
    missed = ((exact < low) | (exact > high)).sum(axis=0)
    missed_all = ((exact < low_all) | (exact > high_all)).sum(axis=0)
    assert missed.max() <= binom.isf(ALPHA, RUNS, float(1 - LEVEL))
    assert missed_all.max() <= binom.isf(ALPHA, RUNS, float(1 - LEVEL) / release.noise.horizon)
    assert ((low_all <= low) & (high <= high_all)).all()
    # The middle of the interval is the unfitted count, unless the interval was widened.
    stated = table(answer, 2)[0]
    assert np.median(np.abs((low + high) / 2 - exact), axis=0) == pytest.approx(
        stated * 0.6745, rel=0.2, abs=halves / 2
    )


@pytest.mark.parametrize(("law", "flat"), SHAPES)
def test_the_predicted_deviation_is_met_within_a_tenth(law: Law, *, flat: bool) -> None:
    """Counts far apart are not fitted, so that published values show the noise itself."""
    counts = dict.fromkeys(range(EDGES), 10**6)
    release = cumulative_counts(EDGES, flat=flat, law=law, runs=RUNS)
    answer = release.release(ROUND, totals(counts, runs=RUNS), KEYS)
    errors = table(answer, 1) - np.array(below(counts, EDGES))
    # 600 runs: a deviation is known to 2.9 %.
    assert errors.std(axis=0) == pytest.approx(table(answer, 2)[0], rel=0.15)
    assert np.sqrt((errors.var(axis=0) / table(answer, 2)[0] ** 2).mean()) == pytest.approx(
        1, abs=0.1
    )
    halves = EDGES / 4  # those of the factor are rounded up
    assert np.abs(errors.mean(axis=0)).max() < 6 * errors.std(axis=0).max() / RUNS**0.5 + halves


@pytest.mark.parametrize(("law", "flat"), SHAPES)
def test_values_never_fall_from_edge_to_edge_and_lie_in_their_intervals(
    law: Law, *, flat: bool
) -> None:
    release = cumulative_counts(EDGES, flat=flat, law=law, runs=200)
    answer = release.release(ROUND, totals({3: 10}, runs=200), KEYS)
    values = table(answer, 1)
    assert (np.diff(values, axis=1) >= 0).all()
    assert ((table(answer, 3) <= values) & (values <= table(answer, 4))).all()


def test_twin_unfitted_counts_do_fall() -> None:
    release = cumulative_counts(EDGES, flat=True, runs=50)
    answer = release.release(ROUND, totals({3: 10}, runs=50), KEYS)
    middles = (table(answer, 3) + table(answer, 4)) / 2
    assert (np.diff(middles, axis=1) < 0).any()


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("edges", [1, 2, 3, 4, 8, 16, 33, 64])
def test_a_counter_a_cell_or_a_tree_whichever_serves_the_worst_edge(law: Law, edges: int) -> None:
    worst = [
        max(
            float(release.noise.stddev[ROUND - 1]) * float(weight.squared) ** 0.5
            for weight in edge_weights(edges, flat=flat)
        )
        for flat in (True, False)
        for release in [cumulative_counts(edges, flat=flat, law=law, budget=Fraction(1, 1000))]
    ]
    assert is_flat(edges, law) == (worst[0] <= worst[1] * (1 + 1e-3))


def test_one_edge_has_the_error_of_a_count() -> None:
    release = cumulative_counts(1, flat=True)
    answer = release.release(ROUND, totals({0: 5}), KEYS)
    (bounds,) = answer.each or ()
    assert float(bounds.stddev) == pytest.approx(float(release.noise.stddev[ROUND - 1]))
    assert bounds.high - bounds.low <= 2 * release.noise.half[ROUND - 1] * 1.25


def test_empty_cells_are_evaluated_like_full_ones() -> None:
    release = cumulative_counts(EDGES, flat=False)
    empty, full = Recording(KEYS), Recording(KEYS)
    release.release(ROUND, {}, empty)
    release.release(ROUND, totals(COUNTS), full)
    assert empty.labels == full.labels
    deviations = {float(bounds.stddev) for bounds in release.release(ROUND, {}, KEYS).each or ()}
    assert min(deviations) > 0


def test_the_answer_says_the_widest_interval() -> None:
    release = cumulative_counts(EDGES, flat=False)
    answer = release.release(ROUND, totals(COUNTS), KEYS)
    widths = [(b.high - b.low) / 2 for b in answer.each or ()]
    assert answer.half <= max(widths)
    assert Fraction(answer.half) == pytest.approx(max(widths), rel=0.5)
