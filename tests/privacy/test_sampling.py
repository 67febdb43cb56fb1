"""What sampling costs, against the enumerated law of all answers; and the paper's bounds."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from retrodp.errors import PlanError
from retrodp.privacy.accountant import delta_of
from retrodp.privacy.loss import PrivacyLoss
from retrodp.privacy.ratio import RatioLoss, odds_above
from retrodp.privacy.sampling import (
    Bound,
    Charge,
    OneShot,
    advanced_bound,
    amplified_bound,
    basic_bound,
    bound_of,
    chance_of_entry,
    fixed_charge,
    gated_bound,
    persistent_bound,
    persistent_charge,
    poisson_charge,
)
from tests.privacy.compiled_laws import (
    fixed_transcript,
    joint,
    noisy_majority,
    noisy_parity,
    persistent_transcript,
    poisson,
    poisson_transcript,
)
from tests.privacy.pairs import delta, of_laws

RATIO = Fraction(8, 5)
EPSILON = Fraction(470_004, 10**6)  # just above its logarithm
ONE = OneShot(epsilon=EPSILON)
EPSILONS = (0.0, 0.02, 0.1, 0.3, 0.8, 1.5)
OTHERS = ("a1", "a2", "x1")
WINDOWS = (1, 2, 4)


def exceeded(charge: Charge, one: object, other: object) -> list[float]:
    """Epsilons at which the enumerated delta, either way, is above what is charged."""
    pair = of_laws(one, other)  # type: ignore[arg-type]
    return [
        epsilon
        for epsilon in EPSILONS
        if max(delta(pair, epsilon), delta(pair.reversed, epsilon))
        > delta_of([charge.loss], epsilon) + float(charge.delta) + 1e-12
    ]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 2), Fraction(1)])
@pytest.mark.parametrize("mechanism", [noisy_parity, noisy_majority])
def test_poisson_samples_lose_no_more_than_is_charged(
    window: int, rate: Fraction, mechanism: object
) -> None:
    one_shot = mechanism(RATIO)  # type: ignore[operator]
    with_ = poisson_transcript([(*OTHERS, "x9")] * window, one_shot, rate)
    without = poisson_transcript([OTHERS] * window, one_shot, rate)
    assert exceeded(poisson_charge(ONE, window, rate=rate), with_, without) == []


@pytest.mark.parametrize("window", WINDOWS)
def test_the_charge_of_poisson_samples_is_attained(window: int) -> None:
    """With nobody else, the mechanism that tells parity loses exactly what is charged."""
    rate = Fraction(1, 10)
    with_ = poisson_transcript([("x9",)] * window, noisy_parity(RATIO), rate)
    without = poisson_transcript([()] * window, noisy_parity(RATIO), rate)
    pair = of_laws(with_, without)
    charge = poisson_charge(ONE, window, rate=rate)
    exact = [max(delta(pair, e), delta(pair.reversed, e)) for e in EPSILONS]
    assert [delta_of([charge.loss], e) for e in EPSILONS] == pytest.approx(
        exact, rel=1e-4, abs=1e-6
    )


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("mechanism", [noisy_parity, noisy_majority])
def test_fixed_samples_lose_no_more_than_is_charged(
    window: int, size: int, mechanism: object
) -> None:
    one_shot = mechanism(RATIO)  # type: ignore[operator]
    with_ = fixed_transcript([(*OTHERS, "x9")] * window, one_shot, size)
    without = fixed_transcript([OTHERS] * window, one_shot, size)
    assert exceeded(fixed_charge(ONE, window, size=size, occupancy=3), with_, without) == []
    assert exceeded(fixed_charge(ONE, window, size=size, occupancy=None), with_, without) == []


@pytest.mark.parametrize("others", [(), ("a1",), ("a1", "a2", "a3")])
def test_without_a_promise_a_fixed_sample_is_charged_in_full(others: tuple[str, ...]) -> None:
    """Also where fewer live than fit: then the record joins for certain."""
    with_ = fixed_transcript([(*others, "x9")] * 2, noisy_majority(RATIO), 2)
    without = fixed_transcript([others] * 2, noisy_majority(RATIO), 2)
    assert exceeded(fixed_charge(ONE, 2, size=2, occupancy=None), with_, without) == []


def test_a_slip_of_a_factor_of_two_is_caught() -> None:
    """A replacement charged as an addition; and half of epsilon."""
    with_ = fixed_transcript([("a1", "a2", "x9")] * 2, noisy_majority(RATIO), 2)
    without = fixed_transcript([("a1", "a2")] * 2, noisy_majority(RATIO), 2)
    slipped = OneShot(epsilon=EPSILON, replace_epsilon=EPSILON)
    assert exceeded(fixed_charge(slipped, 2, size=2, occupancy=2), with_, without) != []
    with_ = poisson_transcript([("x9",)] * 2, noisy_parity(RATIO), Fraction(1, 10))
    without = poisson_transcript([()] * 2, noisy_parity(RATIO), Fraction(1, 10))
    half = OneShot(epsilon=EPSILON / 2)
    assert exceeded(poisson_charge(half, 2, rate=Fraction(1, 10)), with_, without) != []


@pytest.mark.parametrize("coins", ["their own", "shared"])
def test_coins_shared_between_two_releases_are_caught(coins: str) -> None:
    """Two releases of one round: with one sample for both, their losses do not add."""
    rate, one_shot = Fraction(1, 10), noisy_parity(Fraction(7))

    def both(live: tuple[str, ...]) -> dict[object, Fraction]:
        if coins == "their own":
            return poisson_transcript([live] * 2, one_shot, rate)
        found: dict[object, Fraction] = {}
        for chance, sample in poisson(live, rate):
            for key, probability in joint([one_shot(sample)] * 2).items():
                found[key] = found.get(key, Fraction(0)) + chance * probability
        return found

    one = OneShot(epsilon=Fraction(1946, 1000))
    losses: list[PrivacyLoss] = [poisson_charge(one, 1, rate=rate).loss] * 2
    pair = of_laws(both(("x9",)), both(()))
    exact = [max(delta(pair, e), delta(pair.reversed, e)) for e in EPSILONS]
    over = [x > delta_of(losses, e) + 1e-12 for x, e in zip(exact, EPSILONS, strict=True)]
    assert any(over) == (coins == "shared")


Rounds = tuple[list[tuple[str, ...]], range]
PERSISTENT_ROUNDS: dict[str, Rounds] = {
    "nothing else moves": ([("a1", "a2", "x1")] * 3, range(3)),
    "others come and go": ([("a1", "a2", "x1"), ("a2", "x1", "a3"), ("x1", "a3", "a4")], range(3)),
    "only in the middle": (
        [("a1", "a2", "x1"), ("a2", "x1", "a3"), ("x1", "a3", "a4")],
        range(1, 2),
    ),
    # The differing deletion of appendix C: the rank is there, in both, before the difference.
    "deleted late": ([("a1", "a2", "x1", "x9")] + [("a1", "a2", "x1")] * 2, range(1, 3)),
}


@pytest.mark.parametrize("case", PERSISTENT_ROUNDS)
@pytest.mark.parametrize("mechanism", [noisy_parity, noisy_majority])
def test_persistent_ranks_lose_no_more_than_is_charged(case: str, mechanism: object) -> None:
    rounds, differing = PERSISTENT_ROUNDS[case]
    one_shot = mechanism(RATIO)  # type: ignore[operator]
    more = [(*live, "x9") if number in differing else live for number, live in enumerate(rounds)]
    with_ = persistent_transcript(more, one_shot, 1)
    without = persistent_transcript(rounds, one_shot, 1)
    for slack in (Fraction(1, 20), Fraction(2, 5)):
        charge = persistent_charge(ONE, 3, size=1, occupancy=3, rank_slack=slack)
        assert exceeded(charge, with_, without) == []


def test_persistent_ranks_charged_as_if_they_were_fresh_are_caught() -> None:
    one, one_shot = OneShot(epsilon=Fraction(1946, 1000)), noisy_parity(Fraction(7))
    rounds = [("a1", "a2", "a3")] * 3
    with_ = persistent_transcript([(*live, "x9") for live in rounds], one_shot, 1)
    without = persistent_transcript(rounds, one_shot, 1)
    stated = OneShot(epsilon=one.epsilon, replace_epsilon=one.epsilon)  # true of the parity
    pair = of_laws(with_, without)
    fresh = fixed_charge(stated, 3, size=1, occupancy=3).loss
    epsilons = (1.0, 2.0, 3.0, 4.0)
    assert any(delta(pair, e) > delta_of([fresh], e) + 1e-12 for e in epsilons)
    charge = persistent_charge(stated, 3, size=1, occupancy=3, rank_slack=Fraction(1, 5))
    assert all(delta(pair, e) <= delta_of([charge.loss], e) + float(charge.delta) for e in epsilons)


@pytest.mark.parametrize("records", [2, 3])
@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 2)])
def test_several_records_of_one_unit_are_charged_together(records: int, rate: Fraction) -> None:
    def geometric(sample: tuple[str, ...]) -> dict[object, Fraction]:
        """Number of x's plus two-sided geometric noise, cut off: attains the group bound."""
        number, one = sum(own[0] == "x" for own in sample), 1 / RATIO
        law = {y: (1 - one) / (1 + one) * one ** abs(y - number) for y in range(1, records)}
        ends = {0: one**number / (1 + one), records: one ** (records - number) / (1 + one)}
        return law | ends  # type: ignore[return-value]

    extra = tuple(f"x{number}" for number in range(records))
    with_ = poisson_transcript([extra] * 2, geometric, rate)  # type: ignore[arg-type]
    without = poisson_transcript([()] * 2, geometric, rate)  # type: ignore[arg-type]
    assert exceeded(poisson_charge(ONE, 2, rate=rate, records=records), with_, without) == []
    assert exceeded(poisson_charge(ONE, 2, rate=rate), with_, without) != []
    with_ = fixed_transcript([(*OTHERS, *extra)] * 2, noisy_majority(RATIO), 2)
    without = fixed_transcript([OTHERS] * 2, noisy_majority(RATIO), 2)
    charge = fixed_charge(ONE, 2, size=2, occupancy=3, records=records)
    assert exceeded(charge, with_, without) == []


