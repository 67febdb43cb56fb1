"""Integers that decide what 64 bits and floating point cannot: certified brackets, never a guess.

Promise: each decision is the one that the real numbers give for the whole (unending) bit string of
which a prefix was read; nothing is decided before the prefix and the error bounds allow it.
Knows no key, no array and no data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

WORD_BITS = 64
MOST_WORDS = 16
MOST_BITS = WORD_BITS * MOST_WORDS  # a decision needs more with probability below 2**-1000
CELLS_PER_SCALE = 128  # the scale of a digit, in cells, is at most this
_GUARD_BITS = 64
_TAIL_ERROR = 1 << 48


class UndecidedError(ArithmeticError):
    """`MOST_WORDS` words did not decide a draw: the blocks cannot be pseudo-random."""

    def __init__(self) -> None:
        super().__init__(f"A draw is undecided after {MOST_BITS} bits; its blocks are not random.")


@dataclass(frozen=True, slots=True)
class Exponent:
    """t(x) = linear x + square x^2; the law's weight at +-x, x >= 0, is exp(-t(x)).

    Attributes:
        linear: 1 / b of a discrete Laplace law, else 0.
        square: 1 / (2 s^2) of a discrete Gaussian law, else 0.
    """

    linear: Fraction
    square: Fraction

    def increase(self, base: int, step: int) -> Fraction:
        """t(base + step) - t(base)."""
        return step * (self.linear + self.square * (2 * base + step))

    def stretched(self, cell: int) -> Exponent:
        """The exponent as a function of the number of cells, each `cell` steps wide."""
        return Exponent(self.linear * cell, self.square * cell * cell)

    def digit_bits(self) -> int:
        """Least b such that the scale is at most `CELLS_PER_SCALE` cells of 2**b steps."""
        bits = 0
        most = CELLS_PER_SCALE
        while max(self.linear * most, self.square * 2 * most * most) < 1:
            bits += 1
            most *= 2
        return bits


def exp_below(exponent: Fraction, bits: int) -> int:
    """L with L <= 2**bits * exp(-exponent) < L + 2, for exponent >= 0 and bits <= 2**11.

    Proof. r = exponent / 2**h < 2**-8, h <= 20, is kept as an integer over 2**F rounded down. A
    Taylor term is at most 4 units off (rounding of r, of the product, of the quotient), there are
    at most F / 8 + 2 <= 300, and the first omitted one is below 5 units: the sum is within 2**12.
    Each of the h squarings of a number of at most 1 doubles the error and adds 1: it stays below
    2**(h + 13) units, which is 2**-19 in units of 2**-bits since F = bits + h + 32.
    """
    if exponent == 0:
        return 1 << bits
    if exponent >= bits:
        return 0  # exp(-bits) < 2**-bits
    top, bottom = exponent.numerator, exponent.denominator
    halvings = max(0, top.bit_length() - bottom.bit_length() + 9)
    places = bits + halvings + 32
    reduced = (top << places) // (bottom << halvings)
    total = term = 1 << places
    order = 0
    while term:
        order += 1
        term = (term * reduced >> places) // order
        total += -term if order % 2 else term
    for _ in range(halvings):
        total = total * total >> places
    return max(0, total - (1 << (halvings + 13))) >> (halvings + 32)


@dataclass(frozen=True, slots=True)
class DigitLaw:
    """P(digit = i) proportional to exp(-t(i)), i >= 0, doubled for i >= 1 if `folded`.

    Folded, the digit is the magnitude of a two-sided draw.

    Attributes:
        exponent: t as a function of the digit, with a scale of at most `CELLS_PER_SCALE`.
        folded: Whether the two signs of a digit are counted together.
    """

    exponent: Exponent
    folded: bool

    def tails(self, bits: int) -> tuple[int, ...]:
        """Lower bounds n[h] of the unnormalised weight of digits >= h, over 2**(bits + 64).

        The true weight is less than n[h] + 2**48, for h >= len(n) with n[h] read as 0, so the
        survival function P(digit >= h) lies in [n[h] / (n[0] + 2**48), (n[h] + 2**48) / n[0]].

        Proof. Everything is rounded down, so each is a lower bound. With w[i+1] = w[i] q[i],
        q[i+1] = q[i] p, p and q[0] within 2 units and each product within one unit of its factors'
        errors (all at most 1), q[i] is within 3 i + 2 and w[i] within 2 (i + 1)^2 units; if the
        exponent is linear, p = 1 exactly and w[i] is within 3 i. The loop ends at i <= 2**17
        (linear) or 2**13 (square) as the scale is at most 128 and bits <= 1024 + 64, so sums are
        within 2**37 or 2**42 doubled once, and what follows the end is below (error + 1) units
        times 1 / (1 - q) <= 1 + 128**2, which is below 2**43.
        """
        places = bits + _GUARD_BITS
        ratio = exp_below(self.exponent.linear + self.exponent.square, places)
        shrink = exp_below(2 * self.exponent.square, places)
        weights = [1 << places]
        while weights[-1]:
            weights.append(weights[-1] * ratio >> places)
            ratio = ratio * shrink >> places
        tails: list[int] = []
        tail = 0
        for weight in reversed(weights[1:]):
            tail += 2 * weight if self.folded else weight
            tails.append(tail)
        tails.append(tail + weights[0])
        return tuple(reversed(tails))

    def survivals(self) -> list[int]:
        """floor(2**64 P(digit >= h)) for h = 1, 2, ... up to the first that is 0.

        No floor is ambiguous: it would take a survival within 2**-190 of a multiple of 2**-64,
        and then more bits are taken.
        """
        bits = 3 * WORD_BITS
        while True:
            tails = self.tails(bits)
            least, most = tails[0], tails[0] + _TAIL_ERROR
            floors: list[int] = []
            for tail in tails[1:]:
                floor = (tail << WORD_BITS) // most
                if floor != ((tail + _TAIL_ERROR) << WORD_BITS) // least:
                    break
                floors.append(floor)
                if floor == 0:
                    return floors
            bits += WORD_BITS


@lru_cache(maxsize=16)
def _tails(law: DigitLaw, bits: int) -> tuple[int, ...]:
    return law.tails(bits)


def decide_digit(law: DigitLaw, words: Iterator[int]) -> int:
    """The digit h with P(digit >= h + 1) <= U < P(digit >= h), U = 0.(words in binary).

    Reads as few words as decide it.

    Raises:
        UndecidedError: `MOST_WORDS` words were not enough.
    """
    prefix = 0
    for bits in range(WORD_BITS, MOST_BITS + 1, WORD_BITS):
        prefix = prefix << WORD_BITS | next(words)
        tails = _tails(law, bits)
        above, below = (prefix + 1) * (tails[0] + _TAIL_ERROR), prefix * tails[0]
        digit, end = 0, len(tails)  # U < P(>= digit) is certain, U < P(>= end) is not
        while end - digit > 1:
            middle = (digit + end) // 2
            if above <= tails[middle] << bits:
                digit = middle
            else:
                end = middle
        next_tail = tails[end] if end < len(tails) else 0
        if below >= (next_tail + _TAIL_ERROR) << bits:
            return digit
    raise UndecidedError


def decide_below_exp(exponent: Fraction, prefix: int, bits: int, words: Iterator[int]) -> bool:
    """Whether A < exp(-exponent), A = 0.(prefix of `bits` bits, then words, in binary).

    Reads as few words as decide it.

    Raises:
        UndecidedError: `MOST_WORDS - 1` words were not enough.
    """
    for _ in range(MOST_WORDS):
        bound = exp_below(exponent, bits + _GUARD_BITS)
        if (prefix + 1) << _GUARD_BITS <= bound:
            return True
        if prefix << _GUARD_BITS >= bound + 2:
            return False
        prefix = prefix << WORD_BITS | next(words)
        bits += WORD_BITS
    raise UndecidedError
