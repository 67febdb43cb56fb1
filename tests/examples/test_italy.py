"""Italy's cases by province: 23.5 million of them, corrected all the time, without ids."""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retrodp.engine.store import Store
from retrodp.plan.plan import Plan
from retrodp.stream.sources import read_file
from retrodp.views.published import Published
from tests.examples.scripts import EXAMPLES, commands, run, script
from tests.support.stores import memory_directory, published

FOLDER = EXAMPLES / "italy"
DAYS = 120
RELEASES = ("cases", "by_region", "by_province", "week_by_province")
TRUTHS = {"by_province": "table_by_round", "week_by_province": "weeks_by_round"}

make: Any = script("italy", "make_updates")
compare: Any = script("italy", "compare")


def plan(*, ids: bool = False) -> Plan:
    text = (FOLDER / "plan.toml").read_text(encoding="utf-8")
    if ids:
        text = text.replace("ids = false", "ids = true").replace('"operation"', '"record"')
    read = Plan.loads(text)
    assert (read.stream.ids, read.stream.unit) == (ids, "record" if ids else "operation")
    return read


def taken(path: Path, source: list[Any], *, ids: bool = False) -> Store:
    """A store that has taken the updates and closed nothing."""
    rows = (make.rows_with_ids if ids else make.rows)(make.updates(source))
    file = path.with_suffix(".csv")
    make.write(rows, file, ids=ids)
    store = Store.create_for_tests(path, plan(ids=ids))
    tally = store.ingest(read_file(file, store.layout())).tally
    assert tally.read == tally.accepted > 0
    return store


def totals(store: Store) -> dict[str, dict[bytes, int]]:
    return {release.name: store.ledger.read_totals(release.name) for release in store.releases}


@pytest.fixture(scope="module")
def beginning() -> Iterator[tuple[list[Any], Path, Counter[Any]]]:
    """The first days: the table's changes, the store's directory, and what survives in it."""
    source = make.changes(days=DAYS)
    with memory_directory() as directory:
        path = directory / "store"
        with taken(path, source) as store:
            store.close_through(DAYS)
            surviving = compare.surviving_cases(store)
        yield source, path, surviving


def test_the_survivors_are_the_published_cells_to_the_case(
    beginning: tuple[list[Any], Path, Counter[Any]],
) -> None:
    source, _, surviving = beginning
    assert surviving == make.published_cases(source)
    assert surviving.total() == 238_833  # what was told to the press on 2020-06-23


@pytest.mark.parametrize("release", TRUTHS)
def test_released_numbers_lie_within_their_intervals(
    beginning: tuple[list[Any], Path, Counter[Any]], release: str
) -> None:
    source, path, _ = beginning
    with Published.open(path) as store:
        truth = getattr(compare, TRUTHS[release])(source, DAYS)
        inside, total = compare.within(store, release, truth)
    assert total == DAYS * 149
    assert inside / total >= 0.94


def test_the_plan_lists_every_place() -> None:
    listed = [set(plan().column(name).values) for name in ("region", "province")]
    found = set(make.places().values())
    assert listed == [{place.region for place in found}, {place.province for place in found}]


@pytest.fixture(scope="module")
def everything() -> tuple[list[Any], list[Any]]:
    """All changes of the table, and all updates made of them."""
    source = make.changes()
    return source, list(make.updates(source))


def test_every_deletion_names_cases_that_stand_and_the_sum_is_the_table(
    everything: tuple[list[Any], list[Any]],
) -> None:
    """Of the whole stream: no deletion comes early or is too large."""
    source, updates = everything
    stand: Counter[tuple[Any, str]] = Counter()
    least = 0
    for update in updates:
        stand[update.place, update.day] += update.cases
        least = min(least, stand[update.place, update.day])
    assert least == 0
    by_place: Counter[Any] = Counter()
    for (place, _), cases in stand.items():
        by_place[place] += cases
    assert by_place == make.published_cases(source)
    assert by_place.total() == 23_504_224


