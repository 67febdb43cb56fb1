"""The methods of `distinct` that remember: `flippancy` and `recompute`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from retrodp.errors import PlanError
from retrodp.mechanisms.calibrate import choose_factor, worst_error
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.flippancy import MOST_FLIPS, Flippancy
from retrodp.mechanisms.recompute import Recompute
from retrodp.noise.factors.fresh import FreshFactor
from retrodp.noise.factors.haar import HaarFactor
from retrodp.noise.factors.switching import switching_l2sq
from retrodp.noise.processes import AnyFactor
from retrodp.plan import kinds
from retrodp.plan.plan import Plan
from retrodp.plan.releases import Release
from retrodp.privacy.calibrate import largest_rho
from retrodp.privacy.loss import GaussianNorm
from retrodp.statistics.flips import FlippingItems, Limit
from retrodp.statistics.items import Items

_FLIPS = "flips "

Noises = tuple[CalibratedNoise, ...]
Shape = Mapping[str, int]


def tree(plan: Plan, _release: Release) -> AnyFactor:
    """The factor whose cost for items that switch is known: haar, or delannoy under pure epsilon."""
    return choose_factor("auto", horizon=plan.stream.horizon, law=plan.privacy.law)


def limits_of(plan: Plan, release: Release) -> Shape:
    """The limit that the plan names, or 1, 2, 4, ... as long as `fresh` noise is not smaller.

    Returns:
        By "flips w", the squared norm of what one record shifts, in windows.
    """
    statistic = release.statistic
    assert isinstance(statistic, kinds.Distinct)
    named, factor = statistic.flips, tree(plan, release)
    most = min(plan.stream.horizon, MOST_FLIPS)
    if named is not None:
        if named > most:
            raise PlanError(
                f"release.{release.name}.flips is {named}: an item flips at most once a round.",
                expected=f"at most {most}",
                do='With as many flips, method = "fresh" has less noise and forgets.',
            )
        return {f"{_FLIPS}{named}": windows_of(factor, named)}
    law = plan.privacy.law
    fresh = FreshFactor(horizon=plan.stream.horizon, window=release.window or plan.stream.horizon)
    found, flips = {f"{_FLIPS}1": 1}, 2
    while flips <= most:
        windows = windows_of(factor, flips)
        price = windows if law == "gaussian" else flips**2
        if price * worst_error(factor, law) > worst_error(fresh, law):
            break
        found[f"{_FLIPS}{flips}"] = windows
        flips *= 2
    return found


def limits_later(plan: Plan, release: Release, shape: Shape) -> Shape:
    """The same limits at the norms of a later epoch, whose tree is higher."""
    factor = tree(plan, release)
    return {f"{_FLIPS}{limit.flips}": windows_of(factor, limit.flips) for limit in _limits(shape)}


def windows_of(factor: AnyFactor, flips: int) -> int:
    """Squared norm of what a record shifts in items followed up to so many flips, in windows."""
    if not isinstance(factor, HaarFactor):
        return flips**2  # of L2 norms the triangle inequality alone; Laplace noise uses L1
    return math.ceil(switching_l2sq(factor.height, 2 * flips) / factor.window_l2sq)


def _limits(shape: Shape) -> tuple[Limit, ...]:
    named = {int(name.removeprefix(_FLIPS)): norm for name, norm in shape.items()}
    return tuple(Limit(flips=flips, l2_squared=norm) for flips, norm in sorted(named.items()))


def flipping_items(items: Items, shape: Shape) -> FlippingItems:
    """What `flippancy` measures."""
    return FlippingItems(items=items, limits=_limits(shape))


def flippancy(
    release: Release, noises: Noises, shape: Shape, facts: tuple[tuple[str, Any], ...]
) -> Flippancy:
    """The mechanism of `flippancy`."""
    limits = tuple(limit.flips for limit in _limits(shape))
    return Flippancy(
        name=release.name,
        limits=limits,
        counts=noises[: len(limits)],
        beyond=noises[len(limits) :],
        level=release.level,
        facts=facts,
    )


def block_of(plan: Plan, release: Release) -> Shape:
    """B, about (T log T / rho)^(1/3) rounds, from the budget of the release."""
    horizon = plan.stream.horizon
    rho = _rho(plan) * float(plan.share_of(release))
    block = round((horizon * math.log(max(2, horizon)) / rho) ** (1 / 3))
    return {"block": max(1, min(horizon, block))}


def _rho(plan: Plan) -> float:
    """The plan's budget in zCDP, for a size that need not be exact; pure epsilon is epsilon^2/2."""
    epsilon, delta = plan.privacy.epsilon, plan.privacy.delta
    if plan.privacy.model == "pure" or delta is None:
        return float(epsilon) ** 2 / 2

    def losses(rho: Fraction) -> list[GaussianNorm]:
        return [GaussianNorm(norm_squared=Fraction(1), variance=1 / (2 * rho))]

    return float(largest_rho(losses, epsilon=epsilon, delta=delta))


def heads(plan: Plan, release: Release, shape: Shape) -> FreshFactor:
    """Noise of its own at every head; a record counts at no more heads than its rounds hold."""
    horizon = plan.stream.horizon
    met = math.ceil((release.window or horizon) / shape["block"])
    return FreshFactor(horizon=horizon, window=met)


def recompute(noises: Noises, shape: Shape, facts: tuple[tuple[str, Any], ...]) -> Recompute:
    """The mechanism of `recompute`."""
    (noise,) = noises
    return Recompute(noise=noise, block=shape["block"], facts=facts)
