"""One published round for people and programs: values, error bars, top bins, gaps.

Promise: made of published answers and the plan alone; what is absent from a sparse histogram is
shown as the bound that it is, never as 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from rich.console import Console
from rich.text import Text

from retrodp.errors import UsageError
from retrodp.mechanisms.answer import Answer
from retrodp.views import words
from retrodp.views.export import NUMBERS, answer_rows
from retrodp.views.figures import Grid, grouped, natural, percent, printable, shared_level
from retrodp.views.published import TEST, Published
from retrodp.views.show_revised import newest_rows
from retrodp.views.show_revised import render as render_revised
from retrodp.views.tables import bare_table
from retrodp.views.vintages import Vintage

FORMAT = 1
TOP = 10
_ORDERED = {"quantiles", "cdf", "range"}  # kinds whose keys are numbers that are read in order
# Kinds whose rows make one picture, in the order of their keys.
_TOGETHER = {"kmeans", "kmedian", "online_kmeans", "online_kmedian"}
_POINTS = ('["coreset",', '["representative",')  # beginnings of keys that a picture leaves out


def document(
    published: Published,
    *,
    round: int | None = None,  # noqa: A002  the field's own word
    top: int | None = TOP,
    now: int | None = None,
    vintage: Vintage = "latest",
) -> dict[str, Any]:
    """One round as a JSON document.

    Args:
        published: The store.
        round: Which one; None for the last that is published.
        top: Bins of each histogram, by falling value; None for all, by key.
        now: Microseconds UTC; if given, the document says which rounds are late or open.
        vintage: Of revised releases: as known in this round ("latest"), as "first" published, or
            as known in an earlier round.

    Returns:
        `round` is 0 and `releases` empty before the first round is published. Numbers are texts
        of exact decimals.

    Raises:
        UsageError: If that round is not published, or `top` is below 0.
    """
    if top is not None and top < 0:
        raise UsageError(f"There are no {top} bins to show.", expected="0 or more")
    last = published.last_round
    shown = last if round is None else round
    found: dict[str, Any] = {
        "format": FORMAT,
        "test": published.is_test,
        "store": published.store_id,
        "round": shown,
        "horizon": published.horizon,
        "timezone": published.timezone,
        "round_start": None,
        "round_end": None,
        "epoch": published.epoch.number,
        "budget": published.epoch.statement(published.resolved),
        "releases": [],
    }
    if round is not None or last:
        answers = published.answers(shown)
        if not answers:
            raise UsageError(
                f"Round {shown} is not published.",
                expected=f"1 to {last}" if last else "",
                do="" if last else "Close a round with `retrodp run` or `retrodp close`.",
            )
        found["round_start"] = published.start_text(shown)
        found["round_end"] = published.end(shown).isoformat()
        found["releases"] = [
            _release(published, answer, top)
            if answer.stamps is None
            else _revised(published, answer, top, vintage)
            for answer in answers.values()
        ]
    if now is not None:
        found["gaps"] = published.gaps_document(now)
    return found


def _release(published: Published, answer: Answer, top: int | None) -> dict[str, Any]:
    grid = Grid.of(answer.step)
    resolved = published.plan_of(answer.round)
    table = words.plan_table(resolved, answer.release)
    entry = next(own for own in resolved.releases if own["name"] == answer.release)
    rows = _picture(answer) if table["kind"] in _TOGETHER and top is not None else _top(answer, top)
    found: dict[str, Any] = {
        "release": answer.release,
        "kind": table["kind"],
        "retroactive": words.retroactivity(entry)[0],
        "means": words.meaning(table),
        "level": str(answer.level),
        "step": grid.text(1),
        "bins": None if answer.keys is None else len(answer),
        "error": None if answer.each else grid.text(answer.half),
        "error_all": None if answer.each else grid.text(answer.half_all),
        "rows": [dict(zip(NUMBERS, row[3:10], strict=True)) for row in answer_rows(rows, "")],
    }
    if table["kind"] in _ORDERED | _TOGETHER:
        found["rows"].sort(key=lambda row: natural(row["key"]))
    elif top is not None:
        found["rows"].sort(key=lambda row: -Fraction(row["value"] or 0))
    if answer.threshold is not None:
        # A bin is absent because its noisy count lies below the threshold, or because it is
        # empty; either way the interval of what is absent ends here.
        below = answer.threshold
        found["absent_below"] = grid.text(below)
        found["absent_high"] = grid.text(max(below - 1 + answer.half, 0))
        found["absent_high_all"] = grid.text(max(below - 1 + answer.half_all, 0))
    return found


def _revised(
    published: Published, answer: Answer, top: int | None, vintage: Vintage
) -> dict[str, Any]:
    name = answer.release
    found = _release(published, replace(answer, keys=(), values=(), stamps=(), each=None), None)
    found["bins"] = None if answer.keys is None else len(set(answer.keys))
    found["stamps"] = len(answer.spreads or ())
    found["vintage"] = vintage
    found["rows"] = newest_rows(published, name, round_=answer.round, top=top, vintage=vintage)
    return found


def _picture(answer: Answer) -> Answer:
    """The answer without the points of its coreset."""
    rows = [
        (figure.key, figure.value, figure.bounds)
        for figure in answer.figures()
        if not figure.key.startswith(_POINTS)
    ]
    keys, values, each = zip(*rows, strict=True)
    return replace(answer, keys=keys, values=values, each=each)


def _top(answer: Answer, top: int | None) -> Answer:
    """The answer cut to its largest bins; equal values in order of key."""
    if top is None or answer.keys is None:
        return answer
    figures = answer.figures()
    largest = sorted(figures, key=lambda figure: (-(figure.value or 0), figure.key))[:top]
    return replace(
        answer,
        keys=tuple(figure.key for figure in largest),
        values=tuple(figure.value for figure in largest),
        each=None if answer.each is None else tuple(figure.bounds for figure in largest),
    )


def render(console: Console, shown: Mapping[str, Any]) -> None:
    """Print a `document` for people; fits 80 columns."""
    render_test(console, shown)
    if not shown["round"]:
        console.print(Text("Nothing is published yet."))
    else:
        title = f"Round {shown['round']:,} of {shown['horizon']:,}{epoch_text(shown)}"
        console.print(Text.assemble((title, "bold"), f"  from {shown['round_start']}"))
        plain = [one for one in shown["releases"] if "stamps" not in one]
        render_scalars(console, [one for one in plain if one["bins"] is None])
        for release in shown["releases"]:
            render_many(console, release)
        for line in _not_exact(shown["releases"]):
            console.print(Text(line, style="dim"))
    if shown["budget"]["earlier_stores"]:
        console.print(Text(f"Epoch {shown['epoch']}. {words.spent(shown['budget'])}", style="dim"))
    if "gaps" in shown:
        for line in gap_lines(shown["gaps"]):
            console.print(Text(line, style="yellow"))


def _not_exact(releases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Which releases keep something of deleted records, in sentences."""
    for release in releases:
        if release["retroactive"] != "exact":
            yield f"{release['release']}: {words.sentence(release['retroactive'])}."