def test_a_mechanism_that_may_fail_is_charged_its_failures() -> None:
    """With probability 1/50 it shows the sample; otherwise it tells parity."""
    failing, rate = Fraction(1, 50), Fraction(1, 4)

    def law(sample: tuple[str, ...]) -> dict[object, Fraction]:
        found: dict[object, Fraction] = {sample: failing}
        for answer, chance in noisy_parity(RATIO)(sample).items():
            found[answer] = chance * (1 - failing)
        return found

    one = OneShot(epsilon=EPSILON, delta=failing)
    with_ = poisson_transcript([("a1", "x9")] * 2, law, rate)  # type: ignore[arg-type]
    without = poisson_transcript([("a1",)] * 2, law, rate)  # type: ignore[arg-type]
    assert exceeded(poisson_charge(one, 2, rate=rate), with_, without) == []
    assert exceeded(poisson_charge(ONE, 2, rate=rate), with_, without) != []


@pytest.mark.parametrize("window", [1, 7, 30])
def test_a_charge_is_never_above_the_bound_of_the_paper(window: int) -> None:
    one = OneShot(epsilon=Fraction(1, 10), delta=Fraction(1, 10**12))
    slack, size, occupancy = 1e-7, 100, 5_000
    paper = advanced_bound(one, window, slack)
    assert bound_of(fixed_charge(one, window, size=size, occupancy=None), paper.delta) <= paper
    assert paper.epsilon > 0
    amplified = amplified_bound(one, window, slack, size=size, occupancy=occupancy)
    tight = bound_of(fixed_charge(one, window, size=size, occupancy=occupancy), amplified.delta)
    assert tight <= amplified < paper
    least = fixed_charge(one, window, size=size, occupancy=None).loss.epsilon
    assert least <= basic_bound(one, window).epsilon * (1 + 1e-9)


