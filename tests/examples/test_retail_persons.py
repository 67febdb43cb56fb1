"""A shop that protects a customer's day: what the bound lets in, and what is released of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from retrodp import demo
from retrodp.engine.store import Store
from retrodp.mechanisms.answer import Answer
from retrodp.plan.plan import Plan
from retrodp.store.ledger import Ledger
from retrodp.stream import fields
from retrodp.stream.clock import Clock
from retrodp.stream.intake import Intake, Tally
from retrodp.stream.sources import read_frame
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
    """What the first days brought, read off the ledger.

    Attributes:
        begun: Lives begun, by round and person; persons without a name by their id.
        errors: Released minus true, over the half width for all rounds at once, by release; in
            every tenth round.
        ignored: Rows that the store did not take at the closes.
    """

    begun: defaultdict[tuple[int, tuple[str, str]], list[Record]]
    errors: defaultdict[str, list[float]]
    ignored: int = 0


def person_of(record: Record) -> tuple[str, str]:
    return (record.space, record.id if record.space == NOBODY else "")


def surviving(ledger: Ledger) -> set[Record]:
    return {record for batch in ledger.survivors() for record in batch}


def labels(record: Record) -> dict[str, str]:
    """The bin of a record in every release."""
    _, product, country = msgspec.msgpack.decode(record.payload)
    return {"lines": "", "by_country": country, "by_product": product}


def product_of(record: Record) -> str:
    return labels(record)["by_product"]


def replaced_by_round(updates: pa.Table) -> defaultdict[int, set[str]]:
    """Ids of the replacements that arrive in each round."""
    found: defaultdict[int, set[str]] = defaultdict(set)
    for row in updates.filter(pc.equal(updates["op"], "replace")).to_pylist():
        found[(row["at"] - named.START).days + 1].add(row["id"])
    return found


def _note_errors(found: Lived, answers: Mapping[str, Answer], records: set[Record]) -> None:
    bins = [labels(record) for record in records]
    for name, answer in answers.items():
        truth = Counter(bin_[name] for bin_ in bins)
        scalar = answer.keys is None
        pairs = {"": values_of(answer)[0]} if scalar else pairs_of(answer)
        found.errors[name] += [
            (value - truth[key]) / answer.half_all for key, value in pairs.items()
        ]


@pytest.fixture(scope="module")
def lived(updates: pa.Table) -> Lived:
    # With this budget some products are frequent enough to be named before the year is over.
    rich = Plan.loads(plan().text.replace("epsilon = 1.0", "epsilon = 20"))
    found = Lived(begun=defaultdict(list), errors=defaultdict(list))
    replaced = replaced_by_round(updates)
    with (
        memory_directory() as directory,
        Store.create_for_tests(directory / "store", rich) as store,
    ):
        tally = store.ingest(read_frame(updates, store.layout())).tally
        assert tally.accepted == tally.read == updates.num_rows
        for round_ in range(1, DAYS + 1):
            old = {one for id_ in replaced[round_] for one in store.ledger.records_of_id(id_)}
            answers = store.close_round().answers
            new = {one for id_ in replaced[round_] for one in store.ledger.records_of_id(id_)}
            # Additions of this shop are stamped with their own day, replacements with the old one.
            for record in (new - old) | set(store.ledger.records_with_stamp(round_)):
                found.begun[round_, person_of(record)].append(record)
            if round_ % 10 == 0:
                _note_errors(found, answers, surviving(store.ledger))
        found.ignored = store.ignored
    return found


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


@pytest.mark.parametrize(
    ("release", "least", "share"),
    [("lines", 6, 1), ("by_country", 6 * 42, 0.98), ("by_product", 50, 0.98)],
)
def test_released_numbers_cover_the_bounded_truth(
    lived: Lived, release: str, least: int, share: float
) -> None:
    """In all rounds at once, with 95 per cent for every key."""
    within = [abs(error) <= 1 for error in lived.errors[release]]
    assert len(within) >= least
    assert sum(within) / len(within) >= share


def refused(table: pa.Table) -> tuple[Tally, set[tuple[str, str]], set[str]]:
    """What becomes of rows where the plan takes none without a customer."""
    shy = plan(refuse_strangers=True)
    intake = Intake(shy, Clock.of_stream(shy.stream))
    taken = [intake.take(raw, first_open=1) for raw in read_frame(table, intake.layout())]
    return (
        sum((one.tally for one in taken), Tally()),
        {(row.field, row.reason) for one in taken for row in one.refused},
        {space for one in taken for space in one.arrivals.space},
    )


def test_without_the_declaration_lines_without_a_customer_are_refused(updates: pa.Table) -> None:
    tally, why, spaces = refused(updates)
    assert tally.refused == updates["customer"].null_count > 10_000
    assert why == {("customer", fields.MISSING)}
    assert len(spaces) > 1_000
    assert NOBODY not in spaces


def test_the_shipped_deletions_name_no_customer_and_would_be_refused() -> None:
    """Why the example names the customer in every row."""
    shipped = pq.read_table(demo.data_path())
    tally, _, _ = refused(shipped.filter(pc.equal(shipped["op"], "delete")))
    assert tally.refused == tally.read == demo.counts()["deletions"] > 0


@pytest.mark.sweep
def test_the_commands_of_the_readme_run(ram: Path) -> None:
    done = run(commands("retail_persons"), ram)
    assert done.returncode == 0, done.stderr
    assert "374 rounds closed" in done.stdout
    assert "538,866 accepted" in done.stdout
