"""Reproducible coins of the audit: every choice is a function of one printed seed.

Promise: the same seed gives the same histories, adversaries and keys on every machine, through the
door that all randomness of this package uses. A seed hides nothing: what an audit draws is never
published.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from retrodp.errors import UsageError
from retrodp.noise.key import KEY_BYTES, KeyTree, Part, encode, system_bytes
from retrodp.noise.prf import BlockPRF, Coordinates

SEED_BYTES = 16
_BATCH = 256  # blocks that single choices are cut from

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Seed:
    """Where all coins and keys of one audit come from.

    Attributes:
        hex: 32 hexadecimal digits; printed, so that the audit can be run again.
    """

    hex: str

    def __post_init__(self) -> None:
        try:
            value = bytes.fromhex(self.hex)
        except ValueError:
            value = b""
        if len(value) != SEED_BYTES:
            raise UsageError(
                f"{self.hex!r} is no seed.",
                expected=f"{2 * SEED_BYTES} hexadecimal digits, as an earlier audit printed them",
                do="Leave --seed out for a fresh one.",
            )

    @classmethod
    def fresh(cls) -> Self:
        """A new seed from the operating system."""
        return cls(system_bytes(SEED_BYTES).hex())

    def keys(self, horizon: int, *label: Part) -> KeyTree:
        """A key tree of its own for every label."""
        root = bytes.fromhex(self.hex).ljust(KEY_BYTES, b"\0")
        return KeyTree.from_root(root, encode("audit", *label), horizon)

    def further(self, *label: Part) -> Seed:
        """A seed of its own for every label."""
        return Seed(self.coins("further", *label).words(2).astype("<u8").tobytes().hex())

    def coins(self, *label: Part) -> Coins:
        """Coins of their own for every label."""
        return Coins(BlockPRF(self.keys(1, *label).lasting_key(release="audit", purpose="coins")))


class Coins:
    """A stream of choices; the same label of the same seed gives the same stream."""

    def __init__(self, prf: BlockPRF) -> None:
        self._prf = prf
        self._used = 0
        self._single = self._singles()

    def __repr__(self) -> str:
        return f"Coins(used={self._used} blocks)"

    def _singles(self) -> Iterator[int]:
        while True:
            yield from self.words(2 * _BATCH).tolist()

    def words(self, count: int) -> NDArray[np.uint64]:
        """Uniform 64-bit words, shape ``(count,)``."""
        blocks = (count + 1) // 2
        where = Coordinates.of_indices(np.arange(self._used, self._used + blocks))
        self._used += blocks
        return self._prf.blocks(where).reshape(-1)[:count]

    def below(self, bound: int) -> int:
        """A whole number from 0 to bound - 1; off from uniform by less than bound / 2**64."""
        return next(self._single) * bound >> 64

    def between(self, least: int, greatest: int) -> int:
        """A whole number from least to greatest."""
        return least + self.below(greatest - least + 1)

    def choice(self, among: Sequence[T]) -> T:
        """One of them."""
        return among[self.below(len(among))]

    def chance(self, one_in: int) -> bool:
        """True once in so many times."""
        return self.below(one_in) == 0

    def uniforms(self, count: int) -> NDArray[np.float64]:
        """Floats in [0, 1) on the grid of 2**-53, shape ``(count,)``."""
        return (self.words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53
