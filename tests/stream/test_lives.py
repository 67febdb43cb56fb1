"""The id rules of one round, and of any history against the plain replay."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from retrodp.stream.lives import apply_round
from retrodp.stream.update import Changes, Op, QueuedUpdate, Record
from tests.stream.rows import RANKS, add, delete, payload, replace
from tests.support import reference

Running = dict[tuple[str, str], Record]


def life(id_: str, *values: object, stamp: int = 1, space: str = "") -> Record:
    return Record(space, id_, stamp, None, payload(*values))


def running(*records: Record) -> Running:
    return {(record.space, record.id): record for record in records}


def after(before: Running, changes: Changes) -> Running:
    survivors = dict(before)
    for record in changes.ended:
        assert survivors.pop((record.space, record.id)) == record
    for record in changes.begun:
        assert (record.space, record.id) not in survivors
        survivors[record.space, record.id] = record
    return survivors


def test_an_addition_begins_a_life_with_the_stamp_it_names() -> None:
    assert apply_round({}, [add("a", 5, "x", stamp=3)]).begun == [life("a", "x", stamp=3)]


def test_a_deletion_ends_the_running_life() -> None:
    assert apply_round(running(life("a", "x")), [delete("a", 5)]) == Changes(
        [life("a", "x")], [], 0
    )


@pytest.mark.parametrize("contents", ["x", "y"])
def test_an_addition_while_a_life_runs_is_ignored_whatever_it_says(contents: str) -> None:
    changes = apply_round(running(life("a", "x")), [add("a", 5, contents)])
    assert changes == Changes([], [], ignored=1)


def test_a_deletion_of_an_unknown_id_looks_like_any_other_to_the_feeder() -> None:
    known = apply_round(running(life("a", "x")), [delete("a", 5)])
    unknown = apply_round({}, [delete("a", 5)])
    assert (known.ignored, known.same_time) == (unknown.ignored, unknown.same_time)
    assert unknown == Changes([], [], 0)


def test_an_early_deletion_is_forgotten() -> None:
    early = apply_round({}, [delete("a", 5)])
    assert apply_round(after({}, early), [add("a", 15, "x")]).begun == [life("a", "x")]


def test_after_a_deletion_the_id_is_free() -> None:
    changes = apply_round(running(life("a", "x")), [delete("a", 5), add("a", 6, "y", stamp=2)])
    assert changes == Changes([life("a", "x")], [life("a", "y", stamp=2)], 0)


def test_a_life_within_one_round_never_appears() -> None:
    assert apply_round({}, [add("a", 5, "x"), delete("a", 6)]) == Changes([], [], 0)


def test_a_replacement_ends_a_life_and_begins_the_next() -> None:
    changes = apply_round(running(life("a", "x")), [replace("a", 5, "y", stamp=2)])
    assert changes == Changes([life("a", "x")], [life("a", "y", stamp=2)], 0)


def test_a_replacement_of_an_unknown_id_is_an_addition() -> None:
    assert apply_round({}, [replace("a", 5, "y")]).begun == [life("a", "y")]


@pytest.mark.parametrize(
    "updates", [[replace("a", 5, "x")], [delete("a", 5), add("a", 6, "x")]], ids=["replace", "anew"]
)
def test_a_new_life_of_the_same_record_changes_nothing_and_is_told(
    updates: list[QueuedUpdate],
) -> None:
    changes = apply_round(running(life("a", "x")), updates)
    assert changes == Changes([], [], 0, again=[life("a", "x")])


def test_a_life_that_goes_on_does_not_begin_again() -> None:
    changes = apply_round(running(life("a", "x")), [add("a", 5, "x"), delete("b", 6)])
    assert changes == Changes([], [], ignored=1)


def test_a_replacement_by_equal_contents_with_another_stamp_is_a_change() -> None:
    changes = apply_round(running(life("a", "x")), [replace("a", 5, "x", stamp=2)])
    assert (changes.ended, changes.begun) == ([life("a", "x")], [life("a", "x", stamp=2)])


def test_delete_first_reads_minus_old_plus_new_at_one_instant_as_a_correction() -> None:
    changes = apply_round(running(life("a", "x")), [add("a", 5, "y"), delete("a", 5)])
    assert changes == Changes([life("a", "x")], [life("a", "y")], 0, same_time=1)


def test_add_first_lets_an_addition_and_a_withdrawal_at_one_instant_cancel() -> None:
    updates = [add("a", 5, "x")._replace(rank=0), delete("a", 5)._replace(rank=2)]
    assert apply_round({}, updates) == Changes([], [], 0, same_time=1)


def test_ids_of_two_persons_are_strangers() -> None:
    """Attack 9, first half: with a namespace the second person's record is not a duplicate."""
    changes = apply_round({}, [add("a", 5, "x", space="p"), add("a", 6, "y", space="q")])
    assert changes == Changes([], [life("a", "x", space="p"), life("a", "y", space="q")], ignored=0)


TIED = [
    add("a", 5, "x"),
    add("a", 5, "y"),
    replace("a", 5, "z"),
    replace("a", 5, "w"),
    delete("a", 5),
]


