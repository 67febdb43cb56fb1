"""Privacy, measured: lower bounds on epsilon beside the claim, for every release and its worst pairs.

Promise: a sound build has any row accused with a probability of at most `MISS` a run; the power of
each row is measured beside it, by making the difference of the worlds larger until it is found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from retrodp.audit.cases import Case, cases
from retrodp.audit.coins import Seed
from retrodp.audit.distinguish import Declared, Seen, declared_score, scores
from retrodp.audit.estimate import Claim, Evidence, best_cut, samples_needed
from retrodp.audit.released import (
    ROUNDING,
    Noise,
    View,
    asked,
    components,
    draw_noise,
    is_as_declared,
    view_of,
)
from retrodp.audit.report import Row, Verdict
from retrodp.audit.structure import Structure, window, windows, worst_size
from retrodp.audit.thresholds import DRIFT, worst_crossing
from retrodp.audit.worlds import Worlds, lived, moved

MISS = 1e-3
"""Probability that anything sound is accused in one run with a fresh seed, all rows together."""

SCORES = 6
SCALES = (1.1, 1.25, 1.5, 2.0, 3.0, 4.0)
"""Factors by which noise could be too small, tried in turn for the stated power."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is drawn.

    Attributes:
        horizon: Rounds of every plan.
        runs: Of each world, where noise is drawn directly.
        asked: Of each world, where a release is asked as it stands.
        windows: Tried for each release.
        keys: Different keys among the runs.
    """

    horizon: int
    runs: int
    asked: int
    windows: int
    keys: int


SMOKE = Size(horizon=7, runs=24_000, asked=400, windows=3, keys=3)
DEEP = Size(horizon=31, runs=200_000, asked=4_000, windows=6, keys=8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The strongest evidence about one pair of worlds."""

    worlds: str
    evidence: Evidence
    view: View
    as_declared: bool


def findings(case: Case, seed: Seed, size: Size, *, miss: float) -> list[Finding]:
    """Evidence on every worst pair of a case, each the strongest of its scores.

    Args:
        case: Mechanisms and claim.
        seed: Of keys.
        size: How much to draw.
        miss: For the whole case; shared by pairs and scores.
    """
    pairs = case.neighbours(size.windows)
    keys = seed.keys(case.horizon, "intake")
    exact = [lived(case.plan, case.releases, worlds, keys) for worlds in pairs]
    paths = [moved(rounds) for rounds in exact]
    declared = [is_as_declared(case.mechanisms, rounds, seed) for rounds in exact]
    noise: Noise = {}
    if any(declared):
        noise = draw_noise(
            case.mechanisms,
            slots=max(map(len, paths), default=1),
            runs=size.runs,
            seeds=[Seed(seed.coins("key", number).words(2).tobytes().hex()) for number in range(size.keys)],
        )
    structures = case.structures()
    each = miss / (len(pairs) * SCORES)
    found = []
    for worlds, rounds, path, sound in zip(pairs, exact, paths, declared, strict=True):
        if sound and not path:
            continue
        view = (
            view_of(case.mechanisms, path, noise, structures)
            if sound
            else asked(case.mechanisms, rounds, runs=size.asked, seed=seed)
        )
        found.append(
            Finding(
                worlds=worlds.name,
                evidence=strongest(view, case.claim, miss=each),
                view=view,
                as_declared=sound,
            )
        )
    return found


def strongest(view: View, claim: Claim, *, miss: float) -> Evidence:
    """Every score's best event on one half, counted on the other; the one that tells most."""
    train = [seen.half(0) for seen in view.worlds]
    held = [seen.half(1) for seen in view.worlds]
    usable = view if view.worlds[0].values.shape[1] else None
    assert usable is not None
    found = []
    for name, score in scores(
        train[0], train[1], view.declared, raw=view.raw, rounding=ROUNDING
    ).items():
        cut = best_cut(name, (score(train[0]), score(train[1])), claim, miss=miss)
        found.append(cut.evidence((score(held[0]), score(held[1])), miss=miss))
    return max(found, key=lambda evidence: evidence.excess(claim))


def power(finding: Finding, claim: Claim, *, miss: float) -> float:
    """Least factor of `SCALES` by which smaller noise would have been found; inf if none would.

    Noise that is too small by a factor is a difference that is too large by it, in units of the
    noise, so that the runs at hand serve.
    """
    view = finding.view
    if not view.declared:
        return math.inf
    for scale in SCALES:
        zero, one = view.worlds
        stretched = zero.values.copy()
        parts = []
        for part in view.declared:
            stretched[:, part.columns] += (scale - 1) * part.change
            parts.append(
                Declared(
                    structure=part.structure,
                    law=part.law,
                    scale=part.scale,
                    columns=part.columns,
                    change=part.change * scale,
                )
            )
        score = declared_score(parts, rounding=ROUNDING)
        told = Seen(stretched)
        halves = [(score(told.half(which)), score(one.half(which))) for which in (0, 1)]
        cut = best_cut("declared ratio", halves[0], claim, miss=miss)
        if cut.evidence(halves[1], miss=miss).excess(claim) > 0:
            return scale
    return math.inf


