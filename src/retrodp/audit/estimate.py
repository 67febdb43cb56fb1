"""Lower bounds on epsilon from counted events, valid whatever the mechanism.

Promise: the probability that a bound exceeds the truth is at most the stated one; nothing is
assumed about the mechanism but that the runs of one world are independent. The runs of the two
worlds may depend on each other in any way, so both may use the same keys.

An event is chosen on one half of the runs and counted on the other. With p its probability in one
world and q in the other, (epsilon, delta)-privacy says p <= exp(epsilon) q + delta, so that
epsilon >= log((p - delta) / q). Clopper-Pearson bounds p from below and q from above.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from retrodp import _check
from retrodp.errors import PlanError, UsageError
from retrodp.privacy.accountant import delta_of
from retrodp.privacy.loss import PrivacyLoss, pure_epsilon, total_rho

Floats = NDArray[np.float64]

CUTS = 96  # thresholds tried for one score
LEAST_SHARE = 2e-4  # of the runs of both worlds beyond the outermost threshold
BIG = 1e6  # below any broken claim, where losses are compared
POINTS = (0.0, 0.15, 0.4, 1.0)  # of the plan's epsilon, on the claimed curve


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a release promises: its whole curve of (epsilon, delta), each true by itself.

    Attributes:
        points: Pairs; the last is the plan's.
        loss: The same in one number, which a measure can come close to: epsilon where noise is
            Laplace, else how many deviations the worlds lie apart, sqrt(2 rho).
        pure: Which of the two.
    """

    points: tuple[tuple[float, float], ...]
    loss: float
    pure: bool

    @classmethod
    def of_losses(
        cls, losses: Sequence[PrivacyLoss], *, epsilon: Fraction, beside: Fraction
    ) -> Claim:
        """The curve of these losses up to the plan's epsilon.

        Args:
            losses: Of all releases together.
            epsilon: The plan's.
            beside: Delta of thresholds and collisions, which comes on top at every epsilon.
        """
        pure = pure_epsilon(losses)
        if not _check.exact("beside", beside) >= 0:
            raise PlanError(f"beside must be at least 0, got {beside!r}.")
        shares = [Fraction(str(share)) * epsilon for share in POINTS if pure is None or share == 1]
        return cls(
            points=tuple(
                (float(at), min(1.0, delta_of(losses, at) + float(beside))) for at in shares
            ),
            loss=math.sqrt(2 * total_rho(losses)) if pure is None else float(pure),
            pure=pure is not None,
        )

    @property
    def far(self) -> Claim:
        """The plan's point alone, to be approached by epsilon: for events far in the tail."""
        return replace(self, points=self.points[-1:], pure=True)

    @property
    def epsilon(self) -> float:
        """The plan's."""
        return self.points[-1][0]

    @property
    def delta(self) -> float:
        """The plan's: noise, thresholds and collisions together."""
        return self.points[-1][1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Bounds on the probabilities of one event in two worlds.

    Attributes:
        p: The probability in one world is at least this.
        q: The probability in the other is at most this.
        miss: Probability that either bound is wrong.
        counted: (hits, runs) in the one world and in the other.
        event: What was counted.
    """

    p: float
    q: float
    miss: float
    counted: tuple[tuple[int, int], tuple[int, int]]
    event: str

    def epsilon(self, delta: float) -> float:
        """No mechanism with a smaller epsilon at this delta shows the event like that."""
        _require_delta(delta)
        if self.p <= delta:
            return 0.0
        return max(0.0, math.log((self.p - delta) / self.q))

    def excess(self, claim: Claim) -> float:
        """Largest amount by which a claimed epsilon is exceeded; above 0 the claim is false."""
        return max(self._at(epsilon, delta) for epsilon, delta in claim.points)

    def loss(self, claim: Claim) -> float:
        """What the event shows of `Claim.loss`: epsilon, or deviations between Gaussian worlds."""
        return float(_loss(np.array(self.p), np.array(self.q), pure=claim.pure))

    def strength(self, claim: Claim) -> tuple[float, float]:
        """Order of evidence: by how much the claim is broken, and if not, by the loss shown."""
        return max(0.0, self.excess(claim)), self.loss(claim)

    def _at(self, epsilon: float, delta: float) -> float:
        if self.p <= delta:
            return -epsilon - 1.0
        return math.log((self.p - delta) / self.q) - epsilon


def _require_delta(delta: float) -> None:
    if isinstance(delta, bool) or not 0 <= delta <= 1:
        raise PlanError(f"delta must lie between 0 and 1, got {delta!r}.")


def _loss(p: Floats, q: Floats, *, pure: bool) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.log(p) - np.log(q) if pure else ndtri(p) - ndtri(q)
    return np.where(p > q, apart, 0.0)


def _require_counts(hits: Floats | float, runs: int, miss: float) -> None:
    _check.probability(miss=miss)
    _check.whole(least=1, runs=runs)
    counted = np.asarray(hits, dtype=np.float64)
    if not ((counted >= 0) & (counted <= runs)).all():
        raise UsageError(f"hits must lie between 0 and the {runs} runs.", do="Count them again.")


def proportion_above(hits: Floats | float, runs: int, miss: float) -> Floats:
    """Clopper-Pearson: the probability is above this, but for `miss`."""
    _require_counts(hits, runs, miss)
    counted = np.asarray(hits, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        bound = betaincinv(counted, runs - counted + 1, miss)
    return np.where(counted > 0, bound, 0.0)


def proportion_below(hits: Floats | float, runs: int, miss: float) -> Floats:
    """Clopper-Pearson: the probability is below this, but for `miss`."""
    _require_counts(hits, runs, miss)
    counted = np.asarray(hits, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        bound = betaincinv(counted + 1, runs - counted, 1 - miss)
    return np.where(counted < runs, bound, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """An event: the score is at least (or at most) a threshold; and the world it speaks for.

    Attributes:
        name: Of the score.
        threshold: Of the score.
        upper: Whether large scores are meant.
        world: 0 or 1: where the event is likelier.
    """

    name: str
    threshold: float
    upper: bool
    world: int

    def hits(self, scores: Floats) -> int:
        """How often the event happened."""
        chosen = scores >= self.threshold if self.upper else scores <= self.threshold
        return int(np.count_nonzero(chosen))

    def evidence(self, scores: tuple[Floats, Floats], *, miss: float) -> Evidence:
        """Bounds from runs that had no part in choosing the event."""
        _check.probability(miss=miss)
        _require_scores(scores)
        high, low = scores[self.world], scores[1 - self.world]
        more, less = self.hits(high), self.hits(low)
        sign = ">=" if self.upper else "<="
        return Evidence(
            p=float(proportion_above(more, len(high), miss / 2)),
            q=float(proportion_below(less, len(low), miss / 2)),
            miss=miss,
            counted=((more, len(high)), (less, len(low))),
            event=f"{self.name} {sign} {self.threshold:.6g} speaks for world {self.world}",
        )


def _require_scores(scores: tuple[Floats, Floats]) -> None:
    if any(np.isnan(one).any() for one in scores):
        raise UsageError("A score of a run is no number.", do="Leave out what has no score.")


def best_cut(name: str, scores: tuple[Floats, Floats], claim: Claim, *, miss: float) -> Cut:
    """The threshold and side that tell most against the claim, on the training half.

    Args:
        name: Of the score.
        scores: In world 0 and in world 1.
        claim: What is doubted.
        miss: Confidence that the event will be judged with.
    """
    _require_scores(scores)
    pooled = np.sort(np.concatenate(scores))
    quantiles = np.concatenate(
        [np.geomspace(LEAST_SHARE, 0.5, CUTS // 2), 1 - np.geomspace(LEAST_SHARE, 0.5, CUTS // 2)]
    )
    cuts = np.unique(pooled[np.minimum((quantiles * len(pooled)).astype(int), len(pooled) - 1)])
    sizes = [len(one) for one in scores]
    at_most = [np.searchsorted(np.sort(one), cuts, side="right") for one in scores]
    below = [np.searchsorted(np.sort(one), cuts, side="left") for one in scores]
    best = (-math.inf, Cut(name=name, threshold=float(cuts[0]), upper=True, world=0))
    for upper in (True, False):
        counts = [sizes[world] - below[world] if upper else at_most[world] for world in (0, 1)]
        for world in (0, 1):
            other = 1 - world
            p = proportion_above(counts[world].astype(np.float64), sizes[world], miss / 2)
            q = proportion_below(counts[other].astype(np.float64), sizes[other], miss / 2)
            gap = np.zeros(len(cuts))
            for epsilon, delta in claim.points:
                with np.errstate(divide="ignore", invalid="ignore"):
                    here = np.where(p > delta, np.log((p - delta) / q) - epsilon, 0.0)
                gap = np.maximum(gap, here)
            if gap.max() <= 0:
                gap = _loss(p, q, pure=claim.pure) - BIG
            place = int(np.argmax(gap))
            if gap[place] > best[0]:
                cut = Cut(name=name, threshold=float(cuts[place]), upper=upper, world=world)
                best = (float(gap[place]), cut)
    return best[1]


def samples_needed(
    p: float, q: float, *, claim_epsilon: float, delta: float, miss: float
) -> int | None:
    """Runs of each world after which an event of these probabilities breaks a claim, about surely.

    None if it does not break it. By the normal approximation, with the same margin for chance as
    for doubt.
    """
    _check.probability(miss=miss)
    _require_delta(delta)
    for name, value in (("p", p), ("q", q), ("claim_epsilon", claim_epsilon)):
        if isinstance(value, bool) or not 0 <= value < math.inf:
            raise PlanError(f"{name} must be finite and at least 0, got {value!r}.")
    p = min(p, 1.0)  # a sum over rounds may be larger
    gap = p - delta - math.exp(claim_epsilon) * q
    if gap <= 0:
        return None
    # gap = z spread / sqrt(runs) + growth log(2 / miss) / runs: doubt and chance about p, and what
    # is not known about a q of few hits.
    growth = math.exp(claim_epsilon)
    spread = math.sqrt(p * (1 - p)) + growth * math.sqrt(q * (1 - q))
    across = 2 * float(-ndtri(miss / 2)) * spread
    unknown = growth * math.log(2 / miss)
    step = (math.sqrt(across**2 + 4 * unknown * gap) - across) / (2 * unknown)
    return math.ceil(step**-2)
