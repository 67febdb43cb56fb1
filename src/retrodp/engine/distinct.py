"""The kind `distinct`: a table of methods, and the choice between them from the plan alone.

A further method is a row of `METHODS`. What is chosen, and every size that follows from the plan,
is decided once and stored in the resolved plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from retrodp.engine import distinct_memory, outlook
from retrodp.engine.outlook import Ground, Outlook
from retrodp.errors import PlanError
from retrodp.mechanisms import ladder, minhash
from retrodp.mechanisms.bracket import Sureness
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.contract import AnyMechanism
from retrodp.mechanisms.distinct import FreshDistinct
from retrodp.mechanisms.ladder import MOST_HEIGHT, Ladder, height_for
from retrodp.mechanisms.minhash import MinHash
from retrodp.noise.factors.fresh import FreshFactor
from retrodp.noise.processes import AnyFactor
from retrodp.plan import kinds
from retrodp.plan.distinct_kind import DistinctMethod
from retrodp.plan.plan import Plan
from retrodp.plan.releases import Release
from retrodp.privacy.conversion import rho_of
from retrodp.statistics.contract import Statistic
from retrodp.statistics.items import BucketedItems, Items, LowBitItems, PresentItems
from retrodp.statistics.label import BinLabels

Noises = tuple[CalibratedNoise, ...]
Shape = Mapping[str, int]
"""Whole numbers that follow from the plan and fix a statistic: heights, instances."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided(kinds.Distinct):
    """A `distinct` whose method and sizes are decided.

    Attributes:
        asked: The plan's own word for the method.
        shape: What the method made of the plan, by name.
        why: Reason of the choice, for people.
        predicted: Predicted error of every method that was compared, as texts; see `Method`.
    """

    asked: str
    shape: tuple[tuple[str, int], ...] = ()
    why: str = ""
    predicted: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One way to count different values.

    Attributes:
        statistic: What is measured: of plan, release and shape.
        mechanism: Of plan, release, noises (one a component of the statistic) and stored entry.
        settled: What the resolved plan stores of it beyond noise, method and shape.
        shape: Sizes that follow from plan and release.
        factor: The factor that the method and its shape dictate, or None where the plan's `factor`
            may choose.
        later: The shape in a later epoch: sizes stay, what they cost follows its horizon.
        predicted: What `auto` compares, see `retrodp.engine.outlook`; None where the method does
            not fit the ground. None in its place: `auto` never picks the method.
    """

    statistic: Callable[[Plan, Release, Shape], Statistic]
    mechanism: Callable[[Plan, Release, Noises, Mapping[str, Any]], AnyMechanism]
    settled: Callable[[Plan, Release, Noises], Mapping[str, Any]] = lambda *_: {}
    shape: Callable[[Plan, Release], Shape] = lambda *_: {}
    factor: Callable[[Plan, Release, Shape], AnyFactor | None] = lambda *_: None
    later: Callable[[Plan, Release, Shape], Shape] = lambda _plan, _release, shape: shape
    predicted: Callable[[Ground], Outlook | None] | None = None


def items_of(plan: Plan, release: Release) -> Items:
    """What the release counts the different values of."""
    of = _keys(release).of
    columns = tuple(plan.column(name) for name in of)
    return Items(of=BinLabels(columns=columns), where=release.where)


def facts_of(entry: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Public facts about the choice of a method, for `describe` of its mechanism."""
    found = [(name, entry.get(name)) for name in ("method", "why", "predicted", "ratio")]
    return tuple((name, value) for name, value in found if value)


def choice_notes(releases: Sequence[Mapping[str, Any]]) -> list[str]:
    """Why `auto` took the methods that it took, in sentences.

    Args:
        releases: Facts of each, as `check` has them.
    """
    return [
        f"{release['name']}: method {release['method']}. {release['why']}"
        for release in releases
        if release.get("predicted")
    ]


def fresh_factor(plan: Plan, release: Release) -> FreshFactor:
    """Noise of its own in every round in which a record can count."""
    horizon = plan.stream.horizon
    return FreshFactor(horizon=horizon, window=release.window or horizon)


def decided(plan: Plan, release: Release) -> Release:
    """The release with its method and sizes decided, from the plan alone."""
    keys = _keys(release)
    if isinstance(keys, Decided):
        return release
    if keys.method != "auto":
        return _decided(plan, release, keys.method, why="The plan names it.", predicted={})
    ratios = _ratios(plan, release)
    name = min(ratios, key=lambda one: ratios[one])  # of equals the first of METHODS
    others = ", ".join(f"{one} {_shown(ratio)}" for one, ratio in ratios.items() if one != name)
    low, high = keys.expect
    why = (
        f"Of the methods that forget completely it has the least predicted ratio between the ends "
        f"of an interval, {_shown(ratios[name])}, for {low:,} to {high:,} items and any number of records "
        f"an item ({others})."
    )
    predicted = {one: f"{ratio:.4g}" for one, ratio in ratios.items()}
    return _decided(plan, release, name, why=why, predicted=predicted)


