"""Losses: what one neighbouring pair can learn from the noise, as exact descriptions.

A tuple of losses describes **one vector mechanism**: all coordinates are released together and
their losses add. Nothing here is a float, nothing depends on data.

A loss bounds every neighbouring pair at once. For integer shifts of log-concave noise the pair
with the larger shift dominates: with ``F`` the distribution function of the noise, the best test
between no shift and a shift of k accepts a half line, so
``delta(epsilon) = max_c F(c) - exp(epsilon) F(c - k)``, which grows with ``|k|``. Products of
dominating pairs dominate (Zhu, Dong, Wang 2022, theorem 10), and coordinates of one variance may
be permuted; so one multiset of shifts that dominates every window's multiset entry by entry is
enough. Where only the Euclidean norm is bounded (several windows of one person in one bin, the
dense factor) no such multiset need exist, and `GaussianNorm` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from retrodp._check import positive, whole
from retrodp.errors import PlanError
from retrodp.privacy.ratio import RatioLoss


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianLoss:
    """Independent discrete Gaussian coordinates, each moved by the same whole number.

    The law of a coordinate is ``P(x) ~ exp(-x^2 / (2 variance))`` on the integers.

    Attributes:
        shift: By how much a neighbour moves each coordinate, in steps; its sign is irrelevant.
        variance: Parameter of the law, in squared steps.
        count: How many coordinates.
    """

    shift: int
    variance: Fraction
    count: int = 1

    def __post_init__(self) -> None:
        if type(self.shift) is not int:
            raise PlanError(f"shift must be a whole number, got {self.shift!r}.")
        whole(least=0, count=self.count)
        _exact_positive("variance", self.variance)

    @property
    def rho(self) -> Fraction:
        """Zero-concentrated loss (Canonne, Kamath, Steinke 2020, theorem 14)."""
        return Fraction(self.shift**2 * self.count) / (2 * self.variance)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianNorm:
    """Independent discrete Gaussian coordinates moved by an integer vector of bounded norm.

    Attributes:
        norm_squared: The squared Euclidean norm no neighbour exceeds, in squared steps.
        variance: Parameter of the law of every coordinate, in squared steps.
        moved: No neighbour moves more coordinates than that; None if only the norm tells.
    """

    norm_squared: Fraction
    variance: Fraction
    moved: int | None = None

    def __post_init__(self) -> None:
        _exact_positive("norm_squared", self.norm_squared)
        _exact_positive("variance", self.variance)
        if self.moved is not None:
            whole(least=1, moved=self.moved)

    @property
    def coordinates(self) -> int:
        """At most so many coordinates move, for each that does moves by at least one step."""
        most = int(self.norm_squared)
        return most if self.moved is None else min(most, self.moved)

    @property
    def rho(self) -> Fraction:
        """Zero-concentrated loss; only the norm matters."""
        return self.norm_squared / (2 * self.variance)


@dataclass(frozen=True, slots=True, kw_only=True)
class PureLoss:
    """Any mechanism whose loss never exceeds `epsilon`, the Laplace factors for instance.

    Attributes:
        epsilon: Largest loss of a neighbouring pair.
    """

    epsilon: Fraction

    def __post_init__(self) -> None:
        _exact_positive("epsilon", self.epsilon)

    @property
    def rho(self) -> Fraction:
        """Zero-concentrated loss (Bun, Steinke 2016, proposition 3.3)."""
        return self.epsilon**2 / 2


PrivacyLoss = GaussianLoss | GaussianNorm | PureLoss | RatioLoss


def total_rho(losses: Sequence[PrivacyLoss]) -> Fraction:
    """Zero-concentrated loss of the whole vector; exact."""
    return sum((loss.rho for loss in losses), Fraction(0))


def pure_epsilon(losses: Sequence[PrivacyLoss]) -> Fraction | None:
    """Sum of the largest losses, exact, or None if a Gaussian part has no largest loss."""
    total = Fraction(0)
    for loss in losses:
        match loss:
            case PureLoss() | RatioLoss():
                total += loss.epsilon
            case GaussianLoss() | GaussianNorm():
                if loss.rho > 0:
                    return None
            case _:
                assert_never(loss)
    return total


def _exact_positive(name: str, value: object) -> None:
    """Exact and above 0; a float is refused, since its meaning would be a guess."""
    if not isinstance(value, Fraction):
        raise PlanError(
            f"{name} must be an exact fraction, got {value!r}.", do=f"Give {name} as a Fraction."
        )
    positive(**{name: value})
