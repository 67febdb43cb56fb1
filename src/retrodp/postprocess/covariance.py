"""Means, covariances and ridge regressions from noisy count, sums and products of vectors.

Promise: everything here is a function of published numbers; it costs no privacy. The first half is
exact arithmetic on intervals and is what a release is made of. The second half is floating point
for whoever reads a release; its last bits may differ from machine to machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrodp import _check
from retrodp.errors import UsageError

Floats = NDArray[np.float64]


class Interval(NamedTuple):
    """Two exact ends, the first not above the second."""

    low: Fraction
    high: Fraction

    def times(self, other: Interval) -> Interval:
        """All products of a number of each."""
        ends = [a * b for a in self for b in other]
        return Interval(min(ends), max(ends))

    def less(self, other: Interval) -> Interval:
        """All differences of a number of each."""
        return Interval(self.low - other.high, self.high - other.low)

    def within(self, bound: Fraction) -> Interval:
        """The part that lies within a bound of zero; at least one of its ends."""
        return Interval(*(min(max(end, -bound), bound) for end in self))


def around(value: int, half: int) -> Interval:
    """Whole numbers within a half width."""
    return Interval(Fraction(value - half), Fraction(value + half))


def quotient(total: Interval, count: Interval) -> Interval | None:
    """All quotients of a total and a count of at least 1; None if the count may be below 1."""
    if count.low < 1:
        return None
    return Interval(
        total.low / (count.high if total.low > 0 else count.low),
        total.high / (count.low if total.high > 0 else count.high),
    )


def mean_interval(count: Interval, total: Interval, bound: Fraction) -> Interval:
    """Where a mean of values within a bound of zero can lie."""
    found = quotient(total, count)
    return Interval(-bound, bound) if found is None else found.within(bound)


def covariance_interval(
    product: Interval, one: Interval, two: Interval, *, square: bool, bound: Fraction
) -> Interval:
    """Where a covariance can lie: mean product less product of means.

    Args:
        product: Mean product.
        one: Mean of the one column.
        two: Mean of the other.
        square: Whether the two are one column; a variance is not below 0.
        bound: On the absolute covariance.
    """
    means = one.times(two)
    if square:
        squares = [end * end for end in one]
        means = Interval(Fraction(0) if one.low <= 0 <= one.high else min(squares), max(squares))
    found = product.less(means).within(bound)
    return Interval(*(max(end, Fraction(0)) for end in found)) if square else found


class Gram(NamedTuple):
    """Noisy moments of n vectors of d coordinates, as floats.

    Attributes:
        names: Columns, in order, d of them.
        number: Of vectors.
        sums: Sum of the vectors, shape ``(d,)``.
        products: Sum of x x', shape ``(d, d)``, symmetric.
    """

    names: tuple[str, ...]
    number: float
    sums: Floats
    products: Floats

    @classmethod
    def of(cls, values: dict[tuple[str, ...], float]) -> Gram:
        """Arrange published values by their labels, such as ("product", "x", "y").

        `json.loads` turns the keys of an exported `gram` release into such labels.
        """
        if not all(map(math.isfinite, values.values())):
            raise UsageError("The values of a Gram matrix are not all finite numbers.")
        names = tuple(label[1] for label in values if label[0] == "sum")
        place = {name: number for number, name in enumerate(names)}
        products = np.zeros((len(names), len(names)))
        for label, value in values.items():
            if label[0] == "product":
                one, two = place[label[1]], place[label[2]]
                products[one, two] = products[two, one] = value
        sums = np.array([values["sum", name] for name in names])
        return cls(names, values["count",], sums, products)

    def covariance(self) -> Floats:
        """Covariance matrix, shape ``(d, d)``; noise can leave it with negative eigenvalues."""
        mean = self.sums / self.number
        return self.products / self.number - np.outer(mean, mean)

    def ridge(
        self, target: str, on: Sequence[str], *, penalty: float
    ) -> tuple[float, dict[str, float]]:
        """Intercept and slopes of a linear regression with an L2 penalty on the slopes.

        Args:
            target: Column that is explained.
            on: Columns that explain it.
            penalty: Added to the diagonal of the sums of centred products of `on`, in their units
                squared; a few standard deviations of the noise of a product keep the matrix
                positive.

        Raises:
            ValueError: If the penalised matrix is not positive definite.
        """
        if isinstance(penalty, bool) or not 0 <= penalty < math.inf:
            raise UsageError(f"penalty must be finite and at least 0, got {penalty!r}.")
        on = _check.texts(on=on, expected="names of columns")
        place = {name: number for number, name in enumerate(self.names)}
        chosen = [place[name] for name in on]
        centred = self.covariance() * self.number
        matrix = nearest_psd(centred[np.ix_(chosen, chosen)]) + penalty * np.eye(len(chosen))
        if not np.linalg.eigvalsh(matrix)[0] > 0:
            raise ValueError("The penalty is too small for a matrix that is not positive definite.")
        slopes = np.linalg.solve(matrix, centred[chosen, place[target]])
        means = self.sums / self.number
        intercept = float(means[place[target]] - slopes @ means[chosen])
        return intercept, dict(zip(on, map(float, slopes), strict=True))


def nearest_psd(matrix: Any) -> Floats:
    """The positive semidefinite matrix nearest to a symmetric one in the Frobenius norm.

    Negative eigenvalues become 0 (Higham 1988).
    """
    eigenvalues, vectors = np.linalg.eigh(np.asarray(matrix, dtype=np.float64))
    found: Floats = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T
    return found