def _shown(ratio: float) -> str:
    """Three or more digits, and no exponent."""
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"


def as_settled(release: Release, entry: Mapping[str, Any]) -> Release:
    """The release with the method and sizes that were stored."""
    keys = _keys(release)
    found = Decided(
        of=keys.of,
        method=entry["method"],
        expect=keys.expect,
        flips=keys.flips,
        asked=keys.method,
        shape=tuple(entry["shape"].items()),
        why=entry["why"],
        predicted=tuple(entry["predicted"].items()),
    )
    return replace(release, statistic=found)


def in_later_epoch(plan: Plan, release: Release) -> Release:
    """The settled release under a longer horizon: the same method and sizes, charged for it."""
    keys = _decision(release)
    shape = METHODS[keys.method].later(plan, release, dict(keys.shape))
    return replace(release, statistic=replace(keys, shape=tuple(shape.items())))


def statistic(plan: Plan, release: Release) -> Statistic:
    """The statistic of the release's method."""
    keys = _keys(decided(plan, release))
    assert isinstance(keys, Decided)
    return METHODS[keys.method].statistic(plan, release, dict(keys.shape))


def mechanism(
    plan: Plan, release: Release, noises: Noises, entry: Mapping[str, Any]
) -> AnyMechanism:
    """The mechanism of the release's method."""
    return METHODS[entry["method"]].mechanism(plan, release, noises, entry)


def settled(plan: Plan, release: Release, noises: Noises) -> Mapping[str, Any]:
    """What is decided beyond the noise."""
    keys = _keys(release)
    assert isinstance(keys, Decided)
    return {
        "method": keys.method,
        "shape": dict(keys.shape),
        "why": keys.why,
        "predicted": dict(keys.predicted),
        **METHODS[keys.method].settled(plan, release, noises),
    }


def factor(plan: Plan, release: Release) -> AnyFactor | None:
    """The factor that the release's method dictates, if it does."""
    keys = _decision(decided(plan, release))
    found = METHODS[keys.method].factor(plan, release, dict(keys.shape))
    if found is not None and release.factor != "auto":
        raise PlanError(
            f'release.{release.name}.factor = "{release.factor}" does not fit: method = '
            f'"{keys.method}" needs {found.name} noise.',
            do="Leave factor out.",
        )
    return found


def _decided(
    plan: Plan, release: Release, name: str, *, why: str, predicted: Mapping[str, str]
) -> Release:
    keys = _keys(release)
    found = Decided(
        of=keys.of,
        method=cast("DistinctMethod", name),
        expect=keys.expect,
        flips=keys.flips,
        asked=keys.method,
        shape=tuple(METHODS[name].shape(plan, release).items()),
        why=why,
        predicted=tuple(predicted.items()),
    )
    return replace(release, statistic=found)


def _ratios(plan: Plan, release: Release) -> dict[str, float]:
    """Predicted ratio of every method that `auto` may pick, in the order of `METHODS`."""
    ground = ground_of(plan, release)
    found = {
        name: method.predicted(ground)
        for name, method in METHODS.items()
        if method.predicted is not None
    }
    return {name: outlook.ratio for name, outlook in found.items() if outlook is not None}


def ground_of(plan: Plan, release: Release) -> Ground:
    """What the release's method is planned for; the budget as the closed form converts it."""
    privacy, horizon = plan.privacy, plan.stream.horizon
    share = plan.share_of(release)
    if privacy.model == "pure":
        budget = privacy.epsilon
    else:
        assert privacy.delta is not None
        budget = rho_of(privacy.epsilon, privacy.delta)
    low, high = _keys(release).expect
    return Ground(
        horizon=horizon,
        window=release.window or horizon,
        law=privacy.law,
        budget=budget * share,
        records=plan.stream.max_records or 1,
        factor=release.factor,
        low=low,
        high=high,
        level=release.level,
    )


def _keys(release: Release) -> kinds.Distinct:
    assert isinstance(release.statistic, kinds.Distinct)
    return release.statistic


def _fresh(
    _plan: Plan, _release: Release, noises: Noises, entry: Mapping[str, Any]
) -> FreshDistinct:
    return FreshDistinct(noise=noises[0], facts=facts_of(entry))


def _height(_plan: Plan, release: Release) -> Shape:
    _, high = _keys(release).expect
    height = height_for(high)
    if height > MOST_HEIGHT:
        raise PlanError(
            f"release.{release.name}.expect reaches {high}: a ladder for so many has more than "
            f"2^{MOST_HEIGHT} buckets, all of them evaluated every round.",
            expected=f"at most {(1 << (MOST_HEIGHT - 1)) - 1}",
            do='Expect fewer, or use method = "fresh" or "minhash".',
        )
    return {"height": height}


