"""The vectorised exact sampler of two-sided laws with weight exp(-t(|k|)), t linear plus square.

Promise: a draw is a function of the unending bit strings U and V of its coordinate and attempts
(the first and second words of its blocks, extension after extension), namely the one that real
arithmetic gives; batch, order and process are no part of it. Knows no key and no data.

The function. A magnitude is m h + l, with a cell of m = 2**b steps such that the scale is at most
128 cells. The digit h inverts its survival function at U. With b = 0 the digit's law is that of the
magnitude and the first bit of V is the sign. Otherwise P(h) is proportional to exp(-t(m h)), the
first bit of V is the sign, its next b bits are l, the rest is a uniform A, and the proposal stands
if A < exp(t(m h) - t(m h + l)) and it is not minus zero; else the next attempt decides. Hence every
k has probability proportional to exp(-t(|k|)), zero included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Self

import numpy as np
from numpy.typing import NDArray

from retrodp.noise.exact import (
    MOST_WORDS,
    DigitLaw,
    Exponent,
    UndecidedError,
    decide_below_exp,
    decide_digit,
)
from retrodp.noise.prf import CHUNK, COUNTERS, Blocks, Coordinates, Words
from retrodp.noise.tables import DigitTable

_NONE = np.empty(0, dtype=np.intp)


@dataclass(frozen=True, slots=True)
class _Piece:
    """The coordinates and attempt whose blocks are read."""

    prf: Blocks
    where: Coordinates
    attempt: int

    def further_words(self, position: np.intp, column: int) -> Iterator[int]:
        """Words of the extensions of one coordinate."""
        where = self.where.take(slice(position, position + 1))
        for extension in range(1, MOST_WORDS):
            yield int(self.prf.blocks(where, self.attempt, extension)[0, column])
        raise UndecidedError


@dataclass(frozen=True, slots=True, eq=False)
class Sampler:
    """Draws of one law.

    Floating point decides a proposal only outside a margin. Proof of the margin: x = t(m h + l) -
    t(m h) < 1, because l < m <= scale / 64 and t(m h) needs h below 755 (linear) or 39 (square)
    scales to be drawn at all. 2 m h + l and l are exact in 53 bits; two rounded coefficients, two
    products and a sum leave x within 2**-50; the float of A is within 2**-53, their sum too, and
    exp(-x) within 2**-50 for any usable exp. All together stays below 2**-48, which is less than
    2**-40; A's unread bits are worth less than 2**(b - 63). Since 1 - x <= exp(-x), A + x below 1
    minus the margin stands without an exponential.

    Attributes:
        exponent: t, exactly.
        digit_bits: b.
        table: Of the digit h.
        margin: Half width of the band in which integers decide.
    """

    exponent: Exponent
    digit_bits: int
    table: DigitTable
    margin: float

    @classmethod
    def of(cls, exponent: Exponent) -> Self:
        """Build its table: some milliseconds; see `sampler` for the cached way."""
        bits = exponent.digit_bits()
        law = DigitLaw(exponent.stretched(1 << bits), folded=bits == 0)
        return cls(exponent, bits, DigitTable.of(law), 2.0**-40 + 2.0 ** (bits - 63))

    def draw(self, prf: Blocks, where: Coordinates) -> NDArray[np.int64]:
        """One draw a coordinate, int64, shape (n,).

        Raises:
            UndecidedError: The blocks cannot be pseudo-random.
        """
        out = np.empty(len(where), dtype=np.int64)
        pending = self._propose(prf, where, 0, out)
        attempt = 0
        while pending.size:
            attempt += 1
            if attempt == COUNTERS:
                raise UndecidedError
            proposals = np.empty(len(pending), dtype=np.int64)
            refused = self._propose(prf, where.take(pending), attempt, proposals)
            out[pending] = proposals
            pending = pending[refused]
        return out

    def _propose(
        self, prf: Blocks, where: Coordinates, attempt: int, out: NDArray[np.int64]
    ) -> NDArray[np.intp]:
        """Write one proposal a coordinate into `out`; return the positions of refused ones."""
        refused: list[NDArray[np.intp]] = []
        for start in range(0, len(where), CHUNK):
            part = slice(start, start + CHUNK)
            piece = _Piece(prf, where.take(part), attempt)
            positions = self._propose_piece(piece, out[part])
            if positions.size:
                refused.append(positions + start)
        return np.concatenate(refused) if refused else _NONE

    def _propose_piece(self, piece: _Piece, out: NDArray[np.int64]) -> NDArray[np.intp]:
        blocks = piece.prf.blocks(piece.where, piece.attempt)
        first, second = np.ascontiguousarray(blocks[:, 0]), np.ascontiguousarray(blocks[:, 1])
        digits, ties = self.table.look_up(first)
        for tie in ties:
            words = chain((int(first[tie]),), piece.further_words(tie, 0))
            digits[tie] = decide_digit(self.table.law, words)
        signs = np.right_shift(second.view(np.int64), 63)  # 0 or -1
        if self.digit_bits == 0:
            refused = _NONE
            np.copyto(out, digits)
        else:
            np.left_shift(digits, self.digit_bits, out=out, dtype=np.int64)
            refused = self._add_low_digit(piece, second, out)
        np.bitwise_xor(out, signs, out=out)
        np.subtract(out, signs, out=out)
        return refused

    def _add_low_digit(
        self, piece: _Piece, words: Words, out: NDArray[np.int64]
    ) -> NDArray[np.intp]:
        """Make magnitudes of the bases in `out`; return the positions of refused ones."""
        low, chance = self._split(words)
        bound = self._increase(out, low)
        np.add(bound, chance, out=bound)
        np.add(out, low, out=out)
        doubtful = np.flatnonzero((bound >= 1 - self.margin) | (out == 0))
        if not doubtful.size:
            return doubtful
        stands = self._stands(piece, doubtful, words[doubtful], out[doubtful])
        return doubtful[~stands]

    def _stands(
        self, piece: _Piece, which: NDArray[np.intp], words: Words, magnitudes: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Whether each of the named proposals is accepted."""
        low, chance = self._split(words)
        bases = magnitudes - low
        gap = np.exp(-self._increase(bases, low)) - chance
        stands: NDArray[np.bool_] = gap > 0
        bits = 63 - self.digit_bits
        for narrow in np.flatnonzero(np.abs(gap) <= self.margin):
            exponent = self.exponent.increase(int(bases[narrow]), int(low[narrow]))
            prefix = int(words[narrow]) & ((1 << bits) - 1)
            further = piece.further_words(which[narrow], 1)
            stands[narrow] = decide_below_exp(exponent, prefix, bits, further)
        minus_zero = (magnitudes == 0) & (words.view(np.int64) < 0)
        stands[minus_zero] = False
        return stands

    def _split(self, words: Words) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The low digit and the read part of A of second words."""
        signed = words.view(np.int64)
        bits = 63 - self.digit_bits
        low = np.right_shift(signed, bits)
        np.bitwise_and(low, (1 << self.digit_bits) - 1, out=low)
        chance = np.bitwise_and(signed, (1 << bits) - 1).astype(np.float64)
        np.multiply(chance, 2.0**-bits, out=chance)
        return low, chance

    def _increase(self, bases: NDArray[np.int64], low: NDArray[np.int64]) -> NDArray[np.float64]:
        """t(base + low) - t(base) in floating point."""
        steps = low.astype(np.float64)
        if self.exponent.square == 0:
            return np.multiply(steps, float(self.exponent.linear), out=steps)
        slopes = bases.astype(np.float64)
        np.multiply(slopes, 2.0, out=slopes)
        np.add(slopes, steps, out=slopes)
        np.multiply(slopes, float(self.exponent.square), out=slopes)
        if self.exponent.linear:
            np.add(slopes, float(self.exponent.linear), out=slopes)
        return np.multiply(slopes, steps, out=slopes)


@lru_cache(maxsize=64)
def sampler(exponent: Exponent) -> Sampler:
    """The sampler of an exponent; its table is a public constant and is kept."""
    return Sampler.of(exponent)
