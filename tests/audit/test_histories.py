"""The pure pipeline of the audit does what a store does."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrodp.audit.histories import History, exact_rounds, published
from retrodp.audit.pairs import uniting_pair
from retrodp.audit.subjects import STREAMS, Stream, plan_of
from retrodp.plan.plan import Plan
from retrodp.stream.update import Arrivals
from tests.audit.sizes import SEED
from tests.support.mechanisms import pure
from tests.support.stores import new_store
from tests.support.stores import published as published_by_store

HORIZON = 5
TABLES = {
    "lines": {"kind": "count", "window": "2d"},
    "money": {"kind": "sum", "of": "amount", "by": "country"},
    "products": {"kind": "histogram", "by": "product"},
}


def lived_by_store(path: Path, plan: Plan, history: History) -> dict[int, dict[str, bytes]]:
    with new_store(path, plan) as store:
        for round_, arrived in enumerate(history, start=1):
            rows = arrived.updates
            store.ledger.waiting.enqueue(
                Arrivals(
                    round=[round_] * len(rows),
                    at=[row.at for row in rows],
                    rank=[row.rank for row in rows],
                    op=[row.op for row in rows],
                    space=[row.space for row in rows],
                    id=[row.id for row in rows],
                    stamp=[row.stamp for row in rows],
                    person=[row.person for row in rows],
                    payload=[row.payload for row in rows],
                    count=[row.count for row in rows],
                )
            )
            for forget in arrived.forgets:
                asked = [forget.value]
                _ = store.forget(asked) if forget.kind == "id" else store.forget(persons=asked)
            store.close_round()
    return published_by_store(path)


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("number", range(4))
def test_a_history_gives_the_bytes_that_a_store_publishes(
    ram: Path, stream: Stream, number: int
) -> None:
    plan = plan_of(TABLES, model="zcdp", stream=stream, horizon=HORIZON, epsilon=300, delta="1e-3")
    history = uniting_pair(plan, SEED.coins("store", stream, number)).one
    of_store = lived_by_store(ram / "store", plan, history)
    with new_store(ram / "other", plan) as store:
        releases, keys = store.releases, store.key.tree
    rounds = exact_rounds(plan, releases, history, keys)
    answers = published({one.name: pure(one) for one in releases}, rounds, keys)
    assert [{name: answer.to_bytes() for name, answer in round_.items()} for round_ in answers] == [
        of_store[round_] for round_ in range(1, HORIZON + 1)
    ]