def _buckets(plan: Plan, release: Release, shape: Shape, *, signed: bool) -> BucketedItems:
    items = items_of(plan, release)
    return BucketedItems(items=items, height=shape["height"], signed=signed)


def _settled_ladder(
    _plan: Plan, release: Release, noises: Noises, *, signed: bool
) -> Mapping[str, Any]:
    height = dict(_decision(release).shape)["height"]
    sureness = ladder.sureness_of(
        noises[0].process, height=height, level=noises[0].level, signed=signed
    )
    found = outlook.of_ladder(_numbers(release), sureness, height)
    return {"sureness": sureness.spec(), **_errors(found)}


def _ladder(_plan: Plan, _release: Release, noises: Noises, entry: Mapping[str, Any]) -> Ladder:
    return Ladder(
        noise=noises[0],
        height=entry["shape"]["height"],
        sureness=Sureness.from_spec(entry["sureness"]),
        facts=_facts_of_bracket(entry),
    )


def _hashes(plan: Plan, release: Release) -> Shape:
    _, high = _keys(release).expect
    ground = ground_of(plan, release)
    return {"instances": outlook.instances_for(ground), "levels": minhash.levels_for(high)}


def _settled_minhash(_plan: Plan, release: Release, noises: Noises) -> Mapping[str, Any]:
    shape = dict(_decision(release).shape)
    instances, levels = shape["instances"], shape["levels"]
    sureness = minhash.sureness_of(
        noises[0].process, instances=instances, levels=levels, level=noises[0].level
    )
    found = outlook.of_minhash(_numbers(release), sureness, instances, levels)
    return {"sureness": sureness.spec(), **_errors(found)}


def _minhash(_plan: Plan, _release: Release, noises: Noises, entry: Mapping[str, Any]) -> MinHash:
    return MinHash(
        noise=noises[0],
        instances=entry["shape"]["instances"],
        levels=entry["shape"]["levels"],
        sureness=Sureness.from_spec(entry["sureness"]),
        facts=_facts_of_bracket(entry),
    )


def _errors(found: Outlook) -> dict[str, Any]:
    return {
        "errors": {"stddev": "", "half": found.half, "half_all": found.half_all},
        "ratio": f"{found.ratio:.4g}",
    }


def _facts_of_bracket(entry: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Errors of a bucket would mislead: those of the bracket stand in their place."""
    errors = {
        "error_is": "half the distance of the ends, at most, as predicted",
        "stddev_max": None,
        "error_max": entry["errors"]["half"],
        "error_all_max": entry["errors"]["half_all"],
    }
    return (*facts_of(entry), *errors.items())


def _numbers(release: Release) -> tuple[int, ...]:
    low, high = _keys(release).expect
    return outlook.some_numbers(low, high)


def _decision(release: Release) -> Decided:
    keys = _keys(release)
    assert isinstance(keys, Decided)
    return keys


METHODS: dict[str, Method] = {
    "fresh": Method(
        statistic=lambda plan, release, _: PresentItems(items=items_of(plan, release)),
        mechanism=_fresh,
        factor=lambda plan, release, _: fresh_factor(plan, release),
        predicted=outlook.fresh,
    ),
    "ladder": Method(
        statistic=lambda plan, release, shape: _buckets(plan, release, shape, signed=False),
        mechanism=_ladder,
        settled=lambda plan, release, noises: _settled_ladder(plan, release, noises, signed=False),
        shape=_height,
        predicted=outlook.ladder_ahead,
    ),
    "minhash": Method(
        statistic=lambda plan, release, shape: LowBitItems(
            items=items_of(plan, release), instances=shape["instances"], levels=shape["levels"]
        ),
        mechanism=_minhash,
        settled=_settled_minhash,
        shape=_hashes,
        predicted=outlook.minhash_ahead,
    ),
    "signed": Method(
        statistic=lambda plan, release, shape: _buckets(plan, release, shape, signed=True),
        mechanism=_ladder,
        settled=lambda plan, release, noises: _settled_ladder(plan, release, noises, signed=True),
        shape=_height,
    ),
    "flippancy": Method(
        statistic=lambda plan, release, shape: distinct_memory.flipping_items(
            items_of(plan, release), shape
        ),
        mechanism=lambda _, release, noises, entry: distinct_memory.flippancy(
            release, noises, entry["shape"], facts_of(entry)
        ),
        shape=distinct_memory.limits_of,
        factor=lambda plan, release, _: distinct_memory.tree(plan, release),
        later=distinct_memory.limits_later,
    ),
    "recompute": Method(
        statistic=lambda plan, release, _: PresentItems(items=items_of(plan, release)),
        mechanism=lambda _, __, noises, entry: distinct_memory.recompute(
            noises, entry["shape"], facts_of(entry)
        ),
        shape=distinct_memory.block_of,
        factor=distinct_memory.heads,
    ),
}
