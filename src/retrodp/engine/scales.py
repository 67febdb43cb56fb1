"""The noise of all parts of a plan, as much as its budget asks for.

Promise: all parts together spend the budget and no more, in all epochs that may come; every loss is
rounded up. Data independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from retrodp.engine.noisy_parts import Item
from retrodp.engine.spending import Spending, bound
from retrodp.errors import BudgetError
from retrodp.noise.processes import Process
from retrodp.plan.plan import Plan
from retrodp.privacy.accountant import delta_of
from retrodp.privacy.calibrate import largest_rho
from retrodp.privacy.conversion import rho_of
from retrodp.privacy.loss import GaussianNorm, PrivacyLoss


def rho_of_all(
    plan: Plan, items: Sequence[Item], delta: Fraction, spending: Spending
) -> tuple[Fraction | None, list[GaussianNorm]]:
    """What all parts spend together in all epochs, and a bound for each if there are several."""
    parts = [part for item in items for part in item.parts]
    if plan.privacy.model == "pure":
        return None, []

    def bounds(rho: Fraction) -> list[GaussianNorm]:
        return [
            bound(
                [own.gaussian(rho * spending.largest).scale for own in part.alternatives],
                rho=rho * part.share,
            )
            for part in parts
        ]

    def losses(rho: Fraction) -> Sequence[PrivacyLoss]:
        if spending.series:
            return bounds(rho)
        made = noise_of_all(plan, items, rho, spending)
        return [
            *(loss for part in parts for loss in part.losses(made[part.label])),
            *(loss for item in items if item.sampling for loss in item.sampling.losses(rho, made)),
        ]

    if not parts and not any(item.sampling and item.sampling.scales for item in items):
        # Functions of the user's own, whose losses are declared and known to fit one by one.
        rho = rho_of(plan.privacy.epsilon, delta)
        if delta_of(losses(rho), plan.privacy.epsilon) > delta:
            raise BudgetError(
                "The functions of this plan together declare more than its budget.",
                do="Sample fewer records, declare less, or raise epsilon.",
            )
        return rho, []
    rho = largest_rho(losses, epsilon=plan.privacy.epsilon, delta=delta)
    return rho, bounds(rho) if spending.series else []


def noise_of_all(
    plan: Plan, items: Sequence[Item], rho: Fraction | None, spending: Spending
) -> dict[str, Process]:
    """The noise of every part in one epoch, by its label."""
    parts = [part for item in items for part in item.parts]
    if rho is None:
        return {part.label: part.laplace(plan.privacy.epsilon * spending.share) for part in parts}
    return {part.label: part.gaussian(rho * spending.share) for part in parts}
