"""Attack 24: threads, order of sums and versions of a solver change the bits of centres."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from retrodp.clustering import solver
from retrodp.clustering.solver import Floats
from retrodp.mechanisms.answer import Answer
from tests.support.clusters import batch, blobs, bound, plan, tree


def released() -> Answer:
    keys = tree(4)
    statistic, mechanism = bound(plan(extra="coreset = true"), keys)
    return mechanism.release(12, statistic.encode(batch(blobs(15_000)[0])), keys)


def coreset(answer: Answer) -> dict[str, tuple[object, ...]]:
    return {
        figure.key: tuple(figure)
        for figure in answer.figures()
        if json.loads(figure.key)[0] == "coreset"
    }


def test_another_solver_changes_centres_and_leaves_every_byte_of_the_coreset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = released()

    def another(points: Floats, weights: Floats, k: int, *, coins: bytes) -> Floats:
        return solver.kmedian(points, weights, k, coins=coins) + 12345.0

    monkeypatch.setattr(solver, "kmeans", another)
    after = released()
    assert coreset(after) == coreset(before)
    assert len(coreset(before)) > 30
    assert after.to_bytes() != before.to_bytes()


def test_the_coreset_comes_in_the_order_of_levels_and_cells() -> None:
    keys = tree(4)
    statistic, mechanism = bound(plan(extra="coreset = true"), keys)
    found = mechanism.found(12, statistic.encode(batch(blobs(15_000)[0])), keys)
    places = [
        (found.cells[point.cell].level, found.cells[point.cell].number) for point in found.points
    ]
    assert places == sorted(places)
    assert len(places) > 30


def test_centres_are_whole_steps_of_their_columns() -> None:
    answer = released()
    centres = [figure.value for figure in answer.figures() if json.loads(figure.key)[0] == "centre"]
    assert {type(value) for value in centres} == {int}
    assert len(centres) == 6


def test_twin_sums_of_floats_in_another_order_have_other_bits() -> None:
    numbers = np.random.default_rng(0).normal(size=1000)
    orders = {float(np.cumsum(np.random.default_rng(o).permutation(numbers))[-1]) for o in range(9)}
    assert len(orders) > 1
    exact = {
        sum(map(Fraction, np.random.default_rng(o).permutation(numbers).tolist())) for o in range(3)
    }
    assert len(exact) == 1
