"""The key is for its owner alone, evolves as a whole, and never goes back."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from retrodp.errors import (
    KeyMismatchError,
    KeyMissingError,
    KeyPermissionsError,
    StoreBehindError,
    StoreCorruptError,
    UsageError,
)
from retrodp.noise.key import KeyTree
from retrodp.store.keyfile import (
    DescriptorLocator,
    EnvironmentLocator,
    FileLocator,
    KeyKeeper,
    PlainKeyFile,
    SealedKeyFile,
    default_key_path,
    key_keeper,
    mark_path,
    parse_locator,
)
from retrodp.store.keyrecord import KeyRecord

SECRET = b"0123456789abcdef0123456789abcdef"
TREE = KeyTree.from_root(bytes(range(32)), b"5e", 10)
NEW = KeyRecord(store_id="5e", fingerprint="f1", round=0, release_sha256=None, tree=TREE)


def closed(round_: int) -> KeyRecord:
    return replace(NEW, round=round_, release_sha256=f"{round_:064x}", tree=TREE.advanced(round_))


def keeper(form: str, path: Path) -> KeyKeeper:
    return PlainKeyFile(path) if form == "plain" else SealedKeyFile(path, SECRET)


@pytest.fixture(params=["plain", "sealed"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> KeyKeeper:
    return keeper(request.param, tmp_path / "shop.key")


def test_a_key_is_read_as_it_was_written(kept: KeyKeeper) -> None:
    kept.create(NEW)
    assert kept.read() == NEW
    for round_ in (1, 2, 10):
        kept.rewrite(closed(round_))
        assert kept.read() == closed(round_)
    gone = replace(closed(10), tree=TREE.destroyed())
    kept.rewrite(gone)
    assert kept.read() == gone


def test_the_document_holds_what_is_documented(tmp_path: Path) -> None:
    path = tmp_path / "shop.key"
    PlainKeyFile(path).create(closed(3))
    document = json.loads(path.read_text())
    assert document["format"] == 1
    assert document["round"] == 3
    assert set(document) == {
        "format",
        "store_id",
        "fingerprint",
        "horizon",
        "round",
        "release_sha256",
        "cover",
        "lasting",
    }


def test_the_owner_alone_can_read_it_whatever_the_umask(kept: KeyKeeper) -> None:
    before = os.umask(0)
    try:
        kept.create(NEW)
        modes = [stat.S_IMODE(kept.path.stat().st_mode)]
        kept.rewrite(closed(1))
        modes.append(stat.S_IMODE(kept.path.stat().st_mode))
    finally:
        os.umask(before)
    assert modes == [0o600, 0o600]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601, 0o666])
def test_a_key_that_others_can_use_is_refused(kept: KeyKeeper, mode: int) -> None:
    kept.create(NEW)
    kept.path.chmod(mode)
    with pytest.raises(KeyPermissionsError, match="chmod 600"):
        kept.read()
    with pytest.raises(KeyPermissionsError):
        kept.rewrite(closed(1))


def test_a_key_is_never_made_over_a_file(kept: KeyKeeper) -> None:
    kept.path.write_bytes(b"something precious")
    with pytest.raises(KeyMismatchError):
        kept.create(NEW)
    assert kept.path.read_bytes() == b"something precious"


def test_a_missing_key_is_missing_and_not_made(kept: KeyKeeper) -> None:
    for attempt in (kept.read, lambda: kept.rewrite(NEW)):
        with pytest.raises(KeyMissingError) as caught:
            attempt()
        assert caught.value.exit_code == 4
    assert not kept.path.exists()


def test_a_directory_is_no_key(kept: KeyKeeper) -> None:
    kept.path.mkdir(mode=0o700)
    with pytest.raises(KeyPermissionsError):
        kept.read()


def test_a_key_where_nothing_can_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyPermissionsError):
        PlainKeyFile(tmp_path / "no such directory" / "k").create(NEW)
    with pytest.raises(KeyPermissionsError):
        SealedKeyFile(Path("/proc/shop.mark"), SECRET).create(NEW)


@pytest.mark.parametrize(
    ("present", "next_"),
    [
        (closed(3), closed(2)),
        (closed(3), NEW),
        (closed(3), replace(closed(3), release_sha256="f" * 64)),
        (replace(closed(3), tree=TREE.destroyed()), closed(4)),
    ],
)
def test_a_key_never_goes_back(kept: KeyKeeper, present: KeyRecord, next_: KeyRecord) -> None:
    kept.create(present)
    with pytest.raises(StoreBehindError):
        kept.rewrite(next_)
    assert kept.read() == present


def test_rewriting_the_same_again_is_harmless(kept: KeyKeeper) -> None:
    kept.create(closed(3))
    kept.rewrite(closed(3))
    assert kept.read() == closed(3)


@pytest.mark.parametrize("changed", [{"store_id": "6f"}, {"fingerprint": "f2"}])
def test_the_key_of_another_store_or_plan_is_refused(
    kept: KeyKeeper, changed: dict[str, str]
) -> None:
    kept.create(NEW)
    found = kept.read()
    found.require(store_id="5e", fingerprint="f1")
    with pytest.raises(KeyMismatchError):
        found.require(**{"store_id": "5e", "fingerprint": "f1"} | changed)
    other = replace(
        closed(1),
        store_id=changed.get("store_id", "5e"),
        fingerprint=changed.get("fingerprint", "f1"),
    )
    with pytest.raises(KeyMismatchError):
        kept.rewrite(other)


def test_the_bytes_before_become_zeros(kept: KeyKeeper) -> None:
    kept.create(NEW)
    with kept.path.open("rb") as before:
        content = before.read()
        kept.rewrite(closed(1))
        before.seek(0)
        assert before.read() == bytes(len(content))
    assert [path.name for path in kept.path.parent.iterdir()] == [kept.path.name]


def test_the_leftover_of_an_interrupted_rewrite_is_removed(kept: KeyKeeper) -> None:
    kept.create(NEW)
    leftover = kept.path.with_name("shop.key.new")
    leftover.write_bytes(b"half")
    with leftover.open("rb") as open_:
        assert kept.read() == NEW
        assert open_.read() == bytes(4)
    assert not leftover.exists()


def test_a_link_to_the_key_stays_a_link(tmp_path: Path) -> None:
    real = PlainKeyFile(tmp_path / "vault")
    real.create(NEW)
    (tmp_path / "link").symlink_to("vault")
    PlainKeyFile(tmp_path / "link").rewrite(closed(1))
    assert (tmp_path / "link").is_symlink()
    assert real.read() == closed(1)


def with_changes(**changes: object) -> bytes:
    return json.dumps(json.loads(NEW.to_bytes()) | changes).encode()


SPOILED = {
    "empty": b"",
    "cut": NEW.to_bytes()[:-40],
    "not text": b"\xff\xfe\x00",
    "unknown field": with_changes(root="00"),
    "missing field": NEW.to_bytes().replace(b'"cover"', b'"lid"'),
    "other format": with_changes(format=2),
    "mark without digest": with_changes(round=1),
    "mark beyond the horizon": with_changes(round=11, release_sha256="00"),
    "mark before the cover": with_changes(round=5, release_sha256="00"),
    "short key": with_changes(cover=[[0, 0, "00"]]),
    "key that is no hexadecimal": with_changes(lasting=TREE.lasting.hex()[:-1] + "x"),
}


@pytest.mark.parametrize("how", SPOILED)
def test_a_spoiled_key_is_refused_without_showing_any_of_it(tmp_path: Path, how: str) -> None:
    path = tmp_path / "shop.key"
    path.write_bytes(SPOILED[how])
    path.chmod(0o600)
    with pytest.raises(StoreCorruptError) as caught:
        PlainKeyFile(path).read()
    secret = TREE.lasting.hex()
    error: BaseException | None = caught.value
    shown = ""
    while error is not None:
        shown += repr(error) + str(error)
        error = error.__context__
    assert secret[:16] not in shown
    assert TREE.cover[0].key.hex()[:16] not in shown


def test_no_repr_shows_a_key(kept: KeyKeeper) -> None:
    kept.create(NEW)
    shown = repr(kept) + repr(kept.read())
    hidden = [TREE.lasting, *(node.key for node in TREE.cover), SECRET]
    assert [key for key in hidden if key.hex() in shown or repr(key) in shown] == []


def test_a_sealed_key_shows_nothing_and_opens_with_its_secret_only(tmp_path: Path) -> None:
    path = tmp_path / "shop.mark"
    sealed = SealedKeyFile(path, SECRET)
    sealed.create(NEW)
    content = path.read_bytes()
    assert b"store_id" not in content
    assert TREE.lasting.hex().encode() not in content
    with pytest.raises(KeyMismatchError):
        SealedKeyFile(path, SECRET[:-1] + b"x").read()
    for position in range(0, len(content), 7):
        path.write_bytes(
            content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]
        )
        with pytest.raises((KeyMismatchError, StoreCorruptError)):
            sealed.read()


def test_every_sealing_has_a_salt_of_its_own(tmp_path: Path) -> None:
    sealed = SealedKeyFile(tmp_path / "shop.mark", SECRET)
    sealed.create(closed(1))
    contents = {sealed.path.read_bytes()}
    for _ in range(3):
        sealed.rewrite(closed(1))
        contents.add(sealed.path.read_bytes())
    assert len(contents) == 4


def test_a_short_secret_is_refused_without_showing_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        SealedKeyFile(tmp_path / "m", b"hunter2")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "locator"),
    [
        ("shop.key", FileLocator(Path("shop.key"))),
        ("./env:X", FileLocator(Path("env:X"))),
        ("/a/fd:3", FileLocator(Path("/a/fd:3"))),
        ("environment", FileLocator(Path("environment"))),
        ("env:RETRODP_KEY", EnvironmentLocator("RETRODP_KEY")),
        ("fd:3", DescriptorLocator(3)),
    ],
)
def test_locators_are_understood(text: str, locator: object) -> None:
    assert parse_locator(text) == locator


@pytest.mark.parametrize("text", ["", "env:", "env:a b", "env:1", "fd:", "fd:x", "fd:-1", "fd:1.0"])
def test_odd_locators_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_locator(text)


def test_keys_stand_beside_the_store_and_not_in_it(tmp_path: Path) -> None:
    store = tmp_path / "shop.store"
    assert default_key_path(store) == tmp_path / "shop.store.key"
    assert mark_path(store) == tmp_path / "shop.store.mark"
    assert key_keeper(FileLocator(Path("k")), store).path == Path("k")
    for locator in (EnvironmentLocator("K"), DescriptorLocator(3)):
        assert key_keeper(locator, store, SECRET).path == mark_path(store)
        with pytest.raises(KeyMissingError):
            key_keeper(locator, store)


def test_an_older_copy_of_the_key_cannot_be_put_back_by_the_program(kept: KeyKeeper) -> None:
    kept.create(closed(2))
    older = kept.path.read_bytes()
    kept.rewrite(closed(3))
    kept.path.write_bytes(older)
    # The file is older now; only the store and the releases can tell, and its rounds show it.
    assert kept.read().round == 2
