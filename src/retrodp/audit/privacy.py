"""Privacy, measured: lower bounds on epsilon beside the claim, for every release and its worst pairs.

Promise: a sound build has any row accused with a probability of at most `MISS` a run; the power of
each row is measured beside it, by making the difference of the worlds larger until it is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from retrodp.audit.cases import Case, Outline, outlines
from retrodp.audit.coins import Seed
from retrodp.audit.distinguish import DECLARED, scores
from retrodp.audit.estimate import Claim, Evidence, best_cut, samples_needed
from retrodp.audit.histories import Round
from retrodp.audit.parts import components, coordinates, with_noise
from retrodp.audit.released import (
    ALONE,
    ROUNDING,
    Noise,
    View,
    asked,
    bystanders,
    draw_noise,
    is_as_declared,
    smaller,
    view_of,
)
from retrodp.audit.report import Row, Verdict
from retrodp.audit.structure import Structure, windows, worst_size
from retrodp.audit.thresholds import DRIFT, worst_crossing
from retrodp.audit.worlds import Trajectory, lived, moved
from retrodp.mechanisms.contract import Mechanism
from retrodp.noise.factors.dense import DenseFactor

MISS = 1e-3
"""Probability that anything sound is accused in one run with a fresh seed, all rows together."""

EVENTS = 7  # counted for one pair of worlds


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is drawn.

    Attributes:
        horizon: Rounds of every plan.
        runs: Of each world, where noise is drawn directly.
        asked: Of each world, where a release is asked as it stands.
        windows: Tried for each release.
        keys: Different keys among the runs.
        gates: Keys under which a release is compared with its declared noise, for every pair.
        scales: Factors by which noise could be too small, planted in turn for the stated power.
        deep: Whether every combination is audited, or every kind and every factor once.
    """

    horizon: int
    runs: int
    asked: int
    windows: int
    keys: int
    gates: int
    scales: tuple[Fraction, ...]
    deep: bool


