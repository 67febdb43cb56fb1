"""The parameters of the theorem on private semi-coresets, with every constant traced.

Promise: numbers that follow from public settings alone, and a refusal where they prove nothing: where
the sketch may keep more points than there are. The constants that the paper hides in O() are those of
its own proofs with the grids of `dense_ball` in the place of its dense balls. What is run with them is
in `theory_sketch`; for data of today's sizes use the practical sketch.

Source: Cohen et al. (2026), algorithms 2, 4 and 5, lemmas 10, 27, 29, 30, 32, 34, theorem 9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from retrodp import _check
from retrodp.clustering.counting import Counter
from retrodp.clustering.dense_ball import FACTOR, proved_factor
from retrodp.clustering.scales import MOST_CELLS
from retrodp.clustering.transport import Approximation, SemiCoreset, triangle_constant
from retrodp.errors import PlanError
from retrodp.mechanisms.calibrate import VARIANCE_GRID
from retrodp.privacy.budget import ApproxDP, Budget, PureDP, zCDP
from retrodp.privacy.conversion import rho_of

MARKOV = 8
"""Expectations are exceeded this many times over with one part in as many, twice (lemma 10)."""

FAILS = Fraction(1, 8)
"""Of the count in one sketch, and of all its calls for dense balls together."""

LAG = 3
"""Sampled points in a ball, in tau, from which on a representative is near (lemma 10)."""

SEEN = 3
"""Noise bounds that 2^d cells must share in a ball for one of them to be sure to be full."""

MOST_POINTS = 1 << 62
"""What a count can hold."""

MOST_DIMENSIONS = 3
"""Up to which dense balls are proved here."""


class Constants(NamedTuple):
    """Of lemma 10, for dense balls within a factor F.

    Attributes:
        near: (1 + 2 F)^p. Once its ring is served, dist(x, R)^p <= near dist(x, c)^p, beyond the
            innermost ring.
        least: What is added in the innermost ring, times r_min^p.
    """

    near: float
    least: float

    @classmethod
    def of(cls, factor: float, power: float) -> Constants:
        """In a ring that is served a representative lies within 2 F dist(x, c) of c, or 2 F r_min.

        The inner ring needs dist(x, c) + 2 F r_min to the power p, split by lemma 12 so that
        the factor of dist(x, c)^p is `near` there, too.
        """
        near = (1 + 2 * factor) ** power
        theta = triangle_constant(power, near - 1)
        return cls(near, theta * (2 * factor) ** power)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """Algorithm 2 for one guess of the optimum.

    Attributes:
        guess: opt_est.
        r_min: (guess / n)^(1 / p).
        rings: L.
        calls: Psi, most calls for dense balls.
        tau: Points that make a ball dense.
        noise: Farthest that the count of a cell is off, in every cell of every call, but with the
            probability `FAILS`.
        size: Most places that a call gives.
        dense: Budget of one call.
        counter: Of the sampled points.
    """

    guess: float
    r_min: float
    rings: int
    calls: int
    tau: int
    noise: int
    size: int
    dense: PureDP | zCDP
    counter: Counter

    @property
    def capacity(self) -> int:
        """Psi tau, most points that are kept."""
        return self.calls * self.tau


@dataclass(frozen=True, slots=True, kw_only=True)
class Theory:
    """What the theorem promises for a stream, and what it takes.

    Guarantee: differentially private for one point more or less, at the budget, also if the stream
    is chosen in view of what was published. With probability 1 - failure, for a stream that was
    fixed beforehand, the published weighted points are at every time a semi-coreset of the points so
    far, as `semi_coreset` says.

    Half of the budget is for the sketches, half for the weights; a sketch spends half of its part on
    the count of its sampled points and half on dense balls. Under zCDP the calls of a sketch add up
    as rho, which needs a smaller tau than the paper's sum of epsilons.

    Attributes:
        points: n, length of the stream; public.
        k: Centres.
        dimensions: d, of points in the ball of diameter 1 around the origin.
        budget: Of everything; an approximate one is turned into zCDP.
        failure: Of the guarantee of closeness.
        power: p.
        optimum: A public number such that the optimum is never above twice it, in the place of
            random guesses. It is part of the additive error.
        least_guess: Where random guesses end, by default the paper's 1 / n. One that is no more than
            the additive error saves guesses, rings and cells and costs nothing that counts.
    """

    points: int
    k: int
    dimensions: int
    budget: Budget
    failure: float = 0.05
    power: float = 2
    optimum: float | None = None
    least_guess: float | None = None

    def __post_init__(self) -> None:
        _check.whole(least=2, points=self.points)
        _check.whole(least=1, k=self.k, dimensions=self.dimensions)
        _check.probability(failure=self.failure)
        triangle_constant(self.power)  # refuses a power below 1
        if self.points > MOST_POINTS:
            raise PlanError(f"points must be at most {MOST_POINTS:.3g}, got {self.points:.3g}.")
        for name, value in (("optimum", self.optimum), ("least_guess", self.least_guess)):
            if value is not None and (isinstance(value, bool) or not 0 < value < self.points / 2):
                raise PlanError(
                    f"{name} must lie between 0 and half the number of points, got {value!r}.",
                    do="Leave it out for the paper's guesses.",
                )

    @property
    def factor(self) -> float:
        """F: a dense ball of radius r has a published place within F r of its centre."""
        return proved_factor(self.dimensions)

    @property
    def constants(self) -> Constants:
        """Of lemma 10."""
        return Constants.of(self.factor, self.power)

    @property
    def guesses(self) -> tuple[float, ...]:
        """The set G of algorithm 4, the largest first, or the one public number."""
        if self.optimum is not None:
            return (self.optimum,)
        doublings = math.ceil(math.log2(self.points))
        last = -doublings
        if self.least_guess is not None:
            last = max(last, math.floor(math.log2(self.least_guess)))
        return tuple(2.0**power for power in range(doublings - 1, last - 1, -1))

    @property
    def repetitions(self) -> int:
        """R of lemma 30, for half of the failure: one repetition is good with 1/2 over the guesses."""
        good = 1 / (2 * len(self.guesses))
        return math.ceil((math.log(self.points) - math.log(self.failure / 2)) / good)

    @property
    def sketches(self) -> tuple[Sketch, ...]:
        """One for each guess."""
        return tuple(map(self.sketch, self.guesses))

    def sketch(self, guess: float) -> Sketch:
        """Algorithm 2's parameters for a guess."""
        _check.positive(guess=guess)
        r_min = (guess / self.points) ** (1 / self.power)
        rings = max(1, math.ceil(-math.log2(r_min)))
        near, least = self.constants
        calls = math.ceil(MARKOV * self.k * rings * (LAG + least + 2 * near))
        own = _part(self._total, Fraction(1, 2 * self.repetitions))
        # Two neighbours keep sets that differ in two points, as both fill the same room.
        pairs = 2 if isinstance(own, PureDP) else 4
        dense = _part(own, Fraction(1, 2 * calls * pairs))
        counter = Counter(times=self.points, budget=_part(own, Fraction(1, 2)))
        widths = self._widths(r_min)
        noise = _farthest(dense, scales=len(widths), cells=self._cells(widths), calls=calls)
        tau = max(SEEN * 2**self.dimensions * noise, 2 * counter.accuracy(float(FAILS)))
        size = max(1, len(widths) * calls * tau // noise)
        return Sketch(
            guess=guess,
            r_min=r_min,
            rings=rings,
            calls=calls,
            tau=tau,
            noise=noise,
            size=size,
            dense=dense,
            counter=counter,
        )

    @property
    def weights(self) -> Counter:
        """Of the points of each representative. A point counts for one of them alone."""
        return Counter(times=self.points, budget=_part(self._total, Fraction(1, 2)))

    @property
    def most_representatives(self) -> int:
        """K: all places of all calls of all sketches, and the origin."""
        return 1 + self.repetitions * max(one.calls * one.size for one in self.sketches)

    @property
    def prefix(self) -> Approximation:
        """Sum of dist(x_t, Y_t)^p, whatever the optimum is (lemmas 10 and 29).

        Eight times near opt + (least + 3) opt_est + 3 tau k L, for the guess that is right.
        """
        near, least = self.constants
        served = max(LAG * one.tau * self.k * one.rings for one in self.sketches)
        if self.optimum is not None:
            guessed = (least + LAG) * self.optimum
            return Approximation(MARKOV * near, MARKOV * (guessed + served))
        # A right guess is below the optimum, or the least one and the optimum is below that.
        rest = (least + LAG) * max(1 / self.points, self.least_guess or 0.0)
        return Approximation(MARKOV * (near + least + LAG), MARKOV * (rest + served))

    def semi_coreset(self, representatives: int) -> SemiCoreset:
        """What is promised with so many representatives (lemmas 14 and 34); K at most."""
        _check.whole(least=1, representatives=representatives)
        alpha, beta = self.prefix
        each = self.weights.accuracy(self.failure / (2 * representatives))
        return SemiCoreset.of_transport(
            alpha, beta + representatives * each, self.power, negative_weights=False
        )

    def refuse_vacuous(self) -> None:
        """Raise where nothing would be proved.

        Raises:
            PlanError: Psi tau exceeds n for a guess, so that such a sketch may keep all points; the
                additive error is what the origin alone would cost; or dense balls have no proof in
                so many dimensions.
        """
        worst = max(self.sketches, key=lambda one: one.capacity)
        numbers = (
            f"Psi = {worst.calls:,}, tau = {worst.tau:,}, R = {self.repetitions:,}: the sketch keeps "
            f"Psi tau = {worst.capacity:.3g} points of n = {self.points:,}"
        )
        if worst.capacity > self.points:
            raise PlanError(
                f"The theorem says nothing here. {numbers}.",
                expected="Psi tau of at most n",
                do="Use the practical sketch; it promises the same privacy and measures the rest.",
            )
        trivial = self.points / 2**self.power
        if not self.prefix.beta < trivial:
            raise PlanError(
                f"The theorem says nothing here. {numbers}, but its additive error of "
                f"{self.prefix.beta:.3g} is not below the {trivial:.3g} that the origin costs as the "
                "only centre.",
                do="Use the practical sketch; it promises the same privacy and measures the rest.",
            )
        if self.dimensions > MOST_DIMENSIONS:
            raise PlanError(
                f"Dense balls are proved here up to {MOST_DIMENSIONS} dimensions. {numbers}.",
                do="Use the practical sketch.",
            )

    def refuse_oversized(self) -> None:
        """Raise where dense balls would not fit into memory.

        Raises:
            PlanError: All cells of all scales are counted, and a guess needs too many of them.
        """
        cells = max(self._cells(self._widths(one.r_min)) for one in self.sketches)
        if cells > MOST_CELLS:
            raise PlanError(
                f"A guess of the optimum needs {cells:.3g} cells, all of which are counted.",
                expected=f"at most {MOST_CELLS:,}",
                do="Raise least_guess up to the additive error, or name an optimum.",
            )

    @property
    def _total(self) -> PureDP | zCDP:
        match self.budget:
            case ApproxDP(epsilon=epsilon, delta=delta):
                return zCDP(rho_of(epsilon, delta))
            case _:
                return self.budget

    def _widths(self, r_min: float) -> tuple[float, ...]:
        """Of the cells, from 2 r_min up, sqrt(2) apart; see `dense_ball`."""
        widest = max(r_min, 1 / (2 * min(FACTOR, proved_factor(self.dimensions))))
        many = max(0, math.ceil(math.log(widest / r_min) / math.log(math.sqrt(2)) - 1e-9))
        return tuple(2 * r_min * math.sqrt(2) ** power for power in range(many + 1))

    def _cells(self, widths: tuple[float, ...]) -> int:
        return sum((math.ceil(1 / width) + 1) ** self.dimensions for width in widths)


def _farthest(budget: PureDP | zCDP, *, scales: int, cells: int, calls: int) -> int:
    """Bound of the noise of every cell of every call together, but with the probability `FAILS`.

    A point lies in one cell a scale. P[|noise| > m] is at most exp(-m / b) for discrete Laplace noise
    and at most 2 exp(-m^2 / (2 s^2)) for discrete Gaussian noise.
    """
    tail = math.log(cells) + math.log(calls) - math.log(FAILS)
    if isinstance(budget, PureDP):
        return max(1, math.ceil(float(scales / budget.epsilon) * tail))
    variance = scales / (2 * budget.rho)
    drawn = float(Fraction(math.ceil(variance * VARIANCE_GRID), VARIANCE_GRID))
    return max(1, math.ceil(math.sqrt(2 * drawn * (tail + math.log(2)))))


def _part(budget: PureDP | zCDP, share: Fraction) -> PureDP | zCDP:
    if isinstance(budget, PureDP):
        return PureDP(budget.epsilon * share)
    return zCDP(budget.rho * share)
