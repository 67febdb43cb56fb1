"""The adaptive game: an adversary reacts to what is published and places one challenge.

Promise: world 0 holds the challenge life and world 1 does not; everything else the adversary sends
is the same function of what it sees. A play ends after the horizon, and the worlds must be hard to
tell apart from the adversary's view. `table` plays many games at once, on noise that was drawn;
`play` plays one through lives, statistics and releases.

Source: Kaplan et al. 2026 (arXiv 2609.05329), appendix B. There the challenge is one operation; with
ids it is one life, whose deletion the adversary may send later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrodp.audit.adversaries import (
    Adversary,
    Averager,
    Board,
    DifferenceAttacker,
    Hider,
    Oblivious,
    ReactiveDeleter,
    ThresholdHunter,
)
from retrodp.audit.cases import Case
from retrodp.audit.coins import Seed
from retrodp.audit.estimate import Claim, Evidence, best_cut, proportion_above
from retrodp.audit.report import Row, Verdict
from retrodp.audit.structure import Structure, window
from retrodp.audit.table import Table
from retrodp.mechanisms.contract import AnyMechanism
from retrodp.mechanisms.histogram import Histogram, SparseHistogram
from retrodp.privacy.conversion import epsilon_integer_orders
from retrodp.privacy.loss import pure_epsilon

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

COORDINATES = 1 << 18  # of noise held at once
EVENTS = 2  # counted for one game
LOOSE = "1e-3"  # a delta at which crossings can be counted
HUNTED = 15  # rounds of the hunt; noise is remembered longer in longer horizons


def view_scores(board: Board, structure: Structure, law: str, scale: float) -> dict[str, Floats]:
    """What the adversary concludes from its view, a number a play: high speaks for world 0.

    The likelihood ratio of the declared noise for the window it chose, and the mean of the values
    it saw while the challenge may have run.
    """
    plays = np.arange(len(board.bin))
    bins = np.maximum(board.bin, 0)
    noise = board.noise[plays, bins]
    ratio, mean = np.zeros(len(plays)), np.zeros(len(plays))
    rounding = np.eye(structure.horizon) / 12
    covariance = structure.weights @ structure.weights.T
    covariance = covariance * (scale if law == "gaussian" else 2 * scale**2) + rounding
    ends = np.where(board.end > 0, board.end, board.horizon + 1)
    for begin, end in {(int(b), int(e)) for b, e in zip(board.begin, ends, strict=True) if b}:
        chosen = (board.begin == begin) & (ends == end)
        change = window(board.horizon, begin, end)
        seen = noise[chosen]
        mean[chosen] = seen @ change / change.sum()
        if law == "gaussian" or not structure.square:
            ratio[chosen] = seen @ np.linalg.solve(covariance, change)
            ratio[chosen] -= change @ np.linalg.solve(covariance, change) / 2
        else:
            shift = structure.shift(change)
            nodes = seen @ structure.inverse.T
            ratio[chosen] = (np.abs(nodes) - np.abs(nodes - shift)).sum(axis=1) / scale
    return {"declared ratio": np.round(ratio, 9), "mean": mean}


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How often each game is played."""

    plays: int
    hunts: int
    hidden: int
    horizon: int


SMOKE = Size(plays=8_000, hunts=300, hidden=20_000, horizon=7)
DEEP = Size(plays=100_000, hunts=3_000, hidden=500_000, horizon=15)


def contest(
    case: Case, adversary: Adversary, claim: Claim, seed: Seed, *, plays: int, miss: float
) -> tuple[Evidence, float]:
    """Play in both worlds and count; returns the strongest evidence and its epsilon at delta."""
    (mechanism,) = case.mechanisms.values()
    table, noise = Table.of(mechanism), case.releases[0].mechanism
    declared = Table.of(noise).noise.process
    structure = Structure.of(declared.factor)
    views = []
    for world, challenged in enumerate((True, False)):
        keys = seed.keys(case.horizon, "game", world)
        board = table.play(adversary, keys, plays=plays, challenged=challenged)
        views.append(view_scores(board, structure, declared.law, float(declared.scale)))
    found = []
    for name in views[0]:
        train = views[0][name][::2], views[1][name][::2]
        held = views[0][name][1::2], views[1][name][1::2]
        cut = best_cut(name, train, claim, miss=miss / EVENTS)
        found.append(cut.evidence(held, miss=miss / EVENTS))
    worst = max(found, key=lambda one: one.strength(claim))
    return worst, max(one.epsilon(claim.delta) for one in found)


def adaptive_claim(case: Case) -> Claim:
    """What is promised to streams that react, by the contract's own word."""
    (release,) = case.releases
    if release.mechanism.adaptive != "integer-order RDP":
        return case.claim
    losses = release.mechanism.cost()
    assert pure_epsilon(losses) is None
    points = [(epsilon_integer_orders(losses, delta), delta) for _, delta in case.claim.points]
    return Claim(points=tuple(points), loss=case.claim.loss, pure=False)


def contestants(case: Case, *, hunted: bool) -> Iterator[Adversary]:
    """The adversaries that make sense against a case."""
    mechanism = case.releases[0].mechanism
    process = Table.of(mechanism).noise.process
    structure = Structure.of(process.factor)
    if hunted:
        assert isinstance(mechanism, SparseHistogram)
        crowd = 2 * mechanism.threshold + 10 * max(mechanism.noise.half_all)
        watched = (case.horizon + 1) // 2
        yield Hider()
        yield ThresholdHunter(structure=structure, crowd=crowd, watched=watched)
        return
    yield Oblivious(structure=structure, law=process.law)
    if isinstance(mechanism, Histogram):
        yield ReactiveDeleter(crowd=100)
    yield Averager()
    yield DifferenceAttacker()


