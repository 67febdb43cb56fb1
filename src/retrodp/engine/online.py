"""From a resolved plan to the kinds that cluster a stream as it comes: `online_kmeans`, `online_kmedian`.

Rows for `retrodp.engine.compile`: statistic, factor, what is settled when the plan is resolved,
mechanism. Sketch and centres are those of `retrodp.clustering`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NoReturn

from retrodp.clustering.arrivals import arrival_norms, factor_of
from retrodp.clustering.consistent import MEANS_FROM, Consistent
from retrodp.clustering.counters import SHARES, SUMS, parts_of
from retrodp.clustering.online import OnlineClusters
from retrodp.clustering.places import Box
from retrodp.clustering.practical import CLIP_PARTS, default_levels, thresholds
from retrodp.clustering.sketch import PracticalSketch
from retrodp.clustering.theory import Theory
from retrodp.errors import NotInThisVersionError, PlanError, StoreCorruptError
from retrodp.mechanisms.band import Band
from retrodp.mechanisms.calibrate import MOST_DENSE_ROUNDS
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.noise.factors.gathered import Blocks
from retrodp.noise.processes import AnyFactor
from retrodp.plan import kinds
from retrodp.plan.plan import Plan
from retrodp.plan.releases import Release
from retrodp.privacy.budget import PureDP, zCDP
from retrodp.privacy.conversion import rho_of
from retrodp.statistics.arrivals import ArrivingPoints
from retrodp.statistics.contract import Component
from retrodp.statistics.grid import RADIUS

Noises = tuple[CalibratedNoise, ...]

MANY_ROUNDS = 400
"""Up to which every round is a block of its own where the plan names no blocks."""

MOST_SUMMED = 1 << 13
"""Weights in one sum that the bands are certified for: all representatives that there can be."""


def points(plan: Plan, release: Release) -> ArrivingPoints:
    """The arriving points, and what one of them moves.

    Raises:
        PlanError: The release asks for what such a clustering cannot have.
    """
    keys = _keys(release)
    if release.window is not None:
        raise PlanError(
            f"release.{release.name}.window: an online clustering keeps what arrived for good.",
            do=f'Leave window out, or plan kind = "{release.kind.removeprefix("online_")}".',
        )
    if keys.mode == "theory":
        _refuse_theory(plan, release)
    parts = parts_of(box(plan, release), SHARES)
    return ArrivingPoints(
        of=tuple(map(plan.column, keys.of)),
        parts=tuple(
            Component(
                part.name,
                RADIUS if part.name == SUMS else 1,
                Fraction(1, RADIUS) if part.name == SUMS else Fraction(1),
                part.share,
                ((),) * part.moved,
                norms=part.norms,
                separate=True,
                grows=True,
            )
            for part in parts
        ),
        where=release.where,
    )


def box(plan: Plan, release: Release) -> Box:
    """The public box of the points; a function of the plan alone."""
    columns = tuple(map(plan.column, _keys(release).of))
    return Box.of(columns, default_levels(len(columns)), CLIP_PARTS)


def blocks_of(plan: Plan, release: Release) -> Blocks:
    """How the rounds are gathered: at most as many blocks as the plan names."""
    horizon = (
        plan.stream.horizon
    )  # of the epoch; the first may have fewer rounds than blocks are named
    most = min(_keys(release).blocks or MANY_ROUNDS, horizon)
    return Blocks(horizon=horizon, length=-(-horizon // most))


def factor(plan: Plan, release: Release) -> AnyFactor:
    """Noise of counters that only grow, by block.

    The sketch reads its own answers, so Gaussian noise must be causal: binary, or without forward
    secrecy the square root of the counting matrix, which has about two fifths of its error.
    """
    number, law = blocks_of(plan, release).number, plan.privacy.law
    admitted = ["binary"]
    if law == "laplace":
        admitted.append("delannoy")
    elif not plan.privacy.forward_secrecy and number <= MOST_DENSE_ROUNDS:
        admitted.append("dense")
    if release.factor not in {"auto", *admitted}:
        raise PlanError(
            f'release.{release.name}.factor = "{release.factor}" does not fit: the sketch reads its '
            "own answers, and its noise may not reach into the future.",
            expected=", ".join(admitted),
            do="Leave factor out; forward_secrecy = false admits less noise.",
        )
    if release.factor == "auto" and "dense" in admitted:
        return factor_of("sqrt", number)
    if release.factor == "dense":
        return factor_of("dense", number)
    if release.factor == "delannoy" or (release.factor == "auto" and law == "laplace"):
        found = [factor_of("delannoy", number), factor_of("binary", number)]
        return found[0] if release.factor == "delannoy" else min(found, key=_laplace_error)
    return factor_of("binary", number)


def _laplace_error(found: AnyFactor) -> float:
    worst = max(float(found.unit_variance(r)) for r in range(1, found.horizon + 1))  # type: ignore[union-attr]
    return worst * arrival_norms(found).l1 ** 2


def settled(plan: Plan, release: Release, noises: Noises) -> Mapping[str, Any]:
    """Geometry, blocks, thresholds, bands and the sketch's constants."""
    keys, own, blocks = _keys(release), box(plan, release), blocks_of(plan, release)
    sketch = PracticalSketch.__dataclass_fields__
    miss = (1 - release.level) / 2
    return {
        "geometry": own.grid.spec(),
        "clip": own.clip,
        "rounds_a_block": blocks.length,
        "least_counts": list(thresholds(noises[0].process, own, blocks.number)),
        "eagerness": sketch["eagerness"].default,
        "cap": sketch["cap"].default,
        "first_width": str(sketch["first_width"].default),
        "shares": {name: str(share) for name, share in SHARES.items()},
        "band": Band.of(noises[1].process, miss=miss, coordinates=MOST_SUMMED).spec(),
        "centres": {
            "grid": 1,
            "gain": str(Fraction(1, 2 * keys.k)),
            "costs_at": "means" if len(keys.of) >= MEANS_FROM else "representatives",
        },
    }


