"""What numbers and promises mean, in plain words. Reads the plan; knows no number."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from retrodp.plan.resolved import ResolvedPlan
from retrodp.views.figures import at_most

_RETROACTIVE = {
    "exact": (
        "exactly retroactive: once a record is deleted or forgotten, every later release is what "
        "it would be if the record had never been there, byte for byte under the same key"
    ),
    "marginal": (
        "after a deletion each later answer alone is so close to what it would be if the record had "
        "never been there, as long as the answer under the mask strays no farther than the plan "
        "declares; its state, and several answers together, keep more of the record's influence"
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


_DURATION = re.compile(r"(\d+)(h|d|w|mo)")
_UNITS = {"h": "hour", "d": "day", "w": "week", "mo": "month"}

_SUBJECTS: Mapping[str, str] = {
    "count": "surviving records",
    "histogram": "surviving records",
    "cube": "surviving records",
    "sum": "sum of {of}",
    "mean": "mean of {of}",
    "quantiles": "quantiles of {of}",
    "cdf": "surviving records with {of} up to each edge",
    "range": "surviving records by range of {of}",
    "query": "weighted sums of surviving records",
    "gram": "moments of {of}",
    "kmeans": "centres of {of}",
    "kmedian": "centres of {of}",
    "online_kmeans": "centres of all {of} that arrived",
    "online_kmedian": "centres of all {of} that arrived",
    "distinct": "different values of {of}",
    "second_moment": "squared numbers of surviving records by {of}, added up",
    "heavy_hitters": "surviving records of the most frequent {of}",
}


def meaning(table: Mapping[str, Any]) -> str:
    """What one value of a release counts or adds up: "records that survive, so far"."""
    subject = _subject(table)
    by = table.get("by") or ()
    grouped = f" by {', '.join([by] if isinstance(by, str) else by)}" if by else ""
    where = f" where {table['where']}" if table.get("where") else ""
    window = table.get("window")
    if table.get("revised"):
        how = "up to each stamp" if table["shape"] == "cumulative" else "of each stamp"
        back = f", the last {spelled_out(str(table['last']))}" if table.get("last") else ""
        return f"{subject}{grouped}{where} {how}, as known now{back}"
    return f"{subject}{grouped}{where}, {f'the last {spelled_out(str(window))}' if window else 'so far'}"


def spelled_out(duration: str) -> str:
    """A duration of the plan as it stands behind "the last": "day", "7 days"."""
    found = _DURATION.fullmatch(duration)
    if found is None:
        return duration
    number, unit = found[1], _UNITS[found[2]]
    return unit if number == "1" else f"{number} {unit}s"


def _subject(table: Mapping[str, Any]) -> str:
    of = _joined(table.get("of") or ())
    match table["kind"]:
        case "masked":
            base = {**table["base"], "where": None, "window": None}
            return f"{meaning(base).removesuffix(', so far')}, masked"
        case "sample":
            what = table.get("function") or str(table["mechanism"]).replace("_", " ")
            return f"{what} of {of}, from a sample"
        case kind:
            known = _SUBJECTS.get(kind)
            return str(kind).replace("_", " ") if known is None else known.format(of=of)


def _joined(names: str | Sequence[str]) -> str:
    return names if isinstance(names, str) else ", ".join(names)


def retroactivity(entry: Mapping[str, Any]) -> tuple[str, str]:
    """Whether a release is retroactive, as a word and as a sentence, from its resolved entry."""
    word = str(entry["retroactive"])
    if word == "marginal":
        alpha, beta = (float(Fraction(entry["mask"][name])) for name in ("alpha", "beta"))
        word = f"marginal(alpha = {alpha:g}, beta = {beta:g})"
    return word, sentence(word)


def sentence(said: str) -> str:
    """What a word of `retroactivity` means, the word with its figures first."""
    word = said.partition("(")[0]
    return _RETROACTIVE[word] if said == word else f"{said}: {_RETROACTIVE[word]}"


def spent(statement: Mapping[str, Any]) -> str:
    """What all epochs spend, from `Epoch.statement`, as a sentence."""
    total = {name: at_most(Fraction(text)) for name, text in statement["exact_total"].items()}
    delta = "" if total["delta"] == "0" else f" and delta {total['delta']}"
    budgets = "one budget" if len(_budgets(statement)) == 1 else "budgets add up"
    return f"All epochs together spend epsilon {total['epsilon']}{delta}: {budgets}."


def _budgets(statement: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    ended = [own for own in statement["earlier_stores"] if not own["continued"]]
    return [*ended, statement["own"]]


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
