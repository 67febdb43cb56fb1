"""Exact laws of a sampling compiler's answers at tiny sizes, by enumeration of all coins.

Written from the description of the compiler, not from its code: every subset, every order of ranks,
every answer of the mechanism in every round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, permutations, product
from typing import Any

Law = dict[Any, Fraction]
Live = Sequence[str]
OneShotLaw = Callable[[Sequence[str]], Law]
EXTRA = "x"


def noisy_parity(ratio: Fraction) -> OneShotLaw:
    """One bit: whether the number of records called x is odd, told with odds `ratio`.

    Adding or removing any x turns it round, so it attains the declared epsilon; replacing an x by
    another record does too.
    """

    def law(sample: Sequence[str]) -> Law:
        right = sum(own[0] == EXTRA for own in sample) % 2
        return {right: ratio / (1 + ratio), 1 - right: 1 / (1 + ratio)}

    return law


def noisy_majority(ratio: Fraction) -> OneShotLaw:
    """A level from 0 to 4, `2 + (x's less others)` cut off; its odds are ratio per step.

    Adding a record is one step, replacing one is two: the group bound is attained.
    """

    def law(sample: Sequence[str]) -> Law:
        number = sum(own[0] == EXTRA for own in sample)
        centre = min(max(2 + number - (len(sample) - number), 0), 4)
        weights = {0: ratio**centre, 1: Fraction(1)}  # the log odds move by one step of epsilon
        total = sum(weights.values())
        return {answer: weight / total for answer, weight in weights.items()}

    return law


def poisson(live: Live, rate: Fraction) -> Iterator[tuple[Fraction, tuple[str, ...]]]:
    for chosen in product((False, True), repeat=len(live)):
        kept = tuple(own for own, taken in zip(live, chosen, strict=True) if taken)
        yield rate ** len(kept) * (1 - rate) ** (len(live) - len(kept)), kept


def fixed(live: Live, size: int) -> Iterator[tuple[Fraction, tuple[str, ...]]]:
    chosen = list(combinations(live, min(size, len(live))))
    for own in chosen:
        yield Fraction(1, len(chosen)), own


def answered(samples: Iterable[tuple[Fraction, tuple[str, ...]]], mechanism: OneShotLaw) -> Law:
    """Law of one answer."""
    found: Counter[Any] = Counter()
    for chance, sample in samples:
        for answer, probability in mechanism(sample).items():
            found[answer] += chance * probability  # type: ignore[assignment]
    return dict(found)


def joint(laws: Sequence[Law]) -> Law:
    """Law of independent answers together."""
    found: Law = {}
    for answers in product(*(law.items() for law in laws)):
        chance = Fraction(1)
        for _, probability in answers:
            chance *= probability
        key = tuple(answer for answer, _ in answers)
        found[key] = found.get(key, Fraction(0)) + chance
    return found


def poisson_transcript(rounds: Sequence[Live], mechanism: OneShotLaw, rate: Fraction) -> Law:
    """Law of all answers of rounds with these live records."""
    return joint([answered(poisson(live, rate), mechanism) for live in rounds])


def fixed_transcript(rounds: Sequence[Live], mechanism: OneShotLaw, size: int) -> Law:
    return joint([answered(fixed(live, size), mechanism) for live in rounds])


def persistent_transcript(rounds: Sequence[Live], mechanism: OneShotLaw, size: int) -> Law:
    """One order of all records that are ever live; in each round the first `size` that are."""
    everyone = sorted({own for live in rounds for own in live})
    orders = list(permutations(everyone))
    found: Law = {}
    for order in orders:
        place = {own: number for number, own in enumerate(order)}
        laws = [mechanism(sorted(live, key=place.__getitem__)[:size]) for live in rounds]
        for key, chance in joint(laws).items():
            found[key] = found.get(key, Fraction(0)) + chance / len(orders)
    return found
