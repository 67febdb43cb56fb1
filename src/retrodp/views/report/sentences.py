"""The page's plain words: what a number means, how far to trust it, what is promised, how to cite it.

Promise: made of the plan, of published answers and of `views.words`; every bound of a loss is rounded up.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from retrodp.mechanisms.answer import Answer
from retrodp.plan.decimals import decimal_text
from retrodp.views import words
from retrodp.views.figures import percent
from retrodp.views.published import Published
from retrodp.views.report.labels import Days, Steps, level_text

LEGEND = (
    ("line", "published value"),
    ("band", "interval of a round alone"),
    ("wide", "interval of all rounds at once"),
)
BRACKET_LEGEND = LEGEND[1:]
BAR_LEGEND = (
    ("dot", "published value"),
    ("thick", "interval of the round alone"),
    ("thin", "interval of all rounds at once"),
)
FAN_LEGEND = (("line", "a quantile each, named at its end"), ("band", "interval of a round alone"))

_COUNTS = {"count", "histogram", "cube", "cdf", "range", "distinct", "masked", "heavy_hitters"}
_WHY_RARE = (
    "Naming rare labels would give people away. Values just above the threshold are too high more often than the "
    "interval says."
)
_WHY_NOT = {
    "heavy_hitters": "Fewer cannot be told from noise and from labels that share a counter."
}
SILENT = (
    "No interval: how far this number strays cannot be said without looking at the data, so the published ends are "
    "those of the column."
)

_FORGETS = {
    "exact": "yes, exactly",
    "marginal": "approximately",
    "no": "no",
}
FORGETS = {
    "exact": (
        "Exactly retroactive",
        (
            "Once a record is deleted or forgotten, every later number is what it would be had the record never "
            "been there: the same to the last digit."
        ),
    ),
    "marginal": (
        "Approximately retroactive",
        (
            "After a deletion each later number alone is distributed nearly as if the record had never been there, "
            "as long as the number under its mask strays no farther than the plan declares. Several numbers "
            "together, and what the release stores, keep more of its influence."
        ),
    ),
    "no": (
        "Not retroactive",
        "These numbers keep the influence of deleted records. Deletions act on all other releases.",
    ),
}


def meaning(table: Mapping[str, Any]) -> str:
    """`words.meaning` as a sentence."""
    text = words.meaning(table)
    return f"{text[:1].upper()}{text[1:]}."


def percent_of(answer: Answer) -> str:
    """The level of an answer's intervals."""
    return percent(answer.level)


def forgets(entry: Mapping[str, Any]) -> str:
    """Whether a release forgets deleted records, in a word or two."""
    word = str(entry["retroactive"])
    return _FORGETS.get(word, word)


def facts(
    last: Answer,
    table: Mapping[str, Any],
    entry: Mapping[str, Any],
    days: Days,
) -> tuple[tuple[str, str], ...]:
    """What one must know not to misread the numbers of a release."""
    found = [
        ("Records", _span(table, entry, days)),
        ("Interval", _interval(last)),
        *_beside(last, str(table["kind"])),
        ("Deleted records", retroactive(entry)),
    ]
    return tuple((name, text) for name, text in found if text)


def _span(table: Mapping[str, Any], entry: Mapping[str, Any], days: Days) -> str:
    if table.get("revised"):
        return (
            f"Every {days.every} round publishes the whole series again, as it is known then. So each number "
            "has a round that it is about and a round that published it."
        )
    if table.get("window"):
        window = words.spelled_out(str(table["window"]))
        return f"Records of the last {window}, up to the end of the round, that were not deleted by then."
    if entry["retroactive"] == "no":
        return "So far: every record added up to the end of the round; of deleted ones see below."
    return "So far: every record added up to the end of the round and not deleted by then."


def _interval(last: Answer) -> str:
    steps, often = Steps(last), level_text(last.level)
    if last.each is None and last.stamps is None:
        half, half_all = steps.text(last.half), steps.text(last.half_all)
        return (
            f"Without noise the number lies within ±\u00a0{half} in {often} cases; within ±\u00a0{half_all} in all "
            f"rounds of the plan at once in {often} cases."
        )
    if last.stamps is not None:
        return f"At most ±\u00a0{steps.text(last.half)} in {often} cases. It differs by stamp."
    return (
        f"Its width differs from number to number and stands beside each. Without noise the number lies inside in "
        f"{often} cases."
    )


