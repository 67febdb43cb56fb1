"""From a plan to a resolved plan: every number a running store will use, decided once.

Data independent: it sees the plan and nothing else. The budget is exact; every reported loss is
rounded up.
"""

from __future__ import annotations

import importlib.metadata
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from retrodp.engine.compile import is_sparse, statistic_of
from retrodp.errors import BudgetError, NotInThisVersionError, PlanError
from retrodp.mechanisms.calibrate import choose_factor, gaussian_process, laplace_process
from retrodp.mechanisms.calibrated import CalibratedNoise, losses_of
from retrodp.mechanisms.threshold import threshold_for
from retrodp.noise.factors.contract import Factor
from retrodp.noise.prf import collision_bound
from retrodp.noise.process import NoiseProcess
from retrodp.plan import kinds
from retrodp.plan.plan import Plan
from retrodp.plan.releases import Release
from retrodp.plan.resolved import ResolvedPlan
from retrodp.privacy.calibrate import largest_rho
from retrodp.privacy.loss import PrivacyLoss
from retrodp.privacy.neighbours import Protection
from retrodp.stream.clock import Clock

NOISE_FORMAT = 1
THRESHOLD_SHARE = Fraction(3, 10)  # of delta, when a plan has sparse releases
LAWS = {"zcdp": "gaussian", "pure": "laplace"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """One release on its way to calibrated noise."""

    release: Release
    factor: Factor
    amount: int
    split: tuple[int, ...]
    step: Fraction
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
    if plan.privacy.model == "zcdp":
        processes, spent = _gaussian(plan, items, deltas["conversion"])
    else:
        processes, spent = _laplace(plan, items)
    sparse = sum(item.sparse for item in items)
    entries = [
        _entry(item, process, deltas["thresholds"] / sparse if item.sparse else None)
        for item, process in zip(items, processes, strict=True)
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
    law = LAWS[plan.privacy.model]
    total = sum((release.share for release in plan.releases), Fraction(0))
    items = []
    for release in plan.releases:
        _refuse_open_sums(plan, release)
        statistic = statistic_of(plan, release)
        if statistic.amount == 0:
            raise PlanError(
                f"release.{release.name} sums a column whose only value is 0.",
                do="Widen the column's min and max.",
            )
        items.append(
            _Item(
                release=release,
                factor=choose_factor(
                    release.factor,
                    horizon=plan.stream.horizon,
                    law=law,
                    window=release.window,
                ),
                amount=statistic.amount,
                split=protection_of(plan).worst_split(release.by),
                step=statistic.step,
                sparse=is_sparse(plan, release),
                share=release.share / total,
            )
        )
    return items


def _refuse_open_sums(plan: Plan, release: Release) -> None:
    is_sum = isinstance(release.statistic, kinds.Sum)
    if is_sum and not plan.is_public(release.by):
        raise NotInThisVersionError(
            f"release.{release.name}: sums by an open-domain column are not in this version.",
            do="Sum by category or boolean columns, or publish a histogram.",
        )


def _split_delta(plan: Plan, items: Sequence[_Item]) -> dict[str, Fraction]:
    """One delta for the plan: conversion, thresholds, collisions of open labels, rounding."""
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
    rest = delta - collisions
    if sparse and rest <= 0:
        raise BudgetError(
            f"privacy.delta = {float(delta):g} is smaller than the probability that two labels "
            f"share their noise ({float(collisions):.3g}).",
            do="Raise privacy.delta or lower max_bins of the open-domain releases.",
        )
    pure = plan.privacy.model == "pure"
    share = (Fraction(1) if pure else THRESHOLD_SHARE) if sparse else Fraction(0)
    return {
        "conversion": Fraction(0) if pure else rest * (1 - share),
        "thresholds": rest * share,
        "collisions": collisions,
        "rounding": Fraction(0),
    }


def _max_bins(release: Release) -> int:
    assert isinstance(release.statistic, kinds.Histogram)
    return release.statistic.max_bins


def _gaussian(
    plan: Plan, items: Sequence[_Item], delta: Fraction
) -> tuple[list[NoiseProcess], dict[str, str]]:
    def processes(rho: Fraction) -> list[NoiseProcess]:
        return [
            gaussian_process(
                item.factor, rho=rho * item.share, amount=item.amount, split=item.split
            )
            for item in items
        ]

    def losses(rho: Fraction) -> list[PrivacyLoss]:
        return [
            loss
            for item, process in zip(items, processes(rho), strict=True)
            for loss in losses_of(process, amount=item.amount, split=item.split)
        ]

    rho = largest_rho(losses, epsilon=plan.privacy.epsilon, delta=delta)
    return processes(rho), {"rho": str(rho)}


def _laplace(plan: Plan, items: Sequence[_Item]) -> tuple[list[NoiseProcess], dict[str, str]]:
    epsilon = plan.privacy.epsilon
    processes = [
        laplace_process(
            item.factor, epsilon=epsilon * item.share, amount=item.amount, split=item.split
        )
        for item in items
    ]
    return processes, {}


def _entry(item: _Item, process: NoiseProcess, delta: Fraction | None) -> Mapping[str, Any]:
    noise = CalibratedNoise.of(
        item.release.name,
        process,
        step=item.step,
        amount=item.amount,
        split=item.split,
        level=item.release.level,
    )
    entry: dict[str, Any] = {
        "name": item.release.name,
        "kind": item.release.kind,
        "share": str(item.share),
        "noise": noise.spec(),
    }
    if delta is not None:
        entry["threshold"] = threshold_for(
            process,
            delta=delta,
            records=sum(item.split),
            per_bin=max(item.split),
        )
        entry["threshold_delta"] = str(delta)
        entry["max_bins"] = _max_bins(item.release)
    return entry
