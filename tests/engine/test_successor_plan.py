"""A store whose rounds are over goes on under a successor plan, and one account tells all of it."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from retrodp.engine import store as engine_store
from retrodp.engine.resolve import resolve
from retrodp.engine.store import Store
from retrodp.engine.totals import recount
from retrodp.engine.verify import check_certificate, verify
from retrodp.errors import (
    HorizonExceededError,
    PlanChangedError,
    StoreCorruptError,
    StoreRetiredError,
    UsageError,
)
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from retrodp.store.ledger import Ledger
from retrodp.views import budget, export, show
from retrodp.views.published import Published
from tests.support.plans import HORIZON, counting, opened, plan
from tests.support.rows import START, add, delete, ingest
from tests.support.stores import new_store, read_files

RELEASES = """
[release.lines]
kind = "count"
[release.recent]
kind = "count"
window = "3d"
[release.money]
kind = "sum"
of = "amount"
"""
ROWS = [
    *(add(f"a{number}", 1) for number in range(4)),
    add("b", 5, amount=7.0),
    add("c", 6),
    delete("a0", 8),
    add("d", 9),
]


def first_plan() -> Plan:
    return plan(releases=RELEASES)


def successor(old: Plan, *, after: int = HORIZON, swap: tuple[str, str] = ("", "")) -> Plan:
    """The same plan for the time after so many rounds, with one of its texts replaced."""
    start = (START + dt.timedelta(days=after)).date().isoformat()
    text = old.text.replace("start = 2024-01-01", f"start = {start}")
    assert swap[0] in text
    return Plan.loads(text.replace(*swap) if swap[0] else text)


@cache
def resolved_once(text: str) -> ResolvedPlan:
    return resolve(Plan.loads(text))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_store, "resolve", lambda plan: resolved_once(plan.text))


@pytest.fixture
def over(ram: Path) -> Iterator[Store]:
    """A store all of whose rounds are closed."""
    store = new_store(ram / "store", first_plan())
    ingest(store, [row for row in ROWS if row.round <= HORIZON])
    store.close_through(HORIZON)
    yield store
    with suppress(UsageError):  # a test may have closed it
        store.close()


def totals(store: Store) -> dict[str, dict[bytes, int]]:
    return {release.name: store.ledger.read_totals(release.name) for release in store.releases}


def test_survivors_and_windows_go_on_as_under_one_long_plan(ram: Path, over: Store) -> None:
    with pytest.raises(HorizonExceededError, match="retrodp continue"):
        over.close_round()
    assert over.go_on(successor(first_plan()))
    with new_store(ram / "long", plan(releases=RELEASES, horizon=2 * HORIZON)) as long:
        ingest(long, ROWS)
        long.close_through(HORIZON)
        ingest(over, [row for row in ROWS if row.round > HORIZON])
        for round_ in range(HORIZON + 1, 2 * HORIZON + 1):
            assert over.close_round().round == long.close_round().round == round_
            assert totals(over) == totals(long), round_
    assert over.over
    assert verify(over).passed


def test_the_account_of_both_budgets_is_the_same_wherever_it_is_read(
    ram: Path, over: Store
) -> None:
    """Status, certificate, `show`, and the budget page."""
    over.go_on(successor(first_plan(), swap=("epsilon = 150", "epsilon = 50")))
    over.close_round()
    expected = {"epsilon": 200.0, "delta": 2e-3}
    statement = over.epoch.statement(over.resolved)
    certificate = verify(over).document
    assert check_certificate(certificate)
    with Published.open(ram / "store") as published:
        shown = show.document(published)
        page = budget.document(published.resolved, published.epoch)
    assert statement["total"] == expected
    assert statement["own"] == {"epsilon": 50.0, "delta": 1e-3}
    assert certificate["budget"] == shown["budget"] == page["all"] == statement
    assert shown["epoch"] == 2
    assert "epsilon 200" in budget.sentence(page)
    (earlier,) = statement["earlier_stores"]
    assert (earlier["epsilon"], earlier["last_round"]) == ("150", HORIZON)


def test_every_view_shows_one_series_over_both_plans(ram: Path, over: Store) -> None:
    """With true calendar rounds, also where the releases changed."""
    recent = '[release.recent]\nkind = "count"\nwindow = "3d"'
    by_country = '[release.by_country]\nkind = "histogram"\nby = "country"'
    over.go_on(successor(first_plan(), swap=(recent, by_country)))
    over.close_through(HORIZON + 2)
    with Published.open(ram / "store") as published:
        rows = list(export.rows(published))
        table = export.to_arrow(published)
        old, new = (show.document(published, round=round_) for round_ in (2, HORIZON + 1))
        assert published.releases == ("lines", "by_country", "money", "recent")
    lines = [(row.round, row.round_start) for row in rows if row.release == "lines"]
    starts = [(START + dt.timedelta(days=day)).isoformat() for day in range(HORIZON + 2)]
    assert lines == list(enumerate(starts, start=1))
    assert {row.round for row in rows if row.release == "recent"} == set(range(1, HORIZON + 1))
    assert {row.round for row in rows if row.release == "by_country"} == {HORIZON + 1, HORIZON + 2}
    assert table.num_rows == len(rows)
    assert [one["release"] for one in old["releases"]] == ["lines", "recent", "money"]
    assert [one["release"] for one in new["releases"]] == ["lines", "by_country", "money"]


def test_the_old_key_is_destroyed_and_the_new_one_derives_nothing_of_it(
    ram: Path, over: Store
) -> None:
    before = over.key
    old = {node.key for node in before.tree.cover}
    over.go_on(successor(first_plan()))
    assert over.key.epoch == 2
    assert old.isdisjoint(node.key for node in over.key.tree.cover)
    content = b"".join(read_files(ram / "store").values())
    assert all(key.hex().encode() not in content for key in old)


def test_an_epoch_begins_after_the_key_was_destroyed_by_a_late_forget(over: Store) -> None:
    over.forget(["a1"])
    assert over.key.destroyed
    over.go_on(successor(first_plan()))
    over.close_round()
    assert totals(over)["lines"] == {b"": 5}
    assert verify(over).passed


def test_before_its_first_round_an_epoch_has_nothing_to_compare(over: Store) -> None:
    over.go_on(successor(first_plan()))
    certificate = verify(over).document
    assert certificate["releases_equal"] is None
    assert certificate["round"] == HORIZON
    assert certificate["key"]["derives_rounds_from"] == HORIZON + 1


def test_the_same_again_changes_nothing(ram: Path, over: Store) -> None:
    following = successor(first_plan())
    assert over.go_on(following)
    key = over.key
    assert not over.go_on(following)
    assert over.key == key
    over.close()
    with Store.open(ram / "store", plan=following) as store:
        assert store.round == HORIZON
    with pytest.raises(PlanChangedError):
        Store.open(ram / "store", plan=first_plan())


def test_a_third_plan_goes_on_from_the_second_and_may_have_an_open_horizon(
    ram: Path, over: Store
) -> None:
    over.go_on(successor(first_plan()))
    over.close_through(2 * HORIZON)
    third = opened(releases=RELEASES, epochs="first = 3\nnumber = 2")
    over.go_on(successor(third, after=2 * HORIZON))
    over.close_through(2 * HORIZON + 5)
    assert (over.epoch.number, over.round) == (4, 17)
    assert over.epoch.statement(over.resolved)["total"] == {"epsilon": 450.0, "delta": 3e-3}
    assert [own.continued for own in over.epoch.here] == [False, False, True]
    with Published.open(ram / "store") as published:
        assert published.rounds == tuple(range(1, 18))
        assert published.goes_on is False
    assert verify(over).passed


def test_rounds_that_are_still_to_come_have_to_be_closed_first(ram: Path) -> None:
    with new_store(ram / "store", first_plan()) as store:
        store.close_through(2)
        with pytest.raises(UsageError, match="4 rounds"):
            store.go_on(successor(first_plan(), after=2))
    with new_store(ram / "open", opened(releases=RELEASES, epochs="first = 3")) as store:
        store.close_through(3)
        with pytest.raises(UsageError, match="by itself"):
            store.go_on(successor(first_plan(), after=3))


@pytest.mark.parametrize(
    ("following", "named"),
    [
        (successor(first_plan(), after=HORIZON + 1), "start"),
        (successor(first_plan(), after=HORIZON - 1), "start"),
        (successor(first_plan(), swap=("step = 0.5", "step = 0.25")), "columns"),
    ],
)
def test_a_plan_that_does_not_go_on_from_the_store_is_refused(
    over: Store, following: Plan, named: str
) -> None:
    before = over.key
    with pytest.raises(PlanChangedError, match=named):
        over.go_on(following)
    assert (over.key, over.epoch.number) == (before, 1)


def test_a_retired_store_does_not_go_on(over: Store) -> None:
    over.retire()
    with pytest.raises(StoreRetiredError):
        over.go_on(successor(first_plan()))


def test_an_account_that_leaves_an_epoch_out_is_refused(ram: Path, over: Store) -> None:
    over.go_on(successor(first_plan()))
    over.close()
    account = ram / "store" / "epoch.json"
    document = json.loads(account.read_text())
    document["predecessors"][0]["epsilon"] = "1"
    account.write_text(json.dumps(document, sort_keys=True, separators=(",", ":")))
    with pytest.raises(StoreCorruptError):
        Store.open(ram / "store")
    account.unlink()
    with pytest.raises(StoreCorruptError):
        Store.open(ram / "store")


def test_a_plan_of_an_ended_epoch_that_was_changed_is_noticed(ram: Path, over: Store) -> None:
    over.go_on(successor(first_plan()))
    over.close()
    first = ram / "store" / "plan.resolved.json"
    first.write_bytes(first.read_bytes().replace(b'"150"', b'"15"'))
    with pytest.raises(StoreCorruptError, match="fingerprint"):
        Published.open(ram / "store")


def test_the_ledger_s_numbers_mean_the_same_instants_after_a_border(ram: Path) -> None:
    """Neighbouring stamps do not get into one another's way while they move."""
    with new_store(ram / "store", counting("points", horizon=2)) as store:
        ingest(store, [add("", 1), add("", 2), add("", 2)])
        store.close_through(2)
        store.go_on(successor(counting("points", horizon=2), after=2))
        stamps = [(r.stamp, r.count) for batch in store.ledger.survivors() for r in batch]
    assert stamps == [(-1, 1), (0, 2)]
    assert isinstance(store.ledger, Ledger)


BY_STAMP = 'kind = "sum"\nof = "amount"\nrevised = true'
BY_RECORD = 'kind = "sample"\nof = "amount"\nmechanism = "mean"\nrate = "1/2"\nwindow = "6d"'


@pytest.mark.parametrize(
    ("swap", "begins_with"), [(BY_STAMP, 0), (BY_RECORD, 6)], ids=["by stamp", "by record"]
)
def test_totals_that_name_stamps_begin_in_the_numbers_of_the_new_epoch(
    over: Store, swap: str, begins_with: int
) -> None:
    """Otherwise a release takes survivors for new ones, and keeps what is deleted later."""
    new = successor(first_plan(), swap=('kind = "sum"\nof = "amount"', swap))
    over.go_on(new)
    names = [column.name for column in new.columns]
    assert totals(over) == recount(over.releases, names, 0, over.ledger.survivors())
    assert len(totals(over)["money"]) == begins_with
    ingest(over, [delete("c", HORIZON + 1), delete("b", HORIZON + 1)])
    over.close_round()
    assert totals(over) == recount(over.releases, names, 1, over.ledger.survivors())
    assert verify(over).passed
