"""Italy's cases by day, as known on every evening: the first weeks, and the files of the example."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retrodp.engine.store import Store
from retrodp.plan.plan import Plan
from retrodp.stream.sources import read_file
from retrodp.views.published import Published
from tests.examples.scripts import EXAMPLES, commands, script
from tests.support.stores import memory_directory

FOLDER = EXAMPLES / "italy_revised"
DAYS = 40

make: Any = script("italy", "make_updates")
measure: Any = script("italy_revised", "measure")


@pytest.fixture(scope="module")
def published() -> Iterator[Published]:
    """The first weeks of a plan of so many rounds."""
    text = (FOLDER / "plan.toml").read_text(encoding="utf-8")
    plan = Plan.loads(text.replace("horizon = 365", f"horizon = {DAYS}"))
    with memory_directory() as directory:
        file = Path(directory) / "updates.csv"
        make.write(make.rows(make.updates(make.changes(days=DAYS))), file, ids=False)
        with Store.create_for_tests(directory / "store", plan) as store:
            tally = store.ingest(read_file(file, store.layout())).tally
            assert tally.read == tally.accepted > 0
            store.close_through(DAYS)
        with Published.open(directory / "store") as opened:
            yield opened


def test_numbers_lie_within_their_intervals_and_beat_publishing_again(published: Published) -> None:
    found = measure.measured(published)
    for name in ("by_region", "cases", "so_far"):
        assert 0.9 < found[name].inside / found[name].total <= 1
    fresh, tree = measure.again(published, "cases")
    assert found["cases"].rms < fresh / 1.5
    assert found["so_far"].rms < tree / 1.5
    assert found["so_far"].total == DAYS * (DAYS + 1) // 2


def test_the_notes_are_whole() -> None:
    with (FOLDER / "notes.csv").open(encoding="utf-8", newline="") as file:
        notes = list(csv.DictReader(file))
    assert len(notes) > 5
    assert all(all(note.values()) for note in notes)
    assert [note["published"] for note in notes] == sorted(note["published"] for note in notes)


def test_the_readme_runs_the_scripts_that_are_there() -> None:
    lines = commands("italy_revised")
    named = {word for line in lines for word in line.split() if word.startswith("examples/")}
    assert named
    assert all((EXAMPLES.parent / word).is_file() for word in named)
    assert (FOLDER / "revised.png").is_file()
