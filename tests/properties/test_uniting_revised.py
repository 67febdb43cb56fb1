"""Histories that unite publish the same revised past; stamps are part of what must agree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from retrodp.mechanisms.answer import Answer
from tests.support.plans import HORIZON, KINDS, MODELS, Model
from tests.support.revised import revised
from tests.support.rows import add, delete
from tests.support.stores import memory_directory
from tests.support.uniting import Forget, Pair, difference, few, lived, pairs

RUN = few(5)


@pytest.mark.parametrize("model", MODELS)
@RUN
@given(pair=pairs(ids=True))
def test_uniting_streams_with_ids_publish_the_same_past(model: Model, pair: Pair) -> None:
    assert difference(revised("ids", model), pair) is None


@pytest.mark.parametrize("model", MODELS)
@RUN
@given(pair=pairs(ids=False))
def test_uniting_streams_of_points_publish_the_same_past(model: Model, pair: Pair) -> None:
    assert difference(revised("points", model), pair) is None


PAIRS = {
    "plain": Pair(
        meet=4,
        one=(add("a", 1), add("x", 2), delete("x", 3), add("b", 4)),
        two=(add("a", 1), add("b", 4)),
    ),
    "forgotten": Pair(
        meet=3,
        one=(add("a", 1), add("x", 1, who="eve", product="rare"), Forget(2, "id", "x")),
        two=(add("a", 1),),
    ),
    "late": Pair(meet=3, one=(add("a", 1),), two=(replace(add("a", 3), stamp=1),)),
    "moved": Pair(  # published under one stamp, then under another, as it should have been
        meet=5,
        one=(add("a", 2), delete("a", 4), replace(add("a", 5), stamp=3)),
        two=(replace(add("a", 4), stamp=3),),
    ),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())
def test_chosen_pairs_unite_under_every_unit(kind: Any, model: Model, pair: Pair) -> None:
    if kind == "points":
        pair = _of_points(pair)
    assert difference(revised(kind, model), pair) is None


def _of_points(pair: Pair) -> Pair:
    """Deletions of points name the stamp; ids and requests by id there are none."""

    def points(history: Any) -> Any:
        stamps = {row.id: row.stamp_round for row in history if not isinstance(row, Forget)}
        return tuple(
            Forget(row.round, "person", "eve")
            if isinstance(row, Forget)
            else replace(row, stamp=stamps[row.id])
            if row.op == "delete"
            else row
            for row in history
        )

    # Of an id added twice, the deletion names the first stamp.
    return Pair(pair.meet, points(_first_stamps(pair.one)), points(_first_stamps(pair.two)))


def _first_stamps(history: Any) -> Any:
    rows: list[Any] = []
    for row in history:
        if isinstance(row, Forget) or row.op != "delete":
            rows.append(row)
            continue
        before = [r for r in rows if not isinstance(r, Forget) and r.id == row.id]
        rows.append(replace(row, id=f"{row.id}!", stamp=before[-1].stamp_round))
    return tuple(rows)


def test_the_same_point_with_two_stamps_gives_two_pasts_that_differ_between_them() -> None:
    """KKMNS appendix A: stamps 2 and 4 differ at every revised state from 2 up to 3."""
    plan = revised()
    with memory_directory() as directory:
        one, first = lived(directory / "one", plan, (replace(add("a", 5), stamp=2),))
        two, second = lived(directory / "two", plan, (replace(add("a", 5), stamp=4),))
    assert one[4] == two[4]  # neither has arrived
    assert first[4] != second[4]  # so they do not unite
    for round_ in (5, HORIZON):
        early, late = (Answer.from_bytes(lives[round_]["so_far"]) for lives in (one, two))
        assert early.stamps == late.stamps
        assert early.stamps is not None
        differ = {
            stamp: a - b  # type: ignore[operator]
            for stamp, a, b in zip(early.stamps, early.values, late.values, strict=True)
        }
        assert {stamp for stamp, by in differ.items() if by} == {2, 3}
        assert differ[2] == differ[3] == 1


def test_a_late_record_changes_the_past_from_its_arrival_on_and_not_before() -> None:
    plan = revised()
    with memory_directory() as directory:
        late, _ = lived(directory / "late", plan, (replace(add("a", 4), stamp=2),))
        none, _ = lived(directory / "none", plan, ())
    assert [late[r] == none[r] for r in range(1, 4)] == [True] * 3
    for round_ in (4, 5, 6):
        cases, empty = (Answer.from_bytes(one[round_]["cases"]) for one in (late, none))
        assert cases.stamps is not None
        changed = {
            stamp: a - b  # type: ignore[operator]
            for stamp, a, b in zip(cases.stamps, cases.values, empty.values, strict=True)
            if a != b
        }
        assert changed == {2: 1}
