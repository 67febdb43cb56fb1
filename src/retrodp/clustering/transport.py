"""How far a weighted sketch is from the points that it stands for, as definitions that can be checked.

Promise: costs, the generalised transport cost, and what follows from it for every choice of k centres,
with each constant written out. All of it needs the points themselves, so it belongs into tests,
benchmarks and the desk of whoever holds the data; nothing here is private or published.

Source: Cohen et al. (2026), definitions 4 and 13 and lemmas 5, 12 and 14. One constant of lemma 14
holds for weights that are not negative only; see `SemiCoreset.of_transport`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from retrodp import _check
from retrodp.clustering.solver import Floats
from retrodp.errors import PlanError, UsageError


def triangle_constant(power: float, slack: float = 1.0) -> float:
    """The least theta with dist(a, b)^p <= (1 + slack) dist(a, c)^p + theta dist(c, b)^p (lemma 12).

    For p = 1 it is 1 whatever the slack; for p > 1 it is `s / (s^(1/(p-1)) - 1)^(p-1)` with
    s = 1 + slack, reached where dist(a, c) : dist(c, b) is 1 : s^(1/(p-1)) - 1 on a line.
    """
    _check.positive(slack=slack)
    _require_power(power)
    if power == 1:
        return 1.0
    root = (1 + slack) ** (1 / (power - 1))
    return float((1 + slack) / (root - 1) ** (power - 1))


def _require_power(power: float) -> None:
    if isinstance(power, bool) or not 1 <= power < math.inf:
        raise PlanError(
            f"power must be finite and at least 1, got {power!r}.",
            do="Give 1 for k-median, 2 for k-means.",
        )


def _require_costs(**named: float | Sequence[float]) -> None:
    """Numbers of at least 0, or not: but numbers, or no comparison would find anything."""
    for name, values in named.items():
        if not np.isfinite(np.asarray(values, dtype=np.float64)).all():
            raise UsageError(
                f"{name} must be finite, got {values!r}.",
                do="Leave out centres whose cost is not known.",
            )


class Weighted(NamedTuple):
    """Points of a space of diameter 1 with weights.

    Attributes:
        points: Shape (m, d).
        weights: Shape (m,); those of a noisy sketch may be negative.
    """

    points: Floats
    weights: Floats

    @classmethod
    def ones(cls, points: Floats) -> Self:
        """Each point once."""
        return cls(points, np.ones(len(points)))

    def cost(self, centres: Floats, power: float) -> float:
        """Weighted sum of p-th powers of the distances to the nearest centre."""
        if not len(centres):
            raise UsageError("A cost needs at least one centre.")
        _require_power(power)
        return float((self.weights * powers(self.points, centres, power).min(axis=1)).sum())


def powers(points: Floats, others: Floats, power: float) -> Floats:
    """p-th powers of the distances, shape (points, others)."""
    squares = np.zeros((len(points), len(others)))
    for column, other in zip(points.T, others.T, strict=True):
        squares += (column[:, None] - other[None, :]) ** 2
    found: Floats = squares if power == 2 else squares ** (power / 2)
    return found


class Transport(NamedTuple):
    """The two parts of the generalised transport cost (definition 13).

    Attributes:
        moved: Weighted sum of p-th powers of the distances that points are moved.
        mismatch: Sum over all places of the difference between the weight that is moved there and
            the weight that the sketch has there.
    """

    moved: float
    mismatch: float

    @property
    def total(self) -> float:
        """The generalised transport cost."""
        return self.moved + self.mismatch


def transport(
    data: Weighted, sketch: Weighted, places: NDArray[np.integer], power: float
) -> Transport:
    """Cost of moving each point to one place of a sketch.

    Args:
        data: n points, weights at least 0.
        sketch: m places and their weights.
        places: For each point its place in the sketch, shape (n,).
        power: p.
    """
    _require_power(power)
    goal = sketch.points[places]
    distances = np.sqrt(((data.points - goal) ** 2).sum(axis=1))
    arrived = np.bincount(places, data.weights, len(sketch.points))
    return Transport(
        float((data.weights * distances**power).sum()),
        float(np.abs(arrived - sketch.weights).sum()),
    )


class Approximation(NamedTuple):
    """Centres cost at most alpha times the least cost of k centres, and beta more."""

    alpha: float
    beta: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SemiCoreset:
    """For all k centres C: cost(C) / kappa - eta1 opt - eta2 <= sketch(C) <= kappa cost(C) + eta2.

    Source: definition 4.
    """

    kappa: float
    eta1: float
    eta2: float

    @classmethod
    def of_transport(
        cls, alpha: float, beta: float, power: float, *, negative_weights: bool
    ) -> Self:
        """What a transport cost of at most alpha opt + beta implies, in a space of diameter 1.

        The paper's eta1 is `max(theta, 1) alpha / 2` with theta = `triangle_constant(p)`. That
        holds for sketches without negative weights. With them the mismatch counts twice on the way
        from the sketch to the data, and eta1 is `max(theta, 2) alpha / 2`: twice as much at p = 1,
        the same from p = 2 on.

        Args:
            alpha: At least 0.
            beta: At least 0.
            power: p.
            negative_weights: Whether weights of the sketch may be below 0.

        Source: lemma 14, with slack 1.
        """
        for name, value in (("alpha", alpha), ("beta", beta)):
            if not math.isfinite(value):  # rounding may leave a difference just below 0
                raise PlanError(f"{name} must be finite, got {value!r}.")
        theta = max(triangle_constant(power), 1.0)
        back = max(theta, 2.0) if negative_weights else theta
        return cls(kappa=2 + theta * alpha, eta1=back * alpha / 2, eta2=theta * beta)

    def of_centres(self, found: Approximation) -> Approximation:
        """What centres that are good for the sketch are for the data (lemma 5)."""
        alpha, beta = found
        return Approximation(
            alpha * self.kappa**2 + self.eta1 * self.kappa,
            self.kappa * (alpha + 1) * self.eta2 + self.kappa * beta,
        )

    def broken_by(
        self, costs: Sequence[float], sketch_costs: Sequence[float], optimum: float
    ) -> list[int]:
        """Positions of the centres, out of those tried, that break the definition.

        Args:
            costs: Of the data, for each choice of centres that was tried.
            sketch_costs: Of the sketch, for the same.
            optimum: Least cost of k centres for the data.
        """
        _require_costs(costs=costs, sketch_costs=sketch_costs, optimum=optimum)
        own, other = np.asarray(costs), np.asarray(sketch_costs)
        slack = 1e-9 * (np.abs(own).max(initial=0) + np.abs(other).max(initial=0) + self.eta2)
        low = own / self.kappa - self.eta1 * optimum - self.eta2
        high = self.kappa * own + self.eta2
        return np.flatnonzero((other < low - slack) | (other > high + slack)).tolist()


def achieved(
    moved: Transport, optimum: float, power: float, *, negative_weights: bool
) -> SemiCoreset:
    """The semi-coreset that a run is sure to have reached, for all centres at once.

    Alpha is what points were moved over the optimum, beta the mismatch of weights.

    Args:
        moved: Of the run.
        optimum: Least cost of k centres for the data, or a number known to be below it: with one
            above it alpha is too small.
        power: p.
        negative_weights: Whether the sketch has such.
    """
    _check.positive(optimum=optimum)
    return SemiCoreset.of_transport(
        moved.moved / optimum, moved.mismatch, power, negative_weights=negative_weights
    )


def least_kappa(
    costs: Sequence[float],
    sketch_costs: Sequence[float],
    *,
    optimum: float,
    eta1: float,
    eta2: float,
) -> float:
    """The least kappa, at least 1, that no choice of centres out of those tried breaks.

    A measurement and no guarantee: other centres may need more. Infinite where the sketch is so far
    below the data that no factor helps.

    Args, source: as `SemiCoreset`.
    """
    _require_costs(costs=costs, sketch_costs=sketch_costs, optimum=optimum, eta1=eta1, eta2=eta2)
    needed = 1.0
    for own, other in zip(costs, sketch_costs, strict=True):
        room = other + eta1 * optimum + eta2
        if own > 0:
            needed = max(needed, (other - eta2) / own, own / room if room > 0 else np.inf)
        elif other > eta2 or room < 0:
            return float("inf")
    return needed
