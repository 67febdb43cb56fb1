"""Stores for tests: made once a plan, copied for every test, taken apart as files."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from retrodp.engine.store import Store
from retrodp.plan.plan import Plan
from retrodp.store.releases import ReleasesReader

ROOT = bytes(range(32))
_MEMORY = Path("/dev/shm")  # a file system, not a file name


@contextmanager
def memory_directory() -> Iterator[Path]:
    """A directory in memory if there is room, else on disk; removed afterwards."""
    usable = _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK)
    roomy = usable and shutil.disk_usage(_MEMORY).free > 1 << 28
    with tempfile.TemporaryDirectory(dir=_MEMORY if roomy else None) as name:
        yield Path(name)


def new_store(path: Path, plan: Plan, *, root: bytes = ROOT) -> Store:
    """A test store as `Store.create_for_tests` makes it, without resolving the plan again."""
    write_files(path, _template(plan.text, root))
    return Store.open(path)


@cache
def _template(text: str, root: bytes) -> dict[str, bytes]:
    with memory_directory() as directory:
        Store.create_for_tests(directory / "store", Plan.loads(text), root=root).close()
        return read_files(directory / "store")


def read_files(path: Path) -> dict[str, bytes]:
    """Every file of a store as it stands, the key beside it included, by name without the path."""
    beside = [file for file in path.parent.iterdir() if file.name.startswith(f"{path.name}.")]
    found = {f"/{file.relative_to(path)}": file for file in path.rglob("*") if file.is_file()}
    found |= {file.name.removeprefix(path.name): file for file in beside}
    return {name: file.read_bytes() for name, file in sorted(found.items())}


def write_files(path: Path, files: dict[str, bytes]) -> None:
    """Put files that `read_files` read into a directory of another name."""
    path.mkdir(parents=True)
    for name, content in files.items():
        file = Path(f"{path}{name}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(0o600)


def fingerprints(path: Path) -> dict[str, str]:
    """What must stay the same when a command is refused: all files but the empty lock."""
    return {
        name: hashlib.sha256(content).hexdigest()
        for name, content in read_files(path).items()
        if name != "/lock"
    }


def crashed(store: Store, again: Path) -> Store:
    """The store as it would be found had its process been killed now, opened at another place."""
    files = read_files(store.files.directory)
    abandon(store)
    write_files(again, files)
    return Store.open(again)


def abandon(store: Store) -> None:
    """Let go of the files without ending anything properly."""
    store._parts.close()


def published(path: Path) -> dict[int, dict[str, bytes]]:
    """All published answers by round and release."""
    with ReleasesReader(path / "releases.sqlite") as reader:
        return {round_: reader.answers(round_) for round_ in reader.rounds()}
