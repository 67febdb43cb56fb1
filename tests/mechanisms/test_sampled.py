"""The sampling compiler: laws of its samples, its gate, and its answers end to end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy import stats

from retrodp.mechanisms.calibrate import calibrated
from retrodp.mechanisms.draws import poisson, smallest
from retrodp.mechanisms.oneshot.contract import Values
from retrodp.mechanisms.oneshot.ranks import InteriorPoint
from retrodp.mechanisms.sampled import Design, Gate, Sampled
from retrodp.noise.coins import Coins
from retrodp.noise.key import KeyTree
from retrodp.privacy.budget import PureDP
from retrodp.privacy.sampling import OneShot, fixed_charge, persistent_charge, poisson_charge
from tests.privacy.compiled_laws import poisson as poisson_samples

ALPHA = 1e-9
DRAWS = 4_000
HORIZON = 5
PEOPLE = "abcde"
Live = Mapping[bytes, int]


def label(*parts: Any) -> bytes:
    return msgspec.msgpack.encode(list(parts))


def records(names: str = PEOPLE, *, stamp: int = 1) -> dict[bytes, int]:
    return {label("", name, stamp, [name]): 1 for name in names}


def points(copies: Mapping[str, int], *, stamp: int = 1) -> dict[bytes, int]:
    return {label(stamp, [value]): number for value, number in copies.items()}


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def fits(found: Counter[Any], law: Mapping[Any, float], draws: int = DRAWS) -> bool:
    expected = np.array([law[own] * draws for own in law])
    observed = np.array([found[own] for own in law], dtype=float)
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return sum(found.values()) == observed.sum() and bool(
        stats.chi2.sf(statistic, len(law) - 1) >= ALPHA
    )


def names(sample: Sequence[Values]) -> str:
    return "".join(str(value) for (value,) in sample)


@pytest.mark.parametrize(("rate", "agrees"), [(Fraction(2, 5), True), (Fraction(1, 2), False)])
def test_poisson_samples_are_independent_draws(rate: Fraction, agrees: bool) -> None:  # noqa: FBT001
    """All 32 subsets; a rate off by a quarter is missed with probability below 1e-9."""
    found = Counter(names(poisson(records(), key(n), Fraction(2, 5))) for n in range(DRAWS))
    law = {
        "".join(own): float(rate ** len(own) * (1 - rate) ** (5 - len(own)))
        for size in range(6)
        for own in combinations(PEOPLE, size)
    }
    assert fits(found, law) == agrees


@pytest.mark.parametrize("size", [1, 2, 4])
def test_smallest_ranks_are_uniform_without_repetition(size: int) -> None:
    found = Counter(names(smallest(records(), key(n), size)) for n in range(DRAWS))
    law = {"".join(own): 1 / comb(5, size) for own in combinations(PEOPLE, size)}
    assert fits(found, law)


def test_a_favoured_record_is_noticed() -> None:
    found = Counter(names(smallest(records("abcde"), key(n), 2)) for n in range(DRAWS))
    law = {"".join(own): 1 / 10 for own in combinations(PEOPLE, 2)}
    favoured = {own: chance * (1.3 if "a" in own else 0.8) for own, chance in law.items()}
    assert not fits(found, favoured)


def test_copies_of_a_point_are_drawn_one_by_one() -> None:
    live = points({"x": 3, "y": 1})
    found = Counter(names(smallest(live, key(n), 2)) for n in range(DRAWS))
    assert fits(found, {"xx": 1 / 2, "xy": 1 / 2})
    found = Counter(names(poisson(live, key(n), Fraction(1, 2))) for n in range(DRAWS))
    law = {"x" * i + "y" * j: comb(3, i) / 16 for i in range(4) for j in range(2)}
    assert fits(found, law)


def test_a_sample_does_not_depend_on_the_order_of_the_ledger() -> None:
    live = records() | records("fgh", stamp=2)
    turned = dict(reversed(live.items()))
    half = Fraction(1, 2)
    assert poisson(live, key(7), half) == poisson(turned, key(7), half)
    assert smallest(live, key(7), 3) == smallest(turned, key(7), 3)


def test_a_deletion_takes_the_copy_that_came_last() -> None:
    """Ranks of the copies that stay are the same, whichever addition is deleted (appendix C)."""
    for number in range(200):
        more = names(smallest(points({"x": 3, "y": 2}), key(number), 2))
        less = names(smallest(points({"x": 2, "y": 2}), key(number), 2))
        # The sample changes by one swap at most.
        assert sum((Counter(more) - Counter(less)).values()) <= 1


def test_persistent_samples_change_by_one_swap_a_turnover() -> None:
    tree = KeyTree.from_root(bytes(range(32)), b"ranks", HORIZON)
    lasting = Design(sampling="persistent", size=3)
    fresh = Design(sampling="fixed", size=3)
    swaps = {}
    for design in (lasting, fresh):
        one, two = (
            names(design.sample(live, round_, release="r", keys=tree))
            for live, round_ in ((records("abcdefgh"), 1), (records("bcdefghi"), 2))
        )
        swaps[design.sampling] = len(set(one) - set(two))
    assert swaps["persistent"] <= 2
    assert [
        names(lasting.sample(records("abcdefgh"), round_, release="r", keys=tree))
        for round_ in (1, 2, 3)
    ] == [names(lasting.sample(records("abcdefgh"), 1, release="r", keys=tree))] * 3
    assert (
        len(
            {
                names(fresh.sample(records("abcdefgh"), round_, release="r", keys=tree))
                for round_ in range(1, 6)
            }
        )
        > 1
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """Tells the parity of its sample with odds `ratio`; what the enumeration knows as well."""

    ratio: Fraction = Fraction(4)
    labels: None = None
    step: Fraction = Fraction(1)
    low: int = 0
    high: int = 1

    @property
    def guarantee(self) -> OneShot:
        return OneShot(epsilon=Fraction(139, 100))

    def answer(self, sample: Sequence[Values], coins: Coins) -> Sequence[int | None]:
        odd = len(sample) % 2
        return (odd if coins.chance(self.ratio / (1 + self.ratio)) else 1 - odd,)

    def describe(self) -> dict[str, Any]:
        return {"mechanism": "telling"}


def compiled(name: str = "r", *, rate: Fraction = Fraction(1, 4)) -> Sampled:
    mechanism = Telling()
    return Sampled(
        name=name,
        mechanism=mechanism,
        design=Design(sampling="poisson", rate=rate),
        charge=poisson_charge(mechanism.guarantee, 3, rate=rate),
        horizon=HORIZON,
        window=3,
        level=Fraction(19, 20),
    )


def test_answers_of_three_rounds_have_the_enumerated_law() -> None:
    """The whole compiler, coins and all, against the enumeration that its charge is tested with."""
    mechanism = compiled()
    live = [records("abc"), records("bc"), records("bcd")]
    found: Counter[Any] = Counter()
    for number in range(DRAWS):
        tree = KeyTree.from_root(key(number), b"law", HORIZON)
        found[
            tuple(mechanism.release(r, own, tree).values[0] for r, own in enumerate(live, 1))
        ] += 1
    one = []
    for own in live:
        odd = sum(
            float(chance)
            for chance, sample in poisson_samples(PEOPLE[: len(own)], Fraction(1, 4))
            if len(sample) % 2
        )
        one.append({1: odd * 0.8 + (1 - odd) * 0.2, 0: odd * 0.2 + (1 - odd) * 0.8})
    law = {
        (a, b, c): one[0][a] * one[1][b] * one[2][c] for a in (0, 1) for b in (0, 1) for c in (0, 1)
    }
    assert fits(found, law)
    wrong = {own: chance * (1.5 if own[0] == own[1] else 0.6) for own, chance in law.items()}
    assert not fits(found, {own: chance / sum(wrong.values()) for own, chance in wrong.items()})


def test_two_releases_have_coins_of_their_own() -> None:
    tree = KeyTree.from_root(bytes(range(32)), b"two", HORIZON)
    live = records("abcdefgh")
    samples = [
        Design(sampling=sampling, rate=Fraction(1, 2), size=4).sample(
            live, 1, release=release, keys=tree
        )
        for sampling in ("poisson", "fixed", "persistent")
        for release in ("one", "two")
    ]
    assert samples[0] != samples[1]
    assert samples[2] != samples[3]
    assert samples[4] != samples[5]


def gated(*, occupancy: int, threshold: int) -> Sampled:
    noise = calibrated("r/live", horizon=HORIZON, budget=PureDP(1), window=3)
    mechanism = InteriorPoint(epsilon=Fraction(1), low=0, high=9, step=Fraction(1))
    return Sampled(
        name="r",
        mechanism=mechanism,
        design=Design(sampling="fixed", size=3, occupancy=occupancy),
        charge=fixed_charge(mechanism.guarantee, 3, size=3, occupancy=occupancy),
        horizon=HORIZON,
        window=3,
        level=Fraction(19, 20),
        gate=Gate(noise=noise, threshold=threshold, delta=Fraction(1, 10**6)),
    )


def many(number: int) -> dict[bytes, int]:
    return {label("", str(own), 1, [own % 10]): 1 for own in range(number)}


def test_a_gate_opens_with_many_and_shuts_with_few() -> None:
    mechanism = gated(occupancy=100, threshold=200)
    tree = KeyTree.from_root(bytes(range(32)), b"gate", HORIZON)
    few = mechanism.release(1, many(20), tree)
    assert few.values == (None,)
    assert (few.each or ())[0][1:] == (0, 9, 0, 9)
    assert mechanism.release(1, many(400), tree).values != (None,)
    assert len(mechanism.cost()) == 2


def test_the_gate_is_charged_beside_the_samples() -> None:
    mechanism = gated(occupancy=100, threshold=200)
    assert mechanism.gate is not None
    assert mechanism.cost()[1:] == mechanism.gate.noise.losses()
    assert replace(mechanism, gate=None).cost() == mechanism.cost()[:1]
    assert (mechanism.adaptive, mechanism.retroactive) == ("yes", "exact")


def test_copies_with_ranks_by_number_tell_more_than_one_rank_may() -> None:
    """Why persistent ranks need ids: a copy more is another number, and another rank, every round.

    Copies of a point come late, one a round, and go again; from the turn on one stream has one more.
    """
    turn, others, window = 20, 60, 41
    numbers = [*range(1, turn + 1), *range(turn, -1, -1)]
    assert len(numbers) == window
    design = Design(sampling="persistent", size=1)
    live = points({f"a{number}": 1 for number in range(others)})

    def told(key: int, more: int) -> list[Any]:
        tree = KeyTree.from_root(key.to_bytes(32, "big"), b"copies", window)
        return [
            design.sample(
                live | points({"x": copies + more * (round_ > turn)}),
                round_,
                release="s",
                keys=tree,
            )
            == [("x",)]
            for round_, copies in enumerate(numbers, 1)
        ]

    differ = sum(told(key, 0) != told(key, 1) for key in range(100))
    charge = persistent_charge(
        OneShot(epsilon=Fraction(1)), window, size=1, occupancy=others, rank_slack=Fraction(1, 100)
    )
    assert differ / 100 > 1.4 * float(charge.loss.chance + charge.delta)
