"""The state of a sketch: canonical bytes, and cells that add up."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from retrodp.clustering.memory import Memory, added, among, counts_of
from retrodp.errors import StoreCorruptError


def test_bytes_come_back_and_are_canonical() -> None:
    state = Memory.first(np.array([[3, 4]]), 7).to_bytes()
    read = Memory.from_bytes(state, 2)
    assert read.to_bytes() == state
    assert (read.mark, read.points.tolist(), read.births.tolist()) == (7, [[3, 4]], [0])


@pytest.mark.parametrize("broken", [b"", b"\x02", b"\x01", b"\x01" + b"\x00" * 71])
def test_other_bytes_are_refused(broken: bytes) -> None:
    with pytest.raises(StoreCorruptError):
        Memory.from_bytes(broken, 2)


def test_bytes_of_other_columns_are_refused() -> None:
    state = Memory.first(np.array([[3, 4]]), 7).to_bytes()
    with pytest.raises(StoreCorruptError):
        Memory.from_bytes(state, 3)
    with pytest.raises(StoreCorruptError):
        Memory.from_bytes(state[:-8], 2)


def test_cells_count_as_a_counter_does() -> None:
    generator, codes, counts = (
        np.random.default_rng(2),
        np.zeros(0, np.int64),
        np.zeros(0, np.int64),
    )
    truth = Counter[int]()
    for _ in range(30):
        more = generator.integers(0, 50, generator.integers(0, 20))
        codes, counts = added(codes, counts, more)
        truth.update(more.tolist())
    assert dict(zip(codes.tolist(), counts.tolist(), strict=True)) == dict(truth)
    assert codes.tolist() == sorted(codes.tolist())
    asked = np.arange(-3, 60)
    assert counts_of(codes, counts, asked).tolist() == [truth[int(one)] for one in asked]
    assert among(asked, codes).tolist() == [int(one) in truth for one in asked]