def test_persistent_ranks_are_never_charged_above_theorem_c_1() -> None:
    one = OneShot(epsilon=Fraction(1, 200))
    paper = persistent_bound(one, 7, 1e-7, size=50, occupancy=5_000, rank_slack=1e-8)
    charge = persistent_charge(one, 7, size=50, occupancy=5_000, rank_slack=Fraction(1, 10**8))
    assert bound_of(charge, paper.delta).epsilon <= paper.epsilon
    with pytest.raises(PlanError, match="eps_W <= 1"):
        persistent_bound(
            OneShot(epsilon=Fraction(1)), 7, 1e-7, size=50, occupancy=5_000, rank_slack=1e-8
        )


def test_the_paper_s_formulas_are_those_of_the_paper() -> None:
    """Numbers worked out by hand from theorem 5.7 at eps0 = 1/10, delta0 = 1e-9, W = 4."""
    one = OneShot(epsilon=Fraction(1, 10), delta=Fraction(1, 10**9))
    assert basic_bound(one, 4) == pytest.approx((0.8, 8 * math.exp(0.1) * 1e-9), rel=1e-6)
    advanced = 0.2 * math.sqrt(8 * math.log(1e6)) + 0.8 * math.expm1(0.2)
    assert advanced_bound(one, 4, 1e-6) == pytest.approx(
        (advanced, 8 * math.exp(0.1) * 1e-9 + 1e-6), rel=1e-6
    )
    rate = 10 / 101
    round_ = math.log(1 + rate * (math.exp(0.2) - 1))
    assert round_ <= 7 * rate * 0.1
    amplified = amplified_bound(one, 4, 1e-6, size=10, occupancy=100)
    assert amplified.epsilon == pytest.approx(
        round_ * math.sqrt(8 * math.log(1e6)) + 4 * round_ * math.expm1(round_), rel=1e-6
    )
    assert amplified.delta == pytest.approx(8 * rate * math.exp(0.1) * 1e-9 + 1e-6, rel=1e-6)
    assert gated_bound(Bound(1.0, 1e-6), 0.5, 1e-7) == pytest.approx((1.5, 1.1e-6), rel=1e-6)


