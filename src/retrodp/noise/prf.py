"""The pseudo-random function behind every draw: one AES-256 block per coordinate and attempt.

Promise: the block of (key, coordinate, attempt, extension) depends on nothing else: not on the
batch it is computed in, nor on order, process, thread or machine. Knows no law and no data; a
label is seen only as the bytes that its release would print.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol, Self

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from retrodp._check import whole
from retrodp.errors import PlanError, UsageError
from retrodp.noise.labels import BLOCK_BYTES, label_words

COORDINATE_BITS = 96
COUNTERS = 1 << 16  # values of the attempt and of the extension counter
CHUNK = 1 << 14  # blocks whose buffers stay in the processor's cache
_POSITION = np.uint64(0xFFFF_FFFF_0000_0000)  # bits of a second word that are no counters

Words = NDArray[np.uint64]


def collision_bound(labels: int) -> Fraction:
    """Most that the probability of any two of `labels` distinct labels sharing a block can be.

    Two bins that share a block share their noise, and their exact difference is published; so
    this belongs into delta. `n (n - 1) / 2` pairs, each at `2**-96` for a random function and at
    most `48 L / 2**128` more for the one of `noise.labels` with q = 2 labels of at most L blocks;
    for labels up to a megabyte, L = 2**16, that is less than a 1024th part more. In all below
    `2**-40` at 10**8 labels (6.4e-14).
    """
    whole(least=0, labels=labels)
    pairs = Fraction(labels * (labels - 1), 2)
    return pairs * Fraction(1025, 1024 * 2**COORDINATE_BITS)


@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """Positions of draws in the 96-bit block space of a node.

    Attributes:
        words: The block of each position with its counters at 0, "<u8", shape (n, 2): the low 64
            bits, and above 32 zeros the high 32 bits.
    """

    words: Words

    def __post_init__(self) -> None:
        if self.words.dtype != np.dtype("<u8") or self.words.ndim != 2 or self.words.shape[1] != 2:
            raise UsageError("Coordinates need two uint64 words each.")
        if (self.words[:, 1] & ~_POSITION).any():
            raise UsageError("Coordinates leave the low 32 bits of their second word free.")

    @classmethod
    def of_indices(cls, indices: int | NDArray[np.integer]) -> Self:
        """Public indices: 0..n-1 for an int n, else each entry (not negative) as it is."""
        if isinstance(indices, int):
            whole(least=0, indices=indices)
            array: NDArray[np.integer] = np.arange(indices, dtype=np.uint64)
        else:
            array = np.asarray(indices)
            if array.ndim != 1 or array.dtype.kind not in "iu" or (array < 0).any():
                raise UsageError("Indices must be a vector of whole numbers of at least 0.")
        words = np.zeros((len(array), 2), dtype="<u8")
        words[:, 0] = array
        return cls(words)

    @classmethod
    def of_labels(cls, labels: Sequence[bytes], key: bytes) -> Self:
        """Keyed 96-bit hashes of canonical label encodings, in order; see `collision_bound`.

        Args:
            labels: Canonical, unambiguous encodings; equal labels get equal coordinates.
            key: 32 bytes that persist to the horizon, one per release.
        """
        if len(key) != 32:
            raise PlanError(f"The key of label hashes must have 32 bytes, got {len(key)}.")
        words = label_words(labels, key)
        words[:, 1] &= _POSITION
        return cls(words)

    @property
    def lo(self) -> Words:
        """Low 64 bits, shape (n,)."""
        return self.words[:, 0]

    @property
    def hi(self) -> NDArray[np.uint32]:
        """High 32 bits, shape (n,)."""
        return (self.words[:, 1] >> np.uint64(32)).astype(np.uint32)

    def __len__(self) -> int:
        return len(self.words)

    def take(self, which: NDArray[np.intp] | slice) -> Self:
        """The coordinates at `which`, in its order."""
        part = object.__new__(type(self))  # what was checked as a whole is not checked again
        object.__setattr__(part, "words", np.ascontiguousarray(self.words[which]))
        return part

    def chunks(self) -> Iterator[tuple[slice, Self]]:
        """Parts of at most `CHUNK` coordinates, and where they lie."""
        if 0 < len(self) <= CHUNK:
            yield slice(0, len(self)), self
            return
        for start in range(0, len(self), CHUNK):
            part = slice(start, min(start + CHUNK, len(self)))
            yield part, self.take(part)


class Blocks(Protocol):
    """What samplers need of a pseudo-random function; `BlockPRF` is the real one."""

    def blocks(
        self, where: Coordinates, attempt: int = 0, extension: int = 0, *, out: Words | None = None
    ) -> Words:
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

    def blocks(
        self, where: Coordinates, attempt: int = 0, extension: int = 0, *, out: Words | None = None
    ) -> Words:
        """Two words a coordinate.

        Args:
            where: n coordinates.
            attempt: Counts rejected proposals of the same draw, 0..65535.
            extension: Counts further blocks of the same attempt, 0..65535.
            out: `room(n)` or more to work in; fresh memory costs more than the cipher.

        Returns:
            uint64, shape (n, 2); a view of `out` if that was given.

        Cost: about 5 microseconds, then some 2 to 5 nanoseconds a block on hardware AES.
        """
        if not (0 <= attempt < COUNTERS and 0 <= extension < COUNTERS):
            raise UsageError(
                f"Counters of a block out of range: attempt {attempt}, extension {extension}.",
                expected=f"0 to {COUNTERS - 1}",
            )
        count = len(where)
        counters = np.uint64(attempt << 16 | extension)
        blocks = where.words
        if counters:
            blocks = blocks.copy()
            blocks[:, 1] |= counters
        # A new context a call: contexts hold state and are not safe to share between threads.
        # ECB because the blocks are the inputs of a function and no message: none repeats.
        encryptor = Cipher(algorithms.AES(self.key), modes.ECB()).encryptor()  # noqa: S305
        words = room(count) if out is None else out
        source = blocks.reshape(-1).view(np.uint8).data
        target = words.view(np.uint8).data
        for start in range(0, len(source), BLOCK_BYTES * CHUNK):
            encryptor.update_into(source[start : start + BLOCK_BYTES * CHUNK], target[start:])
        return words[: 2 * count].reshape(count, 2).astype(np.uint64, copy=False)


def room(count: int) -> Words:
    """Memory for the words of `count` blocks, and the spare bytes that the cipher asks for."""
    return np.empty(2 * count + 2, dtype="<u8")
