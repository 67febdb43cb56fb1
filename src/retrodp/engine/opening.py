"""The store in a directory: opened, or created where there is none."""

from __future__ import annotations

from pathlib import Path

from retrodp.engine.files import StoreFiles
from retrodp.engine.store import Store
from retrodp.plan.plan import Plan
from retrodp.store.keyfile import KeyKeeper


def is_store(directory: Path) -> bool:
    """Whether there is a store, whole or damaged, in a directory."""
    return StoreFiles(directory).resolved.is_file()


def open_or_create(directory: Path, plan: Plan, *, key: KeyKeeper | None = None) -> Store:
    """The store in a directory, created if there is none."""
    if is_store(directory):
        return Store.open(directory, plan=plan, key=key)
    return Store.create(directory, plan, key=key)