def test_the_chance_of_entry_is_the_exact_tail() -> None:
    chance = chance_of_entry(3, size=2, occupancy=50, rank_slack=Fraction(1, 1000))
    part = float(chance)
    tail = (1 - part) ** 50 + 50 * part * (1 - part) ** 49
    assert 3 * tail <= 1e-3
    assert 3 * tail == pytest.approx(1e-3, rel=1e-3)
    assert float(chance) < (2 * 2 + 8 * math.log(3 / 1e-3)) / 50  # the paper's, by Chernoff


def test_a_promise_of_everyone_is_no_promise_for_ranks() -> None:
    charge = persistent_charge(ONE, 4, size=3, occupancy=3, rank_slack=Fraction(1, 10**9))
    assert charge.loss.chance == 1
    assert charge == fixed_charge(ONE, 4, size=3, occupancy=None)


def test_a_replacement_that_costs_less_than_two_steps_is_used() -> None:
    stated = OneShot(epsilon=EPSILON, replace_epsilon=EPSILON * Fraction(11, 10))
    charge = fixed_charge(stated, 4, size=2, occupancy=9)
    rate = Fraction(1, 5)
    assert charge.loss.greatest == 1 + rate * (odds_above(EPSILON * Fraction(11, 10)) - 1)
    assert charge.loss.greatest < fixed_charge(ONE, 4, size=2, occupancy=9).loss.greatest


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: poisson_charge(ONE, 0, rate=Fraction(1, 2)),
        lambda: poisson_charge(ONE, 3, rate=Fraction(2)),
        lambda: fixed_charge(ONE, 3, size=5, occupancy=4),
        lambda: OneShot(epsilon=Fraction(0)),
        lambda: OneShot(epsilon=Fraction(1), delta=Fraction(1)),
        lambda: OneShot(epsilon=Fraction(1), replace_delta=Fraction(0)),
        lambda: amplified_bound(OneShot(epsilon=Fraction(2)), 3, 1e-6, size=1, occupancy=9),
        lambda: bound_of(Charge(RatioLoss(Fraction(2), Fraction(1, 2)), Fraction(1, 10)), 0.01),
    ],
)
def test_what_promises_nothing_is_refused(wrong: object) -> None:
    with pytest.raises(PlanError):
        wrong()  # type: ignore[operator]
