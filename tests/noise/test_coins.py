"""Coins of one use: exact laws by chi-square, both arms; a function of the key alone.

ALPHA is the chance that a true law is rejected under fresh keys. The false laws differ by a tenth
in a probability or a fifth in a scale, and are missed with probability below 1e-6 at these numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from retrodp.errors import UsageError
from retrodp.noise.coins import Coins

ALPHA = 1e-9
DRAWS = 20_000


def verdict(draw: Callable[[Coins], int], law: Mapping[int, float], draws: int = DRAWS) -> str:
    """Chi-square of the draws against a law; outcomes of less than 5 expected draws together."""
    coins = Coins(bytes(range(32)))
    found = Counter(draw(coins) for _ in range(draws))
    whole = sum(law.values())
    kept = [own for own, chance in law.items() if chance / whole * draws >= 5]
    expected = np.array([law[own] / whole * draws for own in kept])
    observed = np.array([found[own] for own in kept], dtype=float)
    expected = np.append(expected, max(draws - expected.sum(), 1e-9))
    observed = np.append(observed, draws - observed.sum())
    statistic = float(((observed - expected) ** 2 / np.maximum(expected, 1)).sum())
    return "reject" if stats.chi2.sf(statistic, len(kept)) < ALPHA else "accept"


@pytest.mark.parametrize(("off", "said"), [(0.0, "accept"), (0.1, "reject")])
def test_a_chance_is_exact(off: float, said: str) -> None:
    law = {1: 3 / 7 + off, 0: 4 / 7 - off}
    assert verdict(lambda coins: int(coins.chance(Fraction(3, 7))), law) == said


@pytest.mark.parametrize(
    ("exponent", "said"), [(Fraction(2, 3), "accept"), (Fraction(1), "reject")]
)
def test_an_exponential_chance_is_exact(exponent: Fraction, said: str) -> None:
    law = {1: math.exp(-exponent), 0: 1 - math.exp(-exponent)}
    assert verdict(lambda coins: int(coins.chance_exp(Fraction(2, 3))), law) == said


@pytest.mark.parametrize("bound", [1, 2, 7, 2**40 + 1])
def test_a_draw_below_a_bound_is_uniform(bound: int) -> None:
    cells = min(bound, 8)
    law = dict.fromkeys(range(cells), 1 / cells)
    assert verdict(lambda coins: coins.below(bound) * cells // bound, law) == "accept"


@pytest.mark.parametrize(("scale", "said"), [(1.0, "accept"), (1.2, "reject"), (1 / 1.2, "reject")])
@pytest.mark.parametrize("true", [Fraction(3, 4), Fraction(17, 3)])
def test_laplace_draws_have_their_scale(true: Fraction, scale: float, said: str) -> None:
    law = {own: math.exp(-abs(own) / (float(true) * scale)) for own in range(-150, 151)}
    assert verdict(lambda coins: coins.laplace(true), law) == said


@pytest.mark.parametrize(("scale", "said"), [(1.0, "accept"), (1.44, "reject"), (0.7, "reject")])
@pytest.mark.parametrize("true", [Fraction(1, 2), Fraction(19, 2)])
def test_gaussian_draws_have_their_variance(true: Fraction, scale: float, said: str) -> None:
    law = {own: math.exp(-(own**2) / (2 * float(true) * scale)) for own in range(-60, 61)}
    assert verdict(lambda coins: coins.gaussian(true), law) == said


@pytest.mark.parametrize(("base", "said"), [(Fraction(3, 2), "accept"), (Fraction(9, 5), "reject")])
def test_levels_are_drawn_by_size_and_power(base: Fraction, said: str) -> None:
    sizes = [2, 0, 5, 1, 0, 40]
    law = {own: size * float(base) ** -own for own, size in enumerate(sizes)}
    assert verdict(lambda coins: coins.level(sizes, Fraction(3, 2)), law) == said


def test_sizes_far_apart_are_no_matter() -> None:
    sizes = [1, 2**200]
    half = Fraction(2**200)
    assert verdict(lambda coins: coins.level(sizes, half), {0: 0.5, 1: 0.5}) == "accept"


def test_permutations_are_uniform() -> None:
    law = dict.fromkeys(range(6), 1.0)
    orders = sorted({tuple(Coins(bytes([n] * 32)).shuffled([0, 1, 2])) for n in range(60)})
    assert len(orders) == 6
    assert verdict(lambda coins: orders.index(tuple(coins.shuffled([0, 1, 2]))), law) == "accept"


def test_equal_keys_give_equal_coins_and_others_do_not() -> None:
    def some(key: int) -> list[int]:
        coins = Coins(bytes([key] * 32))
        return [coins.below(10**9), coins.laplace(Fraction(40)), coins.bits(200)]

    assert some(1) == some(1)
    assert some(1) != some(2)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda coins: coins.below(0),
        lambda coins: coins.laplace(Fraction(0)),
        lambda coins: coins.gaussian(Fraction(-1)),
        lambda coins: coins.level([0, 0], Fraction(2)),
    ],
)
def test_draws_that_cannot_be_are_refused(wrong: Callable[[Coins], int]) -> None:
    with pytest.raises(UsageError):
        wrong(Coins(bytes(32)))
