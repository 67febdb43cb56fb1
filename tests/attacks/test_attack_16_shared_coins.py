"""Attack 16: two sampled releases share their coins, so that their losses do not add.

With coins keyed by (round, record) alone, the records in both samples are the same ones, and what two
answers on one sample tell is more than what two answers on two samples do.
"""

from __future__ import annotations

from fractions import Fraction

from retrodp.mechanisms.draws import poisson
from retrodp.mechanisms.sampled import Design
from retrodp.noise.key import KeyTree
from retrodp.privacy.accountant import delta_of
from retrodp.privacy.loss import PrivacyLoss
from retrodp.privacy.sampling import OneShot, poisson_charge
from tests.mechanisms.test_sampled import records
from tests.privacy.compiled_laws import Law, joint, noisy_parity, poisson_transcript
from tests.privacy.compiled_laws import poisson as samples
from tests.privacy.pairs import delta, of_laws

RATE = Fraction(1, 10)
ONE = OneShot(epsilon=Fraction(1946, 1000))  # odds of 7
TELLING = noisy_parity(Fraction(7))


def charged() -> list[PrivacyLoss]:
    return [poisson_charge(ONE, 1, rate=RATE).loss] * 2


def test_every_release_and_round_has_coins_of_its_own() -> None:
    tree = KeyTree.from_root(bytes(range(32)), b"sixteen", 8)
    design, live = Design(sampling="poisson", rate=Fraction(1, 2)), records("abcdefghijklmnop")
    drawn = [
        tuple(design.sample(live, round_, release=release, keys=tree))
        for release in ("one", "two")
        for round_ in range(1, 9)
    ]
    assert len(set(drawn)) == 16


def test_records_of_one_id_and_two_stamps_have_coins_of_their_own() -> None:
    live = records("a", stamp=1) | records("a", stamp=2)
    drawn = {len(poisson(live, bytes([n] * 32), Fraction(1, 2))) for n in range(60)}
    assert drawn == {0, 1, 2}


def test_two_samples_lose_what_is_charged_for_two() -> None:
    pair = of_laws(
        poisson_transcript([("x",)] * 2, TELLING, RATE), poisson_transcript([()] * 2, TELLING, RATE)
    )
    for epsilon in (0.1, 0.5, 0.8):
        assert delta(pair, epsilon) <= delta_of(charged(), epsilon) + 1e-12


def test_twin_one_sample_for_both_loses_more() -> None:
    def shared(live: tuple[str, ...]) -> Law:
        found: Law = {}
        for chance, sample in samples(live, RATE):
            for key, probability in joint([TELLING(sample)] * 2).items():
                found[key] = found.get(key, Fraction(0)) + chance * probability
        return found

    pair = of_laws(shared(("x",)), shared(()))
    assert delta(pair, 0.8) > 1.3 * delta_of(charged(), 0.8)
