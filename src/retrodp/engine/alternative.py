"""Which factor a release uses, why, and what another one would give.

Sees the plan and what was resolved; no data. Nothing here changes a release.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from retrodp.engine.amounts import most_moved, planned_bins
from retrodp.engine.compile import CompiledRelease, factor_of
from retrodp.mechanisms.calibrate import choose_factor, why_not_dense, worst_error
from retrodp.noise.factors.dense import DenseFactor, expected_error
from retrodp.plan import kinds
from retrodp.plan.plan import Plan
from retrodp.plan.releases import Release

_SECRECY = "forward_secrecy = true: the noise of past rounds becomes underivable as rounds close"
_NO_SECRECY = "forward_secrecy = false: all noise stays derivable from the key until the horizon"


def factor_facts(plan: Plan, release: Release, compiled: CompiledRelease) -> dict[str, Any]:
    """Why the release has its factor, and the alternative.

    Returns:
        `factor_why`: a sentence. `alternative`: None, or the other `factor`, its predicted error
        over the present one (`ratio`), the largest half width of a round that gives (`error`, in
        units of the statistic; None where the mechanism has no such number), and what the plan
        would have to say (`under`).
    """
    found = _alternative(plan, release, compiled)
    if found is not None:
        error = compiled.mechanism.describe().get("error_max")
        number = isinstance(error, int | float)
        found["error"] = round(error * found["ratio"], 6) if number else None
    return {"factor_why": _why(plan, release), "alternative": found}


def factor_notes(releases: Sequence[Mapping[str, Any]]) -> list[str]:
    """The alternatives in sentences, one for all releases alike.

    Args:
        releases: With `name`, `factor` and the `factor_facts` of each.
    """
    alike: dict[tuple[str, str, float, str], list[str]] = {}
    for release in releases:
        if (other := release["alternative"]) is not None:
            same = (release["factor"], other["factor"], other["ratio"], other["under"])
            alike.setdefault(same, []).append(release["name"])
    return [
        f"{', '.join(names)}: {other} noise would err {ratio:.2f} times as much as {present}, "
        f"under {under}."
        for (present, other, ratio, under), names in alike.items()
    ]


def _why(plan: Plan, release: Release) -> str:
    if release.factor != "auto":
        return "The plan names it."
    if isinstance(release.statistic, kinds.Sample):
        return "A sample is drawn and answered for in every round by itself: rounds share no noise."
    if isinstance(release.statistic, kinds.OnlineKMeans):
        return (
            "The sketch reads its own answers, so its noise may not reach into the future; of "
            f"those {_admitted(plan)} it errs least."
        )
    if factor_of(plan, release) is not None:
        return "The method needs it: no other factor hides what one record changes."
    return (
        f"It has the least error of the factors {_admitted(plan)}, for this horizon and these bins."
    )


def _admitted(plan: Plan) -> str:
    return "that keep forward secrecy" if plan.privacy.forward_secrecy else "there are"


def _alternative(plan: Plan, release: Release, compiled: CompiledRelease) -> dict[str, Any] | None:
    if factor_of(plan, release) is not None:
        return None
    if isinstance(release.statistic, kinds.Revised):
        return None  # a dense factor would draw every round's node for every stamp
    factor, law = compiled.mechanism.factor, plan.privacy.law
    present = worst_error(factor, law)
    if isinstance(factor, DenseFactor):
        other = choose_factor("auto", horizon=plan.stream.horizon, law=law, window=release.window)
        ratio = math.sqrt(worst_error(other, law) / present)
        return {"factor": other.name, "ratio": round(ratio, 4), "under": _SECRECY}
    unfit = why_not_dense(
        horizon=plan.stream.horizon,
        law=law,
        coordinates=planned_bins(plan, release),
        amount=most_moved(plan, release),
    )
    if unfit is not None or release.window is not None:
        return None  # how much a dense factor gains on short windows is known by a search only
    ratio = expected_error(plan.stream.horizon) / math.sqrt(present)
    if ratio >= 1:
        return None
    under = _NO_SECRECY if plan.privacy.forward_secrecy else "no other factor to be named"
    return {"factor": "dense", "ratio": round(ratio, 4), "under": under}
