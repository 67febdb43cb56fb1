"""Both laws against the slow reference: real blocks, and blocks chosen to be hard."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from retrodp.noise.exact import MOST_WORDS, UndecidedError
from retrodp.noise.gaussian import DiscreteGaussian
from retrodp.noise.laplace import DiscreteLaplace
from retrodp.noise.prf import BlockPRF, Coordinates
from retrodp.noise.sampler import Sampler, sampler
from tests.noise.slow_reference import (
    ONE,
    PLACES,
    ChosenBlocks,
    Law,
    Streams,
    aes_word,
    beside,
    cell_bits,
    exponent,
    real,
    slow_draw,
    survival,
    words_of,
)

KEY = bytes(range(32))
ZEROS, ONES = (0,) * 16, (ONE - 1,) * 16
PLAIN: Streams = (beside([1 << 62] * 16, 0, 0), beside([1 << 61] * 16, 0, 0))

SMALL: list[Law] = [
    ("laplace", Fraction(1, 100)),
    ("laplace", Fraction(3, 10)),
    ("laplace", Fraction(1)),
    ("laplace", Fraction(13, 2)),
    ("laplace", Fraction(128)),
    ("gaussian", Fraction(1, 100)),
    ("gaussian", Fraction(1, 4)),
    ("gaussian", Fraction(1)),
    ("gaussian", Fraction(61, 3)),
    ("gaussian", Fraction(128**2)),
]
LARGE: list[Law] = [
    ("laplace", Fraction(257, 2)),
    ("laplace", Fraction(10**4)),
    ("laplace", Fraction(2**40)),
    ("gaussian", Fraction(128**2) + Fraction(1, 7)),
    ("gaussian", Fraction(10**9)),
    ("gaussian", Fraction(2**80)),
]


def law_of(law: Law) -> DiscreteLaplace | DiscreteGaussian:
    kind, number = law
    match kind:
        case "laplace":
            return DiscreteLaplace(scale=number)
        case _:
            return DiscreteGaussian(variance=number)


def drawn(law: Law, *attempts: Streams) -> int:
    """The fast draw of one coordinate whose attempts are chosen."""
    blocks = ChosenBlocks({0: [*attempts, PLAIN]})
    return int(law_of(law).draw(blocks, Coordinates.of_indices(1))[0])


def expected(law: Law, *attempts: Streams) -> int:
    """The same from the slow reference."""
    return slow_draw(law, lambda attempt: [*attempts, PLAIN][attempt])


def real_streams(coordinate: int, attempt: int) -> Streams:
    """Words of the real cipher, taken without the package."""
    return (
        [aes_word(KEY, (coordinate, 0), (attempt, e), 0) for e in range(16)],
        [aes_word(KEY, (coordinate, 0), (attempt, e), 1) for e in range(16)],
    )


@pytest.mark.parametrize("law", SMALL + LARGE, ids=str)
def test_draws_from_real_blocks_equal_the_slow_reference(law: Law) -> None:
    count = 60
    fast = law_of(law).draw(BlockPRF(KEY), Coordinates.of_indices(count))
    slow = [
        slow_draw(law, lambda attempt, place=place: real_streams(place, attempt))  # type: ignore[misc]
        for place in range(count)
    ]
    assert fast.dtype == np.int64
    assert fast.tolist() == slow


def refused_places(law: Law, count: int) -> list[int]:
    """Coordinates of the real cipher that need a second attempt."""
    seen = ChosenBlocks({})
    real_prf = BlockPRF(KEY)

    class Spy:
        def blocks(
            self,
            where: Coordinates,
            attempt: int = 0,
            extension: int = 0,
            *,
            out: NDArray[np.uint64] | None = None,  # noqa: ARG002
        ) -> NDArray[np.uint64]:
            if attempt:
                seen.asked |= {(int(lo), attempt, extension) for lo in where.lo}
            return real_prf.blocks(where, attempt, extension)

    law_of(law).draw(Spy(), Coordinates.of_indices(count))
    return sorted({place for place, _, _ in seen.asked})


@pytest.mark.parametrize("law", LARGE, ids=str)
def test_draws_that_were_refused_first_equal_the_slow_reference(law: Law) -> None:
    places = refused_places(law, 20_000)[:25]
    assert len(places) == 25
    fast = law_of(law).draw(BlockPRF(KEY), Coordinates.of_indices(np.array(places)))
    slow = [
        slow_draw(law, lambda attempt, place=place: real_streams(place, attempt))  # type: ignore[misc]
        for place in places
    ]
    assert fast.tolist() == slow


def threshold_cases(law: Law) -> list[int]:
    """Digits whose survival is a positive number of 64 bits, and some far beyond."""
    digits = [1, 2, 3, 7, 50, 140, 300, 900]
    return [digit for digit in digits if survival(law, digit) > mpmath.mpf(2) ** -900]


@pytest.mark.parametrize("depth", [0, 1, 2, 5, 14])
@pytest.mark.parametrize("law", SMALL + LARGE, ids=str)
def test_near_ties_at_table_thresholds_give_the_exact_digit(law: Law, depth: int) -> None:
    """U agrees with P(digit >= h) for `depth` words and then lies one unit to either side."""
    second = [1 << 62, *[1 << 62] * 15] if cell_bits(law) == 0 else [0] * 16
    results, answers, known = [], [], []
    for digit in threshold_cases(law):
        words = words_of(survival(law, digit))
        if depth == 0 and words[0] == 0:
            continue  # nothing lies below the first word
        for step, side in ((-1, digit), (1, digit - 1)):
            if not 0 <= words[depth] + step < ONE:
                continue
            streams = (beside(words, depth, step), second)
            results.append(drawn(law, streams))
            answers.append(expected(law, streams))
            if survival(law, digit) > mpmath.mpf(2) ** (20 - 64 * (depth + 1)):
                known.append(results[-1] == side << cell_bits(law))
    assert results == answers
    assert all(known)
    assert results or law[1] <= Fraction(1, 100)


@pytest.mark.parametrize("law", [*SMALL[1:5], *SMALL[6:], *LARGE], ids=str)
def test_a_word_equal_to_a_threshold_is_decided_by_what_follows(law: Law) -> None:
    """The first word is floor(2**64 P(digit >= 1)) itself; the rest is all zeros or all ones."""
    first = words_of(survival(law, 1))[0]
    second = [0] * 16
    streams = [((first, *rest), second) for rest in ([0] * 14 + [1], [ONE - 1] * 15)]
    results = [drawn(law, stream) for stream in streams]
    assert results == [expected(law, stream) for stream in streams]
    assert results == [1 << cell_bits(law), 0]


@pytest.mark.parametrize("zeros", [1, 2, 7])
@pytest.mark.parametrize("law", SMALL + LARGE, ids=str)
def test_far_tails_are_exact(law: Law, zeros: int) -> None:
    """A run of zero words reaches digits beyond every table."""
    first = [0] * zeros + [0x0123456789ABCDEF] * (16 - zeros)
    streams = (first, [1 << 63 if cell_bits(law) == 0 else 0] * 16)
    result = drawn(law, streams)
    assert result == expected(law, streams)
    assert abs(result) <= law_of(law).max_magnitude


@pytest.mark.parametrize("law", SMALL + LARGE, ids=str)
def test_words_of_all_ones_give_the_least_digit(law: Law) -> None:
    streams = (ONES, [0] * 16)
    assert drawn(law, streams) == expected(law, streams) == 0


@pytest.mark.parametrize("law", [law for law in SMALL if law[1] >= 1], ids=str)
def test_the_largest_decidable_draw_is_within_the_stated_magnitude(law: Law) -> None:
    streams = ([0] * 15 + [1 << 20], [ONE - 1] * 16)
    result = drawn(law, streams)
    assert result == expected(law, streams)
    assert -law_of(law).max_magnitude <= result < -law_of(law).max_magnitude * 0.96 + 2


@pytest.mark.parametrize("law", [SMALL[0], SMALL[3], SMALL[7], LARGE[5]], ids=str)
def test_endless_zeros_are_no_random_blocks(law: Law) -> None:
    with pytest.raises(UndecidedError, match="not random"):
        drawn(law, (ZEROS, ZEROS))


def acceptance_chance(law: Law, low: int) -> mpmath.mpf:
    """Of digit 1 and this low digit, in units of the bits that the second word has left."""
    base = 1 << cell_bits(law)
    with mpmath.workprec(PLACES):
        drop = exponent(law, base + low) - exponent(law, base)
        return mpmath.ldexp(mpmath.exp(-real(drop)), 63 - cell_bits(law))


def acceptable(law: Law, low: int) -> bool:
    """Whether a uniform of those bits lies above the chance at all."""
    return bool(acceptance_chance(law, low) < (1 << (63 - cell_bits(law))) - 2)


def acceptance_words(law: Law, low: int, sign: int, depth: int, step: int) -> list[int]:
    """Second words whose uniform agrees with the acceptance chance, then differs by `step`."""
    bits = cell_bits(law)
    with mpmath.workprec(PLACES):
        chance = acceptance_chance(law, low)
        whole = int(mpmath.floor(chance))
        further = words_of(chance - whole)
    if depth == 0:
        further, whole = [0x5A5A << 40] * 16, whole + step
    else:
        further = beside(further, depth - 1, step)
    return [sign << 63 | low << (63 - bits) | whole, *further[:15]]


def digit_one(law: Law) -> list[int]:
    """First words that give digit 1 without a tie."""
    with mpmath.workprec(PLACES):
        return words_of((survival(law, 1) + survival(law, 2)) / 2)


@pytest.mark.parametrize("depth", [0, 1, 2, 6])
@pytest.mark.parametrize("law", LARGE, ids=str)
def test_near_ties_of_the_acceptance_are_exact(law: Law, depth: int) -> None:
    cell = 1 << cell_bits(law)
    lows = [low for low in sorted({1, cell // 2, cell - 1}) if depth or acceptable(law, low)]
    cases = [(low, sign, step) for low in lows for sign in (0, 1) for step in (-1, 1)]
    streams = [
        (digit_one(law), acceptance_words(law, low, sign, depth, step)) for low, sign, step in cases
    ]
    results = [drawn(law, stream) for stream in streams]
    fallback = expected(law, PLAIN)
    assert results == [expected(law, stream) for stream in streams]
    assert results == [
        (1 - 2 * sign) * (cell + low) if step == -1 else fallback for low, sign, step in cases
    ]
    assert len(results) >= 4


@pytest.mark.parametrize("law", LARGE, ids=str)
def test_a_low_digit_of_zero_is_always_accepted(law: Law) -> None:
    """Its chance is exactly 1, which no uniform reaches: even all ones are below."""
    cell = cell_bits(law)
    second = [(1 << (63 - cell)) - 1, *[ONE - 1] * 15]
    assert drawn(law, (digit_one(law), second)) == 1 << cell


@pytest.mark.parametrize("law", LARGE, ids=str)
def test_minus_zero_is_refused_and_zero_is_not(law: Law) -> None:
    """With both, zero would be twice as likely as its weight."""
    minus_zero, zero = (ONES, [1 << 63, *[0] * 15]), (ONES, [0] * 16)
    nonzero = (digit_one(law), [1 << 63, *[0] * 15])
    assert drawn(law, minus_zero, nonzero) == -(1 << cell_bits(law))
    assert drawn(law, zero, nonzero) == 0


@pytest.mark.parametrize("law", SMALL, ids=str)
def test_small_laws_fold_the_signs_and_refuse_nothing(law: Law) -> None:
    assert drawn(law, (ONES, ONES)) == 0
    assert sampler(law_of(law).exponent).digit_bits == 0


class AlwaysMinusZero:
    """Digit 0, sign minus, low digit 0: a proposal that is refused for ever."""

    def __init__(self) -> None:
        self.attempts: list[int] = []

    def blocks(
        self,
        where: Coordinates,
        attempt: int = 0,
        extension: int = 0,
        *,
        out: NDArray[np.uint64] | None = None,  # noqa: ARG002
    ) -> NDArray[np.uint64]:
        assert extension == 0
        self.attempts.append(attempt)
        return np.array([[ONE - 1, 1 << 63]] * len(where), dtype=np.uint64)


def test_attempts_end_at_the_counter_s_last_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """The counter's width is shortened here; that blocks refuse to wrap it is `test_prf`'s."""
    monkeypatch.setattr("retrodp.noise.sampler.COUNTERS", 64)
    blocks = AlwaysMinusZero()
    with pytest.raises(UndecidedError):
        DiscreteLaplace(scale=Fraction(1000)).draw(blocks, Coordinates.of_indices(1))
    assert blocks.attempts == list(range(64))


def test_extensions_stay_within_their_counter() -> None:
    blocks = ChosenBlocks({}, filler=0)
    with pytest.raises(UndecidedError):
        DiscreteLaplace(scale=Fraction(1)).draw(blocks, Coordinates.of_indices(1))
    assert max(extension for _, _, extension in blocks.asked) == MOST_WORDS - 1


@pytest.mark.parametrize("law", [SMALL[2], LARGE[1], LARGE[4]], ids=str)
def test_only_ties_ask_for_more_blocks(law: Law) -> None:
    """Of several coordinates only the tied one is extended, and the others keep their draws."""
    tied = (beside(words_of(survival(law, 1)), 2, -1), [0] * 16)
    alone = drawn(law, PLAIN)
    blocks = ChosenBlocks({0: [PLAIN], 1: [tied], 2: [PLAIN]})
    result = law_of(law).draw(blocks, Coordinates.of_indices(3))
    assert result.tolist() == [alone, expected(law, tied), alone]
    assert {place for place, _, extension in blocks.asked if extension} == {1}
    assert max(extension for *_, extension in blocks.asked) == 2


def test_a_wrong_digit_law_is_noticed() -> None:
    """Twin: a sampler for a scale off by one part in a million fails at the thresholds."""
    law: Law = ("laplace", Fraction(13, 2))
    wrong = Sampler.of(DiscreteLaplace(scale=law[1] * Fraction(1000001, 1000000)).exponent)
    streams = (beside(words_of(survival(law, 5)), 0, 1), [0] * 16)
    found = int(wrong.draw(ChosenBlocks({0: [streams]}), Coordinates.of_indices(1))[0])
    assert found != expected(law, streams)


@pytest.mark.parametrize("law", SMALL + LARGE, ids=str)
def test_no_coordinates_give_no_draws(law: Law) -> None:
    result = law_of(law).draw(BlockPRF(KEY), Coordinates.of_indices(0))
    assert (result.shape, result.dtype) == ((0,), np.dtype(np.int64))
