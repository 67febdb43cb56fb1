"""Published rounds stay as they are, and whoever reads them needs no right to write."""

from __future__ import annotations

import ast
import hashlib
import os
import sqlite3
from pathlib import Path

import pytest

import retrodp
from retrodp.errors import StoreBehindError, StoreCorruptError, UsageError
from retrodp.store.releases import Releases, ReleasesReader, digest_of_round

ROUND = {"lines": b"\x00answer", "by_country": b"", "é": b"x" * 10_000}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "releases.sqlite"


def test_what_is_published_is_read(path: Path) -> None:
    releases = Releases.create(path, store_id="5e", test=True)
    digest = releases.publish(1, ROUND)
    releases.publish(2, {})
    releases.publish(3, {"lines": b"third"})
    with ReleasesReader(path) as reader:
        assert (reader.store_id, reader.test) == ("5e", True)
        assert (reader.rounds(), reader.last_round) == ([1, 2, 3], 3)
        assert reader.answers(1) == ROUND
        assert reader.answers(2) == reader.answers(4) == {}
        assert (reader.answer(1, "lines"), reader.answer(2, "lines")) == (b"\x00answer", None)
        assert list(reader.series("lines")) == [(1, b"\x00answer"), (3, b"third")]
        assert reader.digest(1) == digest == digest_of_round(1, ROUND)
        assert reader.digest(4) is None
        assert reader.changed_rounds() == []


def test_publishing_again_with_the_same_bytes_does_nothing(path: Path) -> None:
    releases = Releases.create(path, store_id="5e")
    first = releases.publish(1, ROUND)
    before = path.read_bytes()
    assert releases.publish(1, dict(reversed(ROUND.items()))) == first
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "other",
    [{}, {**ROUND, "lines": b"other"}, {**ROUND, "more": b""}, {"lines": b"\x00answer"}],
)
def test_a_round_is_never_published_with_other_bytes(path: Path, other: dict[str, bytes]) -> None:
    releases = Releases.create(path, store_id="5e")
    releases.publish(1, ROUND)
    with pytest.raises(StoreCorruptError):
        releases.publish(1, other)
    with ReleasesReader(path) as reader:
        assert reader.answers(1) == ROUND


@pytest.mark.parametrize("round_", [0, 1, 3])
def test_rounds_are_published_one_after_the_other(path: Path, round_: int) -> None:
    releases = Releases.create(path, store_id="5e")
    if round_ == 1:
        releases.publish(1, ROUND)
        round_ = 3
    with pytest.raises(StoreBehindError):
        releases.publish(round_, ROUND)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE releases SET answer = x'00'",
        "DELETE FROM releases",
        "UPDATE rounds SET sha256 = ''",
        "DELETE FROM rounds WHERE round = 1",
        "DELETE FROM meta",
        "INSERT OR REPLACE INTO releases VALUES (1, 'lines', x'00')",
        "INSERT OR REPLACE INTO rounds VALUES (1, '00')",
        "INSERT OR REPLACE INTO meta VALUES ('test', '0')",
        "INSERT INTO releases VALUES (1, 'new', x'00')",
        "INSERT INTO rounds VALUES (0, '00')",
    ],
)
def test_the_file_itself_refuses_changes(path: Path, statement: str) -> None:
    releases = Releases.create(path, store_id="5e")
    releases.publish(1, ROUND)
    releases.close()
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="append only"):
        connection.execute(statement)
    connection.close()


def test_changed_bytes_are_noticed(path: Path) -> None:
    Releases.create(path, store_id="5e").publish(1, ROUND)
    content = path.read_bytes()
    assert content.count(b"\x00answer") == 1
    path.write_bytes(content.replace(b"\x00answer", b"\x00answex"))
    with ReleasesReader(path) as reader:
        assert reader.changed_rounds() == [1]


def test_the_digest_separates_names_and_answers() -> None:
    digests = {
        digest_of_round(1, {"ab": b"c"}),
        digest_of_round(1, {"a": b"bc"}),
        digest_of_round(2, {"ab": b"c"}),
        digest_of_round(1, {"ab": b"c", "": b""}),
        digest_of_round(1, {"ab": b"", "c": b""}),
        digest_of_round(1, {}),
    }
    assert len(digests) == 6


def test_the_digest_is_the_documented_hash() -> None:
    def number(value: int) -> bytes:
        return value.to_bytes(8, "big")

    told = b"retrodp release 1\n" + number(3) + number(2)
    told += number(1) + b"Z" + number(2) + b"xy" + number(2) + "é".encode() + number(0)
    assert digest_of_round(3, {"é": b"", "Z": b"xy"}) == hashlib.sha256(told).hexdigest()


def test_a_reader_works_while_a_round_is_being_published(path: Path) -> None:
    releases = Releases.create(path, store_id="5e")
    releases.publish(1, ROUND)
    with ReleasesReader(path) as reader:
        with releases._database.transaction():
            releases._database.execute("INSERT INTO releases VALUES (2, 'a', zeroblob(20000000))")
            assert reader.rounds() == [1]
            assert reader.answers(2) == {}
        assert len(reader.answers(2)["a"]) == 20_000_000


def test_a_reader_writes_nothing(path: Path) -> None:
    Releases.create(path, store_id="5e").publish(1, ROUND)
    path.chmod(0o400)
    path.parent.chmod(0o500)
    try:
        with ReleasesReader(path) as reader:
            assert reader.answers(1) == ROUND
            with pytest.raises(StoreCorruptError):
                reader._database.execute("INSERT INTO rounds VALUES (2, '')")
            assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    finally:
        path.parent.chmod(0o700)


def test_a_reader_copes_with_odd_paths(tmp_path: Path) -> None:
    directory = tmp_path / "a b?mode=rwc#%41é"
    directory.mkdir()
    Releases.create(directory / "r.sqlite", store_id="5e").publish(1, ROUND)
    with ReleasesReader(directory / "r.sqlite") as reader:
        assert reader.rounds() == [1]


def test_missing_and_foreign_files_are_refused_and_not_made(tmp_path: Path) -> None:
    missing, foreign = tmp_path / "none", tmp_path / "foreign"
    foreign.write_bytes(b"key,value\n" * 500)
    for open_ in (Releases, ReleasesReader):
        for file in (missing, foreign):
            with pytest.raises(StoreCorruptError):
                open_(file)
    assert not missing.exists()
    with pytest.raises(UsageError):
        Releases.create(foreign, store_id="5e")


def imported(module: str) -> set[str]:
    """Modules of the package that a module imports, directly or not."""
    root = Path(retrodp.__file__).parent
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in seen or not name.startswith("retrodp."):
            continue
        file = root.joinpath(*name.split(".")[1:]).with_suffix(".py")
        if not file.exists():
            file = file.with_suffix("") / "__init__.py"
        if not file.exists():
            continue  # a name inside a module
        seen.add(name)
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                waiting += [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
            elif isinstance(node, ast.Import):
                waiting += [one.name for one in node.names]
    return seen


def test_reading_releases_needs_nothing_that_holds_exact_values() -> None:
    assert imported("retrodp.store.releases") == {
        "retrodp.errors",
        "retrodp.store",
        "retrodp.store.database",
        "retrodp.store.releases",
        "retrodp.store.schema_sql",
    }
    assert "retrodp.store.survivors" in imported("retrodp.store.ledger")


def test_published_files_follow_the_umask(path: Path) -> None:
    before = os.umask(0o027)
    try:
        Releases.create(path, store_id="5e")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640
