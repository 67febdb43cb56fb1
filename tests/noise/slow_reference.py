"""Slow exact references for the samplers, and blocks that tests can choose.

Written from the definition of the draw alone: real bit strings, closed forms and theta functions in
1,300-bit arithmetic of mpmath. Shares no code with the package but the `Coordinates` it is asked by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import mpmath
import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from retrodp.noise.prf import Coordinates

PLACES = 1300
ONE = 1 << 64
Words = Sequence[int]
Streams = tuple[Words, Words]  # first and second words, extension by extension
Law = tuple[str, Fraction]


@dataclass
class ChosenBlocks:
    """Blocks given word by word: streams[coordinate][attempt], filled up with `filler`."""

    streams: Mapping[int, Sequence[Streams]]
    filler: int = 0
    asked: set[tuple[int, int, int]] = field(default_factory=set)

    def word(self, coordinate: int, attempt: int, extension: int, column: int) -> int:
        attempts = self.streams.get(coordinate, ())
        words = attempts[attempt][column] if attempt < len(attempts) else ()
        return words[extension] if extension < len(words) else self.filler

    def blocks(
        self,
        where: Coordinates,
        attempt: int = 0,
        extension: int = 0,
        *,
        out: NDArray[np.uint64] | None = None,  # noqa: ARG002
    ) -> NDArray[np.uint64]:
        places = [int(lo) for lo in where.lo]
        self.asked |= {(place, attempt, extension) for place in places}
        rows = [[self.word(p, attempt, extension, column) for column in (0, 1)] for p in places]
        return np.array(rows, dtype=np.uint64).reshape(-1, 2)


def aes_word(key: bytes, place: tuple[int, int], counters: tuple[int, int], column: int) -> int:
    """One word of the block of (lo, hi), (attempt, extension), straight from the cipher."""
    (lo, hi), (attempt, extension) = place, counters
    block = lo.to_bytes(8, "little") + extension.to_bytes(2, "little")
    block += attempt.to_bytes(2, "little") + hi.to_bytes(4, "little")
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return int.from_bytes(encryptor.update(block)[8 * column : 8 * column + 8], "little")


def label_place(key: bytes, label: bytes) -> tuple[int, int]:
    """(lo, hi) of a label: the end of the cipher block chain over length, label and zeros."""
    code = len(label).to_bytes(4, "little") + label
    code += bytes(-len(code) % 16)
    encryptor = Cipher(algorithms.AES(key), modes.CBC(bytes(16))).encryptor()
    end = encryptor.update(code)[-16:]
    return int.from_bytes(end[:8], "little"), int.from_bytes(end[12:], "little")


def cell_bits(law: Law) -> int:
    """b: the scale is at most 128 cells of 2**b steps."""
    kind, number = law
    bits = 0
    while number > (128 * 2**bits if kind == "laplace" else (128 * 2**bits) ** 2):
        bits += 1
    return bits


def real(number: Fraction) -> mpmath.mpf:
    return mpmath.mpf(number.numerator) / number.denominator


def exponent(law: Law, magnitude: int) -> Fraction:
    kind, number = law
    return magnitude / number if kind == "laplace" else Fraction(magnitude**2) / (2 * number)


@lru_cache(maxsize=4096)
def survival(law: Law, digit: int) -> mpmath.mpf:
    """P(digit >= h), to about 1,290 bits, absolute."""
    kind, number = law
    bits = cell_bits(law)
    with mpmath.workprec(PLACES):
        if digit == 0:
            return mpmath.mpf(1)
        if kind == "laplace":
            power = mpmath.exp(-real(exponent(law, digit << bits)))
            return power if bits else 2 * power / (1 + mpmath.exp(-real(1 / number)))
        cells = number / 4**bits
        tails = gaussian_tails(cells)
        tail = tails[min(digit, len(tails) - 1)]
        theta = gaussian_total(cells)
        return tail / ((1 + theta) / 2) if bits else 2 * tail / theta


@lru_cache(maxsize=16)
def gaussian_total(variance: Fraction) -> mpmath.mpf:
    """Sum of exp(-k^2 / (2 variance)) over all integers: a theta function."""
    with mpmath.workprec(PLACES):
        return mpmath.jtheta(3, 0, mpmath.exp(-real(1 / (2 * variance))))


@lru_cache(maxsize=16)
def gaussian_tails(variance: Fraction) -> list[mpmath.mpf]:
    """Sums of exp(-i^2 / (2 variance)) over i >= h, for h = 0, 1, ..."""
    with mpmath.workprec(PLACES):
        end = int(mpmath.sqrt(2 * (PLACES + 20) * mpmath.log(2) * real(variance))) + 2
        rate = real(1 / (2 * variance))
        tails = [mpmath.mpf(0)]
        for digit in reversed(range(end)):
            tails.append(tails[-1] + mpmath.exp(-rate * digit**2))
    return tails[::-1]


def bit_string(words: Words) -> int:
    number = 0
    for word in words:
        number = number << 64 | word
    return number


def below(words: Words, bound: mpmath.mpf) -> bool:
    """Whether every number that begins with these words lies below a real; never a guess."""
    with mpmath.workprec(PLACES):
        unit = mpmath.ldexp(1, -64 * len(words))
        gap = bound - bit_string(words) * unit
        assert gap > unit or gap < -(mpmath.mpf(2) ** -1250), "the words do not decide"
        return bool(gap > unit)


def slow_draw(law: Law, streams_of: Callable[[int], Streams]) -> int:
    """The draw that the definition gives for 16-word streams of each attempt."""
    bits = cell_bits(law)
    attempt = 0
    while True:
        first, second = streams_of(attempt)
        digit = slow_digit(law, first)
        negative = second[0] >> 63
        if bits == 0:
            return -digit if negative else digit
        low = second[0] >> (63 - bits) & ((1 << bits) - 1)
        # What sign and low digit leave of the second words is the acceptance uniform.
        places = 64 * len(second) - bits - 1
        rest = bit_string(second) & ((1 << places) - 1)
        magnitude = (digit << bits) + low
        drop = exponent(law, magnitude) - exponent(law, digit << bits)
        with mpmath.workprec(PLACES):
            accepted = drop == 0 or mpmath.ldexp(rest, -places) < mpmath.exp(-real(drop))
        if accepted and not (magnitude == 0 and negative):
            return -magnitude if negative else magnitude
        attempt += 1


def slow_digit(law: Law, words: Words) -> int:
    low, high = 0, 1
    while below(words, survival(law, high)):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if below(words, survival(law, middle)):
            low = middle
        else:
            high = middle
    return low


def words_of(number: mpmath.mpf, count: int = 16) -> list[int]:
    """The first words of a real in [0, 1)."""
    with mpmath.workprec(PLACES):
        integer = int(mpmath.floor(mpmath.ldexp(number, 64 * count)))
    return [integer >> 64 * (count - 1 - index) & (ONE - 1) for index in range(count)]


def beside(words: Words, depth: int, step: int) -> list[int]:
    """Words that agree for `depth` words and then differ by `step`, carrying nothing."""
    assert 0 <= words[depth] + step < ONE
    return [*words[:depth], words[depth] + step, *([0x5A5A << 40] * (15 - depth))]
