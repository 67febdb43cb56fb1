"""Totals that are written with the last of many rounds are never read before they are true."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retrodp.engine.kept import KeptTotals
from retrodp.engine.store import Store
from retrodp.engine.totals import recount
from retrodp.engine.verify import verify
from retrodp.errors import CapacityError, DiskFullError
from retrodp.store.facts import Facts
from retrodp.store.ledger import Ledger
from retrodp.store.pending import Pending
from tests.support.plans import counting, plan
from tests.support.rows import Row, add, delete, ingest
from tests.support.stores import abandon, new_store, published

ROWS = [*(add(f"r{number}", 1 + number % 4, product=f"t{number % 3}") for number in range(12))]
ROWS += [delete("r0", 2), delete("r5", 4)]


def noting(calls: list[str], real: Callable[..., None]) -> Callable[..., None]:
    def called(*own: Any, **rest: Any) -> None:
        calls.append(real.__name__)
        real(*own, **rest)

    return called


def held(store: Store) -> dict[str, dict[bytes, int]]:
    return {one.name: store.ledger.read_totals(one.name) for one in store.releases}


def counted(store: Store) -> dict[str, dict[bytes, int]]:
    found = recount(
        store.releases, store.plan.names, store.ledger.facts.round, store.ledger.survivors()
    )
    return {
        name: {label: total for label, total in of_one.items() if total}
        for name, of_one in found.items()
    }


def test_rounds_closed_together_leave_what_single_rounds_leave(ram: Path) -> None:
    writes: list[str] = []
    with new_store(ram / "together", plan()) as one, pytest.MonkeyPatch.context() as patch:
        for name in ("add_totals", "set_totals", "replace_totals"):
            patch.setattr(Ledger, name, noting(writes, getattr(Ledger, name)))
        ingest(one, ROWS)
        one.close_through(4)
        totals = held(one)
        assert totals == counted(one)
        assert not one.ledger.facts.totals_behind
        assert len(writes) == len(one.releases)
    with new_store(ram / "single", plan()) as other:
        ingest(other, ROWS)
        for _ in range(4):
            other.close_round()
        assert held(other) == totals
    assert published(ram / "together") == published(ram / "single")


def stopped(store: Store, after: int) -> None:
    """A close of four rounds that stops after so many."""

    def stop(done: int, _: int) -> None:
        if done == after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.close_through(4, progress=stop)


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_process_that_dies_on_the_way_is_caught_up_with_at_the_next_open(
    ram: Path, after: int
) -> None:
    store = new_store(ram / "store", plan())
    ingest(store, ROWS)
    stopped(store, after)
    assert store.ledger.facts.totals_behind
    abandon(store)
    with Store.open(ram / "store") as again:
        assert again.round == after
        assert held(again) == counted(again)
        assert not again.ledger.facts.totals_behind
        again.close_through(4)
    with new_store(ram / "whole", plan()) as whole:
        ingest(whole, ROWS)
        whole.close_through(4)
    assert published(ram / "store") == published(ram / "whole")


def test_the_same_process_goes_on_after_it_was_stopped(ram: Path) -> None:
    with new_store(ram / "store", plan()) as store:
        ingest(store, ROWS)
        stopped(store, 2)
        store.close_round()
        store.forget(["r3"])
        store.close_through(5)
        assert held(store) == counted(store)
        assert not store.ledger.facts.totals_behind


STEPS = {
    "the survivors": (Ledger, "begin_all"),
    "the totals": (KeptTotals, "noted"),
    "the pending release": (Pending, "keep"),
    "the round": (Facts, "advance"),
}


@pytest.mark.parametrize("round_", [1, 2, 3, 4])
@pytest.mark.parametrize("step", STEPS)
def test_the_same_process_goes_on_after_a_later_round_failed(
    ram: Path, step: str, round_: int
) -> None:
    owner, name = STEPS[step]
    done = getattr(owner, name)
    with new_store(ram / "store", plan()) as store:
        ingest(store, ROWS)

        def fails(*own: Any, **rest: Any) -> Any:
            if store.round == round_ - 1:
                raise DiskFullError("planted")
            return done(*own, **rest)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, name, fails)
            with pytest.raises(DiskFullError, match="planted"):
                store.close_through(4)
        assert store.round == round_ - 1
        store.close_through(4)
        assert held(store) == counted(store)
        assert verify(store).passed
    with new_store(ram / "whole", plan()) as whole:
        ingest(whole, ROWS)
        whole.close_through(4)
    assert published(ram / "store") == published(ram / "whole")


@pytest.mark.parametrize("way", ["settle", "compact"])
@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_label_that_left_while_the_totals_were_behind_is_erased(
    ram: Path, after: int, way: str
) -> None:
    secret = "bought by ann alone"
    with new_store(ram / "store", plan()) as store:
        ingest(store, [*ROWS, add("hers", product=secret)])
        store.close_round()
        store.forget(["hers"])
        stopped(store, after)
        if way == "compact":
            store.compact()
        assert held(store) == counted(store) or way == "settle"
    found = [
        path.name for path in (ram / "store").iterdir() if secret.encode() in path.read_bytes()
    ]
    assert found == []
    with Store.open(ram / "store") as again:
        assert held(again) == counted(again)
        again.close_through(5)
        assert verify(again).passed


def test_a_total_that_outgrows_64_bits_on_the_way_stops_its_round(ram: Path) -> None:
    with new_store(ram / "store", counting("points")) as store:
        ingest(store, [Row(round=1)])
        store.close_round()
    connection = sqlite3.connect(ram / "store" / "ledger.sqlite")
    for statement in ("UPDATE multiset SET n = ?", "UPDATE totals SET value = ?"):
        connection.execute(statement, (2**63 - 1,))
    connection.commit()
    connection.close()
    store = Store.open(ram / "store")
    ingest(store, [Row(round=3, second=1)])
    with pytest.raises(CapacityError):
        store.close_through(5)
    assert (store.round, store.ledger.waiting.count()) == (2, 1)
    abandon(store)


def test_few_changed_totals_of_many_are_written_alone(ram: Path) -> None:
    calls: list[str] = []
    many = [add(f"m{number}", 1, product=f"p{number}") for number in range(60)]
    few = [add(f"f{number}", number, product=f"p{number}") for number in (2, 3)]
    gone = [delete("m7", 2), delete("m8", 3)]
    with new_store(ram / "store", plan()) as store, pytest.MonkeyPatch.context() as patch:
        ingest(store, [*many, *few, *gone])
        store.close_round()
        patch.setattr(Ledger, "set_totals", noting(calls, Ledger.set_totals))
        store.close_through(3)
        assert held(store) == counted(store)
    assert calls
