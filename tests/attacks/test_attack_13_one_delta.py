"""Attack 13: every sparse release spends its own delta."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from retrodp.engine.check import check
from retrodp.engine.compile import compile_plan
from retrodp.engine.resolve import resolve
from retrodp.noise.tails import summed_tail
from retrodp.plan.plan import Plan
from retrodp.privacy.accountant import delta_of
from tests.support.plans import MODELS, Model, plan

SPARSE = """
[release.by_product]
kind = "histogram"
by = "product"
[release.by_who]
kind = "histogram"
by = "who"
share = 2
[release.by_pair]
kind = "histogram"
by = ["who", "product"]
window = "2d"
"""


def several(model: Model) -> Plan:
    return plan("ids", model, releases=SPARSE, epsilon=1)


def thresholds(made: Plan) -> dict[str, tuple[float, Fraction]]:
    """What each threshold really costs (a certified bound on its crossings), and what it may."""
    resolved = resolve(made)
    costs = {}
    for release, entry in zip(compile_plan(made, resolved), resolved.releases, strict=True):
        noise: Any = release.mechanism.noise  # type: ignore[union-attr]
        crossing = summed_tail(noise.process, entry["threshold"] - 1)
        costs[release.name] = (crossing, Fraction(entry["threshold_delta"]))
    return costs


@pytest.mark.parametrize("model", MODELS)
def test_conversion_thresholds_and_collisions_fit_into_one_delta(model: Model) -> None:
    made = several(model)
    resolved = resolve(made)
    parts = {name: Fraction(part) for name, part in resolved.budget["delta_parts"].items()}
    assert sum(parts.values(), Fraction(0)) <= Fraction(1, 1000)
    costs = thresholds(made)
    assert len(costs) == 3
    assert all(crossing <= allowed for crossing, allowed in costs.values())
    assert sum((allowed for _, allowed in costs.values()), Fraction(0)) <= parts["thresholds"]
    losses = [loss for release in compile_plan(made, resolved) for loss in release.mechanism.cost()]
    if model == "zcdp":
        assert delta_of(losses, Fraction(1)) <= parts["conversion"]
    else:
        assert parts["conversion"] == 0


@pytest.mark.parametrize("model", MODELS)
def test_what_check_prints_is_below_what_the_plan_promises(model: Model) -> None:
    budget = check(several(model))["budget"]
    assert 0 < budget["delta_spent"] <= budget["delta"]


@pytest.mark.parametrize("model", MODELS)
def test_twin_a_whole_delta_for_each_release_would_spend_it_three_times(model: Model) -> None:
    one = SPARSE.split("[release.by_who]", maxsplit=1)[0]
    alone = resolve(plan("ids", model, releases=one, epsilon=1)).releases[0]
    assert 3 * Fraction(alone["threshold_delta"]) > Fraction(
        resolve(several(model)).budget["delta_parts"]["thresholds"]
    )
