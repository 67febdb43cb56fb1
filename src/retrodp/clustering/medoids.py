"""Centres among weighted places: costs and local changes in whole numbers, the same on any machine.

Promise: every comparison is between whole numbers and every tie goes to the least place, so that
centres do not depend on threads, orders of sums or versions of a solver. Knows places and noisy
weights that were published; no data, no key, no noise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from retrodp.errors import UsageError

Ints = NDArray[np.int64]
Power = Literal[1, 2]

SUM_BITS = 62
"""Bits of a sum of weighted distances; what would be longer is measured in coarser units."""

EXACT_BITS = 52
"""Bits of a squared distance whose root floating point rounds in one way only."""

SETTLED = Fraction(1, 200)
"""A fresh clustering has settled when no swap saves this part of its cost."""

ROOT_BITS = 16
"""Bits of a distance behind the point, before a common scale cuts them."""


class Swap(NamedTuple):
    """A centre that leaves for another one.

    Attributes:
        cost: Afterwards.
        leaves: Its position among the centres.
        enters: Place of the new one.
    """

    cost: int
    leaves: int
    enters: int


@dataclass(frozen=True, slots=True, eq=False)
class Medoids:
    """Weighted places, each of which can be a centre.

    Attributes:
        distances: p-th powers of the distances from where the weights of a place lie to a place, in a
            unit that all of them share, whole numbers, shape (m, m).
        weights: At least 0, whole numbers, shape (m,).
        power: p.
        points: Where the places are, in a unit of their own, shape (m, d).
    """

    distances: Ints = field(repr=False)
    weights: Ints = field(repr=False)
    power: Power
    points: Ints = field(repr=False)

    @classmethod
    def of(cls, points: Ints, weights: Ints, power: Power, *, means: Ints | None = None) -> Self:
        """Of points in grid steps.

        Args:
            points: Shape (m, d).
            weights: At least 0, shape (m,).
            power: 1 for k-median, 2 for k-means.
            means: Where the weight of each place lies, shape (m, d); at the place itself if left out.

        The unit is such that the cost of any centres fits into 62 bits; it follows from the points
        and the weights, and so it is the same wherever this is computed again.
        """
        if len(weights) != len(points) or (weights < 0).any():
            raise UsageError("Medoids need a weight of at least 0 for every point.")
        many = len(points)
        coarse = _coarse(points if means is None else np.concatenate([points, means]))
        squares = _squares(coarse[-many:] if many else coarse, coarse[:many])
        distances = _roots(squares) if power == 1 else squares
        total = sum(weights.tolist())
        largest = int(distances.max(initial=0))
        excess = total.bit_length() + largest.bit_length() - SUM_BITS
        if excess > 0:
            distances = distances >> min(excess, largest.bit_length())
        return cls(distances, weights, power, coarse[:many])

    def __len__(self) -> int:
        return len(self.weights)

    def lengths(self, place: int) -> Ints:
        """Distances from a place to all places, not their powers, in a unit of their own."""
        return _roots(_squares(self.points[place : place + 1], self.points)[0])

    def least_length(self) -> int:
        """Least distance of two places that are not the same, in that unit; 0 without any."""
        squares = _squares(self.points, self.points)
        apart = squares[squares > 0]
        return int(_roots(apart.min(keepdims=True))[0]) if len(apart) else 0

    def taken(self, place: int, centres: list[int]) -> bool:
        """Whether a centre is where the place is."""
        return bool((self.points[centres] == self.points[place]).all(axis=1).any())

    def middle(self, places: list[int]) -> int:
        """Position of the one among some places that is the best single centre of all of them."""
        own = self.distances[np.ix_(places, places)]
        return int((self.weights[places] @ own).argmin())

    def cost(self, centres: list[int]) -> int:
        """Weighted sum of the distances to the nearest centre."""
        return int((self.weights * self.distances[:, centres].min(axis=1)).sum())

    def addition(self, centres: list[int]) -> int:
        """The place that lowers the cost most as one more centre."""
        if not centres:
            return int((self.weights @ self.distances).argmin())
        nearest = self.distances[:, centres].min(axis=1)
        return int((self.weights @ np.minimum(nearest[:, None], self.distances)).argmin())

    def swap(self, centres: list[int]) -> Swap:
        """The single exchange of a centre for a place that leads to the least cost."""
        first, owner, second = self._two_nearest(centres)
        kept = np.minimum(first[:, None], self.distances)
        # What a point of a leaving centre pays beyond what it would pay if the centre stayed.
        extra = np.minimum(second[:, None], self.distances)
        extra -= kept
        extra *= self.weights[:, None]
        base = self.weights @ kept
        order = np.argsort(owner, kind="stable")
        present, starts = np.unique(owner[order], return_index=True)
        costs = np.repeat(base[None, :], len(centres), axis=0)
        costs[present] += np.add.reduceat(extra[order], starts, axis=0)
        leaves, enters = divmod(int(costs.argmin()), len(self))
        return Swap(int(costs[leaves, enters]), leaves, enters)

    def removals(self, centres: list[int]) -> list[tuple[int, list[int]]]:
        """Centres taken away one by one, each time the one that is missed least.

        Returns:
            Cost and the centres that are left, from all of them down to one.
        """
        left = list(centres)
        found = [(self.cost(left), list(left))]
        while len(left) > 1:
            first, owner, second = self._two_nearest(left)
            missed = np.zeros(len(left), dtype=np.int64)
            np.add.at(missed, owner, self.weights * (second - first))
            left.pop(int(missed.argmin()))
            found.append((self.cost(left), list(left)))
        return found

    def settled(self, k: int) -> list[int]:
        """At most k centres found afresh: added one by one, each the best addition, then improved.

        Fewer than k where so few places differ.
        """
        return self.improved(self.filled([], k), gain=SETTLED)

    def filled(self, centres: list[int], k: int) -> list[int]:
        """With places added one by one, each the best addition, up to k or until none saves anything."""
        full = list(centres)
        while len(full) < k:
            place = self.addition(full)
            if full and not self.cost([*full, place]) < self.cost(full):
                break
            full.append(place)
        return full

    def improved(self, centres: list[int], *, gain: Fraction) -> list[int]:
        """The centres after swaps, each the best one, while it saves that part of the cost or more."""
        current = list(centres)
        cost = self.cost(current)
        while cost > 0:
            swap = self.swap(current)
            if cost - swap.cost < gain * cost:
                break
            current[swap.leaves] = swap.enters
            cost = swap.cost
        return current

    def _two_nearest(self, centres: list[int]) -> tuple[Ints, NDArray[np.intp], Ints]:
        """Distance to the nearest centre, its position, and the distance to the next one.

        One centre alone is followed by itself a bit farther than anything lies from anything.
        """
        own = self.distances[:, centres]
        owner = own.argmin(axis=1)
        rows = np.arange(len(own))
        first = own[rows, owner]
        if len(centres) == 1:
            return first, owner, np.full(len(own), int(self.distances.max(initial=0)), np.int64)
        rest = own.copy()
        rest[rows, owner] = np.iinfo(np.int64).max
        return first, owner, rest.min(axis=1)


def _roots(squares: Ints) -> Ints:
    """In 2**-16 of the unit, rounded down.

    The root of a whole number below 2**52 is rounded correctly by every machine, and a product with
    a power of two is exact, so that the floor is the same everywhere.
    """
    found: Ints = np.floor(np.sqrt(squares) * 2.0**ROOT_BITS).astype(np.int64)
    return found


def _coarse(points: Ints) -> Ints:
    """From their least coordinates on, in steps so coarse that squares have `EXACT_BITS` bits."""
    if not len(points):
        return points
    low, high = points.min(axis=0), points.max(axis=0)
    widest = max((b - a).bit_length() for a, b in zip(low.tolist(), high.tolist(), strict=True))
    room = (EXACT_BITS - points.shape[1].bit_length()) // 2
    found: Ints = (points - low) >> max(0, widest - room)
    return found


def _squares(points: Ints, others: Ints) -> Ints:
    """Squared distances, shape (points, others)."""
    squares = np.zeros((len(points), len(others)), dtype=np.int64)
    for column, other in zip(points.T, others.T, strict=True):
        differences = column[:, None] - other[None, :]
        squares += differences * differences
    return squares
