"""When a sample is the wrong tool: the error of the linear release of the same question.

Sees the plan and what was resolved; no data. Nothing here changes a release.

The rank error of a sampled quantile has two parts. The choice on the grid errs by ranks within the
sample, which are so many more in the data; that part does not fall with the data. The sample itself
errs by the root of the number of live records. A linear release (`quantiles`, `mean` with the same
window and share) errs by its noise alone, however many records live.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from statistics import NormalDist
from typing import Any

from retrodp.engine.compile import CompiledRelease
from retrodp.mechanisms.calibrate import choose_factor, gaussian_process, laplace_process
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.oneshot.mean import NoisyMean
from retrodp.mechanisms.oneshot.ranks import GridQuantile, InteriorPoint
from retrodp.mechanisms.quantiles import rank_errors
from retrodp.mechanisms.sampled import Sampled
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from retrodp.postprocess.halving import depth


def linear_facts(plan: Plan, resolved: ResolvedPlan, release: CompiledRelease) -> dict[str, Any]:
    """The comparison for a sampled release that has a linear alternative; empty for others.

    Returns:
        `linear`: `kind` of the alternative; for quantiles `error` (its rank error at the level, in
        records), `choice_error` (of the sampled one, by the choice on the grid alone) and
        `better_from` (live records from which the linear one errs less; 0: always, None: never).
    """
    mechanism = release.mechanism
    if not isinstance(mechanism, Sampled):
        return {}
    inner = mechanism.mechanism
    if isinstance(inner, GridQuantile | InteriorPoint):
        return {"linear": _ranks(plan, resolved, mechanism, inner)}
    if isinstance(inner, NoisyMean):
        return {"linear": {"kind": "mean"}}
    return {}


def linear_notes(releases: Sequence[Mapping[str, Any]]) -> list[str]:
    """The comparisons in sentences."""
    found = []
    for release in releases:
        linear = release.get("linear")
        if linear is None:
            continue
        if linear["kind"] == "mean":
            found.append(
                f'{release["name"]}: kind = "mean" with the same window reads every live record, so it '
                "has no sampling error, and one noisy sum for all rounds; prefer it."
            )
        else:
            found.append(
                f'{release["name"]}: kind = "quantiles" with the same window and share has a rank error '
                f"of {linear['error']:,} records; here the choice on the grid alone has "
                f"{linear['choice_error']:,}. {_verdict(linear['better_from'])}"
            )
    return found


def _verdict(better_from: int | None) -> str:
    match better_from:
        case None:
            return (
                "The linear release gives all quantiles for its error; this one errs less in one."
            )
        case 0:
            return "The linear release errs less at every number of live records."
        case _:
            return f"The linear release errs less from {better_from:,} live records on."


def _ranks(
    plan: Plan, resolved: ResolvedPlan, mechanism: Sampled, inner: GridQuantile | InteriorPoint
) -> dict[str, Any]:
    cells = inner.high - inner.low + 1
    share = Fraction(resolved.release(mechanism.name)["share"])
    pure = plan.privacy.model == "pure"
    factor = choose_factor(
        "auto",
        horizon=plan.stream.horizon,
        law="laplace" if pure else "gaussian",
        window=mechanism.window,
    )
    split = (plan.stream.max_records or 1,) * (depth(cells) + 1)
    process = (
        laplace_process(factor, epsilon=plan.privacy.epsilon * share, amount=1, split=split)
        if pure
        else gaussian_process(
            factor, rho=Fraction(resolved.budget["rho"]) * share, amount=1, split=split
        )
    )
    noise = CalibratedNoise.of(
        mechanism.name,
        process,
        step=Fraction(1),
        amount=1,
        split=split,
        level=mechanism.level,
    )
    wanted = inner.share if isinstance(inner, GridQuantile) else Fraction(1, 2)
    error = rank_errors(noise, cells, (wanted,))["half"]
    miss, rate = float(1 - mechanism.level), float(mechanism.design.largest_rate)
    choice = math.ceil(inner.rank_error(miss) / rate)
    return {
        "kind": "quantiles",
        "error": error,
        "choice_error": choice,
        "better_from": 0 if choice >= error else _crossing(error, choice, rate, miss),
    }


def _crossing(error: int, choice: int, rate: float, miss: float) -> int | None:
    """Live records at which the sample's own error fills what the choice leaves, for a median."""
    if rate >= 1:
        return None
    deviations = NormalDist().inv_cdf(1 - miss / 2)
    return math.ceil(4 * rate / (1 - rate) * ((error - choice) / deviations) ** 2)
