"""One section a release: which charts and tables show it, chosen by the shape of what it publishes.

Promise: whatever a release publishes is shown. A kind that is not named here has its numbers over the rounds and
in tables, as bins or as one number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from retrodp.mechanisms.answer import Answer, Figure
from retrodp.views import words
from retrodp.views.published import Published
from retrodp.views.report import centres, drawings, revisions, sentences
from retrodp.views.report.bins import bins, listed
from retrodp.views.report.gather import History, history, last_answer, spread
from retrodp.views.report.labels import Days, Steps
from retrodp.views.report.ordered import edges, quantiles
from retrodp.views.report.parts import Block, Chart, Section, Shown, Table, notes
from retrodp.views.report.spark import spark
from retrodp.views.report.thin import last_rounds, thinned

Showing: TypeAlias = Callable[[Published, Answer, Mapping[str, Any], Days], Shown]

POINTS = 600
"""Rounds of a large chart; longer series are thinned."""

NEWEST = 30
"""Rounds that a long series shows once more, larger."""

ROWS = 400
"""Rounds in a table; every one while there are no more than that."""

_BY_KIND: Mapping[str, Showing] = {
    "quantiles": quantiles,
    "cdf": edges,
    "range": edges,
    "gram": listed,
    "cube": listed,
    "query": listed,
}


def section(published: Published, release: str) -> Section:
    """What the page says of one release."""
    days = Days(published)
    last = last_answer(published, release)
    plan = published.resolved if last is None else published.plan_of(last.round)
    table = words.plan_table(plan, release)
    entry = plan.release(release)
    found = Section(
        name=release,
        means=sentences.meaning(table),
        kind=str(table["kind"]),
        value="",
        error="",
        facts=(),
        forgets=sentences.forgets(entry),
        blocks=(),
    )
    if last is None:
        return replace(found, value="nothing published yet")
    shown = _shown(published, last, table, days)
    error = shown.error
    if last.round < published.last_round:
        error = f"{error}, last published on {days.text(last.round)}".removeprefix(", ")
    return replace(
        found,
        value=shown.value,
        error=error,
        facts=sentences.facts(last, table, entry, days) + sentences.epochs(published),
        blocks=shown.blocks,
        spark=spark(shown.blocks),
    )


def _shown(published: Published, last: Answer, table: Mapping[str, Any], days: Days) -> Shown:
    if last.stamps is not None:
        return revisions.shown(published, last, days)
    if last.keys is None:
        return _scalar(published, last, table, days)
    if centres.has_centres(last, table):
        return centres.shown(published, last, table, days)
    return _BY_KIND.get(str(table["kind"]), bins)(published, last, table, days)


def _scalar(published: Published, last: Answer, table: Mapping[str, Any], days: Days) -> Shown:
    figure, steps = last.figures()[0], Steps(last)
    silent = _is_silent(published, last, figure, table)
    blocks = _over_rounds(history(published, last, ()), days, silent=silent)
    if figure.value is None:
        return Shown(blocks, steps.error(figure))
    return Shown(blocks, steps.value(figure), "no interval" if silent else steps.error(figure))


def _is_silent(
    published: Published, last: Answer, figure: Figure, table: Mapping[str, Any]
) -> bool:
    """Whether the interval of a number is the whole range of its column, and so says nothing."""
    of = table.get("of") or ()
    bounds = centres.bounds_of(published, last)
    columns = [of] if isinstance(of, str) else list(of)
    return len(columns) == 1 and centres.is_whole(figure, float(last.step), bounds.get(columns[0]))


def _over_rounds(read: History, days: Days, *, silent: bool) -> tuple[Block, ...]:
    digits = Steps(read.last).digits
    whole = read.scalar()
    if silent:
        value = whole.value
        whole = replace(whole, low=value, high=value, low_all=value, high_all=value)
    shown = thinned(whole, POINTS)
    drawing, said = drawings.line(shown.series, days, digits)
    blocks: list[Block] = [
        Chart(
            title="Over the rounds",
            drawing=drawing,
            notes=notes(read.note, shown.note, *said, sentences.SILENT if silent else ""),
            legend=_legend(silent=silent, bracket=bool(np.isnan(whole.value).all())),
        )
    ]
    if len(whole.rounds) > 2 * NEWEST:
        newest, more = drawings.line(last_rounds(whole, NEWEST), days, digits, height=180)
        title = f"The newest {NEWEST} rounds"
        blocks.append(Chart(title=title, drawing=newest, notes=more))
    return (*blocks, _rounds_table(read, days))


def _legend(*, silent: bool, bracket: bool) -> tuple[tuple[str, str], ...]:
    if silent:
        return sentences.LEGEND[:1]
    return sentences.BRACKET_LEGEND if bracket else sentences.LEGEND


def _rounds_table(read: History, days: Days) -> Table:
    answers = spread(read.answers, ROWS)
    rows = []
    for answer in reversed(answers):
        steps, figure = Steps(answer), answer.figures()[0]
        value = [] if figure.value is None else [steps.value(figure)]
        rows.append(
            (
                days.short(answer.round),
                f"{answer.round:,}",
                *value,
                steps.error(figure),
                steps.error_all(figure),
            )
        )
    bracket = bool(rows) and all(len(row) == 4 for row in rows)
    if not bracket:
        rows = [row if len(row) == 5 else (*row[:2], "–", *row[2:]) for row in rows]
    level = sentences.percent_of(read.last)
    ends = (f"interval, {level}", f"all rounds at once, {level}")
    return Table(
        title=f"The numbers of {len(rows):,} round{'s' if len(rows) > 1 else ''}, newest first",
        columns=("begins", "round", *(() if bracket else ("value",)), *ends),
        rows=tuple(rows),
        notes=notes(_left_out(len(rows), read.of)),
    )


def _left_out(shown: int, of: int) -> str:
    if shown == of:
        return ""
    return f"{of - shown:,} rounds are left out here, evenly; `retrodp export` has all {of:,}."
