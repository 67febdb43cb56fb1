"""What an open horizon costs, epoch by epoch, beside the alternative: one horizon that is long.

Sees the plan and nothing else. Errors are those of one release that counts without a window.
"""

from __future__ import annotations

import math
from typing import Any

from retrodp.mechanisms.calibrate import choose_factor, worst_error
from retrodp.plan.plan import Plan

FARTHEST = 1 << 16
"""Rounds up to which errors are worked out; beyond, the factors take seconds."""


def epochs_of(plan: Plan) -> dict[str, Any]:
    """The epochs of an open horizon; empty for a known one.

    Returns:
        `epochs`, with `rounds`, `last_round` and `share` of each; for those up to `FARTHEST`
        rounds also `error_ratio`, its worst error over that of a plan with the whole budget and
        the horizon of the first epoch, and `one_horizon_ratio`, the same of a single horizon that
        ends with this epoch.
    """
    series = plan.stream.epochs
    if series is None:
        return {}
    law = plan.privacy.law
    unit = _error(series.first, law)
    listed = []
    for number in range(1, series.number + 1):
        own = series.facts(number)
        if own["last_round"] <= FARTHEST:
            share = float(series.share(number))
            price = math.sqrt(share) if law == "gaussian" else share
            own["error_ratio"] = round(_error(own["rounds"], law) / unit / price, 3)
            own["one_horizon_ratio"] = round(_error(own["last_round"], law) / unit, 3)
        listed.append(own)
    return {"epochs": listed}


def prospect_notes(epochs: list[dict[str, Any]]) -> list[str]:
    """The comparison in a sentence, where one horizon would do better throughout."""
    known = [own for own in epochs if "error_ratio" in own]
    if len(known) < 2:
        return []
    last = known[min(3, len(known) - 1)]
    best = min(own["error_ratio"] for own in known[: known.index(last) + 1])
    more = "less than every epoch to there" if last["one_horizon_ratio"] < best else "throughout"
    said = (
        f"One known horizon of {last['last_round']:,} rounds would err "
        f"{last['one_horizon_ratio']:.2f} times as much as {epochs[0]['rounds']:,} rounds alone, "
        f"{more}; epoch {last['epoch']} here errs {last['error_ratio']:.2f} times as much, epoch 1 "
        f"{epochs[0]['error_ratio']:.2f} times."
    )
    return [said]


def _error(horizon: int, law: str) -> float:
    return math.sqrt(worst_error(choose_factor("auto", horizon=horizon, law=law), law))
