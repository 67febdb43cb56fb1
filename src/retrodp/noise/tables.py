"""Vectorised look-up of digits: 64-bit words in, digits out, ties named.

Promise: a digit that is not named as a tie is the one that any continuation of its word gives.
Knows no key, no sign and no data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from retrodp.noise.exact import DigitLaw
from retrodp.noise.prf import Words

_LEAST_GUIDE_BITS = 8
_MOST_GUIDE_BITS = 16
_OPEN = -1


@dataclass(frozen=True, slots=True, eq=False)
class DigitTable:
    """Inverse survival function of a digit law at 64 bits.

    With T[h] = floor(2**64 P(digit >= h)) and a word u: u < T[h] implies U < P(digit >= h) for
    every U that begins with u, u > T[h] implies the opposite, and u = T[h] is a tie. As the last
    T is 0, the words beyond the table are ties too.

    Attributes:
        law: Of the digit.
        thresholds: T in ascending order, uint64.
        guide: Digit of all words that share their leading bits, int32; -1 where a threshold lies
            among those words.
        shift: Bits of a word that the guide does not look at.
    """

    law: DigitLaw
    thresholds: Words = field(repr=False)
    guide: NDArray[np.int32] = field(repr=False)
    shift: np.uint64

    @classmethod
    def of(cls, law: DigitLaw) -> Self:
        """Build it: some milliseconds."""
        thresholds = np.array(law.survivals()[::-1], dtype=np.uint64)
        wanted = len(thresholds).bit_length() + 5
        guide_bits = min(max(wanted, _LEAST_GUIDE_BITS), _MOST_GUIDE_BITS)
        shift = np.uint64(64 - guide_bits)
        first = np.arange(1 << guide_bits, dtype=np.uint64) << shift
        last = first | ((np.uint64(1) << shift) - np.uint64(1))
        before = np.searchsorted(thresholds, first, side="left")
        through = np.searchsorted(thresholds, last, side="right")
        digits = np.where(before == through, len(thresholds) - before, _OPEN)
        return cls(law, thresholds, digits.astype(np.int32), shift)

    def look_up(
        self, words: Words, cells: NDArray[np.int64], digits: NDArray[np.int32]
    ) -> NDArray[np.intp]:
        """Write the digits of n words; return the positions of ties, whose digits mean nothing.

        Args:
            words: Shape (n,).
            cells: Shape (n,), to work in.
            digits: Shape (n,), for the result.
        """
        np.right_shift(words, self.shift, out=cells.view(np.uint64))
        # The index is in range by construction; "clip" spares take a copy of its output.
        self.guide.take(cells, mode="clip", out=digits)
        open_ = np.flatnonzero(digits == _OPEN)
        if not open_.size:
            return open_
        looked = words[open_]
        at_most = np.searchsorted(self.thresholds, looked, side="right")
        digits[open_] = len(self.thresholds) - at_most
        ties: NDArray[np.intp] = open_[self.thresholds[at_most - 1] == looked]
        return ties
