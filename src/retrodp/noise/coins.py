"""Coins of one use: exact draws, one after the other, from a key that is used for nothing else.

Promise: the draws are a function of the key and of the calls made, each of exactly the law it
states, in whole numbers and fractions; no floating point decides anything. Knows no data.

For mechanisms that run once on what they are given, in a round of their own. Noise that is shared
between rounds or coordinates is drawn by label instead (`retrodp.noise.prf`).
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction

from retrodp import _check
from retrodp.errors import UsageError
from retrodp.noise.exact import MOST_WORDS, WORD_BITS, UndecidedError, decide_below_exp

_BLOCK_WORDS = 8


class Coins:
    """Draws in order; hand it to one mechanism for one round, and then throw it away."""

    def __init__(self, key: bytes) -> None:
        """Start at the first draw.

        Args:
            key: 32 bytes, such as `keys.fresh_key(...)`.
        """
        self._words = _words(key)

    def bits(self, count: int) -> int:
        """`count` uniform bits as a number."""
        _check.whole(least=0, count=count)
        words = -(-count // WORD_BITS)
        drawn = 0
        for word in itertools.islice(self._words, words):
            drawn = drawn << WORD_BITS | word
        return drawn >> (words * WORD_BITS - count)

    def below(self, bound: int) -> int:
        """Uniform on 0..bound-1."""
        if type(bound) is not int or not bound >= 1:
            raise UsageError(f"A draw needs at least one outcome, not {bound}.")
        width = (bound - 1).bit_length()
        while True:
            drawn = self.bits(width)
            if drawn < bound:
                return drawn

    def chance(self, probability: Fraction) -> bool:
        """True with exactly this probability."""
        if not 0 <= _exact("probability", probability) <= 1:
            raise UsageError(f"A probability must lie between 0 and 1, got {probability}.")
        return self.below(probability.denominator) < probability.numerator

    def chance_exp(self, exponent: Fraction) -> bool:
        """True with probability exp(-exponent), exponent at least 0."""
        if not _exact("exponent", exponent) >= 0:
            raise UsageError(f"An exponent must be at least 0, got {exponent}.")
        return decide_below_exp(exponent, 0, 0, self._words)

    def shuffled(self, items: Sequence[int]) -> list[int]:
        """A uniform permutation."""
        left = list(items)
        for place in range(len(left) - 1, 0, -1):
            other = self.below(place + 1)
            left[place], left[other] = left[other], left[place]
        return left

    def laplace(self, scale: Fraction) -> int:
        """P(k) proportional to exp(-|k| / scale) (Canonne, Kamath, Steinke 2020, algorithm 2)."""
        if not _exact("scale", scale) > 0:
            raise UsageError(f"A scale must be above 0, got {scale}.")
        while True:
            part = self.below(scale.numerator)
            if not self.chance_exp(Fraction(part, scale.numerator)):
                continue
            whole = 0
            while self.chance_exp(Fraction(1)):
                whole += 1
            size = (part + scale.numerator * whole) // scale.denominator
            negative = self.below(2) == 1
            if not (negative and size == 0):
                return -size if negative else size

    def gaussian(self, variance: Fraction) -> int:
        """P(k) proportional to exp(-k^2 / (2 variance)) (the same, algorithm 3)."""
        if not _exact("variance", variance) > 0:
            raise UsageError(f"A variance must be above 0, got {variance}.")
        scale = _root_below(variance) + 1
        while True:
            drawn = self.laplace(Fraction(scale))
            if self.chance_exp((abs(drawn) - variance / scale) ** 2 / (2 * variance)):
                return drawn

    def level(self, sizes: Sequence[int], ratio: Fraction) -> int:
        """A place i with probability proportional to ``sizes[i] / ratio^i``, exactly.

        Args:
            sizes: Whole numbers of at least 0, not all 0.
            ratio: At least 1.

        Powers are kept as lower bounds with a bound on their error. A uniform number is read bit by
        bit until it lies between the bounds of one place, whatever the errors; so the law is exact.
        """
        if not any(sizes):
            raise UsageError("A draw needs at least one outcome.")
        if not _exact("ratio", ratio) >= 1:
            raise UsageError(f"A ratio must be at least 1, got {ratio}.")
        prefix, bits = 0, 0
        for _ in range(MOST_WORDS):
            prefix = prefix << WORD_BITS | next(self._words)
            bits += WORD_BITS
            found = _decided(sizes, ratio, prefix, bits)
            if found is not None:
                return found
        raise UndecidedError


def _exact(name: str, value: object) -> Fraction:
    """A fraction or whole number; what a float stands for would be a guess."""
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        raise UsageError(
            f"{name} must be exact, got {value!r}.",
            expected='a whole number or a Fraction, such as Fraction("0.5")',
        )
    return Fraction(value)


def _words(key: bytes) -> Iterator[int]:
    for number in itertools.count():
        block = hashlib.blake2b(
            number.to_bytes(8, "big"), key=key, digest_size=64, person=b"retrodp coins"
        ).digest()
        for place in range(_BLOCK_WORDS):
            yield int.from_bytes(block[8 * place : 8 * place + 8], "big")


def _root_below(value: Fraction) -> int:
    """floor(sqrt(value))."""
    root = int(float(value) ** 0.5)
    while root * root > value:
        root -= 1
    while (root + 1) ** 2 <= value:
        root += 1
    return root


def _decided(sizes: Sequence[int], ratio: Fraction, prefix: int, bits: int) -> int | None:
    """The place in which every number with this prefix falls, or None if it is not yet known.

    With powers rounded down at F places, the power of i is low by less than i units.
    """
    places = bits + 64 + sum(sizes).bit_length()
    power = 1 << places
    least, most = [0], [0]
    for place, size in enumerate(sizes):
        least.append(least[-1] + size * power)
        most.append(most[-1] + size * (power + place))
        power = power * ratio.denominator // ratio.numerator
    # The number times the sum lies in [prefix * least[-1], (prefix + 1) * most[-1]) / 2**bits.
    low, high = prefix * least[-1], (prefix + 1) * most[-1]
    first, last = 0, len(sizes)  # bisect for the last place whose upper start is not above low
    while last - first > 1:
        middle = (first + last) // 2
        if most[middle] << bits <= low:
            first = middle
        else:
            last = middle
    # Places of size 0 begin where the next one does: go on to the last that begins there.
    return first if high <= least[first + 1] << bits else None
