"""What numbers and promises mean, in plain words. Reads the plan; knows no number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retrodp.plan.resolved import ResolvedPlan

_RETROACTIVE = {
    "exact": (
        "exactly retroactive: once a record is deleted or forgotten, every later release is what "
        "it would be if the record had never been there, byte for byte under the same key"
    ),
    "no": (
        "not retroactive: this release keeps the influence of deleted records; deletions act on "
        "all other releases and on the stored records"
    ),
}


def plan_table(resolved: ResolvedPlan, release: str) -> Mapping[str, Any]:
    """The `[release.NAME]` table of a release, defaults filled in."""
    tables: list[Mapping[str, Any]] = resolved.plan["release"]
    return {str(table["name"]): table for table in tables}[release]


def meaning(table: Mapping[str, Any]) -> str:
    """What one value of a release counts or adds up: "records that survive, so far"."""
    match table["kind"]:
        case "count" | "histogram" | "cube":
            subject = "surviving records"
        case "sum":
            subject = f"sum of {table['of']}"
        case "mean":
            subject = f"mean of {table['of']}"
        case "quantiles":
            subject = f"quantiles of {table['of']}"
        case "cdf":
            subject = f"surviving records with {table['of']} up to each edge"
        case "range":
            subject = f"surviving records by range of {table['of']}"
        case "query":
            subject = "weighted sums of surviving records"
        case "gram":
            columns = [table["of"]] if isinstance(table["of"], str) else table["of"]
            subject = f"moments of {', '.join(columns)}"
        case kind:
            subject = str(kind).replace("_", " ")
    by = table.get("by") or ()
    grouped = f" by {', '.join([by] if isinstance(by, str) else by)}" if by else ""
    where = f" where {table['where']}" if table.get("where") else ""
    window = table.get("window")
    return f"{subject}{grouped}{where}, {f'last {window}' if window else 'so far'}"


def retroactivity(entry: Mapping[str, Any]) -> tuple[str, str]:
    """Whether a release is retroactive, as a word and as a sentence, from its resolved entry."""
    word = str(entry["retroactive"])
    return word, _RETROACTIVE[word]


def unit(stream: Mapping[str, Any]) -> str:
    """What the budget protects, from the plan's `[stream]` table."""
    person = stream.get("person") or "person"
    bound = stream.get("max_records")
    match stream["unit"]:
        case "record":
            return "one record: its addition and its deletion together"
        case "operation":
            return "one update: an addition or a deletion of one copy"
        case "person_round":
            return f"what one {person} adds in one round, at most {bound} records"
        case "person":
            # The budget is per round of a person; more rounds are a group of such units.
            return (
                f"what one {person} adds in one round, at most {bound} records (over the declared "
                f"{stream.get('max_rounds')} rounds the guarantee is the weaker one that "
                "`retrodp check` prints)"
            )
        case other:
            return str(other)
