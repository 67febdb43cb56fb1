"""The register of .gov domains: corrections by the thousand that leave no trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from retrodp.engine.store import Store
from retrodp.plan.plan import Plan
from retrodp.stream.sources import read_frame
from tests.examples.scripts import EXAMPLES, answer_of, commands, drawn, run, script
from tests.support.stores import memory_directory, published

FOLDER = EXAMPLES / "gov_register"
MONTHS = 12
SINCE, UNTIL = datetime(2025, 9, 20, tzinfo=UTC), datetime(2025, 9, 26, tzinfo=UTC)
ROUNDS = 24
LOST, FOUND = "2025-09-24T06:12:07+00:00", "2025-09-24T18:47:21+00:00"
STATE = "NY"

make: Any = script("gov_register", "make_updates")


@pytest.fixture(scope="module")
def everything() -> list[Any]:
    found: list[Any] = make.changes()
    return found


def lived(path: Path, plan_name: str, made: list[Any], rounds: int) -> Store:
    plan = Plan.loads((FOLDER / plan_name).read_text(encoding="utf-8"))
    store = Store.create_for_tests(path, plan)
    table = make.table(made)
    tally = store.ingest(read_frame(table, store.layout())).tally
    assert tally.read == tally.accepted == table.num_rows > 0
    store.close_through(rounds)
    return store


def of_one_state(changes: list[Any]) -> list[Any]:
    """Changes of domains that lie in it before and after."""
    entries: dict[str, set[str | None]] = {}
    for change in changes:
        sides = [entry for entry in (change.before, change.after) if entry is not None]
        entries.setdefault(change.domain, set()).update(entry.state for entry in sides)
    return [change for change in changes if entries[change.domain] == {STATE}]


def without_the_mistake(changes: list[Any]) -> list[Any]:
    """The same register if the names that came back had never been lost."""
    lost = {one.domain: one for one in changes if one.at.isoformat() == LOST}
    found = {one.domain: one for one in changes if one.at.isoformat() == FOUND}
    restored = {
        domain
        for domain, one in found.items()
        if domain in lost and one.after == lost[domain].before
    }
    return [
        one
        for one in changes
        if one.domain not in restored or one.at.isoformat() not in {LOST, FOUND}
    ]


@pytest.fixture(scope="module")
def days(everything: list[Any]) -> Iterator[tuple[Path, Counter[str]]]:
    """Stores of the days around the mistake, with it and without, and the rounds' exact gaps."""
    chosen = of_one_state(everything)
    with memory_directory() as directory:
        for name, source in (("mistaken", chosen), ("right", without_the_mistake(chosen))):
            made = list(make.updates(source, since=SINCE, until=UNTIL))
            lived(directory / name, "correction.toml", made, ROUNDS).close()
        yield directory, Counter(one.at.isoformat() for one in chosen)


def test_after_the_correction_the_releases_are_those_without_the_mistake(
    days: tuple[Path, Counter[str]],
) -> None:
    directory, changes = days
    assert changes[LOST] > 100
    assert changes[FOUND] > 100
    mistaken, right = published(directory / "mistaken"), published(directory / "right")
    assert {one for one in mistaken if mistaken[one] != right[one]} == {18, 19}


def test_names_are_gone_for_two_rounds(days: tuple[Path, Counter[str]]) -> None:
    directory, _ = days
    answers = {
        one: answer_of(directory / "mistaken", one, "unnamed") for one in range(1, ROUNDS + 1)
    }
    high = {one for one, answer in answers.items() if answer.value > 10 * answer.half_all}
    assert high == {18, 19}


def test_every_event_meets_the_entry_it_takes_back(everything: list[Any]) -> None:
    """`updates` raises where one does not."""
    made = list(make.updates(everything))
    ops = Counter(one.op for one in made)
    assert (len(made), ops["add"] - ops["delete"]) == (57_770, 16_539)
    wrong = [*everything, everything[0]]
    with pytest.raises(ValueError, match="does not stand"):
        list(make.updates(wrong))


def test_released_tables_are_near_the_register(everything: list[Any], ram: Path) -> None:
    end = datetime(2020, 2, 1, tzinfo=UTC)
    made = list(make.updates(everything, until=end))
    with lived(ram / "store", "plan.toml", made, MONTHS) as store:
        answer = answer_of(ram / "store", MONTHS, "tables")
        survivors = [record for batch in store.ledger.survivors() for record in batch]
    states = Counter(msgspec.msgpack.decode(record.payload)[1] for record in survivors)
    inside = {
        figure.key: figure.bounds.low_all <= states[state] * 100 <= figure.bounds.high_all
        for figure in answer.figures()
        for state in states
        if figure.key == f'[["state","{state}"]]'
    }
    assert len(inside) > 50
    assert all(inside.values())


def test_corrections_make_no_domain_new(everything: list[Any]) -> None:
    made = [one for one in make.updates(everything) if one.op == "replace"]
    assert len(made) > 38_000
    assert all(one.since < one.at for one in made)


def test_the_picture_is_drawn_from_what_is_published(
    days: tuple[Path, Counter[str]], everything: list[Any], tmp_path: Path
) -> None:
    directory, _ = days
    end = datetime(2019, 5, 1, tzinfo=UTC)
    made = list(make.updates(everything, until=end))
    lived(tmp_path / "register", "plan.toml", made, 3).close()
    picture = tmp_path / "register.png"
    assert drawn("gov_register", picture, tmp_path / "register", directory / "mistaken")


@pytest.mark.sweep
def test_the_commands_of_the_readme_run(ram: Path) -> None:
    done = run(commands("gov_register"), ram)
    assert done.returncode == 0, done.stderr
    assert "91 rounds closed" in done.stdout
    assert "40 rounds closed" in done.stdout
