"""The secret of a statistic that hashes: whether it is there, and the keys that come from it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Self

from retrodp.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Hashed:
    """The part of `contract.Keyed` that statistics share whose one secret is a key.

    Attributes:
        key: Secret of the hashes, 32 bytes; None until `keyed`.
    """

    key: bytes | None = field(default=None, repr=False)

    @property
    def bound(self) -> bool:
        """Whether it has its secret."""
        return self.key is not None

    def keyed(self, key: bytes) -> Self:
        """The same with its secret."""
        return replace(self, key=key)

    @property
    def secret(self) -> bytes:
        """The key; `UsageError` where there is none yet."""
        if self.key is None:
            raise UsageError(
                "A statistic that hashes has no secret yet.",
                do="Bind it: statistic.keyed(key), or engine.compile.keyed(releases, keys).",
            )
        return self.key


def sub_key(key: bytes, *numbers: int) -> bytes:
    """A key of its own for each list of whole numbers of one length."""
    text = b"".join(number.to_bytes(4, "big") for number in numbers)
    return hashlib.blake2b(text, key=key, digest_size=32).digest()
