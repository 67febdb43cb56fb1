"""Pairs of laws on finitely many answers, and what tells them apart, from the definitions alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np


class Pair(NamedTuple):
    """Probabilities of the same answers under two neighbouring streams."""

    one: Sequence[Any]
    other: Sequence[Any]

    @property
    def reversed(self) -> Pair:
        return Pair(self.other, self.one)

    def times(self, more: Pair) -> Pair:
        """Both at once, independently."""
        return Pair(
            [a * b for a in self.one for b in more.one],
            [a * b for a in self.other for b in more.other],
        )


def power(pair: Pair, count: int) -> Pair:
    """So many independent rounds."""
    found = pair
    for _ in range(count - 1):
        found = found.times(pair)
    return found


def mixed(pair: Pair, chance: float) -> Pair:
    """The first law with this chance, else the second, beside the second."""
    one = [chance * float(a) + (1 - chance) * float(b) for a, b in zip(*pair, strict=True)]
    return Pair(one, pair.other)


def bernoulli(epsilon: float) -> Pair:
    """Randomised response."""
    win = 1 / (1 + math.exp(-epsilon))
    return Pair((win, 1 - win), (1 - win, win))


def delta(pair: Pair, epsilon: float) -> float:
    """The hockey-stick divergence: sum of what exceeds e^epsilon times the other."""
    one, other = (np.array([float(p) for p in law]) for law in pair)
    return float(np.maximum(one - math.exp(epsilon) * other, 0).sum())


def of_laws(one: Mapping[Any, Fraction], other: Mapping[Any, Fraction]) -> Pair:
    """Two laws by answer."""
    answers = sorted({*one, *other}, key=repr)
    zero = Fraction(0)
    return Pair([one.get(a, zero) for a in answers], [other.get(a, zero) for a in answers])
