"""The key file: what still derives noise, and the mark that a released round cannot be undone.

Promise: the file is readable by its owner alone, is never overwritten by a new key, and is
replaced as a whole or not at all; the bytes of the version before are overwritten with zeros. It
never goes back. Knows no data and no environment: a constant secret arrives resolved.

Two forms. A path holds the JSON itself. A secret from the environment or from a file descriptor
cannot forget, so it derives no noise: it only encrypts the same JSON in `DIR.mark`.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from retrodp.errors import (
    KeyMismatchError,
    KeyMissingError,
    KeyPermissionsError,
    StoreCorruptError,
    UsageError,
)
from retrodp.noise.key import system_bytes
from retrodp.store.erase import named, overwrite, shred, sync_directory
from retrodp.store.keyrecord import KeyRecord

LEAST_SECRET_BYTES = 32
_SALT_BYTES = 32
_MAGIC = b"retrodp mark 1\n"
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FileLocator:
    """The key is the file itself."""

    path: Path


@dataclass(frozen=True, slots=True)
class EnvironmentLocator:
    """The secret is in an environment variable; what it protects is in `DIR.mark`."""

    name: str


@dataclass(frozen=True, slots=True)
class DescriptorLocator:
    """The secret is read from an open descriptor; what it protects is in `DIR.mark`."""

    number: int


KeyLocator = FileLocator | EnvironmentLocator | DescriptorLocator


def parse_locator(text: str) -> KeyLocator:
    """What `--key` means: `env:NAME`, `fd:N`, or else a path (`./env:x` for an odd one)."""
    form, colon, rest = text.partition(":")
    if colon and form == "env":
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", rest):
            raise UsageError("env: needs the name of an environment variable.")
        return EnvironmentLocator(rest)
    if colon and form == "fd":
        if not re.fullmatch(r"[0-9]{1,6}", rest):
            raise UsageError("fd: needs the number of an open file descriptor.")
        return DescriptorLocator(int(rest))
    if not text:
        raise UsageError("--key needs a file, env:NAME or fd:N.")
    return FileLocator(Path(text))


def default_key_path(store: Path) -> Path:
    """`DIR.key`, beside the store and not in it."""
    return store.absolute().with_name(store.absolute().name + ".key")


def mark_path(store: Path) -> Path:
    """`DIR.mark`, where the constant secret of `env:` and `fd:` seals the evolving key."""
    return store.absolute().with_name(store.absolute().name + ".mark")


class KeyKeeper(Protocol):
    """Where the key of a store is kept."""

    @property
    def path(self) -> Path:
        """The file that changes with every round."""

    def create(self, record: KeyRecord) -> None:
        """Write the key of a new store; never over an existing one."""

    def read(self) -> KeyRecord:
        """The key of an existing store; never a new one."""

    def rewrite(self, record: KeyRecord) -> None:
        """Put a later record in place of the present one, durably, as a whole."""


class PlainKeyFile:
    """The key as JSON in a file that only its owner can read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __repr__(self) -> str:
        return f"PlainKeyFile({str(self._path)!r})"

    @property
    def path(self) -> Path:
        """The key file."""
        return self._path

    def create(self, record: KeyRecord) -> None:
        """Write the key of a new store.

        Raises:
            KeyMismatchError: There is a file already; it is left as it is.
        """
        _create(self._path, record.to_bytes())

    def read(self) -> KeyRecord:
        """The key; removes what an interrupted `rewrite` left.

        Raises:
            KeyMissingError: There is no file.
            KeyPermissionsError: Others can read it, or it is not an ordinary file.
        """
        return KeyRecord.from_bytes(_read(self._path))

    def rewrite(self, record: KeyRecord) -> None:
        """Put a later record in place; the old bytes become zeros.

        Raises:
            StoreBehindError: The record is older than the one in place.
            DiskFullError: No room; the one in place stays.
        """
        self.read().require_successor(record)
        _replace(self._path, record.to_bytes())


