"""The coin of an arrival is its own: it hears of no other arrival."""

from __future__ import annotations

import numpy as np
import pytest

from retrodp.clustering.coins import coins, require_copies
from retrodp.errors import UsageError
from retrodp.noise.key import KeyTree

KEYS = KeyTree.from_root(b"c" * 32, b"s" * 16, 4)
MANY = [b"id %d" % number for number in range(5000)]


def of(
    identities: list[bytes], *, block: int = 1, phase: int = 0, release: str = "r"
) -> list[float]:
    found = coins(identities, release=release, block=block, phase=phase, keys=KEYS)
    return [float(one) for one in found]


def test_one_arrival_more_moves_no_other_coin() -> None:
    """Attack: coins by position, or drawn one after the other."""
    whole = of(MANY)
    assert of(MANY[:100] + MANY[101:]) == whole[:100] + whole[101:]
    assert of(MANY[::-1]) == whole[::-1]


def test_a_copy_less_takes_one_coin_away_and_no_other() -> None:
    three, two = of([b"x", b"y", b"x", b"x"]), of([b"x", b"y", b"x"])
    assert len(set(three)) == 4
    assert three[:3] == two
    assert of([b"x", b"y"]) == two[:2]


def test_copies_are_told_apart_from_identities_that_look_like_them() -> None:
    found = of([b"x", b"x", b"x" + (1).to_bytes(8, "big")])
    assert len(set(found)) == 3


def test_other_blocks_phases_and_releases_have_other_coins() -> None:
    kinds = [of([b"x"]), of([b"x"], block=2), of([b"x"], phase=1), of([b"x"], release="q")]
    assert len({one for (one,) in kinds}) == 4


def test_coins_are_fair() -> None:
    """Kolmogorov's distance of 5,000 uniform numbers exceeds 3.3 / sqrt(n) once in 10^9."""
    found = np.sort(of(MANY))
    steps = np.arange(1, len(found) + 1) / len(found)
    assert 0 <= found[0] <= found[-1] < 1
    distance = max(np.abs(steps - found).max(), np.abs(steps - 1 / len(found) - found).max())
    assert distance < 3.3 / np.sqrt(len(found))
    assert 3.3 / np.sqrt(len(found)) < np.abs(steps - found**1.3).max()  # a bent coin is noticed


def test_no_arrival_has_no_coin() -> None:
    assert of([]) == []


def test_copies_of_a_point_are_equal_points() -> None:
    points = np.array([[1, 2], [3, 4], [1, 2]])
    require_copies(points, [b"x", b"y", b"x"])
    with pytest.raises(UsageError, match="Points of one identity differ"):
        require_copies(points, [b"x", b"x", b"y"])
    with pytest.raises(UsageError, match="Every point needs an identity"):
        require_copies(points, [b"x", b"y"])