def epoch_text(shown: Mapping[str, Any]) -> str:
    """What follows the last round of the present epoch, if its horizon is open."""
    epoch = shown["budget"].get("open_horizon")
    if epoch is None:
        return ""
    return f" (epoch {epoch['number']} of at most {epoch['of']}, each twice as long)"


def render_test(console: Console, shown: Mapping[str, Any]) -> None:
    """Say TEST where it must be said."""
    if shown["test"]:
        console.print(Text(TEST, style="bold red"))


def render_scalars(console: Console, releases: Sequence[Mapping[str, Any]]) -> None:
    """A table of the releases that are one number."""
    if not releases:
        return
    level = shared_level(release["level"] for release in releases)
    table = bare_table()
    table.add_column("release", overflow="fold")
    for heading in ("value", f"±{level}", "± all rounds"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", overflow="fold", style="dim")
    for release in releases:
        digits = digits_of(release)
        table.add_row(
            Text(release["release"]),
            *_figure(release, release["rows"][0], digits),
            Text(release["means"]),
        )
    console.print(table)


def render_many(console: Console, release: Mapping[str, Any]) -> None:
    """A table of a release that is no single number; nothing for one that is."""
    if "stamps" in release:
        render_revised(console, release, digits_of(release))
        render_absent(console, release)
    elif release["bins"] is not None:
        render_bins(console, release)


def render_bins(console: Console, release: Mapping[str, Any]) -> None:
    """A table of the bins of one histogram."""
    digits = digits_of(release)
    many = f"{len(release['rows']):,} of {release['bins']:,} bins"
    title = Text.assemble((release["release"], "bold"), f"  {release['means']}  ({many})")
    console.print()
    console.print(title)
    table = bare_table()
    table.add_column("key", overflow="fold", min_width=12)
    for heading in ("value", f"± {percent(Fraction(release['level']))}", "± all rounds"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in release["rows"]:
        table.add_row(
            Text(printable(row["key"])),
            *_figure(release, row, digits),
        )
    if release["rows"]:
        console.print(table)
    render_absent(console, release)


def render_absent(console: Console, release: Mapping[str, Any]) -> None:
    """What may be said of labels that are not published."""
    if "absent_below" in release:
        console.print(
            Text(f"A label that is not published is {absent_text(release)}.", style="dim")
        )


def _figure(release: Mapping[str, Any], row: Mapping[str, str], digits: int) -> list[Text]:
    """Value and both errors of a row: half widths, or the ends where they differ by row."""
    value = grouped(row["value"], digits) if row["value"] else "-"
    if release["error"] is not None:
        errors = [grouped(release["error"], digits), grouped(release["error_all"], digits)]
    else:
        errors = [
            f"{grouped(row[low], digits)} to {grouped(row[high], digits)}"
            for low, high in (("low", "high"), ("low_all", "high_all"))
        ]
    return [Text(value, style="bold"), *map(Text, errors)]


def absent_text(release: Mapping[str, Any]) -> str:
    """The bound on what is absent from a sparse histogram."""
    high = grouped(release["absent_high"], digits_of(release))
    return (
        f"below {grouped(release['absent_below'])} with its noise, so at most {high} "
        f"({percent(Fraction(release['level']))})"
    )


def digits_of(release: Mapping[str, Any]) -> int:
    """Digits after the point of a release's values."""
    return Grid.of(Fraction(release["step"])).digits


def gap_lines(gaps: Mapping[str, Any]) -> list[str]:
    """Sentences about what is missing, late or open."""
    lines = []
    for first, last in gaps["missing"]:
        lines.append(f"Missing: {_rounds(first, last)} not published although later ones are.")
    if gaps["late"]:
        lines.append(f"Late: {_rounds(*gaps['late'])} over by the calendar and not published.")
    if gaps["open"]:
        lines.append(f"Open: round {gaps['open']:,}.")
    if gaps["published"] == gaps["horizon"] and not gaps.get("goes_on"):
        lines.append("The horizon is over: all rounds are published.")
    return lines


def _rounds(first: int, last: int) -> str:
    return f"round {first:,} is" if first == last else f"rounds {first:,} to {last:,} are"
