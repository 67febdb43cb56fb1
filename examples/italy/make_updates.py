"""Turn the published case counts into updates for retrodp.

    python examples/italy/make_updates.py OUTPUT.csv [--region NAME] [--days N] [--ids]

Writes one row for every day of a province whose number of cases changed, at the moment at which
the change was published; with `--ids` one row for every case, under an id that is made up.
`README.md` beside this file says what was decided.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import groupby
from operator import attrgetter
from pathlib import Path

HERE = Path(__file__).parent
START = date(2020, 2, 25)
DAYS = 977
MISTAKE = 3_000  # no correction of single cases takes so many back at once
PLACEHOLDERS = {
    "Fuori Regione / Provincia Autonoma": "from elsewhere",
    "In fase di definizione/aggiornamento": "not yet assigned",
}


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A province, or what a region counts apart from its provinces."""

    region: str
    province: str


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one cell of the published table: new cases of a day, published at a moment."""

    at: str
    day: str
    place: Place
    delta: int


@dataclass(frozen=True, slots=True)
class Update:
    """So many cases of one day and place that are added, or taken back if negative."""

    at: str
    day: str
    place: Place
    cases: int


@dataclass(slots=True)
class Standing:
    """The cases of one place that stand, by day, as published up to now.

    A function of the published table alone: a day with a negative number takes back the latest
    cases before it. So when the publisher corrects the table, every case is where it would have
    been without the mistake.
    """

    published: dict[str, int] = field(default_factory=dict)
    cases: dict[str, int] = field(default_factory=dict)
    last: str = ""

    def change(self, deltas: dict[str, int]) -> dict[str, int]:
        """Take in changes of one publication; returns by how much the cases of each day change."""
        for day, delta in deltas.items():
            self.published[day] = self.published.get(day, 0) + delta
        if min(deltas) > self.last and min(deltas.values()) > 0:  # nearly always
            self.last = max(deltas)
            self.cases |= deltas
            return deltas
        self.last = max(self.last, *deltas)
        before, self.cases = self.cases, standing(self.published)
        days = sorted(before.keys() | self.cases.keys())
        moves = {day: self.cases.get(day, 0) - before.get(day, 0) for day in days}
        return {day: cases for day, cases in moves.items() if cases}


def standing(published: dict[str, int]) -> dict[str, int]:
    """Cases that stand by day, when negative days take back the latest cases before them."""
    stack: list[tuple[str, int]] = []
    for day, number in sorted(published.items()):
        owed = max(-number, 0)
        while owed:
            latest, cases = stack.pop()
            taken = min(owed, cases)
            owed -= taken
            if cases > taken:
                stack.append((latest, cases - taken))
        if number > 0:
            stack.append((day, number))
    return dict(stack)


def places() -> dict[tuple[str, str], Place]:
    """Places by the codes of the table; the two autonomous provinces had two codes each."""
    found = {}
    for row in csv.DictReader((HERE / "places.csv").read_text(encoding="utf-8").splitlines()):
        apart = PLACEHOLDERS.get(row["province_name"])
        province = f"{row['region_name']}: {apart}" if apart else row["province_name"]
        found[row["region"], row["province"]] = Place(row["region_name"], province)
    return found


def changes(*, region: str | None = None, days: int = DAYS) -> list[Change]:
    """Changes of the published table, in the order in which they were published."""
    of_code = places()
    end = (START + timedelta(days=days)).isoformat()
    with gzip.open(HERE / "cases.csv.gz", "rt", encoding="utf-8", newline="") as file:
        read = [
            Change(
                row["published_at"],
                row["date"],
                of_code[row["region"], row["province"]],
                int(row["delta"]),
            )
            for row in csv.DictReader(file)
            if row["published_at"] < end
        ]
    return [change for change in read if region in {None, change.place.region}]


def published_cases(made: Iterable[Change]) -> Counter[Place]:
    """The published table's last line: cases so far by place."""
    cells: Counter[Place] = Counter()
    for change in made:
        cells[change.place] += change.delta
    return cells


def updates(made: Iterable[Change]) -> Iterator[Update]:
    """The same changes as additions and deletions of cases with a date."""
    places_now: defaultdict[Place, Standing] = defaultdict(Standing)
    for at, published in groupby(made, key=attrgetter("at")):
        deltas: defaultdict[Place, Counter[str]] = defaultdict(Counter)
        for change in published:
            deltas[change.place][change.day] += change.delta
        for place, of_day in sorted(deltas.items()):
            for day, cases in places_now[place].change(dict(of_day)).items():
                yield Update(at, day, place, cases)


def rows(made: Iterable[Update]) -> Iterator[dict[str, object]]:
    """Rows of a stream without ids: `n` cases each."""
    for update in made:
        yield {
            "op": "add" if update.cases > 0 else "delete",
            "at": update.at,
            "time": update.day,
            "region": update.place.region,
            "province": update.place.province,
            "n": abs(update.cases),
        }


def rows_with_ids(made: Iterable[Update]) -> Iterator[dict[str, object]]:
    """Rows of a stream with ids: one case each; what is taken back are a day's latest ids."""
    running: defaultdict[tuple[Place, str], list[str]] = defaultdict(list)
    number = 0
    for update in made:
        ids = running[update.place, update.day]
        for _ in range(-update.cases):
            yield {"op": "delete", "id": ids.pop(), "at": update.at}
        for _ in range(update.cases):
            number += 1
            ids.append(f"case-{number}")
            yield {
                "op": "add",
                "id": ids[-1],
                "at": update.at,
                "time": update.day,
                "region": update.place.region,
                "province": update.place.province,
            }


def write(made: Iterable[dict[str, object]], output: Path, *, ids: bool) -> None:
    head = ["op", "id", "at", "time", "region", "province"]
    if not ids:
        head = ["op", "at", "time", "region", "province", "n"]
    with output.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, head, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(made)


def tell(source: list[Change], made: list[Update]) -> None:
    """What became of the table, in numbers."""
    net: Counter[tuple[str, Place]] = Counter()
    for change in source:
        net[change.at, change.place] += change.delta
    told = {
        "changes of published cells": len(source),
        "of them negative": sum(change.delta < 0 for change in source),
        f"falls of a place by {MISTAKE:,} or more at once (kept)": sum(
            cases <= -MISTAKE for cases in net.values()
        ),
        "rows of updates": len(made),
        "rows that change an earlier day": sum(update.at[:10] != update.day for update in made),
        "cases added": sum(max(update.cases, 0) for update in made),
        "cases taken back": sum(max(-update.cases, 0) for update in made),
        "cases that stand": sum(update.cases for update in made),
    }
    for what, number in told.items():
        print(f"{what:55} {number:>12,}")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--region", help="only this region")
    parser.add_argument("--days", type=int, default=DAYS, help="only the first days")
    parser.add_argument("--ids", action="store_true", help="a made-up id for every case")
    chosen = parser.parse_args(arguments)
    source = changes(region=chosen.region, days=chosen.days)
    made = list(updates(source))
    as_rows = rows_with_ids if chosen.ids else rows
    write(as_rows(made), chosen.output, ids=chosen.ids)
    tell(source, made)


if __name__ == "__main__":
    main(sys.argv[1:])
