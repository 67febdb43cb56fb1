"""The sampler's loops for a compiler: the same draws, bit for bit, two to four times as fast.

Promise: what a loop decides, the vectors of `sampler` decide alike; what it cannot decide, it names.
Both compare the same words with the same thresholds, and the same floating-point bound with the same
margin, whose proof leaves room for any rounding, fused or not. Knows no key and no data.

The compiler is Numba, which is no dependency: install it and call `enable` once a process. Loading
and compiling take some seconds, so it pays from about 10**8 draws on.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrodp.errors import UsageError
from retrodp.noise import sampler

Words = NDArray[np.uint64]
Integers = NDArray[np.int64]
Table = tuple[NDArray[np.int32], np.uint64, Words]


def enable() -> None:
    """Compile the loops for this process; draws stay what they are.

    Raises:
        UsageError: Numba is not installed.
    """
    try:
        loops = _compiled()
    except ImportError:
        raise UsageError(
            "The compiled sampler needs Numba, which is not installed.",
            do="pip install numba, or draw without it: the draws are the same.",
        ) from None
    sampler.use_loops(*loops)


@cache
def _compiled() -> tuple[sampler.Loop, sampler.Loop]:
    numba: Any = importlib.import_module("numba")
    compiler: Callable[[sampler.Loop], sampler.Loop] = numba.njit(nogil=True)
    return compiler(small), compiler(large)


def disable() -> None:
    """Back to vectors."""
    sampler.use_loops(None, None)


def small(words: Words, table: Table, out: Integers, open_: Integers) -> int:
    """Draws of a law without a low digit.

    Args:
        words: Blocks, shape (n, 2).
        table: Guide, shift and thresholds of `DigitTable`.
        out: Shape (n,), for the draws.
        open_: Shape (n,), for the positions of ties, whose draws mean nothing.

    Returns:
        The number of ties.
    """
    guide, shift, thresholds = table
    ties = 0
    for place in range(len(words)):
        word = words[place, 0]
        digit = np.int64(guide[word >> shift])
        if digit < 0:
            low, high = 0, len(thresholds)
            while low < high:
                middle = (low + high) // 2
                if thresholds[middle] <= word:
                    low = middle + 1
                else:
                    high = middle
            digit = np.int64(len(thresholds) - low)
            if thresholds[low - 1] == word:
                open_[ties] = place
                ties += 1
        sign = np.int64(words[place, 1] >> np.uint64(63))
        out[place] = (digit ^ -sign) + sign
    return ties


def large(
    words: Words,
    table: Table,
    law: tuple[int, float, float, float],
    out: Integers,
    open_: Integers,
    doubtful: Integers,
) -> tuple[int, int]:
    """Proposals of a law with a low digit.

    Args:
        words: Blocks, shape (n, 2).
        table: As for `small`.
        law: Bits of the low digit; the linear and the square part of the exponent, and the bound
            below which a proposal stands, all three in units of the last bit of A.
        out: Shape (n,), for the proposals with their signs.
        open_: As for `small`.
        doubtful: Shape (n,), for the positions of proposals that may not stand, ties not among
            them.

    Returns:
        How many positions are open and doubtful.
    """
    guide, shift, thresholds = table
    bits, linear, square, most = law
    chance_bits = np.uint64(63 - bits)
    low_mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    chance_mask = (np.uint64(1) << chance_bits) - np.uint64(1)
    ties = doubts = 0
    for place in range(len(words)):
        word = words[place, 0]
        digit = np.int64(guide[word >> shift])
        if digit < 0:
            start, end = 0, len(thresholds)
            while start < end:
                middle = (start + end) // 2
                if thresholds[middle] <= word:
                    start = middle + 1
                else:
                    end = middle
            digit = np.int64(len(thresholds) - start)
            if thresholds[start - 1] == word:
                open_[ties] = place
                ties += 1
                continue
        second = words[place, 1]
        low = np.int64((second >> chance_bits) & low_mask)
        base = digit << bits
        step = float(low)
        bound = step * (linear + square * float(2 * base + low)) + float(second & chance_mask)
        magnitude = base + low
        if bound >= most or magnitude == 0:
            doubtful[doubts] = place
            doubts += 1
        sign = np.int64(second >> np.uint64(63))
        out[place] = (magnitude ^ -sign) + sign
    return ties, doubts