def by_arrival(updates: Iterable[QueuedUpdate]) -> str | None:
    """The careless way: a stable sort by `at`, ties as they come."""
    contents: str | None = None
    for update in sorted(updates, key=lambda update: update.at):
        if update.op == Op.DELETE:
            contents = None
        elif update.op == Op.REPLACE or contents is None:
            contents = update.payload.hex()
    return contents


def test_ties_do_not_depend_on_the_order_of_delivery() -> None:
    """Attack 9, second half."""
    outcomes = {repr(apply_round({}, order)) for order in permutations(TIED)}
    assert len(outcomes) == 1


def test_twin_ties_decided_by_the_order_of_delivery_are_noticed() -> None:
    assert len({by_arrival(order) for order in permutations(TIED)}) > 1


IDS = st.sampled_from(["a", "b", "c"])
SPACES = st.sampled_from(["", "p"])
CONTENTS = st.sampled_from(["x", "y"])


class Replay(RuleBasedStateMachine):
    """Any history, closed round by round, against the replay of the whole of it."""

    def __init__(self) -> None:
        super().__init__()
        self.closed: list[list[reference.Row]] = []
        self.open: list[reference.Row] = []
        self.survivors: Running = {}

    @property
    def round(self) -> int:
        return len(self.closed) + 1

    def deliver(
        self, op: str, space: str, id_: str, instant: int, stamp: int, contents: str
    ) -> None:
        self.open.append((op, space, id_, 10 * self.round + instant, stamp, contents))

    @rule(
        space=SPACES, id_=IDS, instant=st.integers(0, 3), contents=CONTENTS, ago=st.integers(0, 3)
    )
    def add(self, space: str, id_: str, instant: int, contents: str, ago: int) -> None:
        """Retroactive if `ago` is positive."""
        self.deliver("add", space, id_, instant, max(self.round - ago, 1), contents)

    @rule(
        space=SPACES, id_=IDS, instant=st.integers(0, 3), contents=CONTENTS, ago=st.integers(0, 3)
    )
    def replace(self, space: str, id_: str, instant: int, contents: str, ago: int) -> None:
        self.deliver("replace", space, id_, instant, max(self.round - ago, 1), contents)

    @rule(space=SPACES, id_=IDS, instant=st.integers(0, 3), times=st.integers(1, 2))
    def delete(self, space: str, id_: str, instant: int, times: int) -> None:
        """Early, effective or double."""
        for _ in range(times):
            self.deliver("delete", space, id_, instant, 0, "")

    @precondition(lambda self: bool(self.open))
    @rule(data=st.data())
    def redeliver(self, data: st.DataObject) -> None:
        self.open.append(data.draw(st.sampled_from(self.open)))

    @precondition(lambda self: any(self.closed))
    @rule(data=st.data())
    def redeliver_late(self, data: st.DataObject) -> None:
        """A row of a closed round comes again, with a current `at`."""
        rows = [row for rows in self.closed for row in rows]
        op, space, id_, at, stamp, contents = data.draw(st.sampled_from(rows))
        self.deliver(op, space, id_, at % 10, stamp, contents)

    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        rows = data.draw(st.permutations(self.open))
        updates = [
            QueuedUpdate(
                space,
                id_,
                at,
                RANKS[Op[op.upper()]],
                b"" if op == "delete" else payload(contents),
                stamp,
                Op[op.upper()],
                None,
            )
            for op, space, id_, at, stamp, contents in rows
        ]
        changes = apply_round(self.survivors, updates)
        self.survivors = after(self.survivors, changes)
        ended = {(record.space, record.id): record for record in changes.ended}
        assert all(ended.get((new.space, new.id)) != new for new in changes.begun)
        self.closed.append(self.open)
        self.open = []

    @invariant()
    def survivors_are_those_of_the_replay(self) -> None:
        expected = {
            key: Record(*key, stamp, None, payload(contents))
            for key, (stamp, contents) in reference.lives(self.closed).items()
        }
        assert self.survivors == expected


Replay.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestReplay = Replay.TestCase

UPDATES = st.lists(
    st.one_of(
        st.builds(add, IDS, st.integers(0, 3), CONTENTS, space=SPACES),
        st.builds(replace, IDS, st.integers(0, 3), CONTENTS, space=SPACES),
        st.builds(delete, IDS, st.integers(0, 3), space=SPACES),
    ),
    max_size=12,
)


@given(UPDATES, st.data())
@settings(deadline=None)
def test_delivering_every_update_one_to_three_times_changes_nothing(
    updates: list[QueuedUpdate], data: st.DataObject
) -> None:
    before = running(life("a", "x"), life("b", "y", space="p"))
    times = data.draw(st.lists(st.integers(1, 3), min_size=len(updates), max_size=len(updates)))
    more = [update for update, many in zip(updates, times, strict=True) for _ in range(many)]
    once, often = (
        apply_round(before, updates),
        apply_round(before, data.draw(st.permutations(more))),
    )
    assert (once.ended, once.begun) == (often.ended, often.begun)


@given(UPDATES, IDS)
@settings(deadline=None)
def test_ids_never_influence_one_another(updates: list[QueuedUpdate], id_: str) -> None:
    before = running(life("a", "x"), life("b", "y", space="p"))
    everything = apply_round(before, updates)
    alone = apply_round(before, [update for update in updates if update.id == id_])
    assert alone.begun == [record for record in everything.begun if record.id == id_]
    assert alone.ended == [record for record in everything.ended if record.id == id_]