class SealedKeyFile:
    """The key as JSON, encrypted under a constant secret (AES-256-GCM, HKDF-SHA256)."""

    def __init__(self, path: Path, secret: bytes) -> None:
        if len(secret) < LEAST_SECRET_BYTES:
            raise UsageError(
                f"The secret has {len(secret)} bytes.",
                expected=f"at least {LEAST_SECRET_BYTES} bytes that nobody can guess",
                do="Make one with `openssl rand -hex 32`.",
            )
        self._path = path
        self._secret = secret

    def __repr__(self) -> str:
        return f"SealedKeyFile({str(self._path)!r})"

    @property
    def path(self) -> Path:
        """The mark file."""
        return self._path

    def create(self, record: KeyRecord) -> None:
        """As `PlainKeyFile.create`."""
        _create(self._path, self._seal(record))

    def read(self) -> KeyRecord:
        """As `PlainKeyFile.read`.

        Raises:
            KeyMismatchError: The file was sealed under another secret, or was changed.
        """
        content = _read(self._path)
        body = content.removeprefix(_MAGIC)
        if len(body) == len(content) or len(body) < _SALT_BYTES:
            raise StoreCorruptError(f"{self._path} is not a sealed key.")
        salt, sealed = body[:_SALT_BYTES], body[_SALT_BYTES:]
        try:
            plain = self._cipher(salt).decrypt(bytes(12), sealed, _MAGIC)
        except InvalidTag:
            raise KeyMismatchError(
                f"The secret does not open {self._path}.",
                do="Give the secret that the store was created with.",
            ) from None
        return KeyRecord.from_bytes(plain)

    def rewrite(self, record: KeyRecord) -> None:
        """As `PlainKeyFile.rewrite`."""
        self.read().require_successor(record)
        _replace(self._path, self._seal(record))

    def _seal(self, record: KeyRecord) -> bytes:
        salt = system_bytes(_SALT_BYTES)
        return _MAGIC + salt + self._cipher(salt).encrypt(bytes(12), record.to_bytes(), _MAGIC)

    def _cipher(self, salt: bytes) -> AESGCM:
        # Every salt has a key of its own, so the constant nonce is never used twice.
        kdf = HKDF(algorithm=SHA256(), length=32, salt=salt, info=b"retrodp mark")
        return AESGCM(kdf.derive(self._secret))


def key_keeper(locator: KeyLocator, store: Path, secret: bytes | None = None) -> KeyKeeper:
    """The keeper that a locator means.

    Args:
        locator: From `parse_locator`.
        store: Directory of the store.
        secret: What the environment variable or descriptor holds; None for a file.
    """
    match locator:
        case FileLocator(path):
            return PlainKeyFile(path)
        case EnvironmentLocator() | DescriptorLocator():
            if secret is None:
                raise KeyMissingError("The secret of the key is not set.")
            return SealedKeyFile(mark_path(store), secret)


def _leftover(path: Path) -> Path:
    return path.with_name(path.name + ".new")


def _create(path: Path, content: bytes) -> None:
    with _said(path):
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            raise KeyMismatchError(
                f"{path} exists already and may be the key of another store.",
                do="Name another file with --key; a key is never overwritten.",
            ) from None
        try:
            _write(descriptor, content)
        except BaseException:
            path.unlink()
            raise
        finally:
            os.close(descriptor)
        sync_directory(path.parent)


def _read(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise KeyMissingError(
            f"The key {path} is not there.",
            expected="the key file that was made with the store",
            do="Name it with --key, or restore it; a new key cannot take its place.",
        ) from None
    except PermissionError:
        raise KeyPermissionsError(f"The key {path} cannot be read by this user.") from None
    try:
        _check_permissions(path, os.fstat(descriptor))
        content = os.read(descriptor, _MOST_BYTES)
    finally:
        os.close(descriptor)
    shred(_leftover(path.resolve()))
    return content


def _check_permissions(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise KeyPermissionsError(f"The key {path} is not an ordinary file.")
    if found.st_mode & 0o077:
        raise KeyPermissionsError(
            f"The key {path} has mode {stat.S_IMODE(found.st_mode):04o}: others can use it.",
            expected="mode 0600",
            do=f"Run: chmod 600 {path}",
        )
    if os.geteuid() not in {found.st_uid, 0}:
        raise KeyPermissionsError(f"The key {path} belongs to another user.")


def _replace(path: Path, content: bytes) -> None:
    path = path.resolve()
    fresh = _leftover(path)
    with _said(path):
        old = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            descriptor = os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
            try:
                _write(descriptor, content)
                fresh.replace(path)
            except BaseException:
                shred(fresh)
                raise
            finally:
                os.close(descriptor)
            sync_directory(path.parent)
            overwrite(old)
        finally:
            os.close(old)


def _write(descriptor: int, content: bytes) -> None:
    os.fchmod(descriptor, 0o600)
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.fsync(descriptor)


@contextmanager
def _said(path: Path) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise KeyPermissionsError(
            f"{path} cannot be written, so keys of past rounds could not be destroyed.",
            do="Put the key where this user may write, and name it with --key.",
        ) from error
    except OSError as error:
        if error.errno in {errno.EROFS, errno.EISDIR, errno.ENOTDIR, errno.ENOENT}:
            raise KeyPermissionsError(
                f"{path} cannot be written ({error.strerror}).",
                do="Put the key where this user may write, and name it with --key.",
            ) from error
        raise named(error, "The key") from error
