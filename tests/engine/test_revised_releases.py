"""Revised releases in a store: plans that fit, what is published, forgotten, verified and shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from retrodp.engine.check import check
from retrodp.engine.forget import Forgotten
from retrodp.engine.resolve import resolve
from retrodp.engine.verify import verify
from retrodp.errors import BudgetError, NotInThisVersionError, PlanError
from retrodp.mechanisms.answer import Answer
from retrodp.plan.plan import Plan
from tests.support.plans import HORIZON, KINDS, plan
from tests.support.revised import by_stamp, one, revised
from tests.support.rows import add, delete, ingest
from tests.support.stores import new_store, published

BAD = [
    ('kind = "mean"\nof = "amount"\nrevised = true', "no series by stamp"),
    ('kind = "count"\nrevised = true\nwindow = "2d"', "do not go together"),
    ('kind = "count"\nshape = "cumulative"', "not true"),
    ('kind = "count"\nlast = "2d"', "not true"),
    ('kind = "count"\nrevised = true\nshape = "sums"', "per_stamp"),
    ('kind = "count"\nrevised = true\nlast = "36h"', "no whole number of rounds"),
    ('kind = "count"\nrevised = true\nlast = 5', "a duration"),
    ('kind = "count"\nrevised = true\nlast = "7d"', "longer than the horizon"),
    ('kind = "count"\nrevised = "yes"', "true or false"),
    ('kind = "count"\nrevised = true\nfactor = "dense"', "does not serve"),
]


@pytest.mark.parametrize(("text", "says"), BAD)
def test_a_plan_that_cannot_be_right_says_what_to_write(text: str, says: str) -> None:
    with pytest.raises(PlanError) as caught:
        resolve(plan(releases=f"[release.r]\n{text}"))
    assert says in str(caught.value)
    assert "release.r" in str(caught.value)


def test_sums_by_open_columns_are_refused_as_everywhere() -> None:
    with pytest.raises(NotInThisVersionError):
        resolve(one('kind = "sum"\nof = "amount"\nby = "product"'))


def test_open_labels_need_a_delta_that_covers_pairs_of_stamp_and_label() -> None:
    text = one('kind = "histogram"\nby = "product"').text.replace("delta = 1e-3", "delta = 1e-14")
    with pytest.raises(BudgetError):
        resolve(Plan.loads(text))


@pytest.mark.parametrize("kind", KINDS)
def test_plans_survive_their_documents(kind: Any) -> None:
    made = revised(kind)
    assert Plan.from_dict(made.to_dict()) == made
    assert Plan.loads(made.text) == made


def test_check_says_how_many_numbers_there_will_be() -> None:
    document = check(revised())
    by_name = {release["name"]: release for release in document["releases"]}
    assert by_name["cases"]["published_pairs"] == HORIZON * (HORIZON + 1) // 2
    assert by_name["cases_recent"]["published_pairs"] == 1 + 2 + 3 * (HORIZON - 2)
    assert by_name["money"]["numbers"] == 4 * by_name["cases"]["published_pairs"]
    assert any("cases: every round publishes" in note for note in document["notes"])
    assert document["budget"]["delta_spent"] <= 1e-3


def test_numbers_follow_the_survivors_of_each_stamp(tmp_path: Path) -> None:
    rows = [add(f"a{r}{n}", r) for r in range(1, 5) for n in range(200 * r)]
    late = [add("x", 4), delete("a10", 3)]
    with new_store(tmp_path / "store", revised()) as store:
        ingest(store, [*rows, *late])
        store.close_through(4)
        survivors = by_stamp(r for batch in store.ledger.survivors() for r in batch)
        assert verify(store).passed
    answer = Answer.from_bytes(published(tmp_path / "store")[4]["cases"])
    assert answer.spreads is not None
    off = [
        abs(value - survivors[stamp])
        for stamp, value in zip(answer.stamps or (), answer.values, strict=True)
        if value is not None
    ]
    assert len(off) == 4
    assert max(off) <= answer.half_all + 1
    assert survivors == {1: 199, 2: 400, 3: 600, 4: 801}


def test_what_is_forgotten_leaves_the_past_and_its_totals(tmp_path: Path) -> None:
    with new_store(tmp_path / "store", revised()) as store:
        ingest(store, [add("a", 1, product="rare"), add("b", 1)])
        store.close_through(2)
        assert len(store.ledger.read_totals("by_product")) == 2
        store.forget(["a"])
        store.close_round()
        assert len(store.ledger.read_totals("by_product")) == 1
        outcome = verify(store, [Forgotten("id", "a"), Forgotten("value", "rare")])
        assert outcome.document["releases_equal"] is True
    with new_store(tmp_path / "other", revised()) as other:
        ingest(other, [add("b", 1)])
        other.close_through(3)
    assert published(tmp_path / "store")[3] == published(tmp_path / "other")[3]


def test_a_record_that_is_still_there_is_found_in_totals_by_stamp(tmp_path: Path) -> None:
    """The scan for what was forgotten reads labels without their stamps."""
    with new_store(tmp_path / "store", revised()) as store:
        ingest(store, [add("a", 1, product="lasting product")])
        store.close_round()
        outcome = verify(store, [Forgotten("value", "lasting product")])
    [entry] = outcome.document["forgotten"]
    assert "ledger.sqlite, totals" in entry["left_in"]


def test_after_the_horizon_a_forget_empties_the_totals(tmp_path: Path) -> None:
    with new_store(tmp_path / "store", revised()) as store:
        ingest(store, [add("a", 1), add("b", HORIZON)])
        store.close_through(HORIZON)
        store.forget(["a", "b"])
        assert [store.ledger.read_totals(name.name) for name in store.releases] == [{}] * 9
