"""A file that appears whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import IO

from retrodp.errors import DiskFullError, RetrodpError, UsageError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def whole_file(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that takes its place, synced, only when the block ends well.

    A link is followed; a pipe or a device, which cannot be replaced, is written to directly.

    Raises:
        UsageError: If the path cannot be written.
        DiskFullError: If the disk is full; a file that was there is as it was.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise UsageError(f"{path} is a directory.", do="Name a file.")
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as handle:
                yield handle
        else:
            yield from _replaced(target)
    except OSError as error:
        raise _refused(error, path) from error


def _replaced(target: Path) -> Iterator[IO[bytes]]:
    partial, descriptor = _beside(target)
    try:
        with os.fdopen(descriptor, "wb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    directory = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _beside(target: Path) -> tuple[Path, int]:
    """A new file in the same directory, with the mode that the umask gives."""
    for number in count():
        partial = target.with_name(f".{target.name}.{os.getpid()}-{number}.part")
        try:
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
            return partial, os.open(partial, flags, 0o666)
        except FileExistsError:
            continue  # left by an earlier process of this number, or another thread's
    raise AssertionError("unreachable")


def _refused(error: OSError, path: str | Path) -> RetrodpError:
    if error.errno in _FULL:
        return DiskFullError(
            f"{path} could not be written: the disk, a quota or a file size limit is full.",
            do="Nothing was half-written. Make room and run the command again.",
        )
    return UsageError(
        f"{path} could not be written ({error.strerror or type(error).__name__}).",
        do="Name a file in a directory that exists and that you may write to.",
    )
