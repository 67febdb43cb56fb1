"""The public ball that holds the points of a static clustering.

Promise: a point is moved into it by its own coordinates alone. Knows no budget and no noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from retrodp import _check
from retrodp.clustering.solver import Floats, lengths
from retrodp.errors import DataError, PlanError

FARTHEST = 1e100
"""Of a coordinate, in diameters; what is farther lies there."""


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
