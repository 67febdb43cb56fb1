"""A store is created whole, or the same command creates it at the next try."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from retrodp.engine import creation
from retrodp.engine.opening import open_or_create
from retrodp.engine.store import Store
from retrodp.errors import KeyMismatchError, RetrodpError, StoreCorruptError, UsageError
from retrodp.store import erase
from retrodp.store.keyfile import PlainKeyFile
from retrodp.store.ledger import Ledger
from retrodp.store.releases import Releases
from tests.support.plans import counting
from tests.support.rows import add, ingest
from tests.support.stores import fingerprints, published

STEPS = 10
"""Files and directories written: marker, ledger, releases, plan, key, resolved plan, the end."""


class Cut(Exception):  # noqa: N818  it is no error of the package
    """Stands for whatever cuts a creation short."""


def cut_short(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Raise at the given call of any step of a creation."""
    calls = {"made": 0}

    def counted(real: Any) -> Any:
        def call(*args: Any, **keywords: Any) -> Any:
            calls["made"] += 1
            if calls["made"] == step:
                raise Cut
            return real(*args, **keywords)

        return call

    monkeypatch.setattr(creation, "write_durably", counted(creation.write_durably))
    monkeypatch.setattr("retrodp.engine.creation.sync_directory", counted(erase.sync_directory))
    for owner in (Ledger, Releases, PlainKeyFile):
        monkeypatch.setattr(owner, "create", counted(owner.create))


@pytest.mark.parametrize("step", range(1, STEPS + 2))
def test_a_creation_cut_short_at_any_step_succeeds_at_the_next_try(
    ram: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    path = ram / "store"
    with monkeypatch.context() as patched:
        cut_short(patched, step)
        try:
            Store.create(path, counting()).close()
        except Cut:
            made = False
        else:
            made = True
    with open_or_create(path, counting()) as store:
        ingest(store, [add("a", 1)])
        store.close_round()
    assert list(published(path)) == [1]
    assert not (path / creation.MARKER).exists()
    assert made == (step > STEPS), "the steps of a creation have changed: count them again"


def test_nothing_is_removed_from_a_directory_that_no_creation_left(ram: Path) -> None:
    path = ram / "store"
    path.mkdir()
    (path / "thesis.txt").write_text("the only copy")
    before = fingerprints(path)
    with pytest.raises(UsageError, match="not empty"):
        Store.create(path, counting())
    assert fingerprints(path) == before


def test_a_store_that_lost_its_resolved_plan_is_not_taken_for_an_interrupted_creation(
    ram: Path,
) -> None:
    path = ram / "store"
    with Store.create(path, counting()) as store:
        ingest(store, [add("a", 1)])
        store.close_round()
    (path / "plan.resolved.json").unlink()
    before = fingerprints(path)
    with pytest.raises(UsageError):
        open_or_create(path, counting())
    assert fingerprints(path) == before


def test_a_forgotten_marker_goes_when_the_store_opens_and_never_costs_a_running_store(
    ram: Path,
) -> None:
    path = ram / "store"
    with Store.create(path, counting()) as store:
        (path / creation.MARKER).touch()
        store.close_round()
    with Store.open(path):
        assert not (path / creation.MARKER).exists()
    (path / creation.MARKER).touch()
    (path / "plan.resolved.json").unlink()
    before = fingerprints(path)
    with pytest.raises(StoreCorruptError):
        Store.create(path, counting())
    assert fingerprints(path) == before


def test_a_key_of_another_store_is_never_overwritten(ram: Path) -> None:
    with Store.create(ram / "other", counting()):
        pass
    key = (ram / "other.key").read_bytes()
    (ram / "other.key").rename(ram / "store.key")
    with pytest.raises(KeyMismatchError):
        Store.create(ram / "store", counting())
    with pytest.raises(KeyMismatchError):  # nor at the second try, over what the first one left
        Store.create(ram / "store", counting())
    assert (ram / "store.key").read_bytes() == key


def test_a_key_cut_short_before_its_first_byte_is_made_again(
    ram: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        cut_short(patched, 7)
        with pytest.raises(Cut):
            Store.create(ram / "store", counting())
    (ram / "store.key").touch(mode=0o600)
    with Store.create(ram / "store", counting()) as store:
        assert store.close_round().round == 1


def test_an_existing_store_is_not_created_again(ram: Path) -> None:
    with Store.create(ram / "store", counting()):
        pass
    before = fingerprints(ram / "store")
    with pytest.raises(UsageError):
        Store.create(ram / "store", counting())
    assert fingerprints(ram / "store") == before


def test_a_file_in_the_place_of_the_directory_is_refused(ram: Path) -> None:
    (ram / "store").write_text("")
    with pytest.raises(RetrodpError):
        Store.create(ram / "store", counting())
    assert (ram / "store").is_file()


def test_an_existing_empty_directory_will_do(ram: Path) -> None:
    (ram / "store").mkdir()
    with Store.create(ram / "store", counting()) as store:
        assert store.round == 0


def test_two_stores_of_one_plan_share_nothing(ram: Path) -> None:
    bytes_of = {}
    for name in ("one", "two"):
        with Store.create(ram / name, counting()) as store:
            store.close_through(6)
        bytes_of[name] = published(ram / name)
    assert bytes_of["one"] != bytes_of["two"]
    assert (ram / "one.key").stat().st_mode & 0o777 == 0o600
