"""What one epoch may spend of its plan's budget.

A plan with a known horizon has one epoch, which may spend all of it. An open horizon divides one
budget over all of its epochs before the first begins:

- zCDP. The rho of all epochs together is decided once, and epoch n has its share of it: losses of
  independent noise add up, whatever the number of epochs, and are converted to epsilon and delta
  **once**. Dividing epsilon instead would cost each epoch about its share squared.
- Pure epsilon. Epoch n has its share of epsilon (basic composition).
- Thresholds. Epoch n has its share of their delta. Labels that share their noise are paid for in
  every epoch there may be, since each has labels of its own.

The loss of epochs to come is bounded before they are resolved, by a `GaussianNorm` of whole squared
norm n and variance v with n = 2 rho v, v at most the variance of any epoch. Why it covers all of
them: `retrodp.privacy.lattice` bounds each moved coordinate of variance V by a continuous Gaussian
of variance kappa(V)^2 V and a factor c(V). The norms add up to 2 rho / kappa(v)^2 at most, for kappa
grows. An epoch with squared norm N = 2 rho_e V moves at most N coordinates, so its factors multiply
to c(V)^N at most, and N log c(V) = 2 rho_e V log c(V) is at most 2 rho_e v log c(v), for
V log c(V) = 1/24 - V log(1 - 1/(12 V)) falls with V. So all factors together are at most c(v)^n. A
later epoch is refused if its rho or its variance is not what was assumed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from retrodp.errors import PlanError
from retrodp.plan.plan import Plan
from retrodp.privacy.loss import GaussianLoss, GaussianNorm, PrivacyLoss


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """The part of a plan's budget that one epoch may use.

    Attributes:
        epoch: Number in its series, from 1.
        epochs: How many there may be.
        share: Of the budget.
        largest: The largest share of an epoch.
        series: Whether the horizon is open.
    """

    epoch: int
    epochs: int
    share: Fraction
    largest: Fraction
    series: bool

    @classmethod
    def of(cls, plan: Plan, epoch: int) -> Spending:
        """Of one epoch of a plan."""
        series = plan.stream.epochs
        shares = (Fraction(1),) if series is None else series.shares
        return cls(
            epoch=epoch,
            epochs=len(shares),
            share=shares[epoch - 1],
            largest=max(shares),
            series=series is not None,
        )


def bound(variances: Sequence[Fraction], *, rho: Fraction) -> GaussianNorm:
    """The loss of one component in all epochs together.

    Args:
        variances: Of its noise at the largest share, in the shortest epoch, under each factor that
            an epoch may have; longer epochs and smaller shares have larger ones.
        rho: Of the component in all epochs.
    """
    least = min(variances)
    norm = math.floor(2 * rho * least)
    if norm < 1:
        return GaussianNorm(norm_squared=Fraction(1), variance=least)
    return GaussianNorm(norm_squared=Fraction(norm), variance=norm / (2 * rho))


def require_within(
    losses: Sequence[PrivacyLoss], assumed: GaussianNorm, spending: Spending, *, label: str
) -> None:
    """Raise `PlanError` unless the noise of a component is what was accounted for it."""
    gaussian = [loss for loss in losses if isinstance(loss, GaussianLoss | GaussianNorm)]
    rho = sum((loss.rho for loss in gaussian), Fraction(0))
    narrow = any(loss.variance < assumed.variance for loss in gaussian)
    if rho > assumed.rho * spending.share or narrow or len(gaussian) < len(losses):
        raise PlanError(
            f"The noise of {label} in epoch {spending.epoch} does not stay within the budget that "
            "was stated for it.",
            do="Open a new epoch with `retrodp restore`, under a plan with a budget of its own.",
        )


def norms_of(budget: Mapping[str, Any]) -> tuple[GaussianNorm, ...]:
    """The bounds of all epochs' losses, one a component, as `bound` made them."""
    return tuple(
        GaussianNorm(norm_squared=Fraction(own["norm_squared"]), variance=Fraction(own["variance"]))
        for own in budget["losses"]
    )


def stored(norms: Sequence[GaussianNorm]) -> list[dict[str, Any]]:
    """The same as JSON."""
    return [{"norm_squared": str(own.norm_squared), "variance": str(own.variance)} for own in norms]
