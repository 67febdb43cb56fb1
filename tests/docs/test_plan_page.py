"""The page about plans knows every key, kind and choice of the grammar, and no other."""

from __future__ import annotations

import re
from typing import Any, Literal, get_args, get_origin

import msgspec
import pytest

from retrodp.engine.resolve import resolve
from retrodp.errors import NotInThisVersionError
from retrodp.plan import kinds, schema
from retrodp.plan.column_tables import RESERVED
from retrodp.plan.expression import Expression
from retrodp.plan.plan import Plan
from tests.docs.pages import DOCS, blocks, prose, read, section

PAGE = DOCS / "plan.md"
TABLES: dict[str, list[type[msgspec.Struct]]] = {
    "## `[stream]`": [schema.StreamTable, schema.MaxPerBinTable],
    "## `[stream.epochs]`": [schema.EpochsTable],
    "## `[columns]`": [schema.ColumnTable, schema.ReservedTable],
    "## `[privacy]`": [schema.PrivacyTable],
}


def keys_of(*tables: type[msgspec.Struct]) -> set[str]:
    return {field.encode_name for table in tables for field in msgspec.structs.fields(table)}


def choices_of(kind: Any) -> set[str]:
    """Texts that the literals within a type accept."""
    if get_origin(kind) is Literal:
        return set(get_args(kind))
    return {choice for part in get_args(kind) for choice in choices_of(part)}


def quoted(text: str) -> set[str]:
    """Words in backquotes, taken apart at everything that is no letter, digit or underscore."""
    return {word for code in re.findall(r"`([^`]+)`", text) for word in re.findall(r"\w+", code)}


def first_cells(text: str) -> set[str]:
    """Words in backquotes in the first column of the tables of a text."""
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return {word for cell in rows for word in re.findall(r"`([^`]+)`", cell)}


@pytest.mark.parametrize("heading", TABLES)
def test_every_key_of_a_table_is_in_its_section(heading: str) -> None:
    assert keys_of(*TABLES[heading]) - quoted(section(PAGE, heading)) == set()


def test_every_key_of_a_release_is_in_its_section() -> None:
    known = quoted(section(PAGE, "## `[release.NAME]`")) | quoted(missing())
    own = {key for kind in kinds.KINDS.values() if kind is not None for key in kind.names}
    assert (keys_of(schema.ReleaseTable) | own) - known == set()


def test_no_section_names_a_key_that_the_grammar_lacks() -> None:
    columns = first_cells(section(PAGE, "## `[columns]`")) - keys_of(schema.ColumnTable)
    stream = first_cells(section(PAGE, "## `[stream]`")) - keys_of(schema.StreamTable)
    privacy = first_cells(section(PAGE, "## `[privacy]`")) - keys_of(schema.PrivacyTable)
    release = first_cells(section(PAGE, "## `[release.NAME]`"))
    release -= keys_of(schema.ReleaseTable) | set(kinds.KINDS)
    assert (columns, stream, privacy, release) == (set(), set(), set(), set())


def test_every_choice_of_a_key_is_on_the_page() -> None:
    tables = [table for tables in TABLES.values() for table in tables] + [schema.ReleaseTable]
    choices = {
        choice
        for table in tables
        for field in msgspec.structs.fields(table)
        for choice in choices_of(field.type)
    }
    assert "person_round" in choices
    assert choices - quoted(prose(PAGE)) == set()


def test_the_reserved_fields_are_on_the_page() -> None:
    assert set(RESERVED) - quoted(section(PAGE, "## `[columns]`")) == set()


def missing() -> str:
    return section(PAGE, "## Not in this version")


def test_kinds_of_this_version_are_in_the_table_and_others_in_the_list() -> None:
    present = {name for name, kind in kinds.KINDS.items() if kind is not None}
    table = first_cells(section(PAGE, "## `[release.NAME]`")) & set(kinds.KINDS)
    assert table == present
    assert quoted(missing()) & set(kinds.KINDS) == set(kinds.KINDS) - present


PLAN = """
[stream]
start = 2026-01-01
round = "1d"
horizon = 4
{stream}
[columns]
word = "text"
amount = {{ type = "number", min = 0, max = 10, step = 1 }}
[privacy]
epsilon = 1
delta = 1e-9
[release.one]
{release}
"""


@pytest.mark.parametrize(
    ("stream", "release"),
    [
        *(("", f'kind = "{name}"') for name, kind in kinds.KINDS.items() if kind is None),
        ("", 'kind = "sum"\nof = "amount"\nby = "word"'),
        ("", 'kind = "mean"\nof = "amount"\nby = "word"'),
    ],
)
def test_what_the_page_calls_missing_answers_so(stream: str, release: str) -> None:
    with pytest.raises(NotInThisVersionError):
        resolve(Plan.loads(PLAN.format(stream=stream, release=release)))


def examples(language: str) -> list[str]:
    return [block.text for block in blocks(PAGE) if block.language == language]


def test_the_example_is_a_plan_that_can_be_resolved() -> None:
    (example,) = examples("toml")
    resolved = resolve(Plan.loads(example))
    assert {release["kind"] for release in resolved.releases} == {
        name for name, kind in kinds.KINDS.items() if kind is not None
    }


def test_the_conditions_of_the_page_can_be_read() -> None:
    (example,) = examples("toml")
    columns = Plan.loads(example).columns
    (conditions,) = examples("text")
    read_ = [Expression.parse(line, columns) for line in conditions.splitlines()]
    assert {name for expression in read_ for name in expression.columns} == {
        *("amount", "region", "product", "paid")
    }


@pytest.mark.parametrize("kind", kinds.KINDS)
def test_every_kind_has_a_row_and_a_page_of_its_own(kind: str) -> None:
    rows = [line for line in read(PAGE).splitlines() if line.startswith(f"| `{kind}` | ")]
    (row,) = [line for line in rows if "](kinds/" in line]
    page = DOCS / row.partition("](")[2].partition(")")[0]
    assert f"`{kind}`" in read(page) or f'"{kind}"' in read(page)
