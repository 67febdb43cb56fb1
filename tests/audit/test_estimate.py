"""Bounds that hold as often as they say, and events that come close to the truth."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from retrodp.audit.estimate import (
    Claim,
    Cut,
    Evidence,
    best_cut,
    proportion_above,
    proportion_below,
    samples_needed,
)
from retrodp.privacy.loss import GaussianLoss, PureLoss
from tests.audit.sizes import SEED

MISS = 1e-6


def gaussian_claim(deviations: float) -> Claim:
    variance = Fraction(10_000)
    shift = round(100 * deviations)
    losses = [GaussianLoss(shift=shift, variance=variance)]
    return Claim.of_losses(losses, epsilon=Fraction(3), beside=Fraction(0))


def normals(label: str, count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    uniforms = SEED.coins("normals", label).uniforms(count)
    return stats.norm.ppf(uniforms + 2.0**-54)


@pytest.mark.parametrize(("hits", "runs"), [(0, 50), (1, 50), (25, 50), (50, 50), (7, 10_000)])
def test_proportions_are_those_of_clopper_and_pearson(hits: int, runs: int) -> None:
    interval = stats.binomtest(hits, runs).proportion_ci(1 - 2e-4, method="exact")
    assert float(proportion_above(float(hits), runs, 1e-4)) == pytest.approx(interval.low)
    assert float(proportion_below(float(hits), runs, 1e-4)) == pytest.approx(interval.high)


def test_a_bound_misses_the_truth_no_more_often_than_stated() -> None:
    truth, runs, miss = 0.3, 40, 0.1
    hits = np.arange(runs + 1)
    weights = stats.binom.pmf(hits, runs, truth)
    above = proportion_above(hits.astype(float), runs, miss)
    below = proportion_below(hits.astype(float), runs, miss)
    assert weights[above > truth].sum() <= miss
    assert weights[below < truth].sum() <= miss


def test_evidence_is_the_logarithm_of_what_delta_leaves_over_the_other_world() -> None:
    evidence = Evidence(p=0.5, q=0.1, miss=MISS, counted=((0, 1), (0, 1)), event="")
    assert evidence.epsilon(0.0) == pytest.approx(math.log(5))
    assert evidence.epsilon(0.2) == pytest.approx(math.log(3))
    assert evidence.epsilon(0.6) == 0.0


def test_a_claim_is_its_whole_curve() -> None:
    claim = gaussian_claim(0.5)
    epsilons, deltas = zip(*claim.points, strict=True)
    assert list(epsilons) == sorted(epsilons)
    assert list(deltas) == sorted(deltas, reverse=True)
    assert claim.loss == pytest.approx(0.5)
    # At epsilon 0 delta is the total variation, which for Gaussians is 2 Phi(1/4) - 1.
    assert deltas[0] == pytest.approx(2 * stats.norm.cdf(0.25) - 1, rel=0.02)


def test_a_pure_claim_is_one_point() -> None:
    claim = Claim.of_losses(
        [PureLoss(epsilon=Fraction(2))], epsilon=Fraction(2), beside=Fraction(0)
    )
    assert claim.points == ((2.0, 0.0),)
    assert claim.pure


@pytest.mark.parametrize(("truth", "verdict"), [(0.5, False), (0.7, True), (1.0, True)])
def test_gaussian_worlds_are_told_apart_as_far_as_they_are(truth: float, verdict: bool) -> None:  # noqa: FBT001
    claim = gaussian_claim(0.5)
    scores = [
        (normals(f"zero {half}", 20_000) + truth, normals(f"one {half}", 20_000)) for half in "ab"
    ]
    cut = best_cut("score", scores[0], claim, miss=MISS)
    evidence = cut.evidence(scores[1], miss=MISS)
    assert 0.8 * truth < evidence.loss(claim) < truth
    assert (evidence.excess(claim) > 0) == verdict


def test_the_event_may_speak_for_either_world_and_lie_on_either_side() -> None:
    claim = gaussian_claim(0.5)
    one, two = normals("c", 20_000), normals("d", 20_000) + 2
    cut = best_cut("score", (one, two), claim, miss=MISS)
    found = cut.evidence((one, two), miss=MISS)
    assert found.p > found.q
    assert cut.world == (1 if cut.upper else 0)


def test_equal_worlds_are_never_told_apart() -> None:
    """100 repetitions at a miss of 1 in 1000 each: one false event or none."""
    claim = gaussian_claim(0.05)
    excesses = []
    for number in range(100):
        draws = [normals(f"equal {number} {part}", 1_000) for part in range(4)]
        cut = best_cut("score", (draws[0], draws[1]), claim, miss=1e-3)
        excesses.append(cut.evidence((draws[2], draws[3]), miss=1e-3).loss(claim))
    assert sum(excess > 0 for excess in excesses) <= 1


def test_an_event_that_always_happens_in_one_world_alone_shows_as_much_as_the_runs_allow() -> None:
    claim = gaussian_claim(0.5)
    cut = Cut(name="equal", threshold=1.0, upper=True, world=0)
    evidence = cut.evidence((np.ones(1000), np.zeros(1000)), miss=MISS)
    assert evidence.epsilon(0.0) == pytest.approx(math.log(1000 / math.log(2 / MISS)), rel=0.01)
    assert evidence.excess(claim) > 0


def test_the_runs_that_are_said_to_suffice_do() -> None:
    p, q, delta, miss = 0.02, 0.0, 0.01, 1e-3
    runs = samples_needed(p, q, claim_epsilon=1.0, delta=delta, miss=miss)
    assert runs is not None
    hits = np.arange(runs + 1)
    above = proportion_above(hits.astype(float), runs, miss / 2)
    below = float(proportion_below(0.0, runs, miss / 2))
    caught = above > delta + math.e * below
    assert stats.binom.pmf(hits, runs, p)[caught].sum() > 1 - miss
    assert samples_needed(0.01, q, claim_epsilon=1.0, delta=delta, miss=miss) is None
