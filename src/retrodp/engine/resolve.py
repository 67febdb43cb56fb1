"""From a plan to a resolved plan: every number a running store will use, decided once.

Data independent: it sees the plan and nothing else. The budget is exact; every reported loss is
rounded up.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from retrodp.engine.amounts import max_bins
from retrodp.engine.compile import decided, in_later_epoch, mechanism_of, settled_of
from retrodp.engine.noisy_parts import Item, items_of, refuse_long_dense
from retrodp.engine.sampled import require_known_horizon
from retrodp.engine.scales import noise_of_all, rho_of_all
from retrodp.engine.spending import Spending, norms_of, require_within, stored
from retrodp.engine.states import require_partial
from retrodp.engine.thresholds import for_thresholds, split_of_delta, threshold_of, thresholds_of
from retrodp.noise.processes import Process
from retrodp.plan import kinds
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from retrodp.plan.zone import tzdata_version
from retrodp.stream.clock import Clock

NOISE_FORMAT = 1


def resolve(plan: Plan) -> ResolvedPlan:
    """Decide factors, scales, thresholds and the split of the budget.

    Of an open horizon, those of the first epoch, and what all of its epochs may spend together.

    Raises:
        BudgetError: If the plan's delta is smaller than what label collisions need, or missing.
        PlanError: If a release cannot be made under the plan.
    """
    running, spending = plan.of_epoch(1), Spending.of(plan, 1)
    require_known_horizon(plan)
    refuse_long_dense(plan)
    items = items_of(running)
    if plan.stream.epochs is not None:
        _refuse_short_lived(plan.of_epoch(plan.stream.epochs.number), items)
    deltas = split_of_delta(running, items, spending)
    items = for_thresholds(running, items, deltas["thresholds"], spending)
    rho, norms = rho_of_all(running, items, deltas["conversion"], spending)
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
    made = noise_of_all(running, items, rho, spending)
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
    items = for_thresholds(running, items_of(running), thresholds, spending)
    rho = Fraction(budget["rho"]) if "rho" in budget else None
    made = noise_of_all(running, items, rho, spending)
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
    items: Sequence[Item],
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


def _refuse_short_lived(last: Plan, items: Sequence[Item]) -> None:
    """Sizes that were decided must do in the last epoch too, where nobody can change them."""
    for item in items:
        decided(last, item.release)


def _entry(
    plan: Plan,
    item: Item,
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
        entry["threshold"] = threshold_of(item, made, delta)
        if isinstance(item.release.statistic, kinds.Histogram):
            each = thresholds_of(item, made, delta)
            entry |= {"threshold": max(each), "thresholds": list(each)}
        entry["threshold_delta"] = str(delta)
        entry["max_bins"] = max_bins(item.release)
    mechanism = mechanism_of(plan, item.release, entry)
    require_partial(plan, [mechanism])
    return entry | {
        "step": str(mechanism.step),
        "retroactive": mechanism.retroactive,
        "adaptive": mechanism.adaptive,
    }
