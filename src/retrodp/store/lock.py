"""One writer a store: an advisory lock that dies with its process.

Promise: of any number of processes that open a store, one gets it; the others are told at once
who has it. The lock is the kernel's (flock) on `DIR/lock`; a process that is killed lets go of it,
and the file stays behind empty of meaning. A child made by fork shares it until the child ends.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from retrodp.errors import StoreLockedError

NAME = "lock"


class StoreLock:
    """The right to write to a store, held from construction to `release`."""

    def __init__(self, directory: Path) -> None:
        path = directory / NAME
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise StoreLockedError(
                f"Another process ({holder or 'just starting'}) is using the store.",
                expected="one process at a time",
                do="Wait for it to end and run the command again.",
            ) from None
        except BaseException:
            os.close(descriptor)
            raise
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Let the next one in; more than once does no harm."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            # The file stays: removing it would let two processes lock two different files.
            os.ftruncate(descriptor, 0)
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()
