"""Dense balls and one cluster of a static set of points: a practical form of a theoretical primitive.

The problem (Cohen et al. 2026, definition 7): given points of a ball of diameter 1, a target tau and a
least radius, publish a set O such that every ball of radius r >= r_min with at least tau points has a
member of O within 3 r of its centre. Here: grids at several scales, a noisy count of every cell, and
in many dimensions a noisy mean of the points of each full one. Nothing here is continual; see
`retrodp.clustering.retroactive` for points that come and go.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from retrodp import _check
from retrodp.clustering.scales import Full, Ints, Placed, Scales, full_cells, least_counts
from retrodp.clustering.solver import Floats, lengths
from retrodp.clustering.spending import Part, processes
from retrodp.errors import DataError, PlanError
from retrodp.noise.key import KeyTree, NoiseKeys
from retrodp.noise.prf import Coordinates
from retrodp.noise.process import NoiseProcess
from retrodp.privacy.budget import ApproxDP, Budget, PureDP, zCDP
from retrodp.privacy.conversion import rho_of
from retrodp.privacy.norms import Norms

FACTOR = 3
"""Factor of coverage that the problem asks for; the origin serves every r of a sixth and more."""

RADIUS = 4096
"""Steps in the norm that offsets are clipped to."""

MEANS_FROM = 4
"""Dimensions from which the mean of a full cell is published in the place of its centre."""

STEPS = 2
"""Means of a cell, one after the other, each clipped closer around the one before."""

PART_OF_MEANS = Fraction(7, 10)
PART_OF_COUNTS = Fraction(1, 4)  # of a mean, the rest is for its sum
NARROWEST = 2  # width of the narrowest cell of a projected grid, in least radii
SURE = 3  # deviations

FARTHEST = 1e100
"""Of a coordinate, in diameters; what is farther lies there."""

RINGS = math.sqrt(2)  # ratio of the radii that `one_cluster` tries
PART_OF_RINGS = Fraction(1, 4)


class Ball(NamedTuple):
    """One published place.

    Attributes:
        centre: Shape (d,).
        width: Of the cell that it comes from; 0 for the centre of the domain, which is always there.
        size: Noisy number of points of that cell.
    """

    centre: Floats
    width: float
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseBalls:
    """What `dense_balls` found, and what is known of it beforehand.

    Attributes:
        balls: The narrowest cells first, the centre of the domain last.
        least_counts: Noisy count from which a cell is full, by scale, the widest first.
        stddev: Of a count.
        proved_tau: Points from which a ball of any radius from r_min on is covered within `factor`
            with probability 0.998 at least (0.99 under pure epsilon); None from four dimensions on.
        factor: 1 + sqrt(2 d), or None likewise: at d = 2 the 3 of the problem.
    """

    balls: tuple[Ball, ...]
    least_counts: tuple[int, ...]
    stddev: float
    proved_tau: int | None
    factor: float | None

    @property
    def centres(self) -> Floats:
        """Shape (m, d)."""
        return np.array([ball.centre for ball in self.balls])


def proved_factor(dimensions: int) -> float:
    """Of coverage, with widths sqrt(2) apart."""
    return 1 + math.sqrt(2 * dimensions)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """The public ball that holds all points; what is outside is moved to its surface.

    Attributes:
        centre: Shape (d,).
        diameter: Above 0.
    """

    centre: tuple[float, ...]
    diameter: float = 1.0

    def __post_init__(self) -> None:
        _check.positive(diameter=self.diameter)
        if not self.centre or not all(map(math.isfinite, self.centre)):
            raise PlanError("A domain needs a centre of finite numbers.")

    @classmethod
    def unit(cls, dimensions: int) -> Domain:
        """The ball of diameter 1 around the origin."""
        _check.whole(least=1, dimensions=dimensions)
        return cls(centre=(0.0,) * dimensions)

    def inward(self, points: Floats) -> Floats:
        """Points in the ball of diameter 1 around the origin, shape (n, d)."""
        array = np.asarray(points, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != len(self.centre):
            raise PlanError(
                f"Points have the shape {array.shape}.", expected=f"(n, {len(self.centre)})"
            )
        if not np.isfinite(array).all():
            raise DataError("Points are not all finite.", do="Leave such rows out beforehand.")
        with np.errstate(over="ignore"):
            moved = (array - np.array(self.centre)) / self.diameter
        moved = np.clip(moved, -FARTHEST, FARTHEST)  # an infinite offset would have no direction
        norms = lengths(moved)
        inside: Floats = moved * np.minimum(1.0, 0.5 / np.maximum(norms, 0.5))[:, None]
        return inside

    def placed(self, inside: Floats) -> Floats:
        """Points of the unit ball in the domain's own units, shape (n, d)."""
        found: Floats = inside * self.diameter + np.array(self.centre)
        return found

    def outward(self, centre: Floats) -> Floats:
        """A place of the unit ball, in the domain's own units."""
        norm = float(np.sqrt((centre * centre).sum()))
        found: Floats = centre * min(1.0, 0.5 / max(norm, 0.5)) * self.diameter + self.centre
        return found


