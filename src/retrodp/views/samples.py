"""What the budget says of a sampled release: it adds no noise of its own, and has no half widths."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from retrodp.plan.resolved import ResolvedPlan
from retrodp.views import words
from retrodp.views.figures import Grid, at_most, percent

_DRAWN = {
    "poisson": "each live record is drawn with the same probability, anew in every round",
    "fixed": "as many live records are drawn in every round, anew",
    "persistent": "as many live records are drawn in every round, by ranks that last",
}


def is_sampled(entry: Mapping[str, Any]) -> bool:
    """Whether the release draws samples."""
    return bool(entry["kind"] == "sample")


def release(resolved: ResolvedPlan, entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry of a budget document."""
    retroactive, means = words.retroactivity(entry)
    table = words.plan_table(resolved, entry["name"])
    loss = entry["loss"]
    found: dict[str, Any] = {
        "release": entry["name"],
        "kind": entry["kind"],
        "means": words.meaning(table),
        "share": entry["share"],
        "spends": {
            "epsilon_once": at_most(Fraction(entry["epsilon_once"])),
            "rounds": loss["count"],
            "ratio": at_most(Fraction(loss["greatest"])),
            "chance": at_most(Fraction(loss["chance"])),
            "delta": at_most(Fraction(entry["sample_delta"])),
        },
        "factor": entry["sampling"],
        "law": law(entry),
        "drawn": _DRAWN[entry["sampling"]],
        "step": Grid.of(Fraction(entry["step"])).text(1),
        "level": str(Fraction(table["level"])),
        "stddev_max": None,
        "error_max": None,
        "error_all_max": None,
        "retroactive": retroactive,
        "retroactive_means": means,
        "adaptive": entry["adaptive"],
    }
    if "gate_threshold" in entry:
        found["gate_threshold"] = entry["gate_threshold"]
        found["gate_delta"] = at_most(Fraction(entry["gate_delta"]))
    return found


def law(entry: Mapping[str, Any]) -> str:
    """How much is drawn: "5%" or "200 of 4,000 or more"."""
    if entry["rate"] is not None:
        return percent(Fraction(entry["rate"]))
    if entry["occupancy"] is None:
        return f"{entry['size']:,}"
    return f"{entry['size']:,} of {entry['occupancy']:,} or more"
