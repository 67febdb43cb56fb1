"""Second moments and heavy hitters in a store: same bytes by any way of life, verified, exported."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrodp.engine.compile import compile_plan
from retrodp.engine.forget import Forgotten
from retrodp.engine.resolve import resolve, resolve_next
from retrodp.engine.verify import verify
from retrodp.errors import PlanError
from retrodp.mechanisms.answer import Answer
from retrodp.plan.resolved import ResolvedPlan
from tests.support.plans import HORIZON, KINDS, MODELS, Kind, Model, opened, plan
from tests.support.rows import Row, add, delete, ingest
from tests.support.stores import new_store, published, read_files

RELEASES = """
[release.f2]
kind = "second_moment"
of = ["product", "country"]
rows = 3
buckets = 64
[release.recent_f2]
kind = "second_moment"
of = "product"
method = "dense"
rows = 3
buckets = 64
window = "3d"
[release.top]
kind = "heavy_hitters"
of = "product"
top = 3
rows = 5
buckets = 512
length = 3
[release.amounts]
kind = "heavy_hitters"
of = "amount"
top = 2
rows = 3
buckets = 64
where = "gift"
"""


@pytest.mark.parametrize("model", MODELS)
def test_what_was_resolved_is_what_runs(model: Model) -> None:
    made = plan(model=model, releases=RELEASES)
    resolved = resolve(made)
    again = ResolvedPlan.from_json(resolved.to_json())
    assert compile_plan(made, again) == compile_plan(made, resolved)


def test_sizes_that_a_later_epoch_could_not_have_are_refused_at_creation() -> None:
    """Nobody could change them when that epoch begins, and the store would be at its end."""
    text = '[release.f2]\nkind = "second_moment"\nof = "product"\nrows = 3\nbuckets = '
    with pytest.raises(PlanError, match="all 64 rounds"):
        resolve(opened(releases=f"{text}128", epochs="first = 8\nnumber = 4"))
    made = opened(releases=f"{text}256", epochs="first = 8\nnumber = 4")
    resolved = resolve(made)
    for epoch in range(2, 5):
        within = range(made.of_epoch(epoch).stream.horizon + 1)
        resolved = resolve_next(made, resolved, epoch=epoch, boundaries=within)
    assert resolved.releases[0]["buckets"] == 256


@pytest.mark.parametrize("kind", KINDS)
def test_histories_that_unite_publish_the_same_bytes(ram: Path, kind: Kind) -> None:
    own = plan(kind, releases=RELEASES)
    ids = kind != "points"

    def at(id_: str, round_: int, product: str) -> Row:
        return add(id_ if ids else "", round_, who=id_, product=product, gift=True)

    def gone(id_: str, round_: int, product: str) -> Row:
        row = delete(id_ if ids else "", round_, who=id_, second=9)
        return (
            row
            if ids
            else Row(op="delete", round=round_, stamp=1, contents=at(id_, 1, product).contents)
        )

    with new_store(ram / "one", own) as store:
        ingest(
            store, [at("a", 1, "tea"), at("b", 1, "ink"), gone("b", 3, "ink"), at("c", 3, "tea")]
        )
        store.close_through(HORIZON)
        assert verify(store).passed
    with new_store(ram / "two", own) as store:
        ingest(store, [at("a", 1, "tea"), at("c", 3, "tea")])
        store.close_through(HORIZON)
    one, two = published(ram / "one"), published(ram / "two")
    assert one[1] != two[1]
    assert [one[round_] == two[round_] for round_ in range(3, HORIZON + 1)] == [True] * 4


def test_no_label_stands_in_the_ledgers_totals_and_names_are_still_found(ram: Path) -> None:
    with new_store(ram / "store", plan(releases=RELEASES)) as store:
        rows = [add(f"id{number}", 1, product="XYZ") for number in range(400)]
        ingest(store, [*rows, add("one", 1, product="RARELY BOUGHT")])
        store.close_round()
        assert all(len(place) == 4 for place in store.ledger.read_totals("top"))
        store.forget(["one"])
        store.close_round()
        found = verify(store, [Forgotten("value", "RARELY BOUGHT")])
    answer = Answer.from_bytes(published(ram / "store")[2]["top"])
    assert answer.keys is not None
    assert "XYZ" in answer.keys
    assert found.passed
    assert b"RARELY" not in b"".join(read_files(ram / "store").values())
