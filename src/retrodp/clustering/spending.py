"""The noise of a static answer that is made of several parts, from one budget."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import assert_never

from retrodp.mechanisms.calibrate import gaussian_process, laplace_process
from retrodp.noise.factors.fresh import FreshFactor
from retrodp.noise.process import NoiseProcess
from retrodp.privacy.budget import ApproxDP, Budget, PureDP, zCDP
from retrodp.privacy.calibrate import largest_rho
from retrodp.privacy.loss import GaussianNorm, PrivacyLoss
from retrodp.privacy.norms import Norms

ONCE = FreshFactor(horizon=1, window=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Counters that share a noise.

    Attributes:
        share: Of the budget; the shares of all parts add up to 1.
        norms: Of what one point adds to them.
        moved: Most counters that it moves.
    """

    share: Fraction
    norms: Norms
    moved: int


@lru_cache(maxsize=64)
def processes(budget: Budget, parts: tuple[Part, ...]) -> tuple[NoiseProcess, ...]:
    """Noise of each part, such that all of them together cost at most the budget.

    Later parts may depend on what earlier ones published: losses of Gaussian and of Laplace noise add
    up under adaptive composition as they do without. Kept for the same question: it is a function of
    public numbers and takes half a second.
    """
    match budget:
        case PureDP():
            return tuple(
                laplace_process(ONCE, epsilon=budget.epsilon * part.share / part.norms.l1, amount=1)
                for part in parts
            )
        case zCDP():
            return tuple(_gaussian(part, budget.rho) for part in parts)
        case ApproxDP():

            def losses(rho: Fraction) -> list[PrivacyLoss]:
                return [loss_of(part, _gaussian(part, rho)) for part in parts]

            rho = largest_rho(losses, epsilon=budget.epsilon, delta=budget.delta)
            return tuple(_gaussian(part, rho) for part in parts)
        case _:
            assert_never(budget)


def _gaussian(part: Part, rho: Fraction) -> NoiseProcess:
    return gaussian_process(ONCE, rho=rho * part.share / part.norms.l2_squared, amount=1)


def loss_of(part: Part, process: NoiseProcess) -> PrivacyLoss:
    """What Gaussian counters of a part reveal about one point."""
    return GaussianNorm(
        norm_squared=Fraction(part.norms.l2_squared), variance=process.scale, moved=part.moved
    )
