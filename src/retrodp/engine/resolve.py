"""From a plan to a resolved plan: every number a running store will use, decided once.

Data independent: it sees the plan and nothing else. The budget is exact; every reported loss is
rounded up.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from retrodp.clustering import arrivals
from retrodp.engine.compile import (
    decided,
    factor_of,
    in_later_epoch,
    is_sparse,
    mechanism_of,
    settled_of,
    statistic_of,
)
from retrodp.engine.sampled import Sampling, require_known_horizon
from retrodp.engine.spending import Spending, bound, norms_of, require_within, stored
from retrodp.engine.states import require_partial
from retrodp.errors import BudgetError, NotInThisVersionError, PlanError
from retrodp.mechanisms.calibrate import (
    MOST_DENSE_ROUNDS,
    choose_any_factor,
    choose_factor,
    gaussian_process,
    laplace_process,
)
from retrodp.mechanisms.calibrated import CalibratedNoise, losses_of
from retrodp.mechanisms.threshold import threshold_for, thresholds_for
from retrodp.noise.factors.binary import BinaryFactor
from retrodp.noise.factors.delannoy import DelannoyFactor, least_delannoy
from retrodp.noise.factors.dense import DenseFactor
from retrodp.noise.factors.fresh import FreshFactor
from retrodp.noise.prf import collision_bound
from retrodp.noise.processes import AnyFactor, Process
from retrodp.noise.tails import MOST_SUMMED
from retrodp.plan import kinds
from retrodp.plan.plan import Plan
from retrodp.plan.releases import Release
from retrodp.plan.resolved import ResolvedPlan
from retrodp.plan.zone import tzdata_version
from retrodp.privacy.accountant import delta_of
from retrodp.privacy.calibrate import DeltaSplit, largest_rho, split_delta
from retrodp.privacy.conversion import rho_of
from retrodp.privacy.loss import GaussianNorm, PrivacyLoss
from retrodp.privacy.neighbours import Protection
from retrodp.privacy.norms import Norms
from retrodp.statistics.contract import Component
from retrodp.stream.clock import Clock

NOISE_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One component of a release on its way to calibrated noise."""

    label: str
    factor: AnyFactor
    component: Component
    split: tuple[int, ...]
    share: Fraction
    level: Fraction
    norms: Norms | None
    auto: bool
    window: int | None

    @property
    def alternatives(self) -> list[_Part]:
        """The part under each factor that it may have in some epoch of an open horizon."""
        horizon = self.factor.horizon
        factors = [self.factor]
        if self.auto:
            factors.append(choose_factor("auto", horizon=horizon, law="gaussian"))
            if self.window is not None:
                factors.append(FreshFactor(horizon=horizon, window=self.window))
        return [replace(self, factor=factor) for factor in factors]

    @property
    def growing(self) -> arrivals.Part | None:
        """The part as counters that only grow, if it is one."""
        if not self.component.grows:
            return None
        assert self.norms is not None
        return arrivals.Part(
            name=self.label, share=Fraction(1), norms=self.norms, moved=sum(self.split)
        )

    def gaussian(self, rho: Fraction) -> Process:
        if self.growing is not None:
            assert isinstance(self.factor, DenseFactor | BinaryFactor)
            return arrivals.gaussian_part(self.growing, self.factor, rho * self.share)
        if self.norms is not None:
            # As one coordinate that moves by one step, at its part of the budget.
            return gaussian_process(
                self.factor, rho=rho * self.share / self.norms.l2_squared, amount=1
            )
        return gaussian_process(
            self.factor, rho=rho * self.share, amount=self.component.amount, split=self.split
        )

    def laplace(self, epsilon: Fraction) -> Process:
        assert not isinstance(self.factor, DenseFactor)
        if self.growing is not None:
            return arrivals.laplace_part(self.growing, self.factor, epsilon * self.share)
        if self.norms is not None:
            return laplace_process(
                self.factor, epsilon=epsilon * self.share / self.norms.l1, amount=1
            )
        return laplace_process(
            self.factor,
            epsilon=epsilon * self.share,
            amount=self.component.amount,
            split=self.split,
        )

    def losses(self, process: Process) -> tuple[PrivacyLoss, ...]:
        if self.growing is not None:
            return (arrivals.losses_of(self.growing, process),)
        return losses_of(process, amount=self.component.amount, split=self.split, norms=self.norms)

    def noise(self, process: Process) -> CalibratedNoise:
        return CalibratedNoise.of(
            self.label,
            process,
            step=self.component.step,
            amount=self.component.amount,
            split=self.split,
            level=self.level,
            norms=self.norms,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """One release: its parts, whether it has a threshold, and its samples if it draws some."""

    release: Release
    parts: tuple[_Part, ...]
    sparse: bool
    share: Fraction
    sampling: Sampling | None = None


def resolve(plan: Plan) -> ResolvedPlan:
    """Decide factors, scales, thresholds and the split of the budget.

    Of an open horizon, those of the first epoch, and what all of its epochs may spend together.

    Raises:
        BudgetError: If the plan's delta is smaller than what label collisions need, or missing.
        PlanError: If a release cannot be made under the plan.
    """
    running, spending = plan.of_epoch(1), Spending.of(plan, 1)
    require_known_horizon(plan)
    _refuse_long_dense(plan)
    items = _items(running)
    if plan.stream.epochs is not None:
        _refuse_short_lived(plan.of_epoch(plan.stream.epochs.number), items)
    deltas = _split_delta(running, items, spending)
    items = _for_thresholds(running, items, deltas["thresholds"], spending)
    rho, norms = _rho(running, items, deltas["conversion"], spending)
    budget: dict[str, Any] = {
        "model": plan.privacy.model,
        "epsilon": str(plan.privacy.epsilon),
        "delta": str(plan.privacy.delta or Fraction(0)),
        "delta_parts": {name: str(part) for name, part in deltas.items()},
    }
    if rho is not None:
        budget["rho"] = str(rho)
    if plan.stream.epochs is not None:
        budget["losses"] = stored(norms)
    made = _made(running, items, rho, spending)
    boundaries = Clock.of_stream(running.stream).boundaries
    return _resolved(plan, items, made, budget, spending=spending, boundaries=boundaries)


def resolve_next(
    plan: Plan, before: ResolvedPlan, *, epoch: int, boundaries: Sequence[int]
) -> ResolvedPlan:
    """Decide the next epoch of an open horizon, within the budget that was stated for it.

    Args:
        plan: With the open horizon.
        before: The epoch before.
        epoch: Number of this one.
        boundaries: Of its rounds; the first is the end of the epoch before.

    Raises:
        PlanError: Its noise would not stay within what was accounted for when the first began.
    """
    running, spending = _as_before(plan.of_epoch(epoch), before), Spending.of(plan, epoch)
    budget = before.budget
    thresholds = Fraction(budget["delta_parts"]["thresholds"])
    items = _for_thresholds(running, _items(running), thresholds, spending)
    rho = Fraction(budget["rho"]) if "rho" in budget else None
    made = _made(running, items, rho, spending)
    parts = [part for item in items for part in item.parts]
    if rho is not None:
        for part, assumed in zip(parts, norms_of(budget), strict=True):
            require_within(part.losses(made[part.label]), assumed, spending, label=part.label)
    kept = {name: value for name, value in budget.items() if name != "epoch"}
    return _resolved(plan, items, made, kept, spending=spending, boundaries=boundaries)


def _as_before(running: Plan, before: ResolvedPlan) -> Plan:
    """With the methods of the epoch before: another one would need noise that was not stated."""
    return replace(
        running,
        releases=tuple(
            in_later_epoch(running, release, before.release(release.name))
            for release in running.releases
        ),
    )


def _resolved(
    plan: Plan,
    items: Sequence[_Item],
    made: Mapping[str, Process],
    budget: dict[str, Any],
    *,
    spending: Spending,
    boundaries: Sequence[int],
) -> ResolvedPlan:
    running = plan.of_epoch(spending.epoch)
    sparse = sum(item.sparse for item in items)
    thresholds = Fraction(budget["delta_parts"]["thresholds"]) * spending.share
    if plan.stream.epochs is not None:
        total = Fraction(budget.get("rho", budget["epsilon"])) * spending.share
        budget = budget | {
            "epoch": {
                "number": spending.epoch,
                "of": spending.epochs,
                "share": str(spending.share),
                "rho" if "rho" in budget else "epsilon": str(total),
                "thresholds": str(thresholds),
            }
        }
    entries = [
        _entry(running, item, made, thresholds / sparse if item.sparse else None, budget)
        for item in items
    ]
    return ResolvedPlan(
        noise_format=NOISE_FORMAT,
        plan=plan.to_dict(),
        boundaries=tuple(boundaries),
        tzdata=tzdata_version(),
        unicode=unicodedata.unidata_version,
        releases=tuple(entries),
        budget=budget,
    )


def protection_of(plan: Plan) -> Protection:
    """The plan's unit, and how many records of one unit may move at once."""
    stream = plan.stream
    bound = stream.max_per_bin
    return Protection(
        unit=stream.unit,
        max_records=stream.max_records or 1,
        max_per_bin=None if bound is None else bound.max,
        bin_columns=() if bound is None else bound.by,
        max_rounds=stream.max_rounds,
    )


def _items(plan: Plan) -> list[_Item]:
    return [
        _item(plan, decided(plan, release), plan.share_of(release)) for release in plan.releases
    ]


def _item(plan: Plan, release: Release, share: Fraction) -> _Item:
    _refuse_open_sums(plan, release)
    components = statistic_of(plan, release).components
    if any(component.amount == 0 for component in components):
        raise PlanError(
            f"release.{release.name} adds up a column that has a single value.",
            do="Widen the column's min and max.",
        )
    factor = _factor(plan, release)
    protection = protection_of(plan)
    parts = tuple(
        _Part(
            label=f"{release.name}/{component.name}" if component.name else release.name,
            factor=factor,
            component=component,
            split=tuple(
                records
                for columns in component.partitions
                for records in protection.worst_split(columns)
            ),
            share=share * component.share,
            # Parts that make up one number share the allowed miss of its interval.
            level=1 - (1 - release.level) / (1 if component.separate else len(components)),
            norms=component.norms and component.norms.of_records(protection.max_records),
            auto=release.factor == "auto" and factor_of(plan, release) is None,
            window=release.window,
        )
        for component in components
    )
    return _Item(
        release=release,
        parts=parts,
        sparse=is_sparse(plan, release),
        share=share,
        sampling=Sampling.of(plan, release, share),
    )


def _factor(plan: Plan, release: Release) -> AnyFactor:
    horizon, law = plan.stream.horizon, plan.privacy.law
    dictated = factor_of(plan, release)
    if dictated is not None:
        return dictated
    if not plan.privacy.forward_secrecy:
        return choose_any_factor(
            release.factor,
            horizon=horizon,
            law=law,
            window=release.window,
            coordinates=planned_bins(plan, release),
            amount=most_moved(plan, release),
        )
    if release.factor == "dense":
        raise PlanError(
            f'release.{release.name}.factor = "dense" under forward secrecy: all noise of a dense '
            "factor stays derivable from the key until the horizon, that of past rounds too.",
            expected="privacy.forward_secrecy = false",
            do="Set it if whoever holds the key may see past counts, or leave factor out.",
        )
    return choose_factor(release.factor, horizon=horizon, law=law, window=release.window)


def _refuse_long_dense(plan: Plan) -> None:
    """A dense factor ends long before the epochs of an open horizon do."""
    series = plan.stream.epochs
    if series is None or series.rounds(series.number) <= MOST_DENSE_ROUNDS:
        return
    for release in plan.releases:
        if release.factor == "dense":
            raise PlanError(
                f'release.{release.name}.factor = "dense" covers {MOST_DENSE_ROUNDS} rounds, but '
                f"the last epoch has {series.rounds(series.number)}.",
                do="Leave factor out: short epochs are dense by themselves where that is best.",
            )


def _refuse_short_lived(last: Plan, items: Sequence[_Item]) -> None:
    """Sizes that were decided must do in the last epoch too, where nobody can change them."""
    for item in items:
        decided(last, item.release)


def most_moved(plan: Plan, release: Release) -> int:
    """Most that one unit moves a coordinate of the release, in steps."""
    components = statistic_of(plan, release).components
    most = max((component.amount for component in components), default=1)
    return most * protection_of(plan).max_records


def planned_bins(plan: Plan, release: Release) -> int:
    """Bins of a release: the public ones, or as many open labels as are planned."""

    def bins(by: tuple[str, ...]) -> int:
        if not plan.is_public(by):
            return _max_bins(release)
        return math.prod(len(plan.column(name).public_values or ()) for name in by)

    coordinates: int | None = getattr(statistic_of(plan, release), "coordinates", None)
    if coordinates is not None:
        return coordinates
    tables = release.statistic.marginals if isinstance(release.statistic, kinds.Cube) else None
    return bins(release.by) if tables is None else sum(map(bins, tables))


def _refuse_open_sums(plan: Plan, release: Release) -> None:
    public_only = kinds.Sum | kinds.Mean | kinds.Quantiles | kinds.Cdf | kinds.Range
    measured = getattr(release.statistic, "inner", release.statistic)
    if isinstance(measured, public_only) and not plan.is_public(release.by):
        raise NotInThisVersionError(
            f"release.{release.name}: {release.kind} by an open-domain column is not in this version.",
            do="Group by category or boolean columns, or publish a histogram.",
        )


def _split_delta(plan: Plan, items: Sequence[_Item], spending: Spending) -> dict[str, Fraction]:
    """One delta for the plan: conversion, thresholds, collisions of open labels, rounding.

    Where there are thresholds, noise and thresholds share what collisions leave; the split is the
    one of least thresholds. Rounding takes nothing: the samplers are exact.
    """
    sparse = [item for item in items if item.sparse]
    delta = plan.privacy.delta or Fraction(0)
    if sparse and not delta:
        names = ", ".join(item.release.name for item in sparse)
        raise BudgetError(
            f"Releases over an open domain ({names}) need a delta for their threshold.",
            do="Set privacy.delta, or list the bins as a category column with values.",
        )
    collisions = spending.epochs * sum(
        (Fraction(collision_bound(_max_bins(item.release))) for item in sparse), Fraction(0)
    )
    samples = sum((item.sampling.reserve for item in items if item.sampling), Fraction(0))
    pure = plan.privacy.model == "pure"
    if not sparse or pure:
        if sparse and delta - samples <= collisions:
            raise BudgetError(
                f"privacy.delta = {float(delta):g} does not cover the probability that two labels "
                f"share their noise ({float(collisions):.3g}).",
                do="Raise privacy.delta or lower max_bins of the open-domain releases.",
            )
        if samples and not delta > samples:
            raise BudgetError(
                f"privacy.delta = {float(delta):g} does not cover what gates, ranks and functions "
                f"may fail with ({float(samples):.3g}).",
                do="Raise privacy.delta, or sample less.",
            )
        left = delta - samples
        noise, thresholds = (Fraction(0), left) if pure else (left, Fraction(0))
        return _parts_of_delta(
            noise, thresholds - collisions if sparse else Fraction(0), collisions, samples
        )

    def thresholds_at(split: DeltaSplit) -> float:
        rho, _ = _rho(plan, items, split.noise, spending)
        made = _made(plan, items, rho, spending)
        each = split.thresholds * spending.share / len(sparse)
        return sum(math.log(_threshold(item, made, each)) for item in sparse)

    split = split_delta(delta, reserved=collisions + samples, cost=thresholds_at)
    return _parts_of_delta(split.noise, split.thresholds, collisions, samples)


def _parts_of_delta(
    conversion: Fraction, thresholds: Fraction, collisions: Fraction, samples: Fraction
) -> dict[str, Fraction]:
    parts = {
        "conversion": conversion,
        "thresholds": thresholds,
        "collisions": collisions,
        "rounding": Fraction(0),
    }
    return {**parts, "samples": samples} if samples else parts


def _threshold(item: _Item, made: Mapping[str, Process], delta: Fraction) -> int:
    part = item.parts[-1]  # of a cube, whose public cells come first
    return threshold_for(
        made[part.label], delta=delta, records=sum(part.split), per_bin=max(part.split)
    )


def _thresholds(item: _Item, made: Mapping[str, Process], delta: Fraction) -> tuple[int, ...]:
    """One for every round."""
    (part,) = item.parts
    return thresholds_for(
        made[part.label], delta=delta, records=sum(part.split), per_bin=max(part.split)
    )


def _for_thresholds(
    plan: Plan, items: Sequence[_Item], delta: Fraction, spending: Spending
) -> list[_Item]:
    """Open histograms under pure epsilon get the delannoy tree of least threshold.

    Far tails favour fewer levels than the variance does, and what is not published because of a
    threshold is missing more than a little noise.
    """
    epsilon = plan.privacy.epsilon * spending.share
    sparse = sum(item.sparse for item in items)
    found = []
    for item in items:
        part = item.parts[-1] if item.parts else None
        if (
            plan.privacy.model == "pure"
            and item.sparse
            and isinstance(item.release.statistic, kinds.Histogram)
            and part is not None
            and isinstance(part.factor, DelannoyFactor)
        ):
            each = delta * spending.share / sparse

            def threshold(factor: DelannoyFactor, part: _Part = part, each: Fraction = each) -> int:
                process = replace(part, factor=factor).laplace(epsilon)
                return threshold_for(
                    process, delta=each, records=sum(part.split), per_bin=max(part.split)
                )

            factor = least_delannoy(part.factor.horizon, threshold, most_w=MOST_SUMMED)
            item = replace(item, parts=(*item.parts[:-1], replace(part, factor=factor)))  # noqa: PLW2901
        found.append(item)
    return found


def _max_bins(release: Release) -> int:
    assert isinstance(release.statistic, kinds.Histogram | kinds.Cube | kinds.Revised)
    return release.statistic.max_bins


def _rho(
    plan: Plan, items: Sequence[_Item], delta: Fraction, spending: Spending
) -> tuple[Fraction | None, list[GaussianNorm]]:
    """What all parts spend together in all epochs, and a bound for each if there are several."""
    parts = [part for item in items for part in item.parts]
    if plan.privacy.model == "pure":
        return None, []

    def bounds(rho: Fraction) -> list[GaussianNorm]:
        return [
            bound(
                [own.gaussian(rho * spending.largest).scale for own in part.alternatives],
                rho=rho * part.share,
            )
            for part in parts
        ]

    def losses(rho: Fraction) -> Sequence[PrivacyLoss]:
        if spending.series:
            return bounds(rho)
        made = _made(plan, items, rho, spending)
        return [
            *(loss for part in parts for loss in part.losses(made[part.label])),
            *(loss for item in items if item.sampling for loss in item.sampling.losses(rho, made)),
        ]

    if not parts and not any(item.sampling and item.sampling.scales for item in items):
        # Functions of the user's own, whose losses are declared and known to fit one by one.
        rho = rho_of(plan.privacy.epsilon, delta)
        if delta_of(losses(rho), plan.privacy.epsilon) > delta:
            raise BudgetError(
                "The functions of this plan together declare more than its budget.",
                do="Sample fewer records, declare less, or raise epsilon.",
            )
        return rho, []
    rho = largest_rho(losses, epsilon=plan.privacy.epsilon, delta=delta)
    return rho, bounds(rho) if spending.series else []


def _made(
    plan: Plan, items: Sequence[_Item], rho: Fraction | None, spending: Spending
) -> dict[str, Process]:
    """The noise of every part in one epoch, by its label."""
    parts = [part for item in items for part in item.parts]
    if rho is None:
        return {part.label: part.laplace(plan.privacy.epsilon * spending.share) for part in parts}
    return {part.label: part.gaussian(rho * spending.share) for part in parts}


def _entry(
    plan: Plan,
    item: _Item,
    made: Mapping[str, Process],
    delta: Fraction | None,
    budget: Mapping[str, Any],
) -> Mapping[str, Any]:
    noises = tuple(part.noise(made[part.label]) for part in item.parts)
    specs: list[dict[str, Any] | None] = [noise.spec() for noise in noises]
    first, *further = specs or [None]
    entry: dict[str, Any] = {
        "name": item.release.name,
        "kind": item.release.kind,
        "share": str(item.share),
        "noise": first,
        "further": further,
        **settled_of(plan, item.release, noises),
    }
    if item.sampling is not None:
        entry |= item.sampling.settled(Fraction(budget.get("rho", budget["epsilon"])), made)
    if delta is not None:
        entry["threshold"] = _threshold(item, made, delta)
        if isinstance(item.release.statistic, kinds.Histogram):
            each = _thresholds(item, made, delta)
            entry |= {"threshold": max(each), "thresholds": list(each)}
        entry["threshold_delta"] = str(delta)
        entry["max_bins"] = _max_bins(item.release)
    mechanism = mechanism_of(plan, item.release, entry)
    require_partial(plan, [mechanism])
    return entry | {
        "step": str(mechanism.step),
        "retroactive": mechanism.retroactive,
        "adaptive": mechanism.adaptive,
    }
