"""A small plan and stream whose published bytes must never change by accident."""

from __future__ import annotations

from pathlib import Path

from retrodp.engine.store import Store
from retrodp.mechanisms.answer import Answer
from retrodp.store.releases import ReleasesReader
from tests.support.plans import Kind, Model, plan
from tests.support.rows import Contents, Row, ingest
from tests.support.stores import memory_directory

FILE = Path(__file__).with_name("releases.json")
STREAMS: list[tuple[Kind, Model]] = [
    ("ids", "zcdp"),
    ("ids", "pure"),
    ("points", "zcdp"),
    ("persons", "zcdp"),
]


def rows(kind: Kind) -> list[Row]:
    """Additions of every kind, retroactive ones, replacements and deletions, by a fixed rule."""
    made = []
    for number in range(60):
        round_ = 1 + number % 5
        contents = Contents(
            who=f"p{number % 7}",
            product=[None, "tea", "ink", "tea", "größe"][number % 5],
            country=["DE", "FR", "ZZ"][number % 3],
            amount=[1.5, -5.0, 30.0, None][number % 4],
            gift=number % 2 == 0,
        )
        stamp = 1 + number % round_ if number % 6 == 0 else None
        made.append(Row(id=f"id{number}", round=round_, stamp=stamp, contents=contents))
        if number % 4 == 3:
            end = Row(op="delete", id=f"id{number}", round=round_ + 1, contents=contents)
            made.append(end if kind != "points" else _point_deleted(made[-1], round_ + 1))
        elif number % 9 == 8 and kind != "points":
            made.append(Row(op="replace", id=f"id{number}", round=round_ + 1, contents=contents))
    return made


def _point_deleted(row: Row, round_: int) -> Row:
    return Row(op="delete", round=round_, stamp=row.stamp_round, contents=row.contents)


def releases(kind: Kind, model: Model) -> dict[str, object]:
    """Digest of every round, and the numbers of the last one for whoever reviews a change."""
    with memory_directory() as directory:
        with Store.create_for_tests(
            directory / "store", plan(kind, model, epsilon=60), root=bytes(range(32)), name="golden"
        ) as store:
            ingest(store, rows(kind))
            store.close_through(store.horizon)
        with ReleasesReader(directory / "store" / "releases.sqlite") as reader:
            last = reader.answers(reader.last_round)
            return {
                "rounds": {str(round_): reader.digest(round_) for round_ in reader.rounds()},
                "last": {
                    name: dict(
                        zip(one.keys if one.keys is not None else [""], one.values, strict=True)
                    )
                    for name, one in ((n, Answer.from_bytes(a)) for n, a in last.items())
                },
            }


def all_releases() -> dict[str, object]:
    return {f"{kind}, {model}": releases(kind, model) for kind, model in STREAMS}
