"""Turn the events of the .gov register into updates for retrodp.

    python examples/gov_register/make_updates.py OUTPUT.parquet [--since DATE] [--until DATE]

One record a domain. What stands before `--since` arrives at its first moment, all at once.
`README.md` beside this file says what was decided.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

DATA = Path(__file__).with_name("register.parquet")
FIRST = datetime(2019, 2, 1, tzinfo=UTC)
LAST = datetime(2026, 9, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        pa.field("op", pa.string(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("at", pa.timestamp("s", tz="UTC"), nullable=False),
        pa.field("time", pa.timestamp("s", tz="UTC")),
        pa.field("type", pa.string()),
        pa.field("organization", pa.string()),
        pa.field("state", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class Entry:
    """What the register says about a domain; empty fields are None."""

    type: str | None
    organization: str | None
    state: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """A domain's entry before and after a publication of the register; None where it has none."""

    at: datetime
    domain: str
    before: Entry | None
    after: Entry | None


@dataclass(frozen=True, slots=True)
class Update:
    """One row of the output; a deletion names nothing but the domain."""

    op: str
    domain: str
    at: datetime
    since: datetime | None = None
    entry: Entry | None = None


def changes() -> list[Change]:
    """Changes of the register, in the order in which they were published."""
    rows = pq.read_table(DATA).to_pylist()
    found = []
    for (at, domain), events in groupby(rows, key=lambda row: (row["seen_at"], row["domain"])):
        sides: dict[str, Entry] = {}
        for event in events:
            entry = Entry(*(event[name] or None for name in ("type", "organization", "state")))
            sides[event["op"]] = entry
        found.append(Change(at, domain, sides.get("-"), sides.get("+")))
    return found


def updates(
    made: Iterable[Change], *, since: datetime = FIRST, until: datetime = LAST
) -> Iterator[Update]:
    """Additions, replacements and deletions; a replacement keeps the day of its domain.

    Raises:
        ValueError: An event takes back an entry that does not stand.
    """
    standing: dict[str, tuple[datetime, Entry]] = {}
    begun = False
    for change in made:
        if change.at >= until:
            break
        if change.at >= since and not begun:
            begun = True
            yield from _all_at(standing, since)
        first, entry = standing.pop(change.domain, (max(change.at, since), None))
        if entry != change.before:
            raise ValueError(f"{change.domain} does not stand as the register of {change.at} says.")
        if change.after is not None:
            standing[change.domain] = (first, change.after)
        if begun:
            yield _update(change, first)
    if not begun:
        yield from _all_at(standing, since)


def _all_at(standing: dict[str, tuple[datetime, Entry]], since: datetime) -> Iterator[Update]:
    for domain, (_, entry) in standing.items():
        standing[domain] = (since, entry)
        yield Update("add", domain, since, None, entry)


def _update(change: Change, first: datetime) -> Update:
    if change.after is None:
        return Update("delete", change.domain, change.at)
    if change.before is None:
        return Update("add", change.domain, change.at, None, change.after)
    return Update("replace", change.domain, change.at, first, change.after)


def table(made: Iterable[Update]) -> pa.Table:
    """As a file that retrodp reads."""
    rows = [
        {"op": one.op, "id": one.domain, "at": one.at, "time": one.since}
        | ({} if one.entry is None else {name: getattr(one.entry, name) for name in FIELDS})
        for one in made
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


FIELDS = ("type", "organization", "state")


def day(text: str) -> datetime:
    """A date as its first moment."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--since", type=day, default=FIRST, help="first day of the plan")
    parser.add_argument("--until", type=day, default=LAST, help="the day after its last")
    chosen = parser.parse_args(arguments)
    made = table(updates(changes(), since=chosen.since, until=chosen.until))
    pq.write_table(made, chosen.output, compression="zstd")
    ops = Counter(made["op"].to_pylist())
    told = ", ".join(f"{ops[op]:,} {op}" for op in ("add", "replace", "delete"))
    print(f"{made.num_rows:,} updates: {told}")


if __name__ == "__main__":
    main(sys.argv[1:])
