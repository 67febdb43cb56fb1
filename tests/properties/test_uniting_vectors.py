"""Query, cube and gram through the store: histories that unite give the same bytes from then on."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from retrodp.engine.totals import recount
from tests.properties.test_uniting import PAIRS
from tests.support.plans import HORIZON, MODELS, Model, plan
from tests.support.rows import add, delete, ingest
from tests.support.stores import memory_directory, new_store, published
from tests.support.uniting import Pair, difference, few, lived, pairs

RELEASES = """
[release.weights]
kind = "query"
matrix = [["country", "gift", "coordinate", "weight"],
    ["DE", true, "a", 1], ["DE", false, "a", 0.5], ["other", "", "b", 2], ["FR", true, "b", -1]]
[release.numbers]
kind = "query"
linear = { net = "2 * amount - 1", gifts = "amount * [gift]" }
window = "3d"
[release.clipped]
kind = "query"
linear = { a = "amount", b = "[gift]" }
norm = 3
where = "country != 'FR'"
[release.tables]
kind = "cube"
by = ["country", "gift"]
[release.recent_tables]
kind = "cube"
by = ["country", "gift", "product"]
marginals = [[], ["country"], ["gift"], ["product"], ["country", "product"]]
window = "4d"
max_bins = 1000
share = 12
[release.moments]
kind = "gram"
of = "amount"
norm = 10
"""
RUN = few(5)


@RUN
@given(pair=pairs(ids=True))
def test_uniting_streams_with_ids_publish_the_same_bytes(pair: Pair) -> None:
    assert difference(plan("ids", "zcdp", releases=RELEASES), pair) is None


@RUN
@given(pair=pairs(ids=False))
def test_uniting_streams_of_points_publish_the_same_bytes(pair: Pair) -> None:
    assert difference(plan("points", "pure", releases=RELEASES), pair) is None


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", ["ids", "persons"])
@pytest.mark.parametrize("pair", PAIRS, ids=["plain", "forgotten", "late"])
def test_chosen_pairs_unite_under_every_unit(kind: Any, model: Model, pair: Pair) -> None:
    assert difference(plan(kind, model, releases=RELEASES), pair) is None


def test_before_they_meet_every_release_differs() -> None:
    """Otherwise equality after the meeting would mean nothing."""
    with memory_directory() as directory:
        made = plan(releases=RELEASES)
        one, _ = lived(directory / "one", made, (add("a", 1, amount=4.5, gift=True),))
        two, _ = lived(directory / "two", made, ())
    same = [name for name, answer in one[1].items() if answer == two[1][name]]
    assert same == []


def test_kept_totals_are_those_of_the_survivors() -> None:
    rows = [
        *(
            add(f"n{number}", 1 + number % 3, amount=number - 4.5, gift=number % 2 == 0)
            for number in range(9)
        ),
        *(delete(f"n{number}", 4) for number in (1, 4, 5)),
        add("late", 5, country="ZZ", product=None, amount=None),
    ]
    with (
        memory_directory() as directory,
        new_store(directory / "store", plan(releases=RELEASES)) as store,
    ):
        ingest(store, rows)
        store.close_through(HORIZON)
        names = [column.name for column in store.plan.columns]
        counted = recount(store.releases, names, HORIZON, store.ledger.survivors())
        kept = {
            release.name: dict(store.ledger.read_totals(release.name)) for release in store.releases
        }
        answers = published(directory / "store")
    nonzero = {
        name: {label: total for label, total in totals.items() if total}
        for name, totals in counted.items()
    }
    assert kept == nonzero
    assert sorted(answers) == list(range(1, HORIZON + 1))
