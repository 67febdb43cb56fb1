from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from retrodp.audit.coins import Seed
from retrodp.errors import UsageError
from tests.audit.sizes import SEED


def test_the_same_seed_and_label_give_the_same_coins_and_keys() -> None:
    first, second = (SEED.coins("a", 1) for _ in range(2))
    assert [first.below(1000) for _ in range(600)] == [second.below(1000) for _ in range(600)]
    assert SEED.keys(5, "k").round_key(3) == SEED.keys(5, "k").round_key(3)


def test_other_labels_and_other_seeds_give_other_coins() -> None:
    def drawn(seed: Seed, label: str) -> list[int]:
        coins = seed.coins(label)
        return [coins.below(2**60) for _ in range(4)]

    assert drawn(SEED, "a") != drawn(SEED, "b")
    assert drawn(SEED, "a") != drawn(SEED.further("a"), "a")
    assert SEED.keys(5, "a").round_key(1) != SEED.keys(5, "b").round_key(1)


def test_a_fresh_seed_is_new_and_can_be_written_down() -> None:
    fresh = Seed.fresh()
    assert fresh != Seed.fresh()
    assert Seed(fresh.hex).coins("x").below(2**60) == fresh.coins("x").below(2**60)


@pytest.mark.parametrize("text", ["", "12", "g" * 32, "00" * 17])
def test_what_is_no_seed_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no seed"):
        Seed(text)


def test_choices_stay_in_their_range_and_reach_all_of_it() -> None:
    coins = SEED.coins("range")
    drawn = Counter(coins.between(3, 6) for _ in range(4000))
    assert set(drawn) == {3, 4, 5, 6}
    assert max(drawn.values()) < 1200  # expected 1000, standard deviation 27


def test_words_are_cut_from_blocks_that_never_repeat() -> None:
    coins = SEED.coins("words")
    words = np.concatenate([coins.words(3), coins.words(1000), coins.words(2)])
    assert len(np.unique(words)) == 1005
    assert abs(coins.uniforms(10_000).mean() - 0.5) < 0.02  # 7 deviations
