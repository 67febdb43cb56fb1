"""Histories that unite leave the same ledger, byte for byte, once it is compacted."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given

from retrodp.engine.store import Store
from retrodp.plan.plan import Plan
from tests.support.plans import plan
from tests.support.rows import add
from tests.support.stores import memory_directory
from tests.support.uniting import History, Pair, few, lived, pairs

RUN = few(8)


def compacted(path: Path, made: Plan, history: History) -> bytes:
    lived(path, made, history)
    with Store.open(path) as store:
        store.ledger.compact()
    return (path / "ledger.sqlite").read_bytes()


def equal_files(kind: Literal["ids", "points"], pair: Pair) -> bool:
    with memory_directory() as directory:
        one = compacted(directory / "one", plan(kind), pair.one)
        return one == compacted(directory / "two", plan(kind), pair.two)


@RUN
@given(pair=pairs(ids=True))
def test_uniting_streams_with_ids_leave_the_same_file(pair: Pair) -> None:
    assert equal_files("ids", pair)


@RUN
@given(pair=pairs(ids=False))
def test_uniting_streams_of_points_leave_the_same_file(pair: Pair) -> None:
    assert equal_files("points", pair)


@pytest.mark.parametrize("kind", ["ids", "points"])
def test_twin_histories_that_do_not_unite_leave_other_files(
    kind: Literal["ids", "points"],
) -> None:
    pair = Pair(meet=2, one=(add("a", 1),), two=(add("a", 1), add("b", 2)))
    assert not equal_files(kind, pair)
