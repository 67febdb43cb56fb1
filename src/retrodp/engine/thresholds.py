"""Thresholds of open domains, and the plan's one delta that pays for them and for all else.

Promise: the parts of delta add up to the plan's, whatever is published. Data independent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from retrodp.engine.amounts import max_bins
from retrodp.engine.noisy_parts import Item, Part
from retrodp.engine.scales import noise_of_all, rho_of_all
from retrodp.engine.spending import Spending
from retrodp.errors import BudgetError
from retrodp.mechanisms.threshold import threshold_for, thresholds_for
from retrodp.noise.factors.delannoy import DelannoyFactor, least_delannoy
from retrodp.noise.prf import collision_bound
from retrodp.noise.processes import Process
from retrodp.noise.tails import MOST_SUMMED
from retrodp.plan import kinds
from retrodp.plan.plan import Plan
from retrodp.privacy.calibrate import DeltaSplit, split_delta


def split_of_delta(plan: Plan, items: Sequence[Item], spending: Spending) -> dict[str, Fraction]:
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
        (Fraction(collision_bound(max_bins(item.release))) for item in sparse), Fraction(0)
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
        rho, _ = rho_of_all(plan, items, split.noise, spending)
        made = noise_of_all(plan, items, rho, spending)
        each = split.thresholds * spending.share / len(sparse)
        return sum(math.log(threshold_of(item, made, each)) for item in sparse)

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


def threshold_of(item: Item, made: Mapping[str, Process], delta: Fraction) -> int:
    """The threshold of a release over an open domain, for all rounds alike.

    Args:
        item: The release.
        made: The noise of all parts, by label.
        delta: What the threshold may fail with.
    """
    part = item.parts[-1]  # of a cube, whose public cells come first
    return threshold_for(
        made[part.label], delta=delta, records=sum(part.split), per_bin=max(part.split)
    )


def thresholds_of(item: Item, made: Mapping[str, Process], delta: Fraction) -> tuple[int, ...]:
    """The same, one for every round."""
    (part,) = item.parts
    return thresholds_for(
        made[part.label], delta=delta, records=sum(part.split), per_bin=max(part.split)
    )


def for_thresholds(
    plan: Plan, items: Sequence[Item], delta: Fraction, spending: Spending
) -> list[Item]:
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

            def threshold(factor: DelannoyFactor, part: Part = part, each: Fraction = each) -> int:
                process = replace(part, factor=factor).laplace(epsilon)
                return threshold_for(
                    process, delta=each, records=sum(part.split), per_bin=max(part.split)
                )

            factor = least_delannoy(part.factor.horizon, threshold, most_w=MOST_SUMMED)
            item = replace(item, parts=(*item.parts[:-1], replace(part, factor=factor)))  # noqa: PLW2901
        found.append(item)
    return found
