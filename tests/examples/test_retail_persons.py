"""A shop that protects a customer's day: what the bound lets in, and what is released of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from retrodp import demo
from retrodp.engine.store import Store
from retrodp.plan.plan import Plan
from retrodp.store.ledger import Ledger
from retrodp.stream import fields
from retrodp.stream.sources import read_file, read_frame
from retrodp.stream.update import Record
from tests.examples.scripts import EXAMPLES, commands, run, script
from tests.support.answers import pairs_of, values_of
from tests.support.stores import memory_directory

FOLDER = EXAMPLES / "retail_persons"
DAYS = 60
NOBODY = ""

named: Any = script("retail_persons", "name_persons")


def plan(*, refuse_strangers: bool = False) -> Plan:
    text = (FOLDER / "plan.toml").read_text(encoding="utf-8")
    if refuse_strangers:
        declared = 'customer = { type = "text", nullable = true }'
        assert declared in text
        text = text.replace(declared, 'customer = "text"')
    return Plan.loads(text)


@pytest.fixture(scope="module")
def updates() -> pa.Table:
    """The updates of the first days."""
    return named.updates(days=DAYS)


@dataclass
class Lived:
    """What the first days brought, read off the ledger after every close.

    Attributes:
        begun: Lives begun, by round and person; persons without a name by their id.
        errors: Released minus true, over the half width for all rounds at once, by release.
        ignored: Rows that the store did not take at the closes.
        survivors: What survives in the end.
    """

    begun: defaultdict[tuple[int, tuple[str, str]], list[Record]]
    errors: defaultdict[str, list[float]]
    ignored: int = 0
    survivors: set[Record] = field(default_factory=set)


def person_of(record: Record) -> tuple[str, str]:
    return (record.space, record.id if record.space == NOBODY else "")


def surviving(ledger: Ledger) -> set[Record]:
    return {record for batch in ledger.survivors() for record in batch}


def product_of(record: Record) -> str:
    """By the order of the plan's columns."""
    _, product, _ = msgspec.msgpack.decode(record.payload)
    return str(product)


@pytest.fixture(scope="module")
def lived(updates: pa.Table) -> Iterator[Lived]:
    found = Lived(begun=defaultdict(list), errors=defaultdict(list))
    with (
        memory_directory() as directory,
        Store.create_for_tests(directory / "store", plan()) as store,
    ):
        tally = store.ingest(read_frame(updates, store.layout())).tally
        assert tally.accepted == tally.read == updates.num_rows
        for round_ in range(1, DAYS + 1):
            release = store.close_round()
            now = surviving(store.ledger)
            for record in now - found.survivors:
                found.begun[round_, person_of(record)].append(record)
            found.survivors = now
            _note_errors(found, release.answers, now)
        found.ignored = store.ignored
    yield found


def _note_errors(found: Lived, answers: Any, now: set[Record]) -> None:
    lines = answers["lines"]
    found.errors["lines"].append((values_of(lines)[0] - len(now)) / lines.half_all)
    countries = Counter(msgspec.msgpack.decode(record.payload)[2] for record in now)
    products = Counter(map(product_of, now))
    for name, truth in (("by_country", countries), ("by_product", products)):
        for key, value in pairs_of(answers[name]).items():
            found.errors[name].append((value - truth[key]) / answers[name].half_all)


def test_no_customer_begins_more_lives_a_day_than_the_bound(lived: Lived) -> None:
    most = max(len(records) for records in lived.begun.values())
    assert most == plan().stream.max_records == 50


def test_no_customer_begins_two_lives_a_day_with_one_product(lived: Lived) -> None:
    repeated = [
        who
        for who, records in lived.begun.items()
        if len(set(map(product_of, records))) < len(records)
    ]
    assert len(lived.begun) > 10_000
    assert repeated == []


def test_the_bound_bites(lived: Lived, updates: pa.Table) -> None:
    """Else the two tests above would hold of any store; and nothing else is ignored here."""
    writes = updates.filter(pc.is_valid(updates["customer"]))
    writes = writes.filter(pc.not_equal(writes["op"], "delete"))
    ids: defaultdict[tuple[Any, ...], dict[str, set[str]]] = defaultdict(dict)
    for row in writes.select(["at", "customer", "product", "id"]).to_pylist():
        day = ids[row["at"].date(), row["customer"]]
        day.setdefault(row["id"], set()).add(row["product"])
    crowded = [day for day in ids.values() if len(day) > 50]
    doubled = [day for day in ids.values() if len(set[str]().union(*day.values())) < len(day) <= 50]
    assert len(crowded) > 100
    assert len(doubled) > 100
    least = sum(len(day) - 50 for day in crowded)
    assert lived.ignored > least


def test_lines_without_a_customer_share_no_bound(lived: Lived, updates: pa.Table) -> None:
    """All of them are in: 133,358 in the whole year, far more than 50 on some days."""
    strangers = updates.filter(pc.is_null(updates["customer"]))
    added = strangers.filter(pc.equal(strangers["op"], "add"))
    days = Counter(at.date() for at in added["at"].to_pylist())
    assert max(days.values()) > 1_000
    begun = {records[0].id for (_, who), records in lived.begun.items() if who[0] == NOBODY}
    assert begun == set(added["id"].to_pylist())


def test_released_numbers_cover_the_bounded_truth_in_all_rounds(lived: Lived) -> None:
    """Half widths for all rounds of a key at once: none strays among 60, few among 2,500."""
    assert len(lived.errors["lines"]) == DAYS
    assert max(map(abs, lived.errors["lines"])) <= 1
    within = [abs(error) <= 1 for error in lived.errors["by_country"]]
    assert len(within) == DAYS * 42
    assert sum(within) / len(within) > 0.98
    assert all(abs(error) <= 1 for error in lived.errors["by_product"])


def test_without_the_declaration_lines_without_a_customer_are_refused(
    ram: Path, updates: pa.Table
) -> None:
    strangers = updates["customer"].null_count
    with Store.create_for_tests(ram / "store", plan(refuse_strangers=True)) as store:
        taken = store.ingest(read_frame(updates, store.layout()))
        store.close_through(3)
        assert taken.tally.refused == strangers > 10_000
        assert {row.field for row in taken.refused} == {"customer"}
        assert {row.reason for row in taken.refused} == {fields.MISSING}
        assert {record.space for record in surviving(store.ledger)}.isdisjoint({NOBODY})


def test_the_shipped_deletions_name_no_customer_and_would_miss(ram: Path) -> None:
    """Why the example names the customer in every row."""
    with Store.create_for_tests(ram / "store", plan(refuse_strangers=True)) as store:
        taken = store.ingest(read_file(demo.data_path(), store.layout()), dry_run=True)
    assert taken.tally.refused == demo.counts()["additions_without_customer"] + 2_816
    assert demo.counts()["deletions"] == 2_816


@pytest.mark.sweep
def test_the_commands_of_the_readme_run(ram: Path) -> None:
    done = run(commands("retail_persons"), ram)
    assert done.returncode == 0, done.stderr
    assert "374 rounds closed" in done.stdout
    assert "538,866 accepted" in done.stdout
