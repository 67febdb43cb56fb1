"""Attack 18: the delta of the continuous Gaussian is too small for the discrete one."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from scipy.stats import norm

from retrodp.engine.compile import compile_plan
from retrodp.engine.resolve import resolve
from retrodp.privacy.accountant import delta_of
from retrodp.privacy.loss import GaussianLoss
from tests.support.plans import counting


def brute_force(variance: float, epsilon: float) -> float:
    """Delta of one discrete Gaussian moved by one step, summed over the integers."""
    weights = {k: math.exp(-(k**2) / 2 / variance) for k in range(-400, 401)}
    mass = math.fsum(weights.values())
    return math.fsum(
        max(0.0, weights[k] - math.exp(epsilon) * weights.get(k - 1, 0.0)) / mass for k in weights
    )


def continuous(variance: float, epsilon: float) -> float:
    scale = math.sqrt(variance)
    near, far = 1 / (2 * scale) - epsilon * scale, -1 / (2 * scale) - epsilon * scale
    return float(norm.cdf(near) - math.exp(epsilon) * norm.cdf(far))


POINTS = [(4, 0.5), (4, 1.0), (20, 0.2), (20, 0.5)]


@pytest.mark.parametrize(("variance", "epsilon"), POINTS)
def test_the_accountant_covers_the_discrete_law_closely(variance: int, epsilon: float) -> None:
    exact = brute_force(variance, epsilon)
    loss = GaussianLoss(shift=1, variance=Fraction(variance))
    assert exact <= delta_of([loss], Fraction(str(epsilon))) <= exact * 1.0001


def test_twin_the_continuous_formula_promises_too_much() -> None:
    short = [continuous(variance, e) / brute_force(variance, e) for variance, e in POINTS]
    assert min(short) < 0.97


def test_a_plan_spends_at_most_its_conversion_delta() -> None:
    plan = counting()
    resolved = resolve(plan)
    [release] = compile_plan(plan, resolved)
    spent = delta_of(list(release.mechanism.cost()), Fraction(1))
    promised = Fraction(resolved.budget["delta_parts"]["conversion"])
    assert promised * Fraction(99, 100) < spent <= promised
