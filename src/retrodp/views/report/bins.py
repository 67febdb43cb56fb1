"""Releases with a number a label: the largest ones in one round, and each over the rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from retrodp.mechanisms.answer import Answer, Figure
from retrodp.views.figures import counted
from retrodp.views.published import Published
from retrodp.views.report import drawings, sentences
from retrodp.views.report.gather import History, history, largest, spread
from retrodp.views.report.labels import LONGEST, Days, Steps, cut, spelled
from retrodp.views.report.parts import Chart, Panel, Panels, Shown, Table, notes
from retrodp.views.report.thin import thinned

SMALL_POINTS = 400
"""Rounds of a small chart; longer series are thinned."""

BINS, PANELS, LISTED = 12, 6, 50
"""Bins in a chart, with a history, and in a table."""

_OF_SMALL = {
    drawings.BEYOND: "Bands that leave a chart go on beyond it.",
    drawings.NOT_FROM_ZERO: "Some axes do not begin at 0.",
}
SPREAD = 24
"""Rounds in a table of several bins."""


def bins(published: Published, last: Answer, table: Mapping[str, Any], days: Days) -> Shown:
    """The largest bins; also whatever nothing else is known of."""
    kind = str(table["kind"])
    top = largest(last, LISTED)
    if not top:
        return Shown(_earlier(published, last, kind, days), "no label is named")
    read = history(published, last, [figure.key for figure in top[:PANELS]])
    steps = Steps(last)
    named = [(spelled(kind, figure.key), figure) for figure in top[:BINS]]
    of = f"{last.release} in round {last.round:,}"
    chart = Chart(
        title=f"The largest {len(named):,} on {days.text(last.round)}"
        if len(named) < len(last)
        else f"On {days.text(last.round)}",
        drawing=drawings.bins(named, steps, float(last.step), of=of),
        legend=sentences.BAR_LEGEND,
        notes=notes(
            f"{len(last) - len(named):,} more bins are published." if len(named) < len(last) else ""
        ),
    )
    blocks = (
        chart,
        panels(read, [(spelled(kind, key), key) for key in read.keys], days),
        bins_table(last, top, kind, days),
        history_table(read, [spelled(kind, key) for key in read.keys], days),
    )
    return Shown(blocks, *_largest(last, top[0], kind))


def _earlier(
    published: Published, last: Answer, kind: str, days: Days
) -> tuple[Panels | Table, ...]:
    """What earlier rounds named, where the newest names nothing."""
    for round_ in reversed(published.rounds):
        answer = published.answer(round_, last.release)
        if answer is not None and answer.keys:
            read = history(published, last, [one.key for one in largest(answer, PANELS)])
            named = [(spelled(kind, key), key) for key in read.keys]
            labels = [label for label, _ in named]
            return panels(read, named, days), history_table(read, labels, days)
    return ()


def _largest(last: Answer, figure: Figure, kind: str) -> tuple[str, str]:
    """The largest bin: its value, then its error and name."""
    steps = Steps(last)
    label = cut(spelled(kind, figure.key), 40)
    of = f", the largest of {len(last):,}" if len(last) > 1 else ""
    error = steps.error(figure)
    if figure.value is None:
        return error, f"{label}{of}"
    return steps.value(figure), f"{error}: {label}{of}"


def listed(published: Published, last: Answer, table: Mapping[str, Any], days: Days) -> Shown:
    """A table first: where every label is a number of its own."""
    kind = str(table["kind"])
    figures = list(last.figures()) if len(last) <= LISTED else largest(last, LISTED)
    if kind == "cube":
        figures.sort(
            key=lambda figure: (spelled(kind, figure.key).count(" = "), spelled(kind, figure.key))
        )
    chosen = [figure.key for figure in figures[:PANELS]]
    read = history(published, last, chosen)
    labels = [spelled(kind, key) for key in chosen]
    blocks = (
        replace(bins_table(last, figures, kind, days), open=True),
        panels(read, list(zip(labels, chosen, strict=True)), days, kind=kind),
        history_table(read, labels, days),
    )
    return Shown(blocks, numbered(last))


def numbered(last: Answer) -> str:
    """How many numbers there are."""
    return counted(len(last), "number")


def panels(
    read: History, named: Sequence[tuple[str, str]], days: Days, *, kind: str = ""
) -> Panels:
    """A small chart a bin; `named` are labels and keys."""
    steps = _steps(read.last, kind)
    last = {figure.key: figure for figure in read.answers[-1].figures()}
    found, noted = [], [read.note]
    series = read.keyed([key for _, key in named])
    for label, key in named:
        shown, figure = thinned(series[key], SMALL_POINTS), last.get(key)
        drawing, said = drawings.line(
            shown.series, days, Steps(read.last).digits, small=True, of=label
        )
        noted += [_OF_SMALL[one] for one in said]
        if shown.note:
            noted.append(f"Long series are drawn thinner: of every {shown.run:,} rounds three.")
        if "threshold" in drawing.data:
            noted.append(
                "A gap: below the threshold, the dotted line, so not published. It is not 0."
            )
        found.append(
            Panel(
                label=cut(label, 60),
                value="–" if figure is None else steps.value(figure),
                error="" if figure is None else steps.error(figure),
                drawing=drawing,
            )
        )
    return Panels(
        title="Over the rounds, each on its own scale",
        panels=tuple(found),
        notes=notes(*dict.fromkeys(noted)),
    )


def _steps(last: Answer, kind: str) -> Steps:
    """Moments lie on one fine grid, counts among them: no more digits than each needs."""
    return Steps(last, digits=0) if kind == "gram" else Steps(last)


def bins_table(last: Answer, figures: Sequence[Figure], kind: str, days: Days) -> Table:
    """Numbers of one round."""
    steps, level = _steps(last, kind), sentences.percent_of(last)
    rows = tuple(
        (
            cut(spelled(kind, figure.key), LONGEST),
            steps.value(figure),
            steps.error(figure),
            steps.error_all(figure),
        )
        for figure in figures
    )
    more = len(last) - len(rows)
    said = f"{more:,} more are published; `retrodp export` has all {len(last):,}." if more else ""
    return Table(
        title=f"The numbers of {days.text(last.round)}"
        + (f", the largest {len(rows):,}" if more else ""),
        columns=("label", "value", f"interval, {level}", f"all rounds at once, {level}"),
        rows=rows,
        notes=notes(said),
    )


def history_table(read: History, labels: Sequence[str], days: Days) -> Table:
    """Some rounds of some bins."""
    rows = []
    for answer in reversed(spread(read.answers, SPREAD)):
        steps = Steps(answer)
        found = {figure.key: figure for figure in answer.figures()}
        cells = [
            "–"
            if key not in found
            else (steps.value if found[key].value is not None else steps.error)(found[key])
            for key in read.keys
        ]
        rows.append((days.short(answer.round), *cells))
    absent = read.last.threshold is not None and any("–" in row for row in rows)
    return Table(
        title=f"The same over {len(rows):,} of {read.of:,} rounds",
        columns=("begins", *(cut(label, 24) for label in labels)),
        rows=tuple(rows),
        notes=notes("–: below the threshold, not published; it is not 0." if absent else ""),
    )
