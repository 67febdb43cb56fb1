"""The pseudo-random function behind every draw: one AES-256 block per coordinate and attempt.

Promise: the block of (key, coordinate, attempt, extension) depends on nothing else: not on the
batch it is computed in, nor on order, process, thread or machine. Knows no law and no data; a
label is seen only as the bytes that its release would print.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol, Self

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from retrodp._check import whole
from retrodp.errors import PlanError, UsageError

COORDINATE_BITS = 96
COUNTERS = 1 << 16  # values of the attempt and of the extension counter
CHUNK = 1 << 14  # blocks whose buffers stay in the processor's cache

Words = NDArray[np.uint64]


def collision_bound(labels: int) -> Fraction:
    """Most that the probability of any two of `labels` distinct labels sharing a block can be.

    Two bins that share a block share their noise, and their exact difference is published; so
    this belongs into delta. `n (n - 1) / 2` pairs at `2**-96` each: below `2**-40` at 10**8
    labels (6.4e-14).
    """
    whole(least=0, labels=labels)
    return Fraction(labels * (labels - 1), 2 ** (COORDINATE_BITS + 1))


@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """Positions of draws in the 96-bit block space of a node.

    Attributes:
        lo: Low 64 bits, uint64, shape (n,).
        hi: High 32 bits, uint32, shape (n,).
    """

    lo: Words
    hi: NDArray[np.uint32]

    def __post_init__(self) -> None:
        if self.lo.dtype != np.uint64 or self.hi.dtype != np.uint32:
            raise UsageError("Coordinates need uint64 low and uint32 high parts.")
        if self.lo.ndim != 1 or self.lo.shape != self.hi.shape:
            raise UsageError("Coordinates need two vectors of one length.")

    @classmethod
    def of_indices(cls, indices: int | NDArray[np.integer]) -> Self:
        """Public indices: 0..n-1 for an int n, else each entry (not negative) as it is."""
        if isinstance(indices, int):
            whole(least=0, indices=indices)
            lo = np.arange(indices, dtype=np.uint64)
        else:
            array = np.asarray(indices)
            if array.ndim != 1 or array.dtype.kind not in "iu" or (array < 0).any():
                raise UsageError("Indices must be a vector of whole numbers of at least 0.")
            lo = array.astype(np.uint64)
        return cls(lo, np.zeros(len(lo), dtype=np.uint32))

    @classmethod
    def of_labels(cls, labels: Sequence[bytes], key: bytes) -> Self:
        """Keyed 96-bit hashes of canonical label encodings, in order; see `collision_bound`.

        Args:
            labels: Canonical, unambiguous encodings; equal labels get equal coordinates.
            key: 32 bytes that persist to the horizon, one per release.
        """
        if len(key) != 32:
            raise PlanError(f"The key of label hashes must have 32 bytes, got {len(key)}.")
        start = hashlib.blake2b(key=key, digest_size=COORDINATE_BITS // 8, person=b"retrodp label")
        digests = bytearray()
        for label in labels:
            state = start.copy()  # the key's own block is compressed once
            state.update(label)
            digests += state.digest()
        words = np.frombuffer(bytes(digests), dtype="<u4").reshape(-1, 3).astype(np.uint32)
        lo = words[:, 0].astype(np.uint64) | (words[:, 1].astype(np.uint64) << np.uint64(32))
        return cls(lo, words[:, 2].copy())

    def __len__(self) -> int:
        return len(self.lo)

    def take(self, which: NDArray[np.intp] | slice) -> Self:
        """The coordinates at `which`, in its order."""
        return type(self)(self.lo[which], self.hi[which])


class Blocks(Protocol):
    """What samplers need of a pseudo-random function; `BlockPRF` is the real one."""

    def blocks(self, where: Coordinates, attempt: int = 0, extension: int = 0) -> Words:
        """Two independent uniform words a coordinate, uint64, shape (n, 2)."""
        ...


@dataclass(frozen=True, slots=True)
class BlockPRF:
    """AES-256 as a pseudo-random function on blocks of 128 bits.

    The block is, in little-endian order: 64 bits `lo`, 16 bits extension, 16 bits attempt, 32 bits
    `hi`. Being a permutation, it never repeats a block; over q blocks of one key that differs from
    a random function by at most `q**2 / 2**129`.

    Attributes:
        key: 32 bytes, one per node; never shown.
    """

    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.key) != 32:
            raise PlanError(f"A block key must have 32 bytes, got {len(self.key)}.")

    def blocks(self, where: Coordinates, attempt: int = 0, extension: int = 0) -> Words:
        """Two words a coordinate.

        Args:
            where: n coordinates.
            attempt: Counts rejected proposals of the same draw, 0..65535.
            extension: Counts further blocks of the same attempt, 0..65535.

        Returns:
            uint64, shape (n, 2).

        Cost: about 5 microseconds, then some 5 nanoseconds a block on hardware AES.
        """
        if not (0 <= attempt < COUNTERS and 0 <= extension < COUNTERS):
            raise UsageError(
                f"Counters of a block out of range: attempt {attempt}, extension {extension}.",
                expected=f"0 to {COUNTERS - 1}",
            )
        count = len(where)
        # A new context a call: contexts hold state and are not safe to share between threads.
        # ECB because the blocks are the inputs of a function and no message: none repeats.
        encryptor = Cipher(algorithms.AES(self.key), modes.ECB()).encryptor()  # noqa: S305
        result = np.empty(2 * count + 2, dtype="<u8")  # the cipher asks for 15 spare bytes
        source = np.empty((min(count, CHUNK), 2), dtype="<u8")
        target = result.view(np.uint8).data
        counters = np.uint64(attempt << 16 | extension)
        for start in range(0, count, CHUNK):
            part = slice(start, min(start + CHUNK, count))
            block = source[: part.stop - start]
            block[:, 0] = where.lo[part]
            np.left_shift(where.hi[part], np.uint64(32), out=block[:, 1], dtype=np.uint64)
            block[:, 1] |= counters
            encryptor.update_into(block.reshape(-1).view(np.uint8).data, target[16 * start :])
        return result[: 2 * count].reshape(count, 2).astype(np.uint64, copy=False)
