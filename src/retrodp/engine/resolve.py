"""From a plan to a resolved plan: every number a running store will use, decided once.

Data independent: it sees the plan and nothing else. The budget is exact; every reported loss is
rounded up.
"""

from __future__ import annotations

import importlib.metadata
import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from retrodp.engine.compile import is_sparse, mechanism_of, settled_of, statistic_of
from retrodp.errors import BudgetError, NotInThisVersionError, PlanError
from retrodp.mechanisms.calibrate import (
    choose_any_factor,
    choose_factor,
    gaussian_process,
    laplace_process,
)
from retrodp.mechanisms.calibrated import CalibratedNoise, losses_of
from retrodp.mechanisms.threshold import threshold_for
from retrodp.noise.factors.dense import DenseFactor
from retrodp.noise.prf import collision_bound
from retrodp.noise.processes import AnyFactor, Process
from retrodp.plan import kinds
from retrodp.plan.plan import Plan
from retrodp.plan.releases import Release
from retrodp.plan.resolved import ResolvedPlan
from retrodp.privacy.calibrate import DeltaSplit, largest_rho, split_delta
from retrodp.privacy.loss import PrivacyLoss
from retrodp.privacy.neighbours import Protection
from retrodp.privacy.norms import Norms
from retrodp.statistics.contract import Component
from retrodp.stream.clock import Clock

NOISE_FORMAT = 1
LAWS = {"zcdp": "gaussian", "pure": "laplace"}


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

    def gaussian(self, rho: Fraction) -> Process:
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
    """One release: its parts, and whether it has a threshold."""

    release: Release
    parts: tuple[_Part, ...]
    sparse: bool
    share: Fraction


def resolve(plan: Plan) -> ResolvedPlan:
    """Decide factors, scales, thresholds and the split of the budget.

    Raises:
        BudgetError: If the plan's delta is smaller than what label collisions need, or missing.
        PlanError: If a release cannot be made under the plan.
    """
    stream = plan.stream
    clock = Clock.of_stream(stream)
    items = _items(plan)
    deltas = _split_delta(plan, items)
    made, spent = _made(plan, items, deltas["conversion"])
    sparse = sum(item.sparse for item in items)
    entries = [
        _entry(plan, item, made, deltas["thresholds"] / sparse if item.sparse else None)
        for item in items
    ]
    return ResolvedPlan(
        noise_format=NOISE_FORMAT,
        plan=plan.to_dict(),
        boundaries=clock.boundaries,
        tzdata=importlib.metadata.version("tzdata"),
        unicode=unicodedata.unidata_version,
        releases=tuple(entries),
        budget={
            "model": plan.privacy.model,
            "epsilon": str(plan.privacy.epsilon),
            "delta": str(plan.privacy.delta or Fraction(0)),
            "delta_parts": {name: str(part) for name, part in deltas.items()},
            **spent,
        },
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
    total = sum((release.share for release in plan.releases), Fraction(0))
    return [_item(plan, release, release.share / total) for release in plan.releases]


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
        )
        for component in components
    )
    return _Item(release=release, parts=parts, sparse=is_sparse(plan, release), share=share)


def _factor(plan: Plan, release: Release) -> AnyFactor:
    horizon, law = plan.stream.horizon, LAWS[plan.privacy.model]
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


def most_moved(plan: Plan, release: Release) -> int:
    """Most that one unit moves a coordinate of the release, in steps."""
    components = statistic_of(plan, release).components
    return max(component.amount for component in components) * protection_of(plan).max_records


def planned_bins(plan: Plan, release: Release) -> int:
    """Bins of a release: the public ones, or as many open labels as are planned."""

    def bins(by: tuple[str, ...]) -> int:
        if not plan.is_public(by):
            return _max_bins(release)
        return math.prod(len(plan.column(name).public_values or ()) for name in by)

    tables = release.statistic.marginals if isinstance(release.statistic, kinds.Cube) else None
    return bins(release.by) if tables is None else sum(map(bins, tables))


