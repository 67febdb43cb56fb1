"""What is applied as whole columns is what is applied row by row."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrodp.engine.close import Closing
from retrodp.engine.totals import recount
from retrodp.plan.plan import Plan
from tests.support.plans import plan
from tests.support.rows import Contents, Row, add, delete, ingest
from tests.support.stores import memory_directory, new_store, published
from tests.support.uniting import few

HORIZON = 4


def _with(line: str) -> Plan:
    text = plan("ids", horizon=HORIZON).text
    return Plan.loads(text.replace("[columns]", f"{line}\n[columns]"))


PLANS: dict[str, Plan] = {
    "plain": plan("ids", horizon=HORIZON),
    "add first": _with('same_time = "add_first"'),
    "remembering": _with('remember_deleted = "2d"'),
    "persons": plan("persons", horizon=HORIZON),
    "points": plan("points", horizon=HORIZON),
}
"""The last three go row by row in any case, but through the same queue and the same packs."""


class Lived(NamedTuple):
    """What is left of a history, and what was seen of it."""

    answers: dict[int, dict[str, bytes]]
    survivors: list[Any]
    ignored: int
    same_time: int
    file: bytes


@st.composite
def rows(draw: st.DrawFn, *, ids: bool) -> Row:
    round_ = draw(st.integers(1, HORIZON))
    stamp = draw(st.none() | st.integers(1, round_))
    contents = Contents(
        who=draw(st.sampled_from(["ann", "bob"])),
        product=draw(st.sampled_from(["tea", "[x]", "ü", None])),
        country=draw(st.sampled_from(["DE", "ZZ"])),
        amount=draw(st.sampled_from([1.5, 30.0, None])),
    )
    ops = ["add", "add", "add", "delete", "replace"] if ids else ["add", "add", "delete"]
    op = draw(st.sampled_from(ops))
    return Row(
        op=op,
        id=draw(st.sampled_from("abcdefgh")) if ids else "",
        round=round_,
        stamp=None if op == "delete" and ids else stamp,
        second=draw(st.integers(0, 2)),
        contents=contents,
    )


def lived(directory: Path, made: Plan, batches: list[list[Row]], *, together: bool) -> Lived:
    with new_store(directory / "store", made) as store:
        for batch in batches:
            ingest(store, batch)
        if together:
            store.close_through(HORIZON)
        else:
            for _ in range(HORIZON):
                store.close_round()
        survivors = [one for some in store.ledger.survivors() for one in some]
        totals = {one.name: store.ledger.read_totals(one.name) for one in store.releases}
        assert totals == _without_zeros(
            recount(store.releases, store.plan.names, HORIZON, store.ledger.survivors())
        )
        store.ledger.compact()
        ignored, same_time = store.ignored, store.same_time
    file = (directory / "store" / "ledger.sqlite").read_bytes()
    return Lived(published(directory / "store"), survivors, ignored, same_time, file)


def _without_zeros(totals: dict[str, dict[bytes, int]]) -> dict[str, dict[bytes, int]]:
    return {
        name: {label: total for label, total in of_one.items() if total}
        for name, of_one in totals.items()
    }


@pytest.mark.parametrize("name", PLANS)
def test_columns_and_rows_give_the_same_store(name: str) -> None:
    ids = name != "points"

    @few(8)
    @given(batches=st.lists(st.lists(rows(ids=ids), max_size=12), max_size=3))
    def check(batches: list[list[Row]]) -> None:
        with memory_directory() as directory:
            columns = lived(directory / "one", PLANS[name], batches, together=True)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Closing, "_apart", property(lambda _: False))
                one_by_one = lived(directory / "two", PLANS[name], batches[::-1], together=False)
        assert columns == one_by_one

    check()


def test_a_redelivered_round_is_ignored_as_columns_too(tmp_path: Path) -> None:
    first = [add(f"r{number:02}", 1) for number in range(40)]
    again = [add(f"r{number:02}", 2) for number in range(30, 60)]
    with new_store(tmp_path / "store", PLANS["plain"]) as store:
        ingest(store, [*first, *again, delete("r00", 2), Row(op="replace", id="r01", round=2)])
        store.close_through(2)
        found = sorted(one.id for some in store.ledger.survivors() for one in some)
        assert store.ignored == 10
    assert found == [f"r{number:02}" for number in range(1, 60)]