def rows_of(case: Case, seed: Seed, size: Size, *, miss: float) -> Iterator[Row]:
    """All rows of one case."""
    found = findings(case, seed, size, miss=miss)
    yield _measured(case, found, miss=miss, size=size)
    for name, mechanism in case.sparse.items():
        yield _threshold(case, name, mechanism.threshold)
    yield from _sensitivities(case)


def _measured(case: Case, found: Sequence[Finding], *, miss: float, size: Size) -> Row:
    claim = case.claim
    worst = max(found, key=lambda finding: finding.evidence.excess(claim))
    evidence = worst.evidence
    at, delta, nearest = evidence.nearest(claim)
    accused = evidence.excess(claim) > 0
    at_plan = max(finding.evidence.epsilon(claim.delta) for finding in found)
    detected = power(worst, claim, miss=miss / (len(found) * SCORES))
    how = "drawn" if worst.as_declared else "asked once a key"
    return Row(
        mechanism=case.title,
        model=case.model,
        factor=case.factor.name,
        test="neighbouring streams",
        claim=f"epsilon {claim.epsilon:g} at delta {claim.delta:.3g}",
        measured=f"epsilon >= {at_plan:.3f}; at delta {delta:.3g}: {nearest:.3f} of {at:.3f}",
        confidence=1 - miss,
        verdict="accused" if accused else "holds",
        details={
            "epsilon_claimed": claim.epsilon,
            "delta_claimed": claim.delta,
            "epsilon_measured": at_plan,
            "nearest": {"epsilon": at, "delta": delta, "measured": nearest},
            "excess": evidence.excess(claim),
            "pair": worst.worlds,
            "pairs": len(found),
            "event": evidence.event,
            "counted": evidence.counted,
            "runs": how,
            "noise_too_small_by_found": None if math.isinf(detected) else detected,
        },
    )


def _threshold(case: Case, name: str, threshold: int) -> Row:
    mechanism = case.sparse[name]
    entry = next(one for one in case.resolved.releases if one["name"] == name)
    allowed = Fraction(entry["threshold_delta"])
    split = mechanism.noise.split
    spent, places = worst_crossing(
        mechanism.noise.process, threshold, records=sum(split), per_bin=max(split)
    )
    lower, _ = worst_crossing(
        mechanism.noise.process, threshold - 1, records=sum(split), per_bin=max(split)
    )
    needed = samples_needed(lower, 0.0, claim_epsilon=0.0, delta=float(allowed), miss=1e-3)
    accused = spent > float(allowed) * (1 + DRIFT)
    return Row(
        mechanism=case.title,
        model=case.model,
        factor=mechanism.factor.name,
        test="threshold",
        claim=f"crossings cost delta {float(allowed):.3g}",
        measured=f"{spent:.4g} by exact tails; one lower {lower:.4g}",
        confidence=1.0,
        verdict="accused" if accused else "holds",
        details={
            "release": name,
            "threshold": threshold,
            "allowed": float(allowed),
            "spent": spent,
            "one_lower": lower,
            "worst_split": {str(size): number for size, number in places.items()},
            "runs_to_see_one_lower": needed,
        },
    )


def _sensitivities(case: Case) -> Iterator[Row]:
    for release in case.releases:
        for component, noise in (components(release.mechanism) or {}).items():
            factor, law = noise.process.factor, noise.process.law
            structure = Structure.of(factor)
            measured = worst_size(structure, law=law, longest=release.window)
            declared = factor.window_l1 if law == "laplace" else factor.window_l2sq
            verdict: Verdict = "holds"
            if measured > declared + 1e-6 or not structure.full_rank:
                verdict = "accused"
            name = f"{release.name}/{component}" if component else release.name
            yield Row(
                mechanism=case.title,
                model=case.model,
                factor=factor.name,
                test="least shift of every window",
                claim=f"{'L1' if law == 'laplace' else 'L2 squared'} {declared}",
                measured=f"{measured:.4f} over {len(windows(case.horizon, release.window))} windows"
                + ("" if structure.full_rank else "; some rounds are fixed sums of others"),
                confidence=1.0,
                verdict=verdict,
                details={"release": name, "declared": declared, "least": measured},
            )


def audit(
    seed: Seed, size: Size, progress: Callable[[str], None] = lambda _: None
) -> list[Row]:
    """All cases; the planted faults are in `faults`."""
    listed = cases(size.horizon)
    rows: list[Row] = []
    for number, case in enumerate(listed):
        progress(f"privacy, {case.model}, {case.title}")
        own = Seed(seed.coins("case", number).words(2).tobytes().hex())
        rows += rows_of(case, own, size, miss=MISS / len(listed))
    return rows


__all__ = ["DEEP", "MISS", "SMOKE", "Worlds", "audit", "findings", "np", "rows_of", "window"]