SMOKE = Size(
    horizon=7,
    runs=15_000,
    asked=1_000,
    windows=3,
    keys=3,
    gates=1,
    scales=(Fraction(3, 2), Fraction(2)),
    deep=False,
)
DEEP = Size(
    horizon=15,
    runs=60_000,
    asked=2_000,
    windows=4,
    keys=8,
    gates=3,
    scales=(Fraction(11, 10), Fraction(5, 4), Fraction(3, 2), Fraction(2)),
    deep=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found about one pair of worlds.

    Attributes:
        worlds: The pair.
        evidence: The strongest.
        epsilon: Greatest lower bound of any event at the plan's delta.
        path: The coordinates that were seen; none where the releases do not publish totals plus
            their declared noise, and were asked as they stand.
    """

    worlds: str
    evidence: Evidence
    epsilon: float
    path: tuple[Trajectory, ...]


def findings(case: Case, seed: Seed, size: Size, *, miss: float) -> list[Finding]:
    """Evidence on every worst pair of a case, each the strongest of its scores.

    Args:
        case: Mechanisms and claim.
        seed: Of keys.
        size: How much to draw.
        miss: For the whole case; shared by pairs and scores.
    """
    pairs = _pairs(case, seed, size)
    noise: Noise = {}
    if any(pair.path for pair in pairs):
        noise = draw_noise(
            _drawable(case),
            slots=max(len(pair.path) for pair in pairs),
            runs=size.runs,
            seeds=_seeds(seed, size.keys),
            together=_together(case),
        )
    structures = case.structures()
    each = miss / (len(pairs) * EVENTS)
    found = []
    for pair in pairs:
        view = (
            view_of(_drawable(case), pair.path, noise, structures, _together(case))
            if pair.path
            else asked(case.mechanisms, pair.rounds, runs=size.asked, seed=seed)
        )
        if not any(seen.values.shape[1] for seen in view.worlds):
            continue  # nothing was ever published
        tried = evidence_of(view, case.claim, miss=each)
        found.append(
            Finding(
                worlds=pair.name,
                evidence=max(tried, key=lambda one: one.strength(case.claim)),
                epsilon=max(one.epsilon(case.claim.delta) for one in tried),
                path=pair.path,
            )
        )
        if not pair.path and found[-1].evidence.excess(case.claim) > 0:
            break  # asking is slow, and what is accused is accused
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """A pair of worlds, and what there is to see of it."""

    name: str
    rounds: tuple[list[Round], list[Round]]
    path: tuple[Trajectory, ...]


def _pairs(case: Case, seed: Seed, size: Size) -> list[_Pair]:
    if not case.known:
        return [
            _Pair(
                name=f"vector of one unit, rounds {begin} to {end - 1}",
                rounds=([], []),
                path=tuple(case.vector_paths(begin, end)),
            )
            for begin, end in case.windows(size.windows)
        ]
    pairs = []
    for worlds in case.neighbours(size.windows):
        rounds = lived(case.plan, case.releases, worlds, seed.keys(case.horizon, "intake"))
        own = seed.further("gate", worlds.name)
        sound = is_as_declared(case.mechanisms, rounds, own, keys=size.gates)
        # An adversary looks at what differs, and at one more coordinate of each component.
        path = moved(_noisy(case.mechanisms, rounds)) if sound else []
        path += bystanders(case.mechanisms, path, case.horizon) if sound else []
        pairs.append(_Pair(name=worlds.name, rounds=rounds, path=tuple(path)))
    return pairs


def _noisy(
    mechanisms: Mapping[str, Mechanism], rounds: tuple[list[Round], list[Round]]
) -> tuple[list[Round], list[Round]]:
    """The same rounds by the coordinates that noise is added to."""
    zero, one = (
        [
            replace(
                lived,
                totals={
                    name: coordinates(mechanism, lived.totals[name])
                    for name, mechanism in mechanisms.items()
                },
            )
            for lived in world
        ]
        for world in rounds
    )
    return zero, one


def _drawable(case: Case) -> Mapping[str, Mechanism]:
    return case.mechanisms if case.known else case.vector().mechanisms


def _together(case: Case) -> Mapping[str, int]:
    return ALONE if case.known else case.together()


def evidence_of(view: View, claim: Claim, *, miss: float, only: str = "") -> list[Evidence]:
    """Every score's best event on one half of the runs, counted on the other.

    Args:
        view: Runs of both worlds.
        claim: What is doubted.
        miss: Of one event.
        only: The name of the one score to use; "" for all.
    """
    train = view.worlds[0].half(0), view.worlds[1].half(0)
    held = view.worlds[0].half(1), view.worlds[1].half(1)
    learned = scores(*train, view.declared, raw=view.raw, rounding=ROUNDING, only=only)
    found = []
    for name, score in learned.items():
        halves = [(score(half[0]), score(half[1])) for half in (train, held)]
        aims = [claim, claim.far] if name == DECLARED else [claim]
        for aim in aims:
            cut = best_cut(name, halves[0], aim, miss=miss)
            found.append(cut.evidence(halves[1], miss=miss))
    return found


def power(case: Case, worst: Finding, seed: Seed, size: Size, *, miss: float) -> float | None:
    """Least factor of `size.scales` by which smaller noise is found, by planting it; None if none is.

    The pair of worlds and the number of runs are those of the row, the score is the declared one.
    """
    if not worst.path:
        return None
    structures, together = case.structures(), _together(case)
    for scale in size.scales:
        planted = {name: _shrunk(inner, scale) for name, inner in _drawable(case).items()}
        noise = draw_noise(
            planted,
            slots=len(worst.path),
            runs=size.runs,
            seeds=_seeds(seed, 1),
            together=together,
        )
        view = view_of(planted, worst.path, noise, structures, together)
        tried = evidence_of(view, case.claim, miss=miss, only=DECLARED)
        if any(one.excess(case.claim) > 0 for one in tried):
            return float(scale)
    return None


def _shrunk(mechanism: Mechanism, by: Fraction) -> Mechanism:
    return with_noise(mechanism, lambda noise: smaller(noise, by))


def _seeds(seed: Seed, number: int) -> list[Seed]:
    """Seeds of different keys."""
    return [seed.further("key", one) for one in range(number)]


def rows_of(case: Case, seed: Seed, size: Size, *, miss: float) -> Iterator[Row]:
    """All rows of one case."""
    found = findings(case, seed, size, miss=miss)
    yield _measured(case, found, seed, size, miss=miss)
    if all(components(mechanism) is not None for mechanism in case.mechanisms.values()):
        yield _as_declared(case, found, size)
    for name, mechanism in case.sparse.items():
        yield _threshold(case, name, mechanism.thresholds)
    yield from _sensitivities(case)


def _measured(case: Case, found: Sequence[Finding], seed: Seed, size: Size, *, miss: float) -> Row:
    claim = case.claim
    worst = max(found, key=lambda finding: finding.evidence.strength(claim))
    accused = worst.evidence.excess(claim) > 0
    at_plan = max(finding.epsilon for finding in found)
    reached = max(finding.evidence.loss(claim) for finding in found)
    each = miss / (len(found) * EVENTS)
    planted = None if accused else power(case, worst, seed, size, miss=each)
    unit = "epsilon" if case.model == "pure" else "deviations"
    return Row(
        mechanism=case.title,
        model=case.model,
        factor=case.factor.name,
        test="neighbouring streams",
        claim=f"epsilon {claim.epsilon:g}, delta {claim.delta:.3g}; {claim.loss:.4f} {unit}",
        measured=f"epsilon >= {at_plan:.3f}; {reached:.4f} {unit} ({reached / claim.loss:.0%})",
        confidence=1 - miss,
        verdict="accused" if accused else "holds",
        details={
            "epsilon_claimed": claim.epsilon,
            "delta_claimed": claim.delta,
            "epsilon_measured": at_plan,
            "loss_claimed": claim.loss,
            "loss_measured": reached,
            "loss_unit": unit,
            "excess": worst.evidence.excess(claim),
            "pair": worst.worlds,
            "pairs": len(found),
            "event": worst.evidence.event,
            "counted": worst.evidence.counted,
            "runs": "drawn" if worst.path else "asked once a key",
            "follows_release": case.known,
            "noise_too_small_by_found": planted,
        },
    )


def _as_declared(case: Case, found: Sequence[Finding], size: Size) -> Row:
    """Whether what was drawn is what the releases publish; see `released`."""
    other = [finding.worlds for finding in found if not finding.path]
    answers = len(found) * 2 * case.horizon * size.gates * len(case.mechanisms)
    return Row(
        mechanism=case.title,
        model=case.model,
        factor=case.factor.name,
        test="declared noise",
        claim="publishes totals plus the declared noise",
        measured=f"differs: {other[0]}" if other else f"equal in {answers} answers",
        confidence=1.0,
        verdict="accused" if other else "holds",
        details={"answers": answers},
    )


def _threshold(case: Case, name: str, thresholds: Sequence[int]) -> Row:
    mechanism = case.sparse[name]
    entry = next(one for one in case.resolved.releases if one["name"] == name)
    allowed = Fraction(entry["threshold_delta"])
    split = mechanism.noise.split
    spent, places = worst_crossing(
        mechanism.noise.process, thresholds, records=sum(split), per_bin=max(split)
    )
    less = [threshold - 1 for threshold in thresholds]
    lower, _ = worst_crossing(mechanism.noise.process, less, records=sum(split), per_bin=max(split))
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
            "threshold": max(thresholds),
            "threshold_min": min(thresholds),
            "allowed": float(allowed),
            "spent": spent,
            "one_lower": lower,
            "worst_split": {str(size): number for size, number in places.items()},
            "runs_to_see_one_lower": needed,
        },
    )


def _sensitivities(case: Case) -> Iterator[Row]:
    windows_of = {release.name: release.window for release in case.releases}
    for name, mechanism in _drawable(case).items():
        for component, noise in (components(mechanism) or {}).items():
            longest = windows_of[name.split(" ")[0]]
            factor, law = noise.process.factor, noise.process.law
            structure = Structure.of(factor)
            measured = worst_size(structure, law=law, longest=longest)
            declared = factor.window_l2sq
            if law == "laplace":
                assert not isinstance(factor, DenseFactor)
                declared = factor.window_l1
            verdict: Verdict = "holds"
            if measured > declared + 1e-6 or not structure.full_rank:
                verdict = "accused"
            yield Row(
                mechanism=case.title,
                model=case.model,
                factor=factor.name,
                test="least shift of every window",
                claim=f"{'L1' if law == 'laplace' else 'L2 squared'} {declared}",
                measured=f"{measured:.4f} over {len(windows(case.horizon, longest))} windows"
                + ("" if structure.full_rank else "; some rounds are fixed sums of others"),
                confidence=1.0,
                verdict=verdict,
                details={"release": f"{name} {component}", "declared": declared, "least": measured},
            )


def chosen_outlines(size: Size, *, only: str = "") -> list[Outline]:
    """What is audited at this size.

    Args:
        size: Of the audit.
        only: A kind; releases without one of it are left out. "" for all.
    """
    return [one for one in outlines(deep=size.deep) if only in {"", *one.kinds}]


def audit(
    seed: Seed,
    size: Size,
    progress: Callable[[str], None] = lambda _: None,
    *,
    chosen: Sequence[Outline],
) -> list[Row]:
    """All these cases; planted faults are in `faults`, adaptive adversaries in `game`."""
    rows: list[Row] = []
    for number, outline in enumerate(chosen, start=1):
        progress(f"privacy, case {number} of {len(chosen)}: {outline.model}, {outline.title}")
        case = outline.case(size.horizon)
        own = seed.further("case", outline.model, outline.title)
        rows += rows_of(case, own, size, miss=MISS / len(chosen))
    return rows
