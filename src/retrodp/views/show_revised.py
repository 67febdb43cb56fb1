"""Revised releases on the screen: the newest stamps of one vintage.

Promise: made of published rows alone, of the same ones that an export has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.text import Text

from retrodp.plan.decimals import decimal_text
from retrodp.views.export import NUMBERS, Row, Selection, rows
from retrodp.views.figures import grouped, percent, printable
from retrodp.views.published import Published
from retrodp.views.tables import bare_table
from retrodp.views.vintages import Vintage


def newest_rows(
    published: Published, release: str, *, round_: int, top: int | None, vintage: Vintage
) -> list[dict[str, Any]]:
    """Rows of one vintage, newest stamps first, of each the largest values.

    Args:
        published: The store.
        release: A revised release.
        round_: Last round that counts as published.
        top: At most so many stamps of a scalar, or bins of the newest stamp; None for all.
        vintage: Of "latest", "first", "all" or a round.
    """

    def since(first: int | None) -> list[Row]:
        chosen = Selection(releases=(release,), first=first, last=round_, vintage=vintage)
        return list(rows(published, chosen))

    found: list[Row] = []
    if (
        vintage == "latest"
        and top is not None
        and published.plan_of(1) is published.plan_of(round_)
    ):
        found = since(round_)  # it has the newest stamps
        if len(found) < top and not any(row.key for row in found):
            found = []  # one number a stamp, and older stamps are wanted
    if not found:
        first = max(1, round_ - max(top, 1) + 1) if vintage == "first" and top is not None else None
        found = since(first)
    found.sort(key=lambda row: (-int(row.stamp), -Fraction(row.value), row.round))
    scalar = all(not row.key for row in found)
    if top is not None and not scalar and found:
        found = [row for row in found if row.stamp == found[0].stamp]
    return [_row(row) for row in (found if top is None else found[:top])]


def _row(row: Row) -> dict[str, Any]:
    numbers = dict(zip(NUMBERS, row[3:10], strict=True))
    return {
        "stamp": int(row.stamp),
        "stamp_start": row.stamp_start,
        "round": row.round,
        **numbers,
    }


def render(console: Console, release: Mapping[str, Any], digits: int) -> None:
    """A table of the rows; fits 80 columns."""
    listed: Sequence[Mapping[str, Any]] = release["rows"]
    title = Text.assemble((release["release"], "bold"), f"  {release['means']}")
    console.print()
    console.print(title)
    if not listed:
        console.print(Text("No stamp has a label that is published.", style="dim"))
        return
    keys = any(row["key"] for row in listed)
    table = bare_table()
    table.add_column("of")
    if keys:
        table.add_column("key", overflow="fold", min_width=12)
    table.add_column("as of")
    for heading in ("value", f"± {percent(Fraction(release['level']))}"):
        table.add_column(heading, justify="right", no_wrap=True)
    for _, same in groupby(listed, key=lambda row: row["stamp"]):
        for row in same:
            half = (Fraction(row["high"]) - Fraction(row["low"])) / 2
            cells = [Text(row["stamp_start"][:16])]
            if keys:
                cells.append(Text(printable(row["key"])))
            cells.append(Text(f"round {row['round']:,}"))
            cells.append(Text(grouped(row["value"], digits), style="bold"))
            cells.append(Text(grouped(decimal_text(1, half), digits)))
            table.add_row(*cells)
    console.print(table)