def online(
    plan: Plan, release: Release, noises: Noises, entry: Mapping[str, Any]
) -> OnlineClusters:
    """The mechanism of an `online_kmeans` or `online_kmedian`.

    Raises:
        StoreCorruptError: The plan gives another box than that which was resolved.
    """
    keys, own = _keys(release), box(plan, release)
    blocks = Blocks(horizon=plan.stream.horizon, length=entry["rounds_a_block"])
    if (own.grid.spec(), own.clip) != (entry["geometry"], entry["clip"]):
        raise StoreCorruptError(
            f"The cells of release {release.name} are not those that the store was created with.",
            do="Open the store with the version of retrodp that wrote it.",
        )
    cells, weights, sums, size = noises
    sketch = PracticalSketch(
        name=release.name,
        box=own,
        k=keys.k,
        power=keys.power,
        horizon=blocks.number,
        cells=cells.process,
        weights=weights.process,
        sums=sums.process,
        size=size.process,
        threshold=tuple(entry["least_counts"]),
        eagerness=entry["eagerness"],
        cap=entry["cap"],
        first_width=Fraction(entry["first_width"]),
        records=plan.stream.max_records or 1,
        shares=tuple((name, Fraction(share)) for name, share in entry["shares"].items()),
    )
    return OnlineClusters(
        name=release.name,
        statistic=points(plan, release),
        sketch=sketch,
        consistent=Consistent(
            k=keys.k,
            power=keys.power,
            algorithm=keys.algorithm,
            grid=entry["centres"]["grid"],
            gain=Fraction(entry["centres"]["gain"]),
            costs_at=entry["centres"]["costs_at"],
        ),
        gathered=blocks,
        weights=weights,
        band=Band.from_spec(entry["band"]),
        level=release.level,
    )


def notes(releases: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is predicted of online clusterings, in sentences.

    Args:
        releases: Facts of each, as `check` has them.
    """
    return [
        f"{own['name']}: weights have a standard deviation of at most {own['stddev_max']:.4g} points; "
        f"a cell becomes a representative from a noisy {own['least_count']} sampled points on, so "
        f"that there are at most about {own['representatives_a_phase']:,} of them a phase. Parts of "
        f"the budget: {', '.join(_part(part) for part in own['parts'])}. {own['blocks']} blocks of "
        f"{own['rounds_a_block']} {'round' if own['rounds_a_block'] == 1 else 'rounds'}."
        for own in releases
        if "rounds_a_block" in own
    ]


def _part(part: Mapping[str, Any]) -> str:
    return f"{part['part']} {float(Fraction(part['share'])):.0%}"


def _keys(release: Release) -> kinds.OnlineKMeans:
    assert isinstance(release.statistic, kinds.OnlineKMeans)
    return release.statistic


def _refuse_theory(plan: Plan, release: Release) -> NoReturn:
    """Say what the theorem needs of so many points, and where what it covers can be run.

    Raises:
        PlanError: It says nothing there; with its numbers.
        NotInThisVersionError: It does, for streams that are given as a whole.
    """
    keys, share = _keys(release), plan.share_of(release)
    assert keys.points is not None
    epsilon, delta = plan.privacy.epsilon, plan.privacy.delta
    budget: PureDP | zCDP = PureDP(epsilon * share)
    if plan.privacy.model == "zcdp":
        assert delta is not None
        budget = zCDP(rho_of(epsilon, delta) * share)
    theory = Theory(
        points=keys.points,
        k=keys.k,
        dimensions=len(keys.of),
        budget=budget,
        failure=float(1 - release.level),
        power=keys.power,
    )
    theory.refuse_vacuous()
    raise NotInThisVersionError(
        f'release.{release.name}: mode = "theory" is not in this version of the store.',
        do="Run it on a stream that is given as a whole: retrodp.clustering.theory_sketch.",
    )
