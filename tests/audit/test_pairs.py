"""Pairs of histories: they unite where they say, and not before by construction."""

from __future__ import annotations

from functools import cache

import pytest

from retrodp.audit.histories import History, Round, exact_rounds
from retrodp.audit.pairs import WAYS_BY_ID, WAYS_OF_POINTS, Pair, uniting_pair
from retrodp.audit.subjects import STREAMS, Stream, plan_of
from retrodp.engine.compile import compile_plan
from retrodp.engine.resolve import resolve
from retrodp.plan.plan import Plan
from tests.audit.sizes import SEED

HORIZON = 6
NUMBERS = range(60)


@cache
def plan(stream: Stream) -> Plan:
    return plan_of({"r": {"kind": "count"}}, model="pure", stream=stream, horizon=HORIZON)


def pair(stream: Stream, number: int) -> Pair:
    return uniting_pair(plan(stream), SEED.coins("pair", stream, number))


def lived(stream: Stream, history: History) -> list[Round]:
    releases = compile_plan(plan(stream), resolve(plan(stream)))
    return exact_rounds(plan(stream), releases, history, SEED.keys(HORIZON))


@pytest.mark.parametrize("stream", STREAMS)
def test_both_histories_hold_the_same_data_from_the_meeting_on(stream: Stream) -> None:
    apart = [
        number
        for number in NUMBERS
        for made in [pair(stream, number)]
        if [r.survivors for r in lived(stream, made.one)][made.meet - 1 :]
        != [r.survivors for r in lived(stream, made.two)][made.meet - 1 :]
    ]
    assert apart == []


@pytest.mark.parametrize("stream", STREAMS)
def test_before_the_meeting_most_pairs_differ(stream: Stream) -> None:
    differing = [
        number
        for number in NUMBERS
        for made in [pair(stream, number)]
        if [r.survivors for r in lived(stream, made.one)][: made.meet - 1]
        != [r.survivors for r in lived(stream, made.two)][: made.meet - 1]
    ]
    assert len(differing) > len(NUMBERS) * 3 // 4


@pytest.mark.parametrize(
    ("stream", "ways"), [("ids", set(WAYS_BY_ID)), ("points", set(WAYS_OF_POINTS))]
)
def test_every_way_of_life_occurs(stream: Stream, ways: set[str]) -> None:
    met = {way for number in NUMBERS for way in pair(stream, number).ways}
    extra = {"deleted", "person forgotten", "unknown deleted"}
    assert met >= ways | extra
    assert met >= ({"id forgotten", "over the bound"} if stream == "ids" else {"copies deleted"})


def test_updates_after_the_meeting_are_shared() -> None:
    made = [pair("ids", number) for number in NUMBERS]
    later = [(one.one[one.meet :], one.two[one.meet :]) for one in made]
    assert all(first == second for first, second in later)
    assert any(arrived.updates for first, _ in later for arrived in first)


def test_a_pair_is_a_function_of_its_coins() -> None:
    assert pair("ids", 3) == pair("ids", 3)
    assert pair("ids", 3) != pair("ids", 4)
