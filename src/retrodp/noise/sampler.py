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

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple, Self

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
from retrodp.noise.prf import CHUNK, COUNTERS, Blocks, Coordinates, Words, room
from retrodp.noise.tables import DigitTable

_HIGH_HALF = 3 if sys.byteorder == "little" else 2  # of the second word of a block
_NONE = np.empty(0, dtype=np.intp)
Integers = NDArray[np.int64]
Draws = NDArray[np.int64 | np.int32]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Desk:
    """Memory that proposals are worked out in, used again and again by one thread.

    Fresh memory of this size would cost more than the arithmetic on it.

    Attributes:
        words: Room for blocks.
        whole: Three vectors of integers.
        digits: A vector of digits.
        real: Two vectors of floats.
    """

    words: Words
    whole: Integers
    digits: NDArray[np.int32]
    real: Floats

    @classmethod
    def of(cls, count: int) -> Self:
        """For vectors of any length, of which at most `count` entries are worked on at a time."""
        count = min(count, CHUNK)
        return cls(
            room(count),
            np.empty((3, count), dtype=np.int64),
            np.empty(count, dtype=np.int32),
            np.empty((2, count), dtype=np.float64),
        )


class _Piece(NamedTuple):
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
    minus the margin stands without an exponential. The sum is taken in units of A's last read bit,
    2**(b - 63): a power of two changes no rounding.

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

    def draw(self, prf: Blocks, where: Coordinates) -> Integers:
        """One draw a coordinate, int64, shape (n,).

        Raises:
            UndecidedError: The blocks cannot be pseudo-random.
        """
        out = np.empty(len(where), dtype=np.int64)
        self.draw_into(out, prf, where, Desk.of(len(where)))
        return out

    @property
    def small(self) -> bool:
        """Whether draws fit 32 bits: a digit is all of them, and their table is short."""
        return self.digit_bits == 0

    def draw_into(self, out: Draws, prf: Blocks, where: Coordinates, desk: Desk) -> None:
        """The same into `out`, with memory to work in that can be used again.

        Args:
            out: Shape (n,); of 32 bits only if the law is `small`, which is quicker.
            prf: Blocks of the draws.
            where: n coordinates.
            desk: Memory.

        Raises:
            UndecidedError: The blocks cannot be pseudo-random.
        """
        pending = self._propose(prf, where, 0, out, desk)
        attempt = 0
        while pending.size:
            attempt += 1
            if attempt == COUNTERS:
                raise UndecidedError
            proposals = np.empty_like(out, shape=len(pending))
            refused = self._propose(prf, where.take(pending), attempt, proposals, desk)
            out[pending] = proposals
            pending = pending[refused]

    def _propose(
        self, prf: Blocks, where: Coordinates, attempt: int, out: Draws, desk: Desk
    ) -> NDArray[np.intp]:
        """Write one proposal a coordinate into `out`; return the positions of refused ones."""
        refused: list[NDArray[np.intp]] = []
        for part, piece in where.chunks():
            positions = self._propose_piece(_Piece(prf, piece, attempt), out[part], desk)
            if positions.size:
                refused.append(positions + part.start)
        return np.concatenate(refused) if refused else _NONE

    def _propose_piece(self, piece: _Piece, out: Draws, desk: Desk) -> NDArray[np.intp]:
        words = piece.prf.blocks(piece.where, piece.attempt, out=desk.words)
        if _loops.small is not None:
            return self._propose_compiled(piece, words, out, desk)
        count = len(out)
        if out.dtype == np.int32:
            digits = out.view(np.int32)  # the same; for its type
            self._digits(piece, words, digits, desk)
            signs = desk.digits[:count]
            np.right_shift(words.view(np.int32)[:, _HIGH_HALF], 31, out=signs)  # 0 or -1
            np.bitwise_xor(digits, signs, out=digits)
            np.subtract(digits, signs, out=digits)
            return _NONE
        second, scratch = words[:, 1].view(np.int64), desk.whole[0, :count]
        magnitudes, digits = out.view(np.int64), desk.digits[:count]
        self._digits(piece, words, digits, desk)
        refused = _NONE
        if self.digit_bits == 0:
            np.copyto(magnitudes, digits)
        else:
            np.left_shift(digits, self.digit_bits, out=magnitudes, dtype=np.int64)
            refused = self._add_low_digit(piece, second, magnitudes, desk)
        np.right_shift(second, 63, out=scratch)  # the signs: 0 or -1
        np.bitwise_xor(magnitudes, scratch, out=magnitudes)
        np.subtract(magnitudes, scratch, out=magnitudes)
        return refused

    def _digits(self, piece: _Piece, words: Words, digits: NDArray[np.int32], desk: Desk) -> None:
        """Write the digits of a piece."""
        first = words[:, 0]
        for tie in self.table.look_up(first, desk.whole[0, : len(digits)], digits):
            further = chain((int(first[tie]),), piece.further_words(tie, 0))
            digits[tie] = decide_digit(self.table.law, further)

    def _propose_compiled(
        self, piece: _Piece, words: Words, out: Draws, desk: Desk
    ) -> NDArray[np.intp]:
        """The same by compiled loops, which leave the rare rest to integers."""
        assert _loops.small is not None
        assert _loops.large is not None
        open_, doubtful = desk.whole[0, : len(out)], desk.whole[1, : len(out)]
        table = self.table.guide, self.table.shift, self.table.thresholds
        bits = 63 - self.digit_bits
        if self.digit_bits == 0:
            ties, doubts = _loops.small(words, table, out, open_), 0
        else:
            unit = 2.0**bits
            linear, square = float(self.exponent.linear) * unit, float(self.exponent.square) * unit
            law = self.digit_bits, linear, square, (1 - self.margin) * unit
            ties, doubts = _loops.large(words, table, law, out, open_, doubtful)
        unsure = np.concatenate([doubtful[:doubts], open_[:ties]])
        seconds = words[unsure, 1].view(np.int64)
        magnitudes = np.abs(out[unsure]).astype(np.int64)
        for place, tie in enumerate(open_[:ties], doubts):
            further = chain((int(words[tie, 0]),), piece.further_words(tie, 0))
            digit = decide_digit(self.table.law, further)
            low = int(seconds[place]) >> bits & ((1 << self.digit_bits) - 1)
            magnitudes[place] = (digit << self.digit_bits) + low
        signs = seconds >> 63
        out[unsure] = (magnitudes ^ signs) - signs
        if self.digit_bits == 0 or not unsure.size:
            return _NONE
        return unsure[~self._stands(piece, unsure, seconds, magnitudes)]

    def _add_low_digit(
        self, piece: _Piece, words: Integers, out: Integers, desk: Desk
    ) -> NDArray[np.intp]:
        """Make magnitudes of the bases in `out`; return the positions of refused ones."""
        count = len(out)
        low, chance, slopes = (desk.whole[row, :count] for row in range(3))
        bound, real = desk.real[0, :count], desk.real[1, :count]
        bits = 63 - self.digit_bits
        np.right_shift(words, bits, out=low)
        np.bitwise_and(low, (1 << self.digit_bits) - 1, out=low)
        np.bitwise_and(words, (1 << bits) - 1, out=chance)
        np.copyto(bound, low)
        if self.exponent.square == 0:
            np.multiply(bound, float(self.exponent.linear) * 2.0**bits, out=bound)
        else:
            np.left_shift(out, 1, out=slopes)
            np.add(slopes, low, out=slopes)
            np.copyto(real, slopes)
            np.multiply(bound, real, out=bound)
            np.multiply(bound, float(self.exponent.square) * 2.0**bits, out=bound)
        np.copyto(real, chance)
        np.add(bound, real, out=bound)
        np.add(out, low, out=out)
        doubtful = np.flatnonzero((bound >= (1 - self.margin) * 2.0**bits) | (out == 0))
        if not doubtful.size:
            return doubtful
        stands = self._stands(piece, doubtful, words[doubtful], out[doubtful])
        return doubtful[~stands]

    def _stands(
        self, piece: _Piece, which: NDArray[np.intp], words: Integers, magnitudes: Integers
    ) -> NDArray[np.bool_]:
        """Whether each of the named proposals is accepted."""
        bits = 63 - self.digit_bits
        low = words >> bits & ((1 << self.digit_bits) - 1)
        chance = words & ((1 << bits) - 1)
        bases = magnitudes - low
        gap = np.exp(-self._increase(bases, low)) - chance * 2.0**-bits
        stands: NDArray[np.bool_] = gap > 0
        for narrow in np.flatnonzero(np.abs(gap) <= self.margin):
            exponent = self.exponent.increase(int(bases[narrow]), int(low[narrow]))
            further = piece.further_words(which[narrow], 1)
            stands[narrow] = decide_below_exp(exponent, int(chance[narrow]), bits, further)
        stands[(magnitudes == 0) & (words < 0)] = False  # minus zero
        return stands

    def _increase(self, bases: Integers, low: Integers) -> Floats:
        """t(base + low) - t(base) in floating point."""
        steps = low.astype(np.float64)
        if self.exponent.square == 0:
            return steps * float(self.exponent.linear)
        return (2 * bases + low) * steps * float(self.exponent.square)


Loop = Callable[..., Any]


@dataclass(slots=True)
class _Loops:
    """The compiled loops in use, if any; see `noise.compiled`."""

    small: Loop | None = None
    large: Loop | None = None


_loops = _Loops()


def use_loops(small: Loop | None, large: Loop | None) -> None:
    """Draw with compiled loops from now on, or without; `noise.compiled` calls it."""
    _loops.small, _loops.large = small, large


@lru_cache(maxsize=64)
def sampler(exponent: Exponent) -> Sampler:
    """The sampler of an exponent; its table is a public constant and is kept."""
    return Sampler.of(exponent)
