"""The page's promises in plain words: the budget, what becomes of deleted records, gaps, how to cite it.

Promise: made of the plan and of which rounds are published; every bound of a loss is rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from retrodp.errors import RetrodpError
from retrodp.privacy.conversion import epsilon_integer_orders
from retrodp.privacy.loss import GaussianNorm
from retrodp.views.figures import at_most, counted, grouped, percent
from retrodp.views.published import Published
from retrodp.views.report.labels import Days
from retrodp.views.report.sentences import FORGETS

METHOD = "Kaplan, Kohen, Mansour, Nissim, Stemmer, Machine Unlearning as Private Retroactive Algorithms (2026)"


_LARGE_EPSILON = 10


def by_retroactivity(published: Published) -> list[dict[str, Any]]:
    """Which releases forget exactly, approximately or not, in this order, as sentences."""
    named: dict[str, list[str]] = {}
    for name, entry in published.entries.items():
        named.setdefault(str(entry["retroactive"]), []).append(name)
    order = [*FORGETS, *sorted(set(named) - set(FORGETS))]
    found = []
    for word in order:
        if word in named:
            title, text = FORGETS.get(word, (word, ""))
            found.append({"word": word, "title": title, "text": text, "releases": named[word]})
    return found


def spent(published: Published, budget: Mapping[str, Any]) -> str:
    """What of the budget is spent so far, as a sentence."""
    all_ = total(budget)
    done, horizon = len(published.rounds), published.horizon
    if not done:
        return "Nothing is published, so nothing is spent."
    if "epochs" in budget:
        begun = budget["epochs"][: budget["epoch"]]
        share = sum((Fraction(own["share"]) for own in begun), Fraction(0))
        return (
            f"Spent so far: {percent(share)} of it, the share of the {budget['epoch']:,} epochs that have begun. "
            "An epoch's share counts as spent from its first round on."
        )
    extra = "" if all_["delta"] == "0" else f" and delta {all_['delta']}"
    left = horizon - done
    rest = (
        "All rounds are published."
        if not left
        else f"The {counted(left, 'round')} to come will add nothing to it."
    )
    return (
        f"Spent so far: at most epsilon {all_['epsilon']}{extra}, which is all of it. Noise is laid out over all "
        f"rounds in advance, so the budget is not used up round by round and counts as spent from the first one on. {rest}"
    )


def odds(budget: Mapping[str, Any]) -> str:
    """What epsilon and delta mean, as a sentence."""
    epsilon = float(Fraction(budget["all"]["exact_total"]["epsilon"]))
    factor = "e to the power of epsilon"
    if epsilon <= _LARGE_EPSILON:
        factor = at_most(Fraction(math.exp(epsilon)), significant=3)
    delta = (
        "" if budget["all"]["exact_total"]["delta"] == "0" else ", but for a chance of about delta"
    )
    return (
        "Smaller numbers protect more. Whatever anybody believes about a record before reading this page, reading "
        f"all of it changes the odds by a factor of at most {factor}{delta}."
    )


def adaptive(published: Published, budget: Mapping[str, Any]) -> str:
    """For which streams the guarantee holds, as a sentence."""
    said = {str(entry.get("adaptive", "no")) for entry in published.entries.values()}
    not_ = [
        name for name, entry in published.entries.items() if entry.get("adaptive", "no") == "no"
    ]
    base = "The guarantee is for streams whose updates do not react to published numbers"
    if said == {"yes"} or (budget["model"] == "pure" and not not_):
        return "The guarantee also holds for streams whose updates react to published numbers."
    if not_:
        return f"{base}. For streams that do react none is stated, because of {', '.join(not_)}."
    larger = _adaptive_epsilon(published)
    if larger is None:
        return (
            f"{base}; for streams that do react `retrodp check` prints a slightly larger epsilon."
        )
    return f"{base}; for streams that do react it holds with epsilon {larger} at the same delta."


def _adaptive_epsilon(published: Published) -> str | None:
    """From rho alone, so never below what `check` prints."""
    resolved = published.resolved
    if (
        any(entry["kind"] == "sample" for entry in resolved.releases)
        or "rho" not in resolved.budget
    ):
        return None
    rho = Fraction(resolved.budget["rho"])
    delta = Fraction(resolved.budget["delta_parts"].get("conversion", 0))
    if not rho or not delta:
        return None
    try:
        loss = GaussianNorm(norm_squared=2 * rho, variance=Fraction(1))
        return at_most(Fraction(epsilon_integer_orders([loss], delta)), significant=4)
    except RetrodpError:
        return None


def citation(published: Published, budget: Mapping[str, Any], days: Days) -> str:
    """A text to copy: what is guaranteed, about which numbers, and by which method."""
    all_ = total(budget)
    delta = "" if all_["delta"] == "0" else f", delta = {all_['delta']}"
    alone = "rho" in budget and not epochs(budget)
    rho = f" (zCDP with rho = {budget['rho']})" if alone else ""
    rounds = published.rounds
    which = (
        f"rounds {rounds[0]:,} to {rounds[-1]:,} ({days.text(rounds[0])} to {days.text(rounds[-1])})"
        if rounds
        else "no round published yet"
    )
    exact = [name for name, entry in published.entries.items() if entry["retroactive"] == "exact"]
    others = [name for name in published.entries if name not in exact]
    forgets_text = (
        "After a deletion all later numbers are those of the data without the record (exact retroactivity)."
        if not others
        else f"Exact retroactivity after deletions: {', '.join(exact) or 'no release'}; not: {', '.join(others)}."
    )
    test = "TEST STORE, made under a known key: no guarantee holds. " if published.is_test else ""
    return (
        f"{test}Noisy numbers of store {published.store_id}, {which}, plan {published.fingerprint[:16]}. All rounds of the "
        f"plan together are differentially private with epsilon = {all_['epsilon']}{delta}{rho}; protected: "
        f"{budget['protects']}. {adaptive(published, budget)} The guarantee is computational: noise is derived "
        f"from a secret key. {forgets_text} Made with retrodp, after {METHOD}."
    )


def epochs(budget: Mapping[str, Any]) -> list[str]:
    """Epochs before the present one that had a budget of their own."""
    found = []
    for own in budget["all"]["earlier_stores"]:
        if not own["continued"]:
            delta = "" if own["delta"] == "0" else f" and delta {at_most(Fraction(own['delta']))}"
            where = f", rounds up to {own['last_round']:,}" if own["last_round"] else ""
            epsilon = at_most(Fraction(own["epsilon"]))
            found.append(f"An earlier epoch{where}: epsilon {epsilon}{delta}.")
    return found


def gaps(published: Published, now: int | None, days: Days) -> list[str]:
    """What is missing, late or open, as sentences; late and open only if a moment is given."""
    done = published.rounds
    found = published.gaps(published.boundaries[0] if now is None else now)
    lines = [
        f"{_rounds(first, last)} {'is' if first == last else 'are'} missing although later ones are published."
        for first, last in found.missing
    ]
    if done and not found.missing:
        lines.append(f"No gap: all rounds from 1 to {done[-1]:,} are published.")
    if now is not None and found.late:
        first, last = found.late
        many = "is" if first == last else "are"
        lines.append(
            f"{_rounds(first, last)} {many} over by the calendar and not published yet ({days.text(first)} on)."
        )
    if published.last_round < published.horizon and published.goes_on:
        lines.append(
            f"The present epoch ends with round {published.horizon:,}; another follows by itself."
        )
    elif published.last_round < published.horizon:
        lines.append(
            f"The plan has {published.horizon:,} rounds; the last begins on {days.text(published.horizon)}."
        )
    elif published.goes_on:
        lines.append("This epoch is over; the next one follows by itself.")
    else:
        lines.append("The plan is over: its last round is published.")
    return lines


def _rounds(first: int, last: int) -> str:
    return f"Round {first:,}" if first == last else f"Rounds {first:,} to {last:,}"


def share(budget: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The releases' shares of the budget, as per cent and as width of a bar."""
    found = []
    for release in budget["releases"]:
        exact = Fraction(release["share"])
        found.append(
            {
                "name": release["release"],
                "percent": percent(exact),
                "width": f"{float(exact * 100):.4g}",
                "noise": f"{release['factor']}, {release['law']}",
                "error": ""
                if release.get("error_max") is None
                else grouped(str(release["error_max"])),
            }
        )
    return found


def total(budget: Mapping[str, Any]) -> dict[str, str]:
    """Epsilon and delta of all epochs together, rounded up."""
    exact = budget["all"]["exact_total"]
    return {name: at_most(Fraction(text)) for name, text in exact.items()}
