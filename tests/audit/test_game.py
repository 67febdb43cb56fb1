"""The adaptive game: played on drawn noise it is the game that a store would play."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from retrodp.audit import game, misuse
from retrodp.audit.adversaries import (
    Adversary,
    Averager,
    Board,
    DifferenceAttacker,
    Hider,
    Moves,
    Oblivious,
    ReactiveDeleter,
    ThresholdHunter,
)
from retrodp.audit.cases import Case
from retrodp.audit.game import adaptive_claim, contest, crossings
from retrodp.audit.play import play_once
from retrodp.audit.structure import Structure
from retrodp.audit.table import Table
from retrodp.mechanisms.histogram import SparseHistogram
from tests.audit.sizes import MISS, PLAYS, SEED

HORIZON = 7
COUNTRY = Case.of(
    "bins",
    {"r": {"kind": "histogram", "by": "country", "factor": "binary"}},
    model="zcdp",
    horizon=HORIZON,
)
PRODUCT = Case.of(
    "sparse",
    {"r": {"kind": "histogram", "by": "product", "factor": "binary"}},
    model="pure",
    horizon=15,
    delta="1e-3",
)
STRUCTURE = Structure.of(COUNTRY.factor)
STRATEGIES: list[Adversary] = [
    Oblivious(structure=STRUCTURE, law="gaussian", bins=2),
    ReactiveDeleter(crowd=5, bins=2),
    Averager(bins=2),
    DifferenceAttacker(bins=2),
]


def names(adversary: Adversary) -> str:
    return type(adversary).__name__


@pytest.mark.parametrize("challenged", [True, False])
@pytest.mark.parametrize("adversary", STRATEGIES, ids=names)
def test_plays_on_drawn_noise_are_those_of_real_updates(
    adversary: Adversary,
    challenged: bool,  # noqa: FBT001
) -> None:
    keys = SEED.keys(HORIZON, "once")
    once = play_once(COUNTRY, adversary, ["DE", "FR"], keys, challenged=challenged)
    (mechanism,) = COUNTRY.mechanisms.values()
    many = Table.of(mechanism).play(adversary, keys, plays=3, challenged=challenged)
    assert np.array_equal(once.noisy[0], many.noisy[0])
    assert np.array_equal(once.own[0], many.own[0])
    assert (once.begin[0], once.end[0]) == (many.begin[0], many.end[0])


@pytest.mark.parametrize("adversary", STRATEGIES, ids=names)
def test_until_the_challenge_both_worlds_are_played_alike(adversary: Adversary) -> None:
    (mechanism,) = COUNTRY.mechanisms.values()
    keys = SEED.keys(HORIZON, "alike")
    with_it, without = (
        Table.of(mechanism).play(adversary, keys, plays=50, challenged=challenged)
        for challenged in (True, False)
    )
    assert np.array_equal(with_it.begin, without.begin)
    placed = with_it.begin > 0
    assert placed.any()
    before = [np.s_[play, :, : with_it.begin[play] - 1] for play in np.flatnonzero(placed)]
    assert all(np.array_equal(with_it.noisy[part], without.noisy[part]) for part in before)
    during = [
        with_it.noisy[play, with_it.bin[play], with_it.begin[play] - 1]
        - without.noisy[play, with_it.bin[play], with_it.begin[play] - 1]
        for play in np.flatnonzero(placed)
    ]
    assert set(during) == {1.0}


def test_no_sound_release_is_accused_by_any_adversary() -> None:
    rows = game.audit(SEED, PLAYS, miss=1e-3)
    assert len({row.test for row in rows}) == 6
    assert [row for row in rows if row.verdict == "accused"] == []


@pytest.mark.parametrize("adversary", [STRATEGIES[0], STRATEGIES[1], STRATEGIES[3]], ids=names)
def test_noise_too_small_is_caught_by_adversaries_that_react(adversary: Adversary) -> None:
    planted = COUNTRY.tampered(misuse.too_small(Fraction(5, 2)))
    claim = adaptive_claim(COUNTRY)
    evidence, _ = contest(planted, adversary, claim, SEED, plays=16_000, miss=MISS)
    assert evidence.excess(claim) > 0


def test_averaging_one_record_pays_only_where_noise_is_drawn_anew() -> None:
    claim = adaptive_claim(COUNTRY)
    adversary = Averager(bins=1)
    sound, _ = contest(COUNTRY, adversary, claim, SEED, plays=16_000, miss=MISS)
    fresh = COUNTRY.tampered(misuse.fresh_charged_once)
    naive, _ = contest(fresh, adversary, claim, SEED, plays=16_000, miss=MISS)
    assert sound.excess(claim) <= 0
    assert naive.excess(claim) > 0


def test_an_adversary_that_watches_crosses_thresholds_far_more_often_than_delta() -> None:
    """Why sparse releases say that they are not proved for streams that react."""
    (mechanism,) = PRODUCT.mechanisms.values()
    assert isinstance(mechanism, SparseHistogram)
    crowd = 2 * mechanism.threshold + 10 * max(mechanism.noise.half_all)
    hunter = ThresholdHunter(structure=Structure.of(PRODUCT.factor), crowd=crowd, watched=8)
    hidden, _ = crossings(PRODUCT, Hider(), SEED, plays=20_000, miss=MISS)
    hunted, rate = crossings(PRODUCT, hunter, SEED, plays=150, miss=MISS)
    assert hidden / 20_000 < PRODUCT.claim.delta
    assert rate > 10 * PRODUCT.claim.delta
    assert hunted / 150 > 50 * hidden / 20_000
    assert mechanism.adaptive == "no"


def test_a_bin_without_records_is_never_published() -> None:
    (mechanism,) = PRODUCT.mechanisms.values()
    board = Table.of(mechanism).play(Hider(), SEED.keys(15), plays=5_000, challenged=False)
    assert not board.present.any()


def test_what_is_promised_to_streams_that_react_is_what_the_contract_says() -> None:
    assert adaptive_claim(COUNTRY) == COUNTRY.claim  # binary nodes are causal
    haar = Case.of(
        "haar", {"r": {"kind": "count", "factor": "haar"}}, model="zcdp", horizon=HORIZON
    )
    assert adaptive_claim(haar).epsilon > haar.claim.epsilon
    assert adaptive_claim(haar).delta == haar.claim.delta


@dataclass(frozen=True, slots=True, kw_only=True)
class Greedy:
    """Places and removes in every round, as no adversary may."""

    name: str = "greedy"
    bins: int = 1

    def moves(self, board: Board) -> Moves:
        moves = Moves.none(board)
        return replace(moves, place=moves.place + 1, remove=~moves.remove)


def test_a_challenge_is_placed_once_and_removed_once() -> None:
    (mechanism,) = COUNTRY.mechanisms.values()
    board = Table.of(mechanism).play(Greedy(), SEED.keys(HORIZON), plays=2, challenged=True)
    assert board.begin.tolist() == [1, 1]
    assert board.end.tolist() == [2, 2]
