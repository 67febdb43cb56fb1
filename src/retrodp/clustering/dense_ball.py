"""Dense balls of a static set of points: a practical form of a theoretical primitive.

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
from retrodp.clustering.domain import Domain
from retrodp.clustering.scales import Full, Ints, Placed, Scales, full_cells, least_counts
from retrodp.clustering.solver import Floats, lengths
from retrodp.clustering.spending import Part, processes
from retrodp.errors import PlanError
from retrodp.noise.key import KeyTree, NoiseKeys
from retrodp.noise.prf import Coordinates
from retrodp.noise.process import NoiseProcess
from retrodp.privacy.budget import Budget
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
    _check.whole(least=1, dimensions=dimensions)
    return 1 + math.sqrt(2 * dimensions)


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
    shape = Shape.of(points, tau, r_min, domain)
    keys = KeyTree.generate(1)[0] if keys is None else keys
    noises = shape.noises(budget)
    found = tuple(balls_of(shape, noises, shape.domain.inward(points), "dense_balls", keys))
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
class Shape:
    """What follows from dimension, target and least radius; all public.

    Attributes:
        domain: Of the points.
        tau: Target number of points.
        scales: Grids of the cells.
        steps: Means of a full cell, one after the other; 0 where its centre is published.
    """

    domain: Domain
    tau: int
    scales: Scales
    steps: int

    @classmethod
    def of(cls, points: Floats, tau: int, r_min: float, domain: Domain | None) -> Shape:
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

    def noises(self, budget: Budget) -> Noises:
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
        return Noises(cells, tuple(zip(others[::2], others[1::2], strict=True)), least)


class Noises(NamedTuple):
    """Noise of every number.

    Attributes:
        cells: Of the counts of cells.
        means: Of counts and sums, step by step.
        least: Noisy count from which a cell is full, by scale.
    """

    cells: NoiseProcess
    means: tuple[tuple[NoiseProcess, NoiseProcess], ...]
    least: tuple[int, ...]


def balls_of(
    shape: Shape, noises: Noises, points: Floats, release: str, keys: NoiseKeys
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
    noises: Noises,
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
