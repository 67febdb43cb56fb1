"""Example 2.1 of Kaplan, Kohen, Mansour, Nissim, Stemmer, through a whole store."""

from __future__ import annotations

from pathlib import Path

from retrodp.engine.totals import recount
from retrodp.noise.key import KeyTree
from tests.support.answers import values_of
from tests.support.mechanisms import pure
from tests.support.plans import counting
from tests.support.rows import Contents, Row, ingest
from tests.support.stores import ROOT, new_store

A, B = Contents(product="a"), Contents(product="b")
ROUNDS = [
    [Row(round=1, contents=A)],
    [Row(round=2, contents=B), Row(round=2, contents=B)],
    [Row(op="delete", round=3, stamp=2, contents=B)],
    [Row(op="delete", round=4, stamp=1, contents=B)],
    [Row(op="delete", round=5, stamp=2, contents=B)],
    [Row(op="delete", round=6, stamp=2, contents=B)],
]
COUNTS = [1, 3, 2, 2, 1, 1]


def test_kkmns_example_2_1_gives_its_counts_round_by_round(ram: Path) -> None:
    keys = KeyTree.from_root(ROOT, b"test-fixed", len(ROUNDS))
    survivors, totals, recounted, published = [], [], [], []
    with new_store(ram / "store", counting("points")) as store:
        [release] = store.releases
        names = [column.name for column in store.plan.columns]
        for round_, rows in enumerate(ROUNDS, start=1):
            ingest(store, rows)
            [noisy] = values_of(store.close_round()["lines"])
            [noise] = values_of(pure(release).release(round_, {}, keys))
            published.append(noisy - noise)
            survivors.append(store.ledger.survivor_count())
            totals.append(store.ledger.read_totals("lines")[b""])
            again = recount(store.releases, names, round_, store.ledger.survivors())
            recounted.append(again["lines"][b""])
    assert survivors == totals == recounted == published == COUNTS


def test_the_example_in_one_file_and_any_order_gives_the_same_counts(ram: Path) -> None:
    counts = []
    with new_store(ram / "store", counting("points")) as store:
        ingest(store, [row for rows in reversed(ROUNDS) for row in rows])
        for _ in ROUNDS:
            store.close_round()
            counts.append(store.ledger.survivor_count())
    assert counts == COUNTS