def dense_balls(
    points: Floats,
    tau: int,
    r_min: float,
    budget: Budget,
    *,
    domain: Domain | None = None,
    keys: NoiseKeys | None = None,
) -> DenseBalls:
    """Places near every ball that holds many points.

    Guarantee: differentially private for one point more or less, at the budget. Cells have noisy
    counts whether or not a point is in them, so nothing is spent on a threshold. Where a ball holds
    at least `proved_tau` points, a published place lies within `factor` times its radius of its
    centre, for all such balls at once with the stated probability each; smaller targets are covered
    often (see the page of measurements). Cells with fewer than `tau / 2^axes` points are not looked
    for: a larger tau means a smaller answer, not less noise.

    Args:
        points: Shape (n, d), finite.
        tau: Target number of points; public.
        r_min: Least radius, in units of the points; public.
        budget: Of the whole answer.
        domain: Public; None for the unit ball of the points' dimension.
        keys: Source of the noise; None for a fresh secret of the operating system. A key that is
            used twice on different points reveals their difference.

    Raises:
        PlanError: The least radius needs too many cells; it grows with d.

    Source: Cohen et al. (2026), definition 7; grids as in Ghazi, Kumar, Manurangsi (2020).
    """
    shape = _Shape.of(points, tau, r_min, domain)
    keys = KeyTree.generate(1)[0] if keys is None else keys
    noises = shape.noises(budget)
    found = tuple(_balls(shape, noises, shape.domain.inward(points), "dense_balls", keys))
    origin = Ball(np.array(shape.domain.centre), 0.0, 0)
    proved, factor = None, None
    deviation = noises.cells.stddev(1)
    if not shape.scales.projected and not shape.steps:
        enough = max(*noises.least, tau / 2**shape.scales.axes)
        proved = math.ceil(2**shape.scales.axes * (enough + SURE * deviation))
        factor = proved_factor(shape.scales.axes)
    return DenseBalls(
        balls=(*found, origin),
        least_counts=noises.least,
        stddev=deviation,
        proved_tau=proved,
        factor=factor,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """What follows from dimension, target and least radius; all public."""

    domain: Domain
    tau: int
    scales: Scales
    steps: int

    @classmethod
    def of(cls, points: Floats, tau: int, r_min: float, domain: Domain | None) -> _Shape:
        """Checked."""
        _check.whole(least=1, tau=tau)
        _check.positive(r_min=r_min)
        array = np.asarray(points)
        if array.ndim != 2:
            raise PlanError(f"Points have the shape {array.shape}.", expected="(n, d)")
        domain = Domain.unit(array.shape[1]) if domain is None else domain
        dimensions, least = len(domain.centre), r_min / domain.diameter
        # The centre of the domain serves wider balls within the factor that is proved.
        widest = max(least, 1 / (2 * min(FACTOR, proved_factor(dimensions))))
        if dimensions < MEANS_FROM:
            # A ball of radius r fits the width w if 2 r <= w < 2 sqrt(2) r.
            scales = Scales.between(
                dimensions, narrowest=2 * least, widest=2 * widest, ratio=math.sqrt(2)
            )
            return cls(domain=domain, tau=tau, scales=scales, steps=0)
        narrowest = min(NARROWEST * least, 1.0)
        scales = Scales.between(dimensions, narrowest=narrowest, widest=1.0, ratio=2.0)
        return cls(domain=domain, tau=tau, scales=scales, steps=STEPS)

    def noises(self, budget: Budget) -> _Noises:
        """Noise of the counts of cells, and of counts and sums of every step."""
        scales, dimensions = self.scales, len(self.domain.centre)
        many = len(scales.widths)
        means = PART_OF_MEANS if self.steps else Fraction(0)
        parts = [Part(share=1 - means, norms=Norms(many, many), moved=many)]
        for _ in range(self.steps):
            each = means / self.steps
            l1 = math.isqrt(dimensions * RADIUS**2)
            parts += [
                Part(share=each * PART_OF_COUNTS, norms=Norms(1, 1), moved=1),
                Part(
                    share=each * (1 - PART_OF_COUNTS),
                    norms=Norms(l1, RADIUS**2),
                    moved=dimensions,
                ),
            ]
        cells, *others = processes(budget, tuple(parts))
        floor = math.ceil(self.tau / 2**scales.axes) if not self.steps else 1
        least = tuple(max(one, floor) for one in least_counts(cells, scales))
        return _Noises(cells, tuple(zip(others[::2], others[1::2], strict=True)), least)


class _Noises(NamedTuple):
    """Noise of cells, of counts and sums step by step, and the least count of a full cell."""

    cells: NoiseProcess
    means: tuple[tuple[NoiseProcess, NoiseProcess], ...]
    least: tuple[int, ...]


def _balls(
    shape: _Shape, noises: _Noises, points: Floats, release: str, keys: NoiseKeys
) -> Iterator[Ball]:
    """One place for each full cell, the narrowest first; `points` in the unit ball.

    A point counts in the mean of the narrowest full cell that it lies in, and in no other.
    """
    placed = shape.scales.placed(keys.lasting_key(release=release, purpose="grid"))
    numbers = placed.numbers(points)
    free = np.ones(len(points), dtype=bool)
    found = full_cells(
        placed, numbers, noises.cells, noises.least, release=f"{release}/cells", keys=keys
    )
    for place, cell in enumerate(found):
        width = shape.scales.widths[cell.scale]
        if not shape.steps:
            centre: Floats | None = placed.centre(cell)
        else:
            own = free & (numbers[cell.scale] == cell.number)
            free &= ~own
            start = _start(placed, cell)
            label = f"{release}/means"
            centre = _mean(noises, points[own], start, width, _Source(label, place, keys))
        if centre is not None:
            yield Ball(shape.domain.outward(centre), width * shape.domain.diameter, cell.size)


class _Source(NamedTuple):
    """Where the noise of a cell's mean comes from."""

    release: str
    place: int
    keys: NoiseKeys


def _start(placed: Placed, cell: Full) -> tuple[Floats, float]:
    """Centre and radius of a ball that is sure to hold the cell's points."""
    scales = placed.scales
    if scales.projected:
        return np.zeros(scales.dimensions), 0.5
    return placed.centre(cell), scales.widths[cell.scale] * math.sqrt(scales.axes) / 2


def _mean(
    noises: _Noises,
    points: Floats,
    start: tuple[Floats, float],
    width: float,
    source: _Source,
) -> Floats | None:
    """Noisy mean of a full cell's points; None where too few are left to have one."""
    centre, radius = start
    release, place, keys = source
    dimensions = len(centre)
    for step, (counts, sums) in enumerate(noises.means):
        own = Coordinates.of_indices(np.array([place], dtype=np.int64))
        name = f"{release} {step}"
        (error,) = counts.draw(release=f"{name} count", round=1, keys=keys, where=own).tolist()
        count = len(points) + error
        if count < 2 * counts.stddev(1):
            return centre if step else None
        where = Coordinates.of_indices(
            np.arange(place * dimensions, (place + 1) * dimensions, dtype=np.int64)
        )
        noise = sums.draw(release=f"{name} sum", round=1, keys=keys, where=where)
        total = clipped_steps(points - centre, radius).sum(axis=0) + noise
        centre = centre + total * (radius / RADIUS / count)
        strayed = sums.stddev(1) / RADIUS * radius * math.sqrt(dimensions) / count
        radius = min(radius, width + strayed)
    return centre


def clipped_steps(offsets: Floats, radius: float) -> Ints:
    """Offsets in whole steps of `radius / RADIUS`, of a norm of at most `RADIUS`.

    Rounded toward the centre; what the rounding of floating point leaves too long is shortened.
    """
    norms = lengths(offsets)
    shrunk = offsets * (RADIUS / np.maximum(norms, radius))[:, None]
    steps: Ints = np.trunc(shrunk).astype(np.int64)
    while (long := (steps * steps).sum(axis=1) > RADIUS * RADIUS).any():
        steps[long] -= np.sign(steps[long])
    return steps


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
    return _one(points, _Shape.of(points, tau, r_min, domain), r_min, budget, "one_cluster", keys)


def _one(
    points: Floats, shape: _Shape, r_min: float, budget: Budget, release: str, keys: NoiseKeys
) -> Cluster:
    places, rings = _divided(budget, PART_OF_RINGS)
    inside = shape.domain.inward(points)
    found = list(_balls(shape, shape.noises(places), inside, release, keys))
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
    shape = _Shape.of(points, tau, r_min, domain)
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