def _beside(last: Answer, kind: str) -> list[tuple[str, str]]:
    found = []
    if last.step != 1:
        found.append(("Rounding", f"Published in steps of {decimal_text(1, last.step)}."))
    if last.threshold is not None:
        steps = Steps(last)
        high = steps.text(max(last.threshold - 1 + last.half, 0))
        found.append(
            (
                "Not listed",
                (
                    f"A label is named from {steps.text(last.threshold)} on, noise included. One that is not listed "
                    f"has at most {high} ({percent_of(last)}); it is not 0. {_WHY_NOT.get(kind, _WHY_RARE)}"
                ),
            )
        )
    if last.values and all(value is None for value in last.values):
        found.append(
            ("Bracket", "There is no single best number here: the two ends are what is known.")
        )
    if kind in _COUNTS and any(value is not None and value < 0 for value in last.values):
        found.append(
            ("Below 0", "Noise can take a number below 0. It is published as it is, not cut off.")
        )
    return found


def epochs(published: Published) -> tuple[tuple[str, str], ...]:
    """What is to be known of rounds before the present epoch of a store, as a fact."""
    before = published.epoch.rounds_before
    if not before:
        return ()
    text = (
        f"Rounds up to {before:,} belong to earlier epochs, with a plan, a key and noise of their own. Intervals of "
        "all rounds at once hold within an epoch."
    )
    return (("Epochs", text),)


def retroactive(entry: Mapping[str, Any]) -> str:
    """What becomes of deleted records, with the figures of the plan if there are any."""
    word = str(entry["retroactive"])
    title, text = FORGETS.get(word, (word, ""))
    said = words.retroactivity(entry)[0]
    figures = said[len(word) :] if said.startswith(word) else ""
    return f"{title}{f' {figures}' if figures else ''}. {text}"


def intro(published: Published, days: Days) -> list[str]:
    """What this page is, in sentences."""
    number = len(published.releases)
    releases = "one series of numbers" if number == 1 else f"{number:,} series of numbers"
    many = len(published.rounds)
    if not many:
        told = f"{releases[:1].upper()}{releases[1:]} will be published, {days.every}. Nothing is published yet."
    else:
        of = f"{many:,} {days.every} round{'s' if many > 1 else ''}"
        first, last = published.rounds[0], published.rounds[-1]
        span = (
            f"on {days.text(first)}"
            if many == 1
            else f"from {days.text(first)} to {days.text(last)}"
        )
        gaps_ = published.gaps(published.boundaries[0]).missing
        gap = "some rounds are missing, see below" if gaps_ else "none is missing"
        told = (
            f"{releases[:1].upper()}{releases[1:]} in {of}, {span} ({published.timezone}); {gap}."
        )
    return [
        told,
        (
            "They are about records that are added and deleted all the time; those that are not deleted survive. Random "
            "noise was added to every number on purpose: so that nobody can tell from all of them together, whatever "
            "else they know, whether any one record is in the data."
        ),
        "How large the noise is stands beside every number, as ±.",
    ]


def reading(published: Published) -> list[tuple[str, str]]:
    """How to read the numbers: heading and text."""
    levels = {Fraction(table["level"]) for table in published.resolved.plan["release"]}
    often = level_text(levels.pop()) if len(levels) == 1 else "as many of 100 as stand beside it"
    found = [
        (
            "± and intervals",
            (
                f"The number without noise lies inside the interval in {often} cases. So of a hundred numbers "
                "some lie outside, and which ones nobody can tell."
            ),
        ),
        (
            "All rounds at once",
            (
                "The wider interval holds for all rounds of one series together. Use it to say something about a "
                "whole curve, a peak or a turning point. It does not hold for all labels at once."
            ),
        ),
        (
            "What it leaves out",
            (
                "Intervals speak of the noise alone. They know nothing of records that are missing or wrong, or "
                "that were cut to the bounds of the plan."
            ),
        ),
        (
            "So far, or in a window",
            (
                "“So far” counts everything that stands at the end of a round, not what came in that round; it falls when "
                "more is deleted than added, or by noise. What came in is a series with a window."
            ),
        ),
        (
            "Adding up",
            (
                "Sums and differences of published numbers have more noise than each of them; intervals do not simply "
                "add up."
            ),
        ),
    ]
    if any("threshold" in entry for entry in published.entries.values()):
        found.insert(
            3,
            (
                "Not listed is not zero",
                (
                    "Where labels are not known beforehand only frequent ones are named. For the others the page says "
                    "how large they can be."
                ),
            ),
        )
    return found
