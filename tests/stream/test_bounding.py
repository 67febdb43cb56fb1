"""What one person may add in one round."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given, settings

from retrodp.errors import PlanError
from retrodp.stream.bounding import Bound, within_bound
from retrodp.stream.lives import apply_round
from retrodp.stream.update import Op, QueuedUpdate, Record
from tests.stream.rows import add, delete, payload, replace

KEY = b"k" * 32
Running = dict[tuple[str, str], Record]


def begun_ids(before: Running, updates: list[QueuedUpdate]) -> set[str]:
    return {record.id for record in apply_round(before, updates).begun}


def kept_adds(updates: list[QueuedUpdate], bound: Bound) -> list[str]:
    return [update.id for update in within_bound(updates, bound, key=KEY).kept if update.payload]


def test_each_person_keeps_max_records_ids() -> None:
    updates = [add(str(number), 1, "x", space=space) for number in range(9) for space in "pq"]
    bounded = within_bound(updates, Bound(max_records=4), key=KEY)
    assert Counter(update.space for update in bounded.kept) == {"p": 4, "q": 4}
    assert bounded.over == 10


def test_the_choice_depends_on_the_key_only() -> None:
    updates = [add(str(number), 1, "x", space="p") for number in range(40)]
    bound = Bound(max_records=20)
    assert sorted(kept_adds(updates, bound)) == sorted(kept_adds(updates[::-1], bound))
    other = within_bound(updates, bound, key=b"another").kept
    assert {update.id for update in other} != set(kept_adds(updates, bound))


def test_two_persons_with_the_same_ids_do_not_share_the_choice() -> None:
    updates = [add(str(number), 1, "x", space=space) for number in range(40) for space in "pq"]
    kept = within_bound(updates, Bound(max_records=20), key=KEY).kept
    of_person = {space: {row.id for row in kept if row.space == space} for space in "pq"}
    assert of_person["p"] != of_person["q"]


def test_records_without_a_person_share_no_bound() -> None:
    """Attack 10: each id of the namespace without a name is a person of its own."""
    updates = [add(str(number), 1, "x", space="") for number in range(9)]
    bound = Bound(max_records=1, bin_columns=(0,), max_per_bin=1)
    bounded = within_bound(updates, bound, key=KEY)
    assert (bounded.kept, bounded.over) == (updates, 0)


def test_deletions_are_never_dropped() -> None:
    updates = [delete(str(number), 1, space="p") for number in range(9)]
    assert within_bound(updates, Bound(max_records=1), key=KEY).kept == updates


def test_a_replacement_over_the_bound_still_ends_the_running_life() -> None:
    old = {
        ("p", str(number)): Record("p", str(number), 1, None, payload("x")) for number in range(2)
    }
    updates = [replace(str(number), 5, "y", stamp=2, space="p") for number in range(2)]
    bounded = within_bound(updates, Bound(max_records=1), key=KEY)
    changes = apply_round(old, bounded.kept)
    assert len(changes.ended) == 2
    assert len(changes.begun) == 1
    assert bounded.over == 1


def test_a_bin_holds_max_per_bin_ids() -> None:
    updates = [add(str(number), 1, number % 2, "rest", space="p") for number in range(20)]
    bound = Bound(max_records=10, bin_columns=(0,), max_per_bin=2)
    bins = Counter(int(id_) % 2 for id_ in kept_adds(updates, bound))
    assert max(bins.values()) == 2


def test_true_and_one_are_two_bins() -> None:
    updates = [add("a", 1, True, space="p"), add("b", 1, 1, space="p"), add("c", 1, "1", space="p")]
    bound = Bound(max_records=9, bin_columns=(0,), max_per_bin=1)
    assert sorted(kept_adds(updates, bound)) == ["a", "b", "c"]


def test_an_id_occupies_every_bin_that_it_names() -> None:
    """Whichever value the id rules let win, the bin is not overfull."""
    updates = [
        add("a", 1, "x", space="p"),
        replace("a", 2, "y", space="p"),
        add("b", 1, "x", space="p"),
        add("c", 1, "y", space="p"),
    ]
    bound = Bound(max_records=9, bin_columns=(0,), max_per_bin=1)
    kept = set(kept_adds(updates, bound))
    assert kept in ({"a"}, {"b", "c"})


@pytest.mark.parametrize("wrong", [{"max_records": 0}, {"max_records": 1, "max_per_bin": 0}])
def test_a_bound_below_one_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(PlanError):
        Bound(**wrong)  # type: ignore[arg-type]


IDS = st.sampled_from("abcdefgh")
UPDATES = st.lists(
    st.one_of(
        st.builds(add, IDS, st.integers(0, 3), st.integers(0, 2), space=st.sampled_from("pq")),
        st.builds(replace, IDS, st.integers(0, 3), st.integers(0, 2), space=st.sampled_from("pq")),
        st.builds(delete, IDS, st.integers(0, 3), space=st.sampled_from("pq")),
    ),
    max_size=40,
)


@given(UPDATES, UPDATES, st.integers(1, 4), st.integers(1, 2), st.data())
@settings(deadline=None)
def test_lives_begun_by_a_person_keep_both_bounds(
    earlier: list[QueuedUpdate],
    updates: list[QueuedUpdate],
    max_records: int,
    max_per_bin: int,
    data: st.DataObject,
) -> None:
    before = {(record.space, record.id): record for record in apply_round({}, earlier).begun}
    bound = Bound(max_records=max_records, bin_columns=(0,), max_per_bin=max_per_bin)
    shuffled = data.draw(st.permutations(updates))
    kept = within_bound(shuffled, bound, key=KEY).kept
    assert sorted(kept) == sorted(within_bound(updates, bound, key=KEY).kept)
    begun = apply_round(before, kept).begun
    persons = Counter(record.space for record in begun)
    bins = Counter((record.space, msgspec.msgpack.decode(record.payload)[0]) for record in begun)
    assert max(persons.values(), default=0) <= max_records
    assert max(bins.values(), default=0) <= max_per_bin


def changed_lives(one: list[set[str]], other: list[set[str]]) -> int:
    """Beginnings that happen in one history and not in the other."""
    return sum(len(here ^ there) for here, there in zip(one, other, strict=True))


def beginnings(rounds: list[list[QueuedUpdate]], *, bound_first: bool) -> list[set[str]]:
    """Ids whose lives begin in each round, for one person with a bound of 1."""
    bound = Bound(max_records=1)
    survivors: Running = {}
    begun: list[set[str]] = []
    for updates in rounds:
        fresh = (
            updates
            if bound_first
            else [row for row in updates if (row.space, row.id) not in survivors]
        )
        changes = apply_round(survivors, within_bound(fresh, bound, key=KEY).kept)
        begun.append({record.id for record in changes.begun})
        for record in changes.begun:
            survivors[record.space, record.id] = record
    return begun


def cascade() -> list[list[QueuedUpdate]]:
    """Every round brings the last round's row again, and a new one with a larger hash."""
    pair = Bound(max_records=1)
    chain = ["0"]
    candidates = map(str, range(1, 5_000))
    for candidate in candidates:
        rows = [add(chain[-1], 1, "x", space="p"), add(candidate, 1, "x", space="p")]
        if kept_adds(rows, pair) == [chain[-1]]:
            chain.append(candidate)
    assert len(chain) > 5
    return [
        [add(old, 1, "x", space="p"), add(new, 1, "x", space="p")] for old, new in pairwise(chain)
    ]


def test_one_dropped_row_changes_at_most_one_beginning_of_each_of_two_rounds() -> None:
    """Attack 7: the bound is decided over everything that arrived, duplicates included."""
    first = [add("0", 1, "x", space="p")]
    rounds = cascade()
    with_it = beginnings([first, *rounds], bound_first=True)
    without = beginnings([[], *rounds], bound_first=True)
    assert changed_lives(with_it, without) <= 2


def test_twin_the_id_rule_before_the_bound_cascades() -> None:
    first = [add("0", 1, "x", space="p")]
    rounds = cascade()
    with_it = beginnings([first, *rounds], bound_first=False)
    without = beginnings([[], *rounds], bound_first=False)
    assert changed_lives(with_it, without) > len(rounds)


def test_bounding_reads_no_deletion_payload() -> None:
    rows = [delete("a", 1, space="p"), add("b", 1, "x", space="p"), add("c", 1, "x", space="p")]
    bound = Bound(max_records=2, bin_columns=(0,), max_per_bin=1)
    kept = within_bound(rows, bound, key=KEY).kept
    assert [row.op for row in kept] == [Op.DELETE, Op.ADD]
