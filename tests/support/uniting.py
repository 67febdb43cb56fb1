"""Pairs of histories that unite: different up to a round, equal survivors from there on.

A history is a list of commands a round. `unite` makes two that end in the same survivors at the
round where they meet, by ways as different as life: plainly, late, corrected, doubled, with
records between that are deleted, replaced or forgotten again, and with deletions of the unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings

from retrodp.engine.store import Store
from retrodp.plan.plan import Plan
from tests.support.plans import HORIZON
from tests.support.rows import Contents, Row, ingest
from tests.support.stores import memory_directory, new_store, published


@dataclass(frozen=True, slots=True)
class Forget:
    """A request that arrives in a round, after the updates of the round."""

    round: int
    kind: str
    value: str


Command = Row | Forget
History = tuple[Command, ...]
Planting = Callable[[Store], None]

CONTENTS = st.builds(
    Contents,
    who=st.sampled_from(["ann", "bob", "cyd"]),
    product=st.sampled_from(["tea", "ink", None]),
    country=st.sampled_from(["DE", "ZZ"]),
    amount=st.sampled_from([1.5, -5.0, 30.0]),
    gift=st.booleans(),
)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two histories with equal survivors from `meet` on."""

    meet: int
    one: History
    two: History


@st.composite
def pairs(draw: st.DrawFn, *, ids: bool) -> Pair:
    """A pair that unites in a round before the last, and goes on alike."""
    meet = draw(st.integers(2, HORIZON - 1))
    target = [
        Row(
            id=f"kept{number}",
            round=draw(st.integers(1, meet)),
            contents=draw(CONTENTS),
        )
        for number in range(draw(st.integers(0, 4)))
    ]
    after = [
        Row(
            op=draw(st.sampled_from(["add", "delete"])),
            id=draw(st.sampled_from([row.id for row in target] + ["new"])),
            round=round_,
            contents=draw(st.sampled_from([row.contents for row in target] + [Contents()])),
            stamp=draw(st.none() | st.integers(1, round_)),
        )
        for round_ in draw(st.lists(st.integers(meet + 1, HORIZON), max_size=4))
    ]
    way = _ways_by_id if ids else _ways_of_points
    one = [command for row in target for command in draw(way(row, meet))]
    two = [command for row in target for command in draw(way(row, meet))]
    one += draw(_noise(meet, ids=ids, name="p"))
    two += draw(_noise(meet, ids=ids, name="q"))
    return Pair(meet, (*one, *after), (*two, *after))


@st.composite
def _ways_by_id(draw: st.DrawFn, row: Row, meet: int) -> list[Command]:
    """Ways to have exactly this record, stamped with its round, at the meeting."""
    late = draw(st.integers(row.round, meet))
    other = draw(CONTENTS)
    plain = replace(row, round=late, stamp=row.round)
    match draw(st.sampled_from(["plain", "twice", "replaced", "deleted", "forgotten"])):
        case "plain":
            return [plain]
        case "twice":
            again = draw(st.integers(late, meet))
            return [plain, replace(plain, round=again, second=5, contents=other)]
        case "replaced":
            wrong = replace(row, contents=other)
            return [wrong, replace(plain, op="replace", second=7)]
        case "deleted":
            wrong = replace(row, contents=other)
            out = replace(wrong, op="delete", round=late, second=8)
            return [wrong, out, replace(plain, second=9)]
        case _:
            if late == row.round:
                return [plain]
            gone = Forget(late - 1, "id", row.id)
            return [replace(row, round=late - 1, stamp=1, contents=other), gone, plain]


@st.composite
def _ways_of_points(draw: st.DrawFn, row: Row, meet: int) -> list[Command]:
    late = draw(st.integers(row.round, meet))
    plain = replace(row, round=late, stamp=row.round)
    match draw(st.sampled_from(["plain", "early", "surplus"])):
        case "plain":
            return [plain]
        case "early":  # deletes nothing, for ever
            if row.round > 1 and late > row.round:
                unknown = replace(row, contents=replace(row.contents, product="never"))
                return [replace(unknown, op="delete", n=3), plain]
            return [plain]
        case _:  # more copies than needed, exhausted exactly
            surplus = replace(plain, n=3)
            return [surplus, replace(plain, op="delete", round=draw(st.integers(late, meet)), n=2)]


@st.composite
def _noise(draw: st.DrawFn, meet: int, *, ids: bool, name: str) -> list[Command]:
    """Records that are gone by the meeting, and deletions that meet nothing."""
    commands: list[Command] = []
    for number in range(draw(st.integers(0, 3))):
        begin = draw(st.integers(1, meet - 1))
        end = draw(st.integers(begin + 1, meet))
        stamp = draw(st.integers(1, begin))
        contents = replace(draw(CONTENTS), who=f"{name}{number}")
        row = Row(id=f"{name}{number}", round=begin, stamp=stamp, contents=contents)
        how = draw(st.sampled_from(["delete", "forget", "unknown"]))
        if how == "unknown":
            commands.append(replace(row, op="delete"))
        elif how == "delete":
            out = replace(row, op="delete", round=end)
            commands += [row, replace(out, stamp=None) if ids else out]
        elif ids and draw(st.booleans()):
            commands += [row, Forget(end, "id", row.id)]
        else:
            commands += [row, Forget(end, "person", contents.who)]
    return commands


def lived(
    path: Path, plan: Plan, history: History, planting: Planting | None = None
) -> tuple[dict[int, dict[str, bytes]], list[object]]:
    """Published answers of a history, and the survivors after each round."""
    survivors: list[object] = []
    with new_store(path, plan) as store:
        if planting is not None:
            planting(store)
        for round_ in range(1, store.horizon + 1):
            ingest(store, [one for one in history if isinstance(one, Row) and one.round == round_])
            for one in history:
                if isinstance(one, Forget) and one.round == round_:
                    asked = [one.value]
                    _ = store.forget(asked) if one.kind == "id" else store.forget(persons=asked)
            store.close_round()
            survivors.append([record for batch in store.ledger.survivors() for record in batch])
    return published(path), survivors


def few(examples: int) -> settings:
    """So many examples, each of which may take its time on a store of its own."""
    return settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )


def difference(plan: Plan, pair: Pair, planting: Planting | None = None) -> tuple[int, str] | None:
    """First round and release, from the meeting on, whose published bytes differ; or None."""
    with memory_directory() as directory:
        one, first = lived(directory / "one", plan, pair.one, planting)
        two, second = lived(directory / "two", plan, pair.two, planting)
    assert first[pair.meet - 1 :] == second[pair.meet - 1 :], "the histories do not unite"
    for round_ in range(pair.meet, plan.stream.horizon + 1):
        for release, answer in one[round_].items():
            if answer != two[round_][release]:
                return round_, release
    return None
