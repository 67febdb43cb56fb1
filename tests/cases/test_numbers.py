"""Public reports about numbers that wrapped, leaked or poisoned what came after."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from retrodp.engine.store import Store
from retrodp.engine.verify import verify
from retrodp.errors import CapacityError, PlanError
from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.counter import Counter
from retrodp.noise.key import KeyTree
from retrodp.plan.plan import Plan
from retrodp.privacy.budget import PureDP, zCDP
from tests.support.answers import values_of
from tests.support.plans import counting, plan
from tests.support.rows import Contents, Row, add, ingest
from tests.support.stores import new_store, published

COPIES = Row(round=1)


@pytest.mark.parametrize("count", [2**31 - 1, 2**31, 2**31 + 1, 2**32, 2**40])
def test_counts_do_not_wrap_at_32_bits(ram: Path, count: int) -> None:
    with new_store(ram / "store", counting("points")) as store:
        ingest(store, [replace(COPIES, n=count)])
        [value] = values_of(store.close_round()["lines"])
        held = store.ledger.read_totals("lines")
        ingest(store, [replace(COPIES, op="delete", round=2, stamp=1, n=count - 1)])
        store.close_round()
        left = store.ledger.read_totals("lines")
    assert held == {b"": count}
    assert left == {b"": 1}
    assert abs(value - count) < 10_000


def grown(path: Path, copies: int) -> None:
    """Give the one point of a store so many copies, as years of rows would."""
    connection = sqlite3.connect(path / "ledger.sqlite")
    for statement in (
        "UPDATE multiset SET n = ?",
        "UPDATE totals SET value = ?",
        "UPDATE queue SET n = ?",
    ):
        connection.execute(statement, (copies,))
    connection.commit()
    connection.close()


def test_counts_up_to_2_63_are_exact_and_one_more_is_refused_whole(ram: Path) -> None:
    path = ram / "store"
    with new_store(path, counting("points")) as store:
        ingest(store, [COPIES])
        store.close_round()
    grown(path, 2**63 - 2)
    with Store.open(path) as store:
        ingest(store, [replace(COPIES, round=2, stamp=1)])
        [value] = values_of(store.close_round()["lines"])
        assert store.ledger.read_totals("lines") == {b"": 2**63 - 1}
        assert abs(value - 2**63) < 10_000
        assert verify(store).passed
        ingest(store, [replace(COPIES, round=3, stamp=1)])
        with pytest.raises(CapacityError):
            store.close_round()
        assert (store.round, store.ledger.waiting.count()) == (2, 1)
        assert store.ledger.read_totals("lines") == {b"": 2**63 - 1}


def test_a_value_beyond_2_63_is_published_and_read_exactly(ram: Path) -> None:
    """The noise may carry a total over the edge; nothing wraps."""
    answer = Counter(horizon=6, budget=PureDP("1/100")).release(
        1, 2**63 - 1, KeyTree.from_root(bytes(32), b"edge", 6)
    )
    again = Answer.from_bytes(answer.to_bytes())
    assert again.values == answer.values
    assert abs(values_of(again)[0] - 2**63) < 10_000


def test_a_queue_of_too_many_copies_is_refused_whole(ram: Path) -> None:
    path = ram / "store"
    with new_store(path, counting("points")) as store:
        ingest(store, [COPIES])
    grown(path, 2**63 - 1)
    with Store.open(path) as store:
        with pytest.raises(CapacityError):
            ingest(store, [replace(COPIES, second=1), COPIES])
        assert store.ledger.waiting.count() == 2**63 - 1


def sums_up_to(most: int, *, epsilon: str = "1") -> Plan:
    text = plan("ids", "pure", releases='[release.x]\nkind = "sum"\nof = "amount"').text
    text = text.replace("min = -5, max = 20, step = 0.5", f"min = 0, max = {most}, step = 1")
    return Plan.loads(text.replace("epsilon = 150", f"epsilon = {epsilon}"))


@pytest.mark.parametrize("bits", [31, 32, 40, 53])
def test_sums_are_exact_on_their_grid_at_any_offset(ram: Path, bits: int) -> None:
    """Rounding of floats breaks a stated sensitivity at offset 2^50; whole steps do not."""
    most = 2**bits
    with new_store(ram / "store", sums_up_to(most, epsilon="100000000")) as store:
        ingest(
            store, [add("a", 1, amount=most), add("b", 1, amount=most - 1), add("c", 1, amount=1)]
        )
        store.close_round()
        before = store.ledger.read_totals("x")
        store.delete(["c"])
        store.close_round()
        after = store.ledger.read_totals("x")
    assert before == {b"": 2 * most}
    assert after == {b"": 2 * most - 1}


def test_noise_that_could_leave_64_bits_is_refused_when_planned() -> None:
    from retrodp.engine.resolve import resolve  # noqa: PLC0415  used once

    with pytest.raises(PlanError, match="step"):
        resolve(sums_up_to(2**53, epsilon="1e-6"))


def test_bounds_beyond_2_53_steps_are_refused() -> None:
    with pytest.raises(PlanError, match="steps"):
        sums_up_to(2**53 + 1)


@pytest.mark.parametrize("value", ["NaN", "nan", "inf", "-Infinity", float("nan"), float("inf")])
def test_what_is_not_finite_is_refused_and_poisons_nothing(ram: Path, value: Any) -> None:
    with new_store(ram / "with", plan()) as store:
        bad = [
            replace(add(f"bad{number}", 1), contents=Contents(amount=value)) for number in (1, 2)
        ]
        taken = ingest(store, [bad[0]]), ingest(store, [add("a", 1)]), ingest(store, [bad[1]])
        assert [one.tally.refused for one in taken] == [1, 0, 1]
        store.close_through(3)
    with new_store(ram / "without", plan()) as store:
        ingest(store, [add("a", 1)])
        store.close_through(3)
    assert published(ram / "with") == published(ram / "without")


@pytest.mark.parametrize(
    ("value", "steps"), [(-0.0, 0), (0.0, 0), (5e-324, 0), (1e308, 40), (-1e308, -10)]
)
def test_extreme_finite_numbers_are_clamped(ram: Path, value: float, steps: int) -> None:
    sums = plan(releases='[release.x]\nkind = "sum"\nof = "amount"')
    with new_store(ram / "store", sums) as store:
        ingest(store, [add("a", 1, amount=value)])
        store.close_round()
        assert store.ledger.read_totals("x").get(b"", 0) == steps


def test_published_values_are_whole_steps_and_no_floats(ram: Path) -> None:
    """The low bits of a noisy float would tell the exact value."""
    with new_store(ram / "store", plan(epsilon=1)) as store:
        ingest(store, [add("a", 1)])
        store.close_round()
    numbers: list[object] = []
    for content in published(ram / "store")[1].values():
        json.loads(content, parse_float=numbers.append)
        numbers += [
            v for v in Answer.from_bytes(content).values if type(v) not in {int, type(None)}
        ]
    assert numbers == []


@pytest.mark.parametrize("budget", [0, -1, float("nan"), float("inf"), "1/0", "nan", None, True])
@pytest.mark.parametrize("kind", [PureDP, zCDP])
def test_a_budget_that_promises_nothing_is_refused_at_once(kind: Any, budget: Any) -> None:
    with pytest.raises(PlanError):
        kind(budget)


@pytest.mark.parametrize(
    "change",
    [
        ("epsilon = 1", "epsilon = 0"),
        ("epsilon = 1", "epsilon = -1"),
        ("epsilon = 1", "epsilon = nan"),
        ("epsilon = 1", "epsilon = inf"),
        ("delta = 1e-3", "delta = 1"),
        ("delta = 1e-3", "delta = 0"),
        ("delta = 1e-3", "delta = nan"),
        ("max = 20, ", ""),
        ("min = -5, ", ""),
        ("step = 0.5, ", ""),
    ],
    ids=lambda change: change[1] or change[0],
)
def test_a_plan_that_cannot_be_right_exits_2_and_names_the_key(change: tuple[str, str]) -> None:
    text = counting().text
    assert change[0] in text
    with pytest.raises(PlanError) as caught:
        Plan.loads(text.replace(*change))
    assert caught.value.exit_code == 2
    assert caught.value.expected


def test_the_noise_of_the_last_round_is_not_that_of_the_first() -> None:
    """Past the horizon of a careless library the same vector is added for ever."""
    keys = KeyTree.from_root(bytes(32), b"x", 64)
    counter = Counter(horizon=64, budget=PureDP(Fraction(1, 50)))
    noise = [values_of(counter.release(round_, 0, keys))[0] for round_ in range(1, 65)]
    assert len(set(noise)) > 48
