"""Streams without ids, against the paper's example and the plain replay."""

from __future__ import annotations

from collections import Counter

import hypothesis.strategies as st
from hypothesis import given, settings

from retrodp.stream.multiset import Point, apply_round
from retrodp.stream.update import Changes, Op, QueuedUpdate, Record
from tests.stream.rows import payload, point
from tests.support import reference


def replayed(rounds: list[list[QueuedUpdate]]) -> list[dict[Point, Record]]:
    """Survivors after each round."""
    states: list[dict[Point, Record]] = []
    survivors: dict[Point, Record] = {}
    for updates in rounds:
        changes = apply_round(survivors, updates)
        counts = Counter({key: record.count for key, record in survivors.items()})
        counts.update({(new.stamp, new.payload): new.count for new in changes.begun})
        counts.subtract({(old.stamp, old.payload): old.count for old in changes.ended})
        assert min(counts.values(), default=0) >= 0
        survivors = {
            key: Record("", "", key[0], None, key[1], count)
            for key, count in counts.items()
            if count
        }
        states.append(survivors)
    return states


def test_kkmns_example_2_1() -> None:
    rounds = [
        [point(Op.ADD, 1, "a")],
        [point(Op.ADD, 2, "b"), point(Op.ADD, 2, "b")],
        [point(Op.DELETE, 2, "b")],
        [point(Op.DELETE, 1, "b")],
        [point(Op.DELETE, 2, "b")],
        [point(Op.DELETE, 2, "b")],
    ]
    counts = [sum(record.count for record in state.values()) for state in replayed(rounds)]
    assert counts == [1, 3, 2, 2, 1, 1]


def test_additions_come_before_deletions_within_a_round() -> None:
    assert apply_round({}, [point(Op.DELETE, 1, "a"), point(Op.ADD, 1, "a")]) == Changes([], [], 0)


def test_an_early_deletion_is_a_no_op_for_ever() -> None:
    *_, last = replayed([[point(Op.DELETE, 1, "a", count=5)], [point(Op.ADD, 1, "a")]])
    assert [record.count for record in last.values()] == [1]


def test_a_row_with_n_is_n_operations() -> None:
    many = replayed([[point(Op.ADD, 1, "a", count=3)], [point(Op.DELETE, 1, "a", count=2)]])
    single = replayed([[point(Op.ADD, 1, "a")] * 3, [point(Op.DELETE, 1, "a")] * 2])
    assert many == single


def test_a_deletion_of_an_absent_point_looks_like_any_other_to_the_feeder() -> None:
    present = {(1, payload("a")): Record("", "", 1, None, payload("a"), 2)}
    known = apply_round(present, [point(Op.DELETE, 1, "a")])
    unknown = apply_round({}, [point(Op.DELETE, 1, "a")])
    assert (known.ignored, known.same_time) == (unknown.ignored, unknown.same_time)


ROWS = st.tuples(st.sampled_from(["add", "delete"]), st.integers(1, 3), st.sampled_from(["a", "b"]))


@given(st.lists(st.lists(ROWS, max_size=8), max_size=6))
@settings(deadline=None)
def test_any_history_gives_the_survivors_of_the_replay(
    rounds: list[list[tuple[str, int, str]]],
) -> None:
    states = replayed(
        [[point(Op[op.upper()], stamp, value) for op, stamp, value in rows] for rows in rounds]
    )
    survivors = {key: record.count for key, record in states[-1].items()} if states else {}
    expected = {
        (stamp, payload(value)): count for (stamp, value), count in reference.points(rounds).items()
    }
    assert survivors == expected