def _refuse_open_sums(plan: Plan, release: Release) -> None:
    public_only = kinds.Sum | kinds.Mean | kinds.Quantiles | kinds.Cdf | kinds.Range
    if isinstance(release.statistic, public_only) and not plan.is_public(release.by):
        raise NotInThisVersionError(
            f"release.{release.name}: {release.kind} by an open-domain column is not in this version.",
            do="Group by category or boolean columns, or publish a histogram.",
        )


def _split_delta(plan: Plan, items: Sequence[_Item]) -> dict[str, Fraction]:
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
    collisions = sum(
        (Fraction(collision_bound(_max_bins(item.release))) for item in sparse), Fraction(0)
    )
    pure = plan.privacy.model == "pure"
    if not sparse or pure:
        if sparse and delta <= collisions:
            raise BudgetError(
                f"privacy.delta = {float(delta):g} does not cover the probability that two labels "
                f"share their noise ({float(collisions):.3g}).",
                do="Raise privacy.delta or lower max_bins of the open-domain releases.",
            )
        noise, thresholds = (Fraction(0), delta) if pure else (delta, Fraction(0))
        return _parts_of_delta(
            noise, thresholds - collisions if sparse else Fraction(0), collisions
        )

    def thresholds_at(split: DeltaSplit) -> float:
        made, _ = _made(plan, items, split.noise)
        each = split.thresholds / len(sparse)
        return sum(math.log(_threshold(item, made, each)) for item in sparse)

    split = split_delta(delta, reserved=collisions, cost=thresholds_at)
    return _parts_of_delta(split.noise, split.thresholds, collisions)


def _parts_of_delta(
    conversion: Fraction, thresholds: Fraction, collisions: Fraction
) -> dict[str, Fraction]:
    return {
        "conversion": conversion,
        "thresholds": thresholds,
        "collisions": collisions,
        "rounding": Fraction(0),
    }


def _threshold(item: _Item, made: Mapping[str, Process], delta: Fraction) -> int:
    part = item.parts[-1]  # of a cube, whose public cells come first
    return threshold_for(
        made[part.label], delta=delta, records=sum(part.split), per_bin=max(part.split)
    )


def _max_bins(release: Release) -> int:
    assert isinstance(release.statistic, kinds.Histogram | kinds.Cube)
    return release.statistic.max_bins


def _made(
    plan: Plan, items: Sequence[_Item], delta: Fraction
) -> tuple[dict[str, Process], dict[str, str]]:
    """The noise of every part by its label, and what the parts spend together."""
    parts = [part for item in items for part in item.parts]
    if plan.privacy.model == "pure":
        return {part.label: part.laplace(plan.privacy.epsilon) for part in parts}, {}

    def losses(rho: Fraction) -> list[PrivacyLoss]:
        return [loss for part in parts for loss in part.losses(part.gaussian(rho))]

    rho = largest_rho(losses, epsilon=plan.privacy.epsilon, delta=delta)
    return {part.label: part.gaussian(rho) for part in parts}, {"rho": str(rho)}


def _entry(
    plan: Plan, item: _Item, made: Mapping[str, Process], delta: Fraction | None
) -> Mapping[str, Any]:
    noises = tuple(part.noise(made[part.label]) for part in item.parts)
    first, *further = [noise.spec() for noise in noises]
    entry: dict[str, Any] = {
        "name": item.release.name,
        "kind": item.release.kind,
        "share": str(item.share),
        "noise": first,
        "further": further,
        **settled_of(plan, item.release, noises),
    }
    if delta is not None:
        entry["threshold"] = _threshold(item, made, delta)
        entry["threshold_delta"] = str(delta)
        entry["max_bins"] = _max_bins(item.release)
    mechanism = mechanism_of(plan, item.release, entry)
    return entry | {
        "step": str(mechanism.step),
        "retroactive": mechanism.retroactive,
        "adaptive": mechanism.adaptive,
    }
