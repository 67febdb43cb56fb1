"""Complaints by ward: what is taken back leaves no trace in what is published afterwards."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from retrodp.engine.store import Store
from retrodp.plan.plan import Plan
from retrodp.stream.sources import read_frame
from tests.examples.scripts import EXAMPLES, answer_of, commands, drawn, run, script
from tests.support.answers import pairs_of
from tests.support.stores import memory_directory, published

FOLDER = EXAMPLES / "chicago_wards"
WEEKS = 26
DAYS = 7 * WEEKS
Numbers = Counter[str]

make: Any = script("chicago_wards", "make_updates")


def lived(path: Path, *, without_withdrawn: bool = False) -> Store:
    plan = Plan.loads((FOLDER / "plan.toml").read_text(encoding="utf-8"))
    store = Store.create_for_tests(path, plan)
    table = make.table(days=DAYS, without_withdrawn=without_withdrawn)
    tally = store.ingest(read_frame(table, store.layout())).tally
    assert tally.read == tally.accepted == table.num_rows
    store.close_through(WEEKS)
    return store


@pytest.fixture(scope="module")
def half_a_year() -> Any:
    """Directories of the complaints as they came, and without those that were taken back."""
    with memory_directory() as directory:
        for name, without in (("as_they_came", False), ("without", True)):
            lived(directory / name, without_withdrawn=without).close()
        yield directory


def standing(*, since: date) -> Numbers:
    """Complaints by ward at the end of the last week, from the city's list alone."""
    end = make.START + timedelta(days=DAYS)
    listed = {one.request: one for one in reversed(make.complaints())}
    gone = {one.request for one in make.complaints() if one.withdrawn and one.withdrawn < end}
    return Counter(
        one.ward
        for request, one in listed.items()
        if request not in gone and since <= max(one.created, make.START) < end
    )


@pytest.mark.parametrize(("release", "weeks"), [("by_ward", WEEKS), ("quarter_by_ward", 13)])
def test_released_counts_are_near_the_complaints_that_stand(
    half_a_year: Path, release: str, weeks: int
) -> None:
    truth = standing(since=make.START + timedelta(days=DAYS - 7 * weeks))
    answer = answer_of(half_a_year / "as_they_came", WEEKS, release)
    errors = {
        key: abs(value - truth[key]) for key, value in pairs_of(answer).items() if key in truth
    }
    assert len(errors) == 50
    assert max(errors.values()) <= answer.half_all
    assert sum(error <= answer.half for error in errors.values()) >= 40


def test_what_was_taken_back_leaves_no_trace_in_later_releases(half_a_year: Path) -> None:
    one, two = published(half_a_year / "as_they_came"), published(half_a_year / "without")
    assert one[WEEKS] == two[WEEKS]
    assert sum(one[week] != two[week] for week in one) > WEEKS / 2


def test_the_readme_counts_the_lines_of_the_list() -> None:
    listed = make.complaints()
    numbers = Counter(one.request for one in listed)
    text = " ".join((FOLDER / "README.md").read_text(encoding="utf-8").split())
    told = {
        "{:,} lines of the city's list": len(listed),
        "{:,} of them taken back": sum(one.withdrawn is not None for one in listed),
        "{} request numbers stand on several lines": sum(many > 1 for many in numbers.values()),
        "{} older complaints": sum(one.created < make.START for one in listed),
    }
    missing = [words for words, number in told.items() if words.format(number) not in text]
    assert missing == []


def test_the_picture_is_drawn_from_what_is_published(half_a_year: Path, tmp_path: Path) -> None:
    assert drawn("chicago_wards", tmp_path / "wards.png", half_a_year / "as_they_came")


@pytest.mark.sweep
def test_the_commands_of_the_readme_run(ram: Path) -> None:
    done = run(commands("chicago_wards"), ram)
    assert done.returncode == 0, done.stderr
    assert "209 rounds closed" in done.stdout
    assert "3,509 taken back" in done.stdout
