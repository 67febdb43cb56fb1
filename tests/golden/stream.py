"""A small plan and stream whose published bytes must never change by accident."""

from __future__ import annotations

from pathlib import Path

from retrodp.engine.store import Store
from retrodp.mechanisms.answer import Answer
from retrodp.plan.plan import Plan
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
MORE_STREAMS: list[tuple[Kind, Model]] = [("ids", "zcdp"), ("ids", "pure"), ("persons", "zcdp")]
MORE = """
[release.quartiles]
kind = "quantiles"
of = "amount"
at = [0.25, 0.5, 0.75]
by = "country"
[release.recent_median]
kind = "quantiles"
of = "amount"
at = [0.5]
window = "3d"
[release.up_to]
kind = "cdf"
of = "amount"
edges = [-5, -2, 0, 0.5, 1, 1.5, 3, 20]
[release.up_to_few]
kind = "cdf"
of = "amount"
edges = [0, 20]
by = "gift"
[release.between]
kind = "range"
of = "amount"
edges = [-5, 0, 2.5, 20.5]
by = "country"
[release.weights]
kind = "query"
matrix = [
    ["country", "gift", "coordinate", "weight"],
    ["DE", true, "given", 1.5], ["FR", true, "given", 1], ["DE", "", "kept", -2],
]
[release.scores]
kind = "query"
linear = { net = "2 * amount - 3", gifts = "[gift]" }
where = "country != 'FR'"
[release.clipped]
kind = "query"
linear = { money = "amount", german = "[country == 'DE']" }
norm = 4
[release.tables]
kind = "cube"
by = ["country", "gift"]
[release.open_tables]
kind = "cube"
by = ["country", "product"]
marginals = [["country"], ["product"]]
max_bins = 1000
[release.moments]
kind = "gram"
of = "amount"
norm = 6
[release.mean_by_gift]
kind = "mean"
of = "amount"
by = "gift"
window = "4d"
"""
"""Kinds that look at the order of a column or publish a vector."""


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


def plans() -> dict[str, tuple[Kind, Plan]]:
    """Every store on file, by its title."""
    first = {f"{kind}, {model}": (kind, plan(kind, model, epsilon=60)) for kind, model in STREAMS}
    more = {
        f"{kind}, {model}, more kinds": (kind, plan(kind, model, releases=MORE, epsilon=60))
        for kind, model in MORE_STREAMS
    }
    return first | more


def releases(kind: Kind, planned: Plan) -> dict[str, object]:
    """Digest of every round, and the numbers of the last one for whoever reviews a change."""
    with memory_directory() as directory:
        with Store.create_for_tests(
            directory / "store", planned, root=bytes(range(32)), name="golden"
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
    return {title: releases(kind, planned) for title, (kind, planned) in plans().items()}
