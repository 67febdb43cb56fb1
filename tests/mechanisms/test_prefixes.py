"""Interior points by prefixes: exact laws on a tiny domain, success on a huge one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product

import pytest

from retrodp.mechanisms.oneshot.contract import Values
from retrodp.mechanisms.oneshot.prefixes import PrefixInteriorPoint
from retrodp.mechanisms.oneshot.ranks import values_needed
from retrodp.noise.coins import Coins

EPSILON, DELTA = Fraction(12), Fraction(1, 50)  # so large that little noise enumerates it
TINY = PrefixInteriorPoint(epsilon=EPSILON, delta=DELTA, miss=0.9, low=0, high=3, step=Fraction(1))
REACH = 14
Law = dict[int | None, float]


def weighted(scores: Sequence[int]) -> list[float]:
    weights = [float(TINY.ratio) ** score for score in scores]
    return [weight / sum(weights) for weight in weights]


def noise(value: int) -> float:
    rate = math.exp(-1 / float(TINY.scale))
    return (1 - rate) / (1 + rate) * rate ** abs(value)


def prefixes(counts: Counter[int]) -> dict[int | None, float]:
    """Chance of each prefix to be the fullest that is published, the smaller first at a tie."""
    found: dict[int | None, float] = {None: 0.0}
    names = sorted(counts)
    for drawn in product(range(-REACH, REACH + 1), repeat=len(names)):
        noisy = [counts[name] + own for name, own in zip(names, drawn, strict=True)]
        chance = math.prod(map(noise, drawn))
        best = max(noisy, default=0)
        name = names[noisy.index(best)] if names and best >= TINY.threshold else None
        found[name] = found.get(name, 0.0) + chance
    return found


def law_of(values: tuple[int, ...]) -> Law:
    """From the description: every pairing, every length, every published prefix."""
    found: Counter[int | None] = Counter()
    orders = list(permutations(values))
    lengths: Counter[int] = Counter()
    for order in orders:
        agreed = [2 - (a ^ b).bit_length() for a, b in zip(order[::2], order[1::2], strict=False)]
        scores = [
            min(
                sum(own <= z for own in agreed) - 3 * TINY.depth,
                sum(own >= z for own in agreed) - TINY.crowd,
            )
            for z in range(3)
        ]
        for z, chance in enumerate(weighted(scores)):
            lengths[z] += chance / len(orders)  # type: ignore[assignment]
    for z, chance in lengths.items():
        for prefix, share in prefixes(Counter(value >> (2 - z) for value in values)).items():
            if prefix is None:
                found[None] += chance * share  # type: ignore[assignment]
                continue
            free = 2 - z
            first = prefix << free
            points = sorted({first, first + (1 << free >> 1), ((prefix + 1) << free) - 1})
            depths = [min(sum(v <= p for v in values), sum(v >= p for v in values)) for p in points]
            for point, part in zip(points, weighted(depths), strict=True):
                found[point] += chance * share * part  # type: ignore[assignment]
    return dict(found)


def test_a_value_more_or_another_keeps_to_the_declared_guarantee() -> None:
    laws = {
        values: law_of(values)
        for size in range(4)
        for values in combinations_with_replacement(range(4), size)
    }
    worst = 0.0
    for one, first in laws.items():
        for other, second in laws.items():
            kept = sum((Counter(one) & Counter(other)).values())
            if max(len(one), len(other)) - kept <= 1:
                over = sum(
                    max(chance - math.exp(float(EPSILON)) * second.get(answer, 0.0), 0.0)
                    for answer, chance in first.items()
                )
                worst = max(worst, over)
    assert worst <= float(DELTA)


def test_answers_have_the_law_of_the_description() -> None:
    values, draws = (0, 1, 1), 3_000
    coins = Coins(b"prefixes" * 4)
    sample: list[Values] = [(value,) for value in values]
    found = Counter(TINY.answer(sample, coins)[0] for _ in range(draws))
    law = law_of(values)
    for answer, chance in law.items():
        deviation = math.sqrt(draws * max(chance * (1 - chance), 1e-3))
        assert abs(found[answer] - draws * chance) <= 6 * deviation + 1


def huge(digits: int) -> PrefixInteriorPoint:
    return PrefixInteriorPoint(
        epsilon=Fraction(1),
        delta=Fraction(1, 10**9),
        miss=0.05,
        low=0,
        high=2**digits - 1,
        step=Fraction(1),
    )


@pytest.mark.parametrize("digits", [64, 300])
def test_an_interior_point_of_a_huge_domain_is_found(digits: int) -> None:
    mechanism = huge(digits)
    number = mechanism.values_needed
    shapes = {
        "spread": [2**digits * n // number for n in range(number)],
        "crowded": [2 ** (digits - 1) + n for n in range(number)],
        "two heaps": [n % 2 * (2**digits - 1) for n in range(number)],
    }
    failures = {}
    for name, values in shapes.items():
        sample: list[Values] = [(value,) for value in values]
        found = [mechanism.answer(sample, Coins(bytes([n] * 32)))[0] for n in range(12)]
        failures[name] = sum(one is None or not min(values) <= one <= max(values) for one in found)
    assert max(failures.values()) <= 3


def test_prefixes_need_fewer_values_from_some_hundred_digits_on() -> None:
    """At equal privacy for a replacement, where the grid mechanism has half of epsilon."""

    def by_prefixes(digits: int) -> int:
        return huge(digits).values_needed

    def on_the_grid(digits: int) -> int:
        return values_needed(2**digits, epsilon=Fraction(1, 2), miss=0.05)

    assert [by_prefixes(digits) < on_the_grid(digits) for digits in (64, 200, 400)] == [
        False,
        False,
        True,
    ]
