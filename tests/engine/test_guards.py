"""What must be refused is refused by its own error and exit code, and changes no byte on disk."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retrodp.engine import publishing
from retrodp.engine.store import Store
from retrodp.errors import (
    DiskFullError,
    FutureDateError,
    GuardError,
    HorizonExceededError,
    KeyMismatchError,
    KeyMissingError,
    KeyPermissionsError,
    PlanChangedError,
    RetrodpError,
    StoreBehindError,
    StoreCorruptError,
    StoreLockedError,
    UsageError,
)
from retrodp.plan.plan import Plan
from retrodp.store.ledger import Ledger
from tests.support.plans import HORIZON, counting, plan
from tests.support.rows import add, delete, ingest
from tests.support.stores import (
    abandon,
    fingerprints,
    new_store,
    published,
    read_files,
    write_files,
)


def store_with_rounds(path: Path, rounds: int, **contents: Any) -> dict[str, bytes]:
    """A closed store at a round, and its files."""
    with new_store(path, counting()) as store:
        ingest(store, [add("a", 1, **contents), add("b", 2)])
        store.close_through(rounds)
    return read_files(path)


def refused(path: Path, act: Callable[[], object], kind: type[RetrodpError], code: int = 4) -> str:
    """The message of a refusal that changed nothing."""
    before = fingerprints(path)
    with pytest.raises(kind) as caught:
        act()
    assert caught.value.exit_code == code
    assert caught.value.what
    assert fingerprints(path) == before
    return str(caught.value)


def opening(path: Path, **options: Any) -> Callable[[], object]:
    return lambda: Store.open(path, **options)


def test_rounds_up_to_the_horizon_close_and_the_next_is_refused(ram: Path) -> None:
    with new_store(ram / "store", counting()) as store:
        assert store.close_through(HORIZON - 1) == HORIZON - 1
        assert store.close_through(HORIZON) == 1
        refused(ram / "store", store.close_round, HorizonExceededError)
        message = refused(
            ram / "store", lambda: store.close_through(HORIZON + 1), HorizonExceededError
        )
    assert str(HORIZON) in message
    assert list(published(ram / "store")) == list(range(1, HORIZON + 1))


def test_a_round_that_has_not_begun_is_refused_and_the_running_one_closes(ram: Path) -> None:
    with new_store(ram / "store", counting()) as store:
        noon_of_the_second = store.clock.start_of(2) + 12 * 3600 * 1_000_000
        refused(
            ram / "store",
            lambda: store.close_through(3, now=noon_of_the_second),
            FutureDateError,
        )
        assert store.close_through(2, now=noon_of_the_second) == 2


@pytest.mark.parametrize("through", [-1, 1.5, True, "2"])
def test_what_is_no_round_is_refused(ram: Path, through: Any) -> None:
    with new_store(ram / "store", counting()) as store:
        refused(ram / "store", lambda: store.close_through(through), RetrodpError, 2)


def test_an_older_store_beside_a_newer_key_is_refused(ram: Path) -> None:
    old = store_with_rounds(ram / "store", 2)
    with Store.open(ram / "store") as store:
        store.close_round()
    for name, content in old.items():
        if name != ".key":
            Path(f"{ram / 'store'}{name}").write_bytes(content)
    message = refused(ram / "store", opening(ram / "store"), StoreBehindError)
    assert "round 3 was released already" in message


def test_an_older_ledger_beside_newer_releases_is_refused_even_with_its_old_key(ram: Path) -> None:
    old = store_with_rounds(ram / "store", 2)
    with Store.open(ram / "store") as store:
        store.close_round()
    for name in ("/ledger.sqlite", ".key"):
        Path(f"{ram / 'store'}{name}").write_bytes(old[name])
    refused(ram / "store", opening(ram / "store"), StoreBehindError)


def test_older_releases_beside_a_newer_ledger_are_refused(ram: Path) -> None:
    old = store_with_rounds(ram / "store", 1)
    with Store.open(ram / "store") as store:
        store.close_through(3)
    (ram / "store" / "releases.sqlite").write_bytes(old["/releases.sqlite"])
    refused(ram / "store", opening(ram / "store"), StoreCorruptError)


def test_an_older_key_beside_the_current_store_is_brought_forward(ram: Path) -> None:
    """It weakens secrecy until then, and can release nothing twice."""
    old = store_with_rounds(ram / "store", 1)
    with Store.open(ram / "store") as store:
        store.close_through(3)
    current = read_files(ram / "store")[".key"]
    key = Path(f"{ram / 'store'}.key")
    key.write_bytes(old[".key"])
    with Store.open(ram / "store"):
        assert key.read_bytes() == current


def test_two_copies_that_went_different_ways_cannot_be_mixed(ram: Path) -> None:
    start = store_with_rounds(ram / "one", 2)
    write_files(ram / "two", start)
    for name, arrived in (("one", 50), ("two", 30)):
        with Store.open(ram / name) as store:
            ingest(store, [add(f"{name}-{number}", 3) for number in range(arrived)])
            store.close_round()
    shutil.copy(f"{ram / 'one'}.key", f"{ram / 'two'}.key")
    assert published(ram / "one")[3] != published(ram / "two")[3]
    refused(ram / "two", opening(ram / "two"), StoreBehindError)


def test_the_key_of_another_store_is_refused(ram: Path) -> None:
    for name in ("one", "two"):
        with Store.create(ram / name, counting()):
            pass
    shutil.copy(f"{ram / 'one'}.key", f"{ram / 'two'}.key")
    refused(ram / "two", opening(ram / "two"), KeyMismatchError)


def test_a_copied_store_with_the_key_of_a_new_one_is_refused(ram: Path) -> None:
    with Store.create(ram / "old", counting()) as store:
        ingest(store, [add("a", 1)])
        store.close_through(2)
    with Store.create(ram / "new", counting()):
        pass
    write_files(ram / "copy", read_files(ram / "old"))
    shutil.copy(f"{ram / 'new'}.key", f"{ram / 'copy'}.key")
    refused(ram / "copy", opening(ram / "copy"), KeyMismatchError)


def test_a_test_key_opens_no_real_store_and_a_real_one_no_test_store(ram: Path) -> None:
    with Store.create(ram / "real", counting()):
        pass
    with Store.create_for_tests(ram / "test", counting()):
        pass
    keys = {name: Path(f"{ram / name}.key").read_bytes() for name in ("real", "test")}
    for name, other in (("real", "test"), ("test", "real")):
        Path(f"{ram / name}.key").write_bytes(keys[other])
        refused(ram / name, opening(ram / name), KeyMismatchError)


def test_a_missing_key_is_refused_and_never_made(ram: Path) -> None:
    store_with_rounds(ram / "store", 1)
    Path(f"{ram / 'store'}.key").unlink()
    refused(ram / "store", opening(ram / "store"), KeyMissingError)
    assert not Path(f"{ram / 'store'}.key").exists()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o666, 0o610])
def test_a_key_that_others_can_use_is_refused(ram: Path, mode: int) -> None:
    store_with_rounds(ram / "store", 1)
    Path(f"{ram / 'store'}.key").chmod(mode)
    message = refused(ram / "store", opening(ram / "store"), KeyPermissionsError)
    assert "chmod 600" in message


def test_an_edited_key_is_refused_and_not_quoted(ram: Path) -> None:
    store_with_rounds(ram / "store", 2)
    key = Path(f"{ram / 'store'}.key")
    document = json.loads(key.read_text())
    document["round"] = 1
    key.write_text(json.dumps(document))
    message = refused(ram / "store", opening(ram / "store"), GuardError)
    assert document["lasting"] not in message


@pytest.mark.parametrize(
    "change",
    [
        ("epsilon = 1", "epsilon = 2"),
        ("horizon = 6", "horizon = 7"),
        ("max = 20", "max = 30"),
        ("release.lines", "release.rows"),
        ('kind = "count"', 'kind = "count"\nwindow = "2d"'),
    ],
    ids=["budget", "horizon", "bounds", "name", "window"],
)
def test_a_changed_plan_is_refused_and_names_what_changed(
    ram: Path, change: tuple[str, str]
) -> None:
    store_with_rounds(ram / "store", 1)
    text = counting().text
    assert change[0] in text
    other = Plan.loads(text.replace(*change))
    refused(ram / "store", opening(ram / "store", plan=other), PlanChangedError)


def test_the_same_plan_in_other_words_is_accepted(ram: Path) -> None:
    store_with_rounds(ram / "store", 1)
    other = Plan.loads("# a comment\n" + counting().text.replace("epsilon = 1", "epsilon = 1.0"))
    with Store.open(ram / "store", plan=other) as store:
        assert store.round == 1


def test_a_resolved_plan_that_was_edited_is_refused(ram: Path) -> None:
    store_with_rounds(ram / "store", 1)
    path = ram / "store" / "plan.resolved.json"
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"level":"19/20"', b'"level":"9/10"'))
    assert path.read_bytes() != content
    refused(ram / "store", opening(ram / "store"), GuardError)


@pytest.mark.parametrize("name", ["ledger.sqlite", "releases.sqlite"])
@pytest.mark.parametrize("how", ["missing", "empty", "noise"])
def test_a_lost_or_damaged_file_is_refused(ram: Path, name: str, how: str) -> None:
    store_with_rounds(ram / "store", 2)
    path = ram / "store" / name
    if how == "missing":
        path.unlink()
    else:
        path.write_bytes(b"" if how == "empty" else os.urandom(8192))
    before = fingerprints(ram / "store")
    with pytest.raises(StoreCorruptError) as caught:
        Store.open(ram / "store")
    assert caught.value.exit_code == 4
    left = fingerprints(ram / "store")
    assert {file: left[file] for file in before if file != f"/{name}"} == (
        {file: before[file] for file in before if file != f"/{name}"}
    )


def test_a_directory_that_is_no_store_is_wrong_use(ram: Path) -> None:
    (ram / "store").mkdir()
    refused(ram / "store", opening(ram / "store"), UsageError, 2)
    assert list((ram / "store").iterdir()) == []


def test_a_second_writer_is_refused_and_the_first_goes_on(ram: Path) -> None:
    with new_store(ram / "store", counting()) as store:
        refused(ram / "store", opening(ram / "store"), StoreLockedError)
        assert store.close_through(2) == 2
    with Store.open(ram / "store") as store:
        assert store.round == 2


def _use(store: Store) -> None:
    try:
        store.close_round()
    except UsageError:
        os._exit(7)
    os._exit(0)


def test_a_store_is_of_no_use_in_a_forked_child(ram: Path) -> None:
    with new_store(ram / "store", counting()) as store:
        child = multiprocessing.get_context("fork").Process(target=_use, args=(store,))
        child.start()
        child.join(30)
        assert child.exitcode == 7
        assert store.close_round().round == 1


def limit(owner: Any, pages: int) -> None:
    owner._database.execute(f"PRAGMA max_page_count = {pages}")


def pages_of(owner: Any) -> int:
    return int(owner._database.value("PRAGMA page_count"))


def test_a_full_disk_takes_nothing_of_a_source_and_work_goes_on(ram: Path) -> None:
    with new_store(ram / "store", counting()) as store:
        ingest(store, [add("a", 1)])
        limit(store.ledger, pages_of(store.ledger) + 1)
        many = [add(f"id-{number:06d}", 1, product="p" * 50) for number in range(3000)]
        with pytest.raises(DiskFullError) as caught:
            ingest(store, many)
        assert caught.value.exit_code == 4
        assert store.ledger.waiting.count() == 1
        limit(store.ledger, 1_000_000)
        store.close_round()
        assert store.ledger.survivor_count() == 1


def test_a_full_disk_at_a_close_changes_nothing_and_the_same_close_gives_the_same_bytes(
    ram: Path,
) -> None:
    many = [add(f"id-{number:04d}", 1, product="p" * 50) for number in range(500)]
    with new_store(ram / "whole", plan()) as store:
        ingest(store, many)
        store.close_through(2)
    with new_store(ram / "full", plan()) as store:
        ingest(store, many)
        limit(store.ledger, pages_of(store.ledger))
        with pytest.raises(DiskFullError):
            store.close_round()
        assert (store.round, store.ledger.waiting.count()) == (0, 500)
        assert store.key.round == 0
        limit(store.ledger, 1_000_000)
        store.close_through(2)
    assert published(ram / "full") == published(ram / "whole")


def test_a_full_disk_while_publishing_delays_the_release_and_loses_none(ram: Path) -> None:
    with new_store(ram / "whole", plan()) as store:
        store.close_through(HORIZON)
    with new_store(ram / "full", plan()) as store:
        store.close_round()
        limit(store._parts.releases, pages_of(store._parts.releases))
        with pytest.raises(DiskFullError):
            store.close_through(HORIZON)  # there may be room for one more round
        assert store.round < HORIZON
        limit(store._parts.releases, 1_000_000)
        store.close_through(HORIZON)
    assert published(ram / "full") == published(ram / "whole")


def test_a_step_that_fails_twice_still_loses_no_release(
    ram: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_store(ram / "whole", counting()) as store:
        store.close_through(2)
    with new_store(ram / "store", counting()) as store:

        def fails(*_: object) -> None:
            raise DiskFullError("full")

        with monkeypatch.context() as patched:
            patched.setattr(publishing, "publish", fails)
            for _ in range(3):
                with pytest.raises(DiskFullError):
                    store.close_round()
            assert store.round == 1
        store.close_round()
    assert published(ram / "store") == published(ram / "whole")


def test_an_error_inside_a_with_block_leaves_the_store_usable(ram: Path) -> None:
    def use() -> None:
        with new_store(ram / "store", counting()) as store:
            ingest(store, [add("a", 1), delete("a", 1)])
            store.close_round()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        use()
    with Store.open(ram / "store") as store:
        assert store.round == 1
        assert store.ledger.facts.erase_due


def test_a_failed_opening_lets_go_of_the_lock(ram: Path) -> None:
    store_with_rounds(ram / "store", 1)
    key = Path(f"{ram / 'store'}.key")
    hidden = key.rename(ram / "hidden")
    with pytest.raises(KeyMissingError):
        Store.open(ram / "store")
    hidden.rename(key)
    with Store.open(ram / "store") as store:
        assert store.round == 1


def test_a_failed_forget_after_the_horizon_lets_go_of_the_lock(
    ram: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_store(ram / "store", counting()) as store:
        ingest(store, [add("a", 1)])
        store.close_through(HORIZON)
        store.ledger.forgets.add("id", "a")  # as a process killed in the middle leaves it

    def fails(*_: object) -> None:
        raise DiskFullError("full")

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "erase", fails)
        with pytest.raises(DiskFullError):
            Store.open(ram / "store")
    with Store.open(ram / "store") as store:
        assert store.ledger.survivor_count() == 0
    with Store.open(ram / "store") as store:
        assert not store.ledger.facts.erase_due


def test_what_a_reader_of_the_database_changes_by_hand_is_noticed(ram: Path) -> None:
    store_with_rounds(ram / "store", 2)
    connection = sqlite3.connect(ram / "store" / "ledger.sqlite")
    connection.execute("UPDATE meta SET value = '1' WHERE key = 'round'")
    connection.commit()
    connection.close()
    refused(ram / "store", opening(ram / "store"), StoreBehindError)


def test_a_closed_store_says_so(ram: Path) -> None:
    store = new_store(ram / "store", counting())
    abandon(store)
    with pytest.raises(UsageError):
        store.close_round()
