"""The kind `masked`: a release that remembers, under a mask; all of it decided once.

The mask hides what may differ between two histories that have united: twice the error of the base.
Its noise is known and bounded at all rounds but for beta0; what else it may be off by (an answer of an
older round, items that it no longer follows) is the plan's to declare, as `drift`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from retrodp.engine import distinct
from retrodp.errors import PlanError
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.contract import Stateful
from retrodp.mechanisms.masked import GaussianMap, Mask, Masked, mask_miss
from retrodp.noise.processes import AnyFactor
from retrodp.plan import kinds
from retrodp.plan.plan import Plan
from retrodp.plan.releases import Release
from retrodp.statistics.contract import Statistic

Noises = tuple[CalibratedNoise, ...]


def inner(release: Release) -> Release:
    """The base as a release of its own, with the name, share and condition of the masked one."""
    keys = _keys(release)
    return replace(release, kind=keys.base_kind, statistic=keys.base)


def statistic(plan: Plan, release: Release) -> Statistic:
    """The base's statistic."""
    return distinct.statistic(plan, inner(release))


def decided(plan: Plan, release: Release) -> Release:
    """With the base's method and sizes decided."""
    return _with(release, distinct.decided(plan, inner(release)))


def as_settled(release: Release, entry: Mapping[str, Any]) -> Release:
    """With the base's method and sizes as they were stored."""
    return _with(release, distinct.as_settled(inner(release), entry))


def in_later_epoch(plan: Plan, release: Release) -> Release:
    """With the base as it is charged under a longer horizon."""
    return _with(release, distinct.in_later_epoch(plan, inner(release)))


def factor(plan: Plan, release: Release) -> AnyFactor | None:
    """The base's."""
    return distinct.factor(plan, inner(release))


def settled(plan: Plan, release: Release, noises: Noises) -> Mapping[str, Any]:
    """What is decided of base and mask."""
    keys, base = _keys(release), inner(release)
    hiding = math.exp(float(keys.alpha))
    # Half of beta for the mask; the other half pays for (2 + e^alpha) beta0.
    miss = Fraction(float(keys.beta) / 2 / (2 + hiding) * (1 - 1e-9))
    miss = min(miss, (1 - release.level) / 2)  # the interval allows for it as well
    share = miss / len(noises)
    noise_error = _noise_error(base, [max(one.at_level(1 - share).half_all) for one in noises])
    error = noise_error + math.ceil(keys.drift / noises[0].step)
    found = GaussianMap.of(error, alpha=keys.alpha, beta=keys.beta / 2)
    left = mask_miss(release.level, float(miss))
    return {
        **distinct.settled(plan, base, noises),
        "mask": {
            "error": error,
            "noise_error": noise_error,
            "base_miss": str(miss),
            "alpha": str(keys.alpha),
            "beta": str(keys.beta),
            "variance": str(found.variance),
        },
        "errors": {
            "stddev": f"{found.deviation * float(noises[0].step):.6g}",
            "half": found.strays(left),
            "half_all": found.strays(left / plan.stream.horizon),
        },
    }


def _noise_error(base: Release, worst: Sequence[int]) -> int:
    """How far the base's noise takes its answer, given how far each of its noises strays.

    Flippancy moves its answer by half of the noisy number of items beyond the limit, so that half
    of that noise is in the answer too; the items themselves are the plan's `drift`.
    """
    assert isinstance(base.statistic, kinds.Distinct)
    if base.statistic.method != "flippancy":
        return max(worst)
    limits = len(worst) // 2
    pairs = zip(worst[:limits], worst[limits:], strict=True)
    return max(count + math.ceil(beyond / 2) for count, beyond in pairs)


def mechanism(plan: Plan, release: Release, noises: Noises, entry: Mapping[str, Any]) -> Masked:
    """The base under its mask."""
    keys, stored = _keys(release), entry["mask"]
    base = distinct.mechanism(plan, inner(release), noises, entry)
    if not isinstance(base, Stateful):
        raise PlanError(
            f"release.{release.name}.base is retroactive as it is: a mask would only add noise.",
            do="Plan the base as a release of its own.",
        )
    found = GaussianMap(
        error=stored["error"],
        coordinates=1,
        alpha=Fraction(stored["alpha"]),
        beta=Fraction(stored["beta"]) / 2,
        variance=Fraction(stored["variance"]),
    )
    return Masked(
        base=base,
        mask=Mask(map=found, base_miss=float(Fraction(stored["base_miss"]))),
        level=release.level,
        block=keys.block,
        facts=(("drift", float(keys.drift)),),
    )


def _keys(release: Release) -> kinds.Masked:
    assert isinstance(release.statistic, kinds.Masked)
    return release.statistic


def _with(release: Release, base: Release) -> Release:
    return replace(release, statistic=replace(_keys(release), base=base.statistic))
