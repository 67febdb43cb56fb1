"""Hold a store of the Italian cases against the published table.

    python examples/italy/compare.py STORE

Only a check may do this: it opens the ledger, which is exact, and needs the key. The ledger must
agree with the last published line of the table to the case, and the released numbers must lie within
their intervals as often as these say.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import msgspec
from make_updates import START, Change, Place, changes, published_cases, updates

import retrodp as rdp
from retrodp.views.published import Published

WEEK = 7

Totals = Counter[str]
"""Cases by name of the province."""


def surviving_cases(store: rdp.Store) -> Counter[Place]:
    """Cases by place that survive in the ledger, exact."""
    found: Counter[Place] = Counter()
    for batch in store.ledger.survivors():
        for record in batch:
            region, province = msgspec.msgpack.decode(record.payload)
            found[Place(region, province)] += record.count
    return found


def day_of(round_: int) -> str:
    """Date of a round."""
    return (START + timedelta(days=round_ - 1)).isoformat()


def round_of(at: str) -> int:
    """Round of a publication: none was made in the two hours in which the dates of Rome differ."""
    return (date.fromisoformat(at[:10]) - START).days + 1


def table_by_round(source: list[Change], rounds: int) -> Iterator[Totals]:
    """What the table said at the end of each round, from the table alone."""
    of_round: defaultdict[int, list[Change]] = defaultdict(list)
    for change in source:
        of_round[round_of(change.at)].append(change)
    said: Totals = Counter()
    for round_ in range(1, rounds + 1):
        for change in of_round[round_]:
            said[change.place.province] += change.delta
        yield said


def weeks_by_round(source: list[Change], rounds: int) -> Iterator[Totals]:
    """Cases of the last seven days that stand at the end of each round."""
    of_round: defaultdict[int, list[tuple[str, str, int]]] = defaultdict(list)
    for update in updates(source):
        of_round[round_of(update.at)].append((update.place.province, update.day, update.cases))
    stand: defaultdict[str, Totals] = defaultdict(Counter)
    for round_ in range(1, rounds + 1):
        for province, day, cases in of_round[round_]:
            stand[day][province] += cases
        week: Totals = Counter()
        for back in range(min(WEEK, round_)):
            week.update(stand[day_of(round_ - back)])
        yield week


def within(published: Published, release: str, truth: Iterator[Totals]) -> tuple[int, int]:
    """How many released numbers lie within their own interval, and how many there are."""
    inside = total = 0
    for answer, exact in zip(published.each(releases=[release]), truth, strict=True):
        for figure in answer.figures():
            inside += figure.bounds.low <= exact[figure.key] <= figure.bounds.high
            total += 1
    return inside, total


def main(arguments: list[str]) -> None:
    if len(arguments) != 1:
        sys.exit(__doc__)
    directory = Path(arguments[0])
    with rdp.Store.open(directory) as store:
        rounds, surviving = store.round, surviving_cases(store)
    source = [change for change in changes() if round_of(change.at) <= rounds]
    table = published_cases(source)
    equal = sum(surviving[place] == cases for place, cases in table.items())
    print(f"round {rounds}, {day_of(rounds)}: {sum(table.values()):,} cases in the table")
    print(f"{equal} of {len(table)} places have exactly as many cases in the ledger")
    with Published.open(directory) as published:
        for release, truth in (
            ("by_province", table_by_round(source, rounds)),
            ("week_by_province", weeks_by_round(source, rounds)),
        ):
            inside, total = within(published, release, truth)
            print(f"{release}: {inside / total:.2%} of {total:,} numbers are within their interval")
    if surviving != table:
        sys.exit("The ledger differs from the table.")


if __name__ == "__main__":
    main(sys.argv[1:])
