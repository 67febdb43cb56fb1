"""What every mechanism promises, for quantiles and cumulative counts, whose totals are cells."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from itertools import product
from typing import Any

import pytest

from retrodp.errors import HorizonExceededError, PlanError
from retrodp.mechanisms.cdf import CumulativeCounts
from retrodp.mechanisms.quantiles import Quantiles
from retrodp.noise.key import KeyTree
from retrodp.privacy.loss import PureLoss, total_rho
from tests.contracts.mechanisms import Recording
from tests.mechanisms.trees import (
    EPSILON,
    HORIZON,
    KEYS,
    RHO,
    cumulative_counts,
    quantiles,
    totals,
)

CELLS = 12
ROUNDS = range(1, HORIZON + 1)
EXACT = totals({cell: 51_234 + 7 * cell**2 for cell in range(CELLS)})
Made = Quantiles | CumulativeCounts


def _quantiles(**noise: Any) -> Made:
    return quantiles(CELLS, ["0.25", "0.5", "0.9"], **noise)


def _tree(**noise: Any) -> Made:
    return cumulative_counts(CELLS, flat=False, **noise)


def _flat(**noise: Any) -> Made:
    return cumulative_counts(CELLS, flat=True, **noise)


SHAPES: dict[str, Callable[..., Made]] = {"quantiles": _quantiles, "tree": _tree, "flat": _flat}
CASES = [*product(SHAPES, ("haar", "binary", "delannoy"), ("gaussian", "laplace"))]
every_case = pytest.mark.parametrize(("shape", "factor", "law"), CASES)


def made(shape: str, factor: str, law: str, name: str = "r") -> Made:
    return SHAPES[shape](factor=factor, law=law, name=name)


def all_rounds(mechanism: Made, exact: dict[bytes, int] | None = None) -> list[bytes]:
    found = EXACT if exact is None else exact
    return [mechanism.release(round_, found, KEYS).to_bytes() for round_ in ROUNDS]


@every_case
def test_the_answer_is_a_function_of_key_round_and_totals(
    shape: str, factor: str, law: str
) -> None:
    mechanism = made(shape, factor, law)
    plain = all_rounds(mechanism)
    backwards = [mechanism.release(r, EXACT, KEYS).to_bytes() for r in reversed(ROUNDS)]
    assert backwards[::-1] == plain
    assert all_rounds(pickle.loads(pickle.dumps(mechanism))) == plain
    assert all_rounds(mechanism, dict(reversed(EXACT.items()))) == plain
    late = KEYS.advanced(5)
    assert [mechanism.release(r, EXACT, late).to_bytes() for r in ROUNDS[4:]] == plain[4:]


@every_case
def test_a_cell_that_was_emptied_is_like_one_never_filled(
    shape: str, factor: str, law: str
) -> None:
    mechanism, some = made(shape, factor, law), totals({2: 40_000, 9: 50_000})
    assert all_rounds(mechanism, some | {b"5": 0, b"0": 0}) == all_rounds(mechanism, some)


@every_case
def test_noise_is_asked_for_by_public_labels_alone_and_by_the_name(
    shape: str, factor: str, law: str
) -> None:
    few, many, other = Recording(KEYS), Recording(KEYS), Recording(KEYS)
    made(shape, factor, law).release(3, totals({1: 50_000}), few)
    made(shape, factor, law).release(3, EXACT, many)
    made(shape, factor, law, "other").release(3, EXACT, other)
    assert few.labels == many.labels != set()
    assert few.labels.isdisjoint(other.labels)


@every_case
def test_noise_is_not_repeated_from_round_to_round(shape: str, factor: str, law: str) -> None:
    mechanism = SHAPES[shape](factor=factor, law=law, budget=RHO / 100 if law == "gaussian" else 1)
    some = totals(dict.fromkeys(range(CELLS), 60))
    bounds = {str(mechanism.release(r, some, KEYS).each) for r in ROUNDS}
    assert len(bounds) > HORIZON // 2


@every_case
def test_the_declared_cost_is_the_whole_budget_and_no_more(
    shape: str, factor: str, law: str
) -> None:
    losses = made(shape, factor, law).cost()
    if law == "laplace":
        assert sum(loss.epsilon for loss in losses if isinstance(loss, PureLoss)) == EPSILON
    else:
        assert RHO * (1 - RHO / 100) < total_rho(losses) <= RHO


@every_case
def test_descriptions_are_json_frozen_and_hold_nothing_exact(
    shape: str, factor: str, law: str
) -> None:
    mechanism = made(shape, factor, law)
    said = json.dumps(mechanism.describe()) + repr(mechanism) + repr(mechanism.cost())
    assert [total for total in EXACT.values() if str(total) in said] == []
    assert mechanism.retroactive == "exact"
    with pytest.raises((FrozenInstanceError, AttributeError)):
        mechanism.noise = None  # type: ignore[misc, assignment]
    with pytest.raises((AttributeError, TypeError)):
        mechanism.memory = {}  # type: ignore[union-attr]


@every_case
def test_rounds_outside_the_horizon_are_refused(shape: str, factor: str, law: str) -> None:
    mechanism = made(shape, factor, law)
    longer = KeyTree.from_root(bytes(32), b"longer", HORIZON + 5)
    with pytest.raises(HorizonExceededError):
        mechanism.release(HORIZON + 1, EXACT, longer)
    for round_ in (0, -1, 2.0, True, None):
        with pytest.raises(PlanError):
            mechanism.release(round_, EXACT, KEYS)  # type: ignore[arg-type]
