"""One cluster of a static set of points, and one after another until none can be left.

Promise: private for one point more or less, at the budget; how often points are looked at follows from
public numbers alone. Places come from dense balls, radii from noisy counts of rings.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from retrodp import _check
from retrodp.clustering.dense_ball import SURE, Shape, balls_of
from retrodp.clustering.domain import Domain
from retrodp.clustering.solver import Floats, lengths
from retrodp.clustering.spending import Part, processes
from retrodp.noise.key import KeyTree, NoiseKeys
from retrodp.noise.prf import Coordinates
from retrodp.privacy.budget import ApproxDP, Budget, PureDP, zCDP
from retrodp.privacy.conversion import rho_of
from retrodp.privacy.norms import Norms

RINGS = math.sqrt(2)  # ratio of the radii that `one_cluster` tries
PART_OF_RINGS = Fraction(1, 4)


class Cluster(NamedTuple):
    """What `one_cluster` found.

    Attributes:
        centre: Shape (d,).
        radius: Of a ball around it that has about tau points.
        size: Noisy number of them.
    """

    centre: Floats
    radius: float
    size: int


def one_cluster(
    points: Floats,
    tau: int,
    r_min: float,
    budget: Budget,
    *,
    domain: Domain | None = None,
    keys: NoiseKeys | None = None,
) -> Cluster:
    """Centre and radius of a small ball with about tau points (1-cluster, definition 25).

    The centre is that of the narrowest full cell with a quarter of the target, the fullest of its
    scale; the radius the least of a geometric ladder within which a noisy count reaches the target
    less three deviations. The ball has at least tau - t points, t six deviations of that count, but
    with a probability of 0.0014 (0.008 under pure epsilon) for each radius of the ladder, any of
    which may be chosen too early; how small it is was measured, not proved. Where no cell is full
    the centre is that of the domain.

    Args, raises: As `dense_balls`.
    """
    keys = KeyTree.generate(1)[0] if keys is None else keys
    return _one(points, Shape.of(points, tau, r_min, domain), r_min, budget, "one_cluster", keys)


def _one(
    points: Floats, shape: Shape, r_min: float, budget: Budget, release: str, keys: NoiseKeys
) -> Cluster:
    places, rings = _divided(budget, PART_OF_RINGS)
    inside = shape.domain.inward(points)
    found = list(balls_of(shape, shape.noises(places), inside, release, keys))
    wanted = [ball for ball in found if 4 * ball.size >= shape.tau]
    domain = shape.domain
    if wanted:
        narrowest = min(ball.width for ball in wanted)
        of_scale = [ball for ball in wanted if ball.width == narrowest]
        centre = max(of_scale, key=lambda ball: ball.size).centre
    else:
        centre = np.array(domain.centre)
    radii = _ladder(r_min, domain.diameter)
    (process,) = processes(rings, (Part(share=Fraction(1), norms=Norms(1, 1), moved=1),))
    distances = lengths(domain.placed(inside) - centre)
    ring = np.searchsorted(radii, distances)
    noise = process.draw(
        release=f"{release}/rings", round=1, keys=keys, where=Coordinates.of_indices(len(radii))
    )
    within = np.cumsum(np.bincount(np.minimum(ring, len(radii) - 1), minlength=len(radii)) + noise)
    slack = SURE * process.stddev(1) * np.sqrt(np.arange(1, len(radii) + 1))
    enough = np.flatnonzero(within >= shape.tau - slack)
    chosen = int(enough[0]) if len(enough) else len(radii) - 1
    return Cluster(centre, float(radii[chosen]), int(within[chosen]))


def _ladder(r_min: float, diameter: float) -> Floats:
    """Radii from r_min to the diameter."""
    steps = max(0, math.ceil(math.log(diameter / r_min) / math.log(RINGS) - 1e-9))
    radii: Floats = r_min * RINGS ** np.arange(steps + 1, dtype=np.float64)
    return radii


def _divided(budget: Budget, share: Fraction) -> tuple[Budget, Budget]:
    """The budget without a share, and the share: parts that compose to it.

    An approximate budget is turned into zCDP first.
    """
    match budget:
        case PureDP():
            return PureDP(budget.epsilon * (1 - share)), PureDP(budget.epsilon * share)
        case ApproxDP():
            return _divided(zCDP(rho_of(budget.epsilon, budget.delta)), share)
        case zCDP():
            return zCDP(budget.rho * (1 - share)), zCDP(budget.rho * share)


def iterative(  # noqa: PLR0913  the parameters of the theorem
    points: Floats,
    tau: int,
    r_min: float,
    budget: Budget,
    *,
    most_points: int,
    domain: Domain | None = None,
    keys: NoiseKeys | None = None,
) -> tuple[Cluster, ...]:
    """Algorithm 3: one cluster after another, each taken out before the next is looked for.

    K = ceil(2 N / tau) calls of `one_cluster`, whatever the points. N is public; a number of calls
    that followed from the points would reveal their number. Calls compose as zCDP (rho / K each) or
    as pure epsilon (epsilon / K each).

    Args:
        points: As `dense_balls`.
        tau: Target number of points.
        r_min: Least radius.
        budget: Of all calls together.
        most_points: N, a public bound on the number of points. With more of them the answer is as
            private, but its promise of coverage is void.
        domain: As `dense_balls`.
        keys: As `dense_balls`.

    Source: Cohen et al. (2026), algorithm 3 and theorem 24.
    """
    shape = Shape.of(points, tau, r_min, domain)
    _check.whole(least=1, most_points=most_points)
    calls = -(-2 * most_points // tau)
    keys = KeyTree.generate(1)[0] if keys is None else keys
    each, _ = _divided(budget, 1 - Fraction(1, calls)) if calls > 1 else (budget, None)
    # Points outside the domain are taken out where they were moved to, or they would come back.
    rest, found = shape.domain.placed(shape.domain.inward(points)), []
    for call in range(calls):
        cluster = _one(rest, shape, r_min, each, f"iterative {call}", keys)
        found.append(cluster)
        rest = rest[lengths(rest - cluster.centre) > cluster.radius]
    return tuple(found)
