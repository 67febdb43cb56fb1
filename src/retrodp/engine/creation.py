"""Making the files of a store, so that a creation cut short anywhere can simply be tried again.

A marker file stands in the directory from before the first file to after the last. While it
stands and `plan.resolved.json` does not, nothing was ever released from what lies there: it is
removed, its key included, and made anew. Without the marker nothing is ever removed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from retrodp.engine.files import TEST_ID, StoreFiles, require_plan
from retrodp.errors import KeyMissingError, StoreCorruptError, UsageError
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from retrodp.store.erase import shred, sync_directory
from retrodp.store.keyfile import KeyKeeper
from retrodp.store.keyrecord import KeyRecord
from retrodp.store.ledger import Ledger
from retrodp.store.lock import NAME as LOCK
from retrodp.store.lock import StoreLock
from retrodp.store.releases import Releases

MARKER = "creating"


def first_horizon(plan: Plan) -> int:
    """Rounds of a plan's first epoch."""
    require_plan(plan)
    return plan.of_epoch(1).stream.horizon


def create_files(
    files: StoreFiles,
    plan: Plan,
    resolved: ResolvedPlan,
    *,
    keeper: KeyKeeper,
    record: KeyRecord,
    fill: Callable[[Ledger], None] = lambda _: None,
) -> None:
    """Make ledger, releases, plan and key of a new store.

    Args:
        files: Of a directory that is new, empty, or left by an interrupted creation.
        plan: As it was written.
        resolved: Stored last: a directory without it is not a store.
        keeper: Where the key is kept.
        record: The key at round 0.
        fill: Puts what the store begins with into its ledger.

    Raises:
        UsageError: There is something else in the directory.
        KeyMismatchError: There is a key already that is not of an interrupted creation.
    """
    require_new(files)
    directory = files.directory
    directory.mkdir(parents=True, exist_ok=True)
    with StoreLock(directory):
        require_new(files)
        if _marker(files).exists():
            _take_back(files, keeper)
        write_durably(_marker(files), b"")
        test = record.store_id.startswith(TEST_ID)
        ledger = Ledger.create(
            files.ledger,
            store_id=record.store_id,
            fingerprint=record.fingerprint,
            ids=plan.stream.ids,
            test=test,
        )
        try:
            fill(ledger)
        finally:
            ledger.close()
        Releases.create(files.releases, store_id=record.store_id, test=test).close()
        write_durably(files.plan, plan.text.encode())
        keeper.create(record)
        fresh = files.resolved.with_name(files.resolved.name + ".new")
        write_durably(fresh, resolved.to_json())
        fresh.replace(files.resolved)
        sync_directory(directory)
        finish_creation(files)


def require_new(files: StoreFiles) -> None:
    """Raise `UsageError` if there is something here that no interrupted creation left."""
    if not files.directory.exists():
        return
    if not files.directory.is_dir():
        raise UsageError(f"{files.directory} is no directory.", do="Name a new directory.")
    names = {path.name for path in files.directory.iterdir()} - {LOCK}
    if names and (MARKER not in names or files.resolved.exists()):
        raise UsageError(
            f"{files.directory} exists and is not empty.",
            do="Name a new directory for the store.",
        )


def finish_creation(files: StoreFiles) -> None:
    """Do the last step of a creation that was cut short before it; any other time, nothing."""
    if files.resolved.is_file():
        _marker(files).unlink(missing_ok=True)


def _take_back(files: StoreFiles, keeper: KeyKeeper) -> None:
    """Remove what an interrupted creation left; the key only if it is that creation's."""
    try:
        ledger = Ledger.open(files.ledger)
        store_id, round_ = ledger.facts.store_id, ledger.facts.round
        ledger.close()
    except StoreCorruptError:
        store_id, round_ = None, 0  # cut short before there was a key
    if keeper.path.is_file() and not keeper.path.stat().st_size:
        keeper.path.unlink()  # cut short between its making and its writing
    try:
        key = keeper.read()
    except KeyMissingError:
        key = None
    same = key is not None and key.store_id == store_id
    if round_ > 0 or (same and key is not None and key.round > 0):
        raise StoreCorruptError(
            f"{files.directory} is a running store without its plan.resolved.json.",
            do="Restore that file from a back-up of this store.",
        )
    if same:
        shred(keeper.path)
    for path in files.directory.iterdir():
        if path.name.startswith((files.ledger.name, files.releases.name, files.resolved.name)):
            shred(path)
    files.plan.unlink(missing_ok=True)
    files.epoch.unlink(missing_ok=True)


def _marker(files: StoreFiles) -> Path:
    return files.directory / MARKER


def write_durably(path: Path, content: bytes) -> None:
    """Write a file durably."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    sync_directory(path.parent)
