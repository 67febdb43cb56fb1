"""Totals of numbered buckets: a coordinate is the bucket's number, four bytes, greatest first."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def stored(sums: Ints) -> dict[bytes, int]:
    """Totals of buckets 0, 1, ..., without those that are zero."""
    (found,) = np.nonzero(sums)
    return named(found, sums[found])


def named(buckets: Ints, sums: Ints) -> dict[bytes, int]:
    """Totals of some buckets, in their order, without those that are zero."""
    names = buckets.astype(">u4").tobytes()
    return {
        names[4 * place : 4 * place + 4]: total
        for place, total in enumerate(sums.tolist())
        if total
    }


def read(totals: Mapping[bytes, int], size: int) -> Ints:
    """The totals as a vector of `size`."""
    sums = np.zeros(size, dtype=np.int64)
    if totals:
        buckets = np.frombuffer(b"".join(totals), ">u4").astype(np.int64)
        sums[buckets] = np.fromiter(totals.values(), np.int64, len(totals))
    return sums