def arenas(horizon: int) -> Iterator[Case]:
    """The releases that are played against: every factor and law, dense and sparse."""
    for model, factors in (
        ("zcdp", ("haar", "binary", "delannoy")),
        ("pure", ("delannoy", "binary", "haar")),
    ):
        for factor in factors:
            yield Case.of(
                "histogram by country",
                {"r": {"kind": "histogram", "by": "country", "factor": factor}},
                model="zcdp" if model == "zcdp" else "pure",
                horizon=horizon,
            )
    for model, factor in (("zcdp", "haar"), ("zcdp", "binary"), ("pure", "binary")):
        yield Case.of(
            "histogram by product",
            {"r": {"kind": "histogram", "by": "product", "factor": factor}},
            model="zcdp" if model == "zcdp" else "pure",
            horizon=HUNTED,
            delta=LOOSE,
        )


def audit(
    seed: Seed,
    size: Size,
    *,
    miss: float,
    progress: Callable[[str], None] = lambda _: None,
    only: str = "",
) -> list[Row]:
    """Every adversary against every release it can play against; `only` those of a kind."""
    games = [
        (case, adversary)
        for case in arenas(size.horizon)
        if only in {"", *(entry["kind"] for entry in case.resolved.releases)}
        for adversary in contestants(case, hunted=bool(case.sparse))
    ]
    rows = []
    for number, (case, adversary) in enumerate(games):
        progress(
            f"game {number + 1} of {len(games)}: {case.model}, {case.factor.name}, {adversary.name}"
        )
        make = _crossing_row if case.sparse else _row
        rows.append(
            make(case, adversary, seed.further("game", number), size, miss=miss / len(games))
        )
    return rows


def crossings(
    case: Case, adversary: Adversary, seed: Seed, *, plays: int, miss: float
) -> tuple[int, float]:
    """Plays in which the challenge, alone in its bin, is published; and a lower bound of its rate.

    Without the challenge the bin is empty and never published, so that the rate itself must be
    covered by delta.
    """
    (mechanism,) = case.mechanisms.values()
    table = Table.of(mechanism)
    at_once = max(1, COORDINATES // adversary.bins)
    hits = 0
    for first in range(0, plays, at_once):
        keys = seed.keys(case.horizon, "crossings", first)
        number = min(at_once, plays - first)
        board = table.play(adversary, keys, plays=number, challenged=True)
        at = np.arange(number), np.maximum(board.bin, 0)
        alone = board.present[at] & (board.own[at] == 0)
        hits += int(np.count_nonzero(alone.any(axis=1)))
    return hits, float(proportion_above(float(hits), plays, miss))


def _row(case: Case, adversary: Adversary, seed: Seed, size: Size, *, miss: float) -> Row:
    mechanism = case.releases[0].mechanism
    claim = adaptive_claim(case)
    evidence, epsilon = contest(case, adversary, claim, seed, plays=size.plays, miss=miss)
    broken = evidence.excess(claim) > 0
    return Row(
        mechanism=case.title,
        model=case.model,
        factor=case.factor.name,
        test=f"adversary: {adversary.name}",
        claim=_promised(claim, mechanism),
        measured=f"epsilon >= {epsilon:.3f}; {evidence.loss(claim) / claim.loss:.0%} of the loss",
        confidence=1 - miss,
        verdict=_verdict(mechanism, broken=broken),
        details={
            "adaptive": mechanism.adaptive,
            "epsilon_claimed": claim.epsilon,
            "delta_claimed": claim.delta,
            "epsilon_measured": epsilon,
            "loss_claimed": claim.loss,
            "loss_measured": evidence.loss(claim),
            "excess": evidence.excess(claim),
            "event": evidence.event,
            "counted": evidence.counted,
            "plays": size.plays,
        },
    )


def _crossing_row(case: Case, adversary: Adversary, seed: Seed, size: Size, *, miss: float) -> Row:
    mechanism = case.releases[0].mechanism
    plays = size.hunts if adversary.bins > 1 else size.hidden
    hits, rate = crossings(case, adversary, seed, plays=plays, miss=miss)
    delta = case.claim.delta
    reacts = adversary.bins > 1
    broken = rate > delta
    return Row(
        mechanism=case.title,
        model=case.model,
        factor=case.factor.name,
        test=f"adversary: {adversary.name}",
        claim=_promised(case.claim, mechanism),
        measured=f"crosses in {hits} of {plays} plays, at least {rate:.3g}",
        confidence=1 - miss,
        # The contract speaks for streams that do not react; those must always hold.
        verdict=_verdict(mechanism, broken=broken) if reacts or not broken else "accused",
        details={
            "adaptive": mechanism.adaptive,
            "delta_claimed": delta,
            "crossings": hits,
            "crossing_rate_at_least": rate,
            "times_delta": hits / plays / delta,
            "bins": adversary.bins,
            "plays": plays,
        },
    )


def _promised(claim: Claim, mechanism: AnyMechanism) -> str:
    return f"epsilon {claim.epsilon:.3g}, delta {claim.delta:.3g}; adaptive: {mechanism.adaptive}"


def _verdict(mechanism: AnyMechanism, *, broken: bool) -> Verdict:
    if not broken:
        return "holds"
    return "as stated" if mechanism.adaptive == "no" else "accused"
