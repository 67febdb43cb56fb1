"""Attack 19: rounding after clipping leaves the bounds, and a bound that is no multiple of a step."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from retrodp.errors import PlanError
from retrodp.plan.plan import Plan
from tests.support.plans import counting, plan
from tests.support.rows import add, ingest
from tests.support.stores import new_store

AMOUNT = counting().column("amount")


@pytest.mark.parametrize(
    ("key", "bound"), [("max", "20.3"), ("min", "-5.1"), ("max", "20.4999999999")]
)
def test_a_bound_that_is_no_multiple_of_the_step_is_refused(key: str, bound: str) -> None:
    old = {"max": "max = 20", "min": "min = -5"}[key]
    with pytest.raises(PlanError, match="no multiple of the step"):
        Plan.loads(counting().text.replace(old, f"{key} = {bound}"))


@given(st.floats(allow_nan=False, allow_infinity=False) | st.decimals(allow_nan=False))
def test_no_value_leaves_the_bounds_by_rounding(value: object) -> None:
    steps = AMOUNT.encode_many([value]).values[0]
    assert steps is None or (isinstance(steps, int) and -10 <= steps <= 40)


@pytest.mark.parametrize("value", [19.75, 19.99, 20.0, 20.24, 20.26, 1e308, 5e-324, -0.0, -5.24])
def test_a_record_moves_a_sum_by_at_most_its_declared_sensitivity(ram: Path, value: float) -> None:
    sums = plan(releases='[release.money]\nkind = "sum"\nof = "amount"', epsilon=1)
    with new_store(ram / "store", sums) as store:
        ingest(store, [add("a", 1, amount=value)])
        store.close_round()
        moved = store.ledger.read_totals("money").get(b"", 0)
        declared = Fraction(store.releases[0].mechanism.describe()["sensitivity"])
    assert abs(moved) * Fraction(1, 2) <= declared


def test_twin_rounding_after_the_clip_leaves_bounds_that_are_no_multiples() -> None:
    step, most = 1.0, 20.6
    clipped = min(25.0, most)
    assert math.floor(clipped / step + 0.5) * step > most
