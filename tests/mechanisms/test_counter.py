"""A counter says what it was given and cannot be."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from retrodp.errors import UsageError
from retrodp.mechanisms.counter import Counter
from retrodp.mechanisms.histogram import Histogram
from retrodp.noise.key import KeyTree
from retrodp.privacy.budget import zCDP

KEYS = KeyTree.from_root(b"c" * 32, b"s" * 16, 4)
COUNTER = Counter(horizon=4, budget=zCDP(1))


def test_a_number_in_the_place_of_a_budget_is_refused_with_what_a_budget_is() -> None:
    with pytest.raises(UsageError, match=r"budget cannot be of type float.*zCDP\(rho\)"):
        Counter(horizon=4, budget=1.0)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="budget cannot be of type Fraction"):
        Histogram(("a",), horizon=4, budget=Fraction(1))  # type: ignore[arg-type]


@pytest.mark.parametrize("keys", [None, b"secret", KeyTree.generate(4)])
def test_what_gives_no_keys_is_refused_and_not_quoted(keys: object) -> None:
    with pytest.raises(
        UsageError, match=r"keys cannot be of type \w+\. Expected: a key, such as"
    ) as caught:
        COUNTER.release(1, 5, keys)  # type: ignore[arg-type]
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("exact", [None, 5.5, "5512", [5]])
def test_what_is_no_whole_number_is_refused_and_not_quoted(exact: object) -> None:
    with pytest.raises(
        UsageError, match=r"exact cannot be of type \w+\. Expected: a whole"
    ) as caught:
        COUNTER.release(1, exact, KEYS)  # type: ignore[arg-type]
    assert "5" not in caught.value.what


def test_a_whole_number_of_numpy_counts_as_one() -> None:
    assert COUNTER.release(1, np.int64(5), KEYS) == COUNTER.release(1, 5, KEYS)  # type: ignore[arg-type]