def test_the_readme_says_what_the_script_counts(
    everything: tuple[list[Any], list[Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    make.tell(*everything)
    told = re.findall(r"([\d,]+)$", capsys.readouterr().out, re.MULTILINE)
    changes, negative, falls, rows, earlier, _, _, stand = told
    text = " ".join((FOLDER / "README.md").read_text(encoding="utf-8").split())
    assert f"({negative} of {changes})" in text
    assert f"({earlier} rows of {rows})" in text
    assert f"{falls} times the number of a place fell" in text
    assert f"{stand} cases in the table" in text


# A region that lost all its cases for a day.

LOST, CORRECTED = "2022-09-03", "2022-09-06T13:42:31Z"


def without_the_mistake(source: list[Any]) -> list[Any]:
    """The table as if the numbers of two days had come late and right the first time."""
    wrong = [
        change
        for change in source
        if LOST <= change.at <= CORRECTED and change.day in {LOST, "2022-09-04"}
    ]
    right: defaultdict[tuple[Any, str], int] = defaultdict(int)
    for change in wrong:
        right[change.place, change.day] += change.delta
    late = [make.Change(CORRECTED, day, place, delta) for (place, day), delta in right.items()]
    return sorted([one for one in source if one not in wrong] + late, key=lambda one: one.at)


def standing_at(source: list[Any], at: str) -> Counter[tuple[Any, str]]:
    stand: Counter[tuple[Any, str]] = Counter()
    for update in make.updates([change for change in source if change.at <= at]):
        stand[update.place, update.day] += update.cases
    return stand


def test_a_correction_brings_every_case_back_to_its_day() -> None:
    mistaken = make.changes(region="Lazio")
    right = without_the_mistake(mistaken)
    before, lost = standing_at(mistaken, LOST), standing_at(mistaken, "2022-09-03T23")
    assert before.total() - lost.total() > 2_000_000
    returned = standing_at(mistaken, "2022-09-05T23")
    assert returned.total() > before.total()
    assert returned != standing_at(right, CORRECTED)
    assert standing_at(mistaken, CORRECTED) == standing_at(right, CORRECTED)


# An id for every case.


def parity(directory: Path, region: str, days: int) -> tuple[int, int]:
    """Both streams side by side; returns deletions by id, and rounds with equal totals."""
    source = make.changes(region=region, days=days)
    counts = taken(directory / "counts", source)
    cases = taken(directory / "cases", source, ids=True)
    equal = 0
    with counts, cases:
        for _ in range(days):
            counts.close_round()
            cases.close_round()
            equal += totals(counts) == totals(cases)
        assert counts.ledger.survivor_count() == cases.ledger.survivor_count() > 0
    assert published(directory / "counts") == published(directory / "cases")
    with (directory / "cases.csv").open(encoding="utf-8", newline="") as file:
        deletions = sum(row["op"] == "delete" for row in csv.DictReader(file))
    return deletions, equal


def test_an_id_for_every_case_gives_the_same_totals_and_the_same_bytes(ram: Path) -> None:
    deletions, equal = parity(ram, "Liguria", DAYS)
    assert deletions > 1_000
    assert equal == DAYS


# The whole.


@pytest.mark.sweep
def test_an_id_for_every_case_of_a_region_to_the_end(ram: Path) -> None:
    assert parity(ram, "Molise", make.DAYS) == (19_604, make.DAYS)


@pytest.mark.sweep
def test_after_a_correction_the_releases_are_those_without_the_mistake(ram: Path) -> None:
    mistaken = make.changes(region="Lazio")
    for name, source in (("one", mistaken), ("two", without_the_mistake(mistaken))):
        with taken(ram / name, source) as store:
            store.close_through(store.horizon)
    one, two = published(ram / "one"), published(ram / "two")
    lost, corrected = compare.round_of(LOST), compare.round_of(CORRECTED)
    differ = {round_ for round_ in one if one[round_] != two[round_]}
    assert differ == set(range(lost, corrected))


@pytest.mark.sweep
def test_the_commands_of_the_readme_run_and_say_what_it_says(ram: Path) -> None:
    done = run(commands("italy"), ram)
    assert done.returncode == 0, done.stderr
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    said = [line for line in done.stdout.splitlines() if "cases in the table" in line]
    assert len(said) == 1
    assert f"    {said[0]}\n" in text
    assert "144 of 144 places have exactly as many cases in the ledger" in done.stdout
    shares = [float(share) for share in re.findall(r"^\w+: ([\d.]+)%", done.stdout, re.MULTILINE)]
    assert len(shares) == 2
    assert min(shares) > 94.5
