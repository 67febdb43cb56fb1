"""Attack 1: key and store rolled back together, and a round closed again on other data."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrodp.engine.backup import Place
from retrodp.engine.restore import examine, restore_as_is
from retrodp.engine.store import Store
from retrodp.errors import KeyDestroyedError, StoreBehindError
from retrodp.mechanisms.counter import Counter
from retrodp.noise.key import KeyTree
from retrodp.privacy.budget import PureDP
from retrodp.store.keyfile import PlainKeyFile
from tests.support.answers import values_of
from tests.support.mechanisms import pure
from tests.support.plans import counting
from tests.support.rows import add, delete, ingest
from tests.support.stores import fingerprints, new_store, read_files, write_files


def key_of(path: Path) -> PlainKeyFile:
    return PlainKeyFile(Path(f"{path}.key"))


@pytest.fixture
def backup(ram: Path) -> Path:
    """A back-up from after round 2 of a store that has released round 3 since."""
    with new_store(ram / "store", counting()) as store:
        ingest(store, [add(f"id{number}", 1) for number in range(9)])
        store.close_through(2)
    files = read_files(ram / "store")
    with Store.open(ram / "store") as store:
        store.close_round()
    write_files(ram / "backup", files)
    return ram / "backup"


def test_published_releases_are_a_witness_against_the_rest(ram: Path, backup: Path) -> None:
    """Everything rolled back but what was published: the round is not closed again."""
    (backup / "releases.sqlite").write_bytes((ram / "store" / "releases.sqlite").read_bytes())
    before = fingerprints(backup)
    with pytest.raises(StoreBehindError):
        Store.open(backup)
    assert fingerprints(backup) == before


def test_the_key_is_a_witness_against_the_rest(ram: Path, backup: Path) -> None:
    """Everything rolled back but the key: the round is not closed again."""
    Path(f"{backup}.key").write_bytes(Path(f"{ram / 'store'}.key").read_bytes())
    with pytest.raises(StoreBehindError):
        Store.open(backup)


def test_the_key_of_a_released_round_is_destroyed_before_the_round_is_visible(ram: Path) -> None:
    seen = []
    with new_store(ram / "store", counting()) as store:
        real = store._parts.releases.publish

        def publishing(round_: int, answers: dict[str, bytes]) -> str:
            record = key_of(ram / "store").read()
            seen.append((round_, record.round, record.tree.round))
            return real(round_, answers)

        store._parts.releases.publish = publishing  # type: ignore[assignment, method-assign]
        store.close_through(3)
        with pytest.raises(KeyDestroyedError):
            key_of(ram / "store").read().tree.round_key(2)
    assert seen == [(1, 1, 1), (2, 2, 2), (3, 3, 3)]


def test_restore_asks_what_was_released_and_goes_on_only_if_nothing_newer_was(
    backup: Path,
) -> None:
    place = Place(backup, key_of(backup))
    assert examine(place, last_round=2).reason == ""
    assert "round 3 was released" in examine(place, last_round=3).reason
    assert "nobody knows" in examine(place, last_round=None).reason
    with pytest.raises(StoreBehindError):
        restore_as_is(place, last_round=3)
    assert restore_as_is(place, last_round=2).how == "as_is"


def test_two_stores_of_one_root_share_no_noise(ram: Path) -> None:
    """The key tree is rooted in (root secret, store id): a restored root under a new id is new."""
    one = KeyTree.from_root(bytes(32), b"first", 6)
    two = KeyTree.from_root(bytes(32), b"second", 6)
    counter = Counter(horizon=6, budget=PureDP("1/10"))
    noise = [[values_of(counter.release(r, 0, tree)) for r in range(1, 7)] for tree in (one, two)]
    assert noise[0] != noise[1]


def test_twin_a_key_that_does_not_evolve_publishes_an_exact_difference(
    ram: Path, backup: Path
) -> None:
    """What would happen without the witnesses: the noise cancels."""
    with Store.open(backup) as store:  # nobody told this copy that round 3 was released
        ingest(store, [delete("id1", 3), delete("id2", 3), delete("id3", 3)])
        again = store.close_round()
    with Store.open(ram / "store") as store:
        first = pure(store.releases[0]).release(3, {b"": 9}, store.key.tree)
    assert values_of(first)[0] - values_of(again["lines"])[0] == 3
