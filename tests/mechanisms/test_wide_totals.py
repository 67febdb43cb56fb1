"""Totals in arrays are the dictionary of the same totals, whatever comes and goes."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrodp.mechanisms import wide_totals
from retrodp.mechanisms.histogram import SparseHistogram
from retrodp.mechanisms.wide_totals import WideTotals
from retrodp.noise.key import KeyTree
from retrodp.noise.labels import label_words
from retrodp.privacy.budget import zCDP
from tests.support.uniting import few

LABELS = st.sampled_from([f"{number}".encode() for number in range(12)] + [b"", b"long " * 20])
STEPS = st.lists(st.dictionaries(LABELS, st.integers(-2, 3)), max_size=12)


def added(expected: Counter[bytes], difference: dict[bytes, int]) -> Counter[bytes]:
    expected.update(difference)
    return Counter({label: total for label, total in expected.items() if total})


@pytest.mark.parametrize("bits", [64, 2, 0])
@few(60)
@given(steps=STEPS)
def test_totals_in_arrays_are_those_of_a_dictionary(
    bits: int, steps: list[dict[bytes, int]]
) -> None:
    """Also where nearly all coordinates, or all of them, have the same first word."""

    def coarse(labels: list[bytes], key: bytes) -> np.ndarray:
        words = label_words(labels, key)
        words[:, 0] &= np.uint64((1 << bits) - 1)
        return words

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wide_totals, "label_words", coarse)
        expected: Counter[bytes] = Counter()
        wide = WideTotals({})
        for difference in steps:
            wide.add(difference)
            expected = added(expected, difference)
            assert dict(wide.items()) == dict(expected)
            assert sorted(wide) == sorted(expected)
            assert dict(zip(wide.labels, wide.numbers.tolist(), strict=True)) == dict(expected)
            asked = [*difference, b"nowhere"]
            assert wide.among(asked) == [expected[label] for label in asked]
            assert [wide.get(label, 0) for label in asked] == wide.among(asked)
        assert len(wide) == len(expected)
        assert sorted(wide.values()) == sorted(expected.values())
        assert wide == WideTotals(expected)


def test_a_coordinate_that_left_is_remembered_nowhere() -> None:
    wide = WideTotals({f"label {number}".encode(): 1 for number in range(100)})
    wide.add({f"label {number}".encode(): -1 for number in range(3, 100)})
    assert sorted(wide.labels) == [b"label 0", b"label 1", b"label 2"]
    held = [array for array in vars(wide).values() if isinstance(array, np.ndarray)]
    assert {len(array) for array in held} == {3}
    assert all(array.base is None for array in held)  # nor in an array that it is a part of


@pytest.mark.parametrize("sign", [1, -1])
def test_a_total_that_leaves_64_bits_is_refused(sign: int) -> None:
    wide = WideTotals({b"a": sign * (2**63 - 1), b"b": 5})
    with pytest.raises(OverflowError):
        wide.add({b"a": 2 * sign})
    with pytest.raises(OverflowError):
        WideTotals({b"a": sign * 2**63 + sign})


def test_the_most_and_the_least_total_are_taken() -> None:
    wide = WideTotals({b"a": 2**62, b"b": -(2**62)})
    wide.add({b"a": 2**62 - 1, b"b": -(2**62)})
    assert dict(wide.items()) == {b"a": 2**63 - 1, b"b": -(2**63)}


def test_its_repr_tells_no_label() -> None:
    assert repr(WideTotals({b"somebody": 3})) == "WideTotals(1 coordinates)"


def test_a_release_of_totals_in_arrays_is_that_of_a_dictionary() -> None:
    histogram = SparseHistogram(horizon=8, budget=zCDP(Fraction(1)), delta="1e-6")
    totals = {f"label {number}".encode(): number - 20 for number in range(400) if number != 20}
    keys = KeyTree.from_root(bytes(32), b"wide", 8)
    wide = WideTotals(totals)
    wide.add({b"label 399": -379})
    del totals[b"label 399"]
    for round_ in (1, 5):
        assert histogram.release(round_, wide, keys) == histogram.release(round_, totals, keys)
