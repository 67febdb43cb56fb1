"""The page about persons states the errors that the example's plan has."""

from __future__ import annotations

import re

import pytest

from retrodp.engine.check import check
from retrodp.plan.plan import Plan
from tests.docs.pages import DOCS, ROOT, section

PAGE = DOCS / "persons.md"
PLAN = (ROOT / "examples" / "retail_persons" / "plan.toml").read_text(encoding="utf-8")
COSTS = section(PAGE, "## What the bounds cost")

Row = tuple[str, ...]


def rows(first: str) -> list[Row]:
    """Cells of the lines of the section's tables that begin so; numbers without commas."""
    lines = [line for line in COSTS.splitlines() if re.match(first, line)]
    return [
        tuple(cell.strip(" `").replace(",", "") for cell in line.strip("|").split("|"))
        for line in lines
    ]


def planned(unit: str, records: str = "", per_bin: str = "", further: str = "") -> Plan:
    """The example's plan with another unit."""
    keys = [f'unit = "{unit}"', 'person = "customer"', further]
    keys += [f"max_records = {records}"] * bool(records)
    keys += [f'max_per_bin = {{ by = ["product"], max = {per_bin} }}'] * bool(per_bin)
    own = re.compile(r'^unit = "person_round".*?(?=^\[columns\])', re.DOTALL | re.MULTILINE)
    text, changed = own.subn("\n".join(keys) + "\n\n", PLAN)
    assert changed == 1
    return Plan.loads(text)


def test_the_table_has_every_case() -> None:
    assert [row[:3] for row in rows(r"\| `(record|person_round)`")] == [
        ("record", "", ""),
        ("person_round", "10", ""),
        ("person_round", "10", "1"),
        ("person_round", "50", ""),
        ("person_round", "50", "1"),
    ]


@pytest.mark.parametrize("row", rows(r"\| `(record|person_round)`"), ids=" ".join)
def test_the_errors_are_those_that_check_prints(row: Row) -> None:
    unit, records, per_bin, *errors = row
    document = check(planned(unit, records, per_bin))
    release = {one["name"]: one for one in document["releases"]}
    lines, product = release["lines"], release["by_product"]
    found = [lines["error_max"], product["error_max"], product["threshold"]]
    assert list(map(float, errors)) == found


def test_the_groups_of_a_person_are_those_that_check_prints() -> None:
    document = check(planned("person", "50", "1", "max_rounds = 12"))
    groups = [
        (group["units"], group["epsilon"], float(f"{group['delta']:.1e}"))
        for group in document["budget"]["groups"]
    ]
    told = [
        (int(re.findall(r"\d+", row[0])[0]), float(row[1]), float(row[2]))
        for row in rows(r"\| \d+(,[\w ]+)? \|")
    ]
    assert told == groups
