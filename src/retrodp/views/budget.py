"""The privacy budget of the whole horizon: what was fixed when the store was created.

Promise: everything stems from the resolved plan; no published number and no data is read. What is
reported of a loss is never smaller than what is spent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from retrodp.plan.epochs import Epoch
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from retrodp.views import samples, words
from retrodp.views.figures import Grid, at_most, grouped, percent, shared_level
from retrodp.views.tables import bare_table

FORMAT = 1
NARROWEST_NAME = 9  # columns of the screen
_LAWS = {"gaussian": "discrete Gaussian", "laplace": "discrete Laplace"}
_SCALES = {
    "gaussian": "variance of a node's noise, in squared steps",
    "laplace": "scale b of a node's noise exp(-|k| / b), in steps",
}
_GRID_SCALE = "variance of a node's noise, in squared parts of the factor's own grid"
_PARTS = {
    "conversion": "from rho to epsilon",
    "thresholds": "thresholds of open domains",
    "collisions": "two labels that share their noise",
    "rounding": "rounding",
    "samples": "gates, ranks and functions of samples",
}


def document(resolved: ResolvedPlan, epoch: Epoch | None = None) -> dict[str, Any]:
    """The budget as a JSON document.

    Args:
        resolved: Plan of the present epoch.
        epoch: What was there before it; None if nothing was.

    Returns:
        Totals `epsilon`, `delta`, `delta_parts` and, for zCDP, `rho`, as decimals rounded up to
        six digits; the same under `exact` as ratios; one entry a release under `releases`, with
        errors and thresholds in units of the statistic. With an open horizon `epochs` has the share
        of each, and the releases are those of the present one; `all` is what all epochs spend that
        there were and are, see `Epoch.statement`.
    """
    budget = resolved.budget
    exact: dict[str, Any] = {
        "epsilon": str(budget["epsilon"]),
        "delta": str(budget["delta"]),
        "delta_parts": {name: str(part) for name, part in budget["delta_parts"].items()},
    }
    if "rho" in budget:
        exact["rho"] = str(budget["rho"])
    return {
        "format": FORMAT,
        "horizon": len(resolved.boundaries) - 1,
        "model": budget["model"],
        "unit": resolved.plan["stream"]["unit"],
        "protects": words.unit(resolved.plan["stream"]),
        **_rounded_up(exact),
        "exact": exact,
        **_epochs(resolved),
        "all": (epoch or Epoch()).statement(resolved),
        "releases": [_release(resolved, entry) for entry in resolved.releases],
    }


def _epochs(resolved: ResolvedPlan) -> dict[str, Any]:
    series = Plan.from_dict(resolved.plan).stream.epochs
    if series is None:
        return {}
    return {
        "epoch": resolved.budget["epoch"]["number"],
        "epochs": [series.facts(number) for number in range(1, series.number + 1)],
    }


def _spent(resolved: ResolvedPlan, name: str) -> Fraction:
    """What the present epoch spends."""
    return Fraction(resolved.budget.get("epoch", resolved.budget)[name])


def _rounded_up(exact: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _rounded_up(value) if isinstance(value, Mapping) else at_most(Fraction(value))
        for name, value in exact.items()
    }


def _release(resolved: ResolvedPlan, entry: Mapping[str, Any]) -> dict[str, Any]:
    if samples.is_sampled(entry):
        return samples.release(resolved, entry)
    noise = entry["noise"]
    process = noise["process"]
    law = str(process["law"])
    step = Fraction(noise["step"])
    text = Grid.of(step).text
    share = Fraction(entry["share"])
    spent = "epsilon" if law == "laplace" else "rho"
    retroactive, means = words.retroactivity(entry)
    table = words.plan_table(resolved, entry["name"])
    found: dict[str, Any] = {
        "release": entry["name"],
        "kind": entry["kind"],
        "means": words.meaning(table),
        "share": str(share),
        "spends": {spent: at_most(_spent(resolved, spent) * share)},
        "factor": process["factor"]["factor"],
        "law": _LAWS[law],
        "scale": process["scale"],
        "scale_is": _GRID_SCALE if "root" in process["factor"] else _SCALES[law],
        "step": text(1),
        "sensitivity": text(noise["amount"]),
        "level": str(Fraction(noise["level"])),
        "stddev_max": max(noise["stddev"], key=float),
        "error_max": text(max(noise["half"])),
        "error_all_max": text(max(noise["half_all"])),
        "retroactive": retroactive,
        "retroactive_means": means,
    }
    if "errors" in entry:
        # Published numbers are made of several noisy ones: what counts is how far they stray.
        found["stddev_max"] = entry["errors"]["stddev"]
        found["error_max"] = text(entry["errors"]["half"])
        found["error_all_max"] = text(entry["errors"]["half_all"])
    if any(part["name"] for part in entry.get("parts", ())):
        found["parts"] = entry["parts"]
    if "adaptive" in entry:
        found["adaptive"] = entry["adaptive"]
    if "threshold" in entry:
        found["threshold"] = text(entry["threshold"])
        if "thresholds" in entry:  # one a round; what is shown is that of the worst
            found["threshold_least"] = text(min(entry["thresholds"]))
        found["threshold_delta"] = at_most(Fraction(entry["threshold_delta"]))
        found["max_bins"] = entry["max_bins"]
    return found


def sentence(budget: Mapping[str, Any]) -> str:
    """The promise of the whole horizon in one sentence; `budget` is a `document`."""
    delta = "" if budget["delta"] == "0" else f" and delta {budget['delta']}"
    rho = f" (rho {budget['rho']})" if "rho" in budget else ""
    if "epochs" in budget:
        return (
            f"All epochs together, up to {len(budget['epochs'])} of them, spend epsilon "
            f"{budget['epsilon']}{delta}{rho}, for {budget['protects']}. Nothing refunds it, and no "
            "later round adds to it."
        )
    if budget["all"]["earlier_stores"]:
        return (
            f"All {budget['horizon']:,} rounds of this epoch together spend epsilon "
            f"{budget['epsilon']}{delta}{rho}, for {budget['protects']}. {words.spent(budget['all'])}"
        )
    return (
        f"All {budget['horizon']:,} rounds together spend epsilon {budget['epsilon']}{delta}{rho}, "
        f"for {budget['protects']}. Nothing refunds it, and no later round adds to it."
    )


def delta_parts(budget: Mapping[str, Any]) -> str:
    """What delta is spent on, the parts that are not 0; `budget` is a `document`."""
    return "; ".join(
        f"{_PARTS.get(name, name)} {part}"
        for name, part in budget["delta_parts"].items()
        if part != "0"
    )


def epoch_lines(budget: Mapping[str, Any]) -> list[str]:
    """What each epoch of an open horizon has of the budget, the present one marked."""
    lines = []
    for own in budget.get("epochs", ()):
        here = ", shown below" if own["epoch"] == budget["epoch"] else ""
        lines.append(
            f"epoch {own['epoch']}: {own['rounds']:,} rounds, to round {own['last_round']:,}, has "
            f"{percent(Fraction(own['share']))} of it{here}"
        )
    return lines


def render(console: Console, budget: Mapping[str, Any]) -> None:
    """Print a `document` for people; fits 80 columns."""
    console.print(Text("Budget of the whole horizon", style="bold"))
    console.print(Padding(Text(sentence(budget)), (0, 0, 0, 2)))
    for line in epoch_lines(budget):
        console.print(Padding(Text(line), (0, 0, 0, 2)))
    if parts := delta_parts(budget):
        console.print(Padding(Text(f"delta in parts: {parts}"), (0, 0, 0, 2)))
    console.print(_table(budget["releases"], console.width))
    for means, names in _by_meaning(budget["releases"]).items():
        console.print(Padding(Text(f"{', '.join(names)}: {means}."), (0, 0, 0, 2)))


def _table(releases: list[dict[str, Any]], width: int) -> Table:
    level = shared_level(release["level"] for release in releases)
    headings = ["release", "share", "noise", f"±{level}", "± all\nrounds"]
    if any("threshold" in release for release in releases):
        headings.append("published\nfrom")
    rows = [row for release in releases for row in _rows(release, len(headings))]
    table = bare_table()
    table.add_column("release", overflow="fold", min_width=_least_width([headings, *rows], width))
    for heading in headings[1:]:
        text = heading == "noise"
        table.add_column(heading, justify="left" if text else "right", no_wrap=not text)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _rows(release: Mapping[str, Any], columns: int) -> list[list[str]]:
    digits = Grid.of(Fraction(release["step"])).digits
    parts = release.get("parts", ())
    errors = [release[name] for name in ("error_max", "error_all_max")]
    law = release["law"].removeprefix("discrete ")
    first = [
        release["release"],
        percent(Fraction(release["share"])),
        f"{release['factor']}, {law}",
        *(
            "" if parts or error is None else _of_sum(release) + grouped(error, digits)
            for error in errors
        ),
        _threshold(release, digits),
    ]
    rows = [first[:columns]]
    for part in parts:
        own = [_of_part(part[name]) for name in ("error_max", "error_all_max")]
        rows.append([f"  {part['name']}", "", "", *own, ""][:columns])
    return rows


def _least_width(rows: list[list[str]], width: int) -> int:
    """Width of the names: as long as they are, unless other columns would be cut for it."""
    names, shares, noise, *numbers = zip(*rows, strict=True)
    others = [_longest(" ".join(noise).split()), *map(_longest, [shares, *numbers])]
    room = width - sum(others) - 2 * len(others)
    return max(NARROWEST_NAME, min(_longest(names), room))


def _longest(cells: Iterable[str]) -> int:
    return max(len(line) for cell in cells for line in cell.split("\n"))


def _threshold(release: Mapping[str, Any], digits: int) -> str:
    return grouped(release["threshold"], digits) if "threshold" in release else ""


def _of_part(error: str) -> str:
    """An error rounded up; the step of a part may be a binary fraction with many digits."""
    return grouped(at_most(Fraction(error)))


def _of_sum(release: Mapping[str, Any]) -> str:
    """Errors of means and quantiles follow from the data; those of sum and rank are known before."""
    return {"mean": "its sum\n", "quantiles": "its rank\n"}.get(release["kind"], "")


def _by_meaning(releases: list[dict[str, Any]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for release in releases:
        found.setdefault(release["retroactive_means"], []).append(release["release"])
    return found
