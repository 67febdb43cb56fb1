"""Attack 25: a tree that leaves out empty nodes tells exactly where nobody is."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np

from retrodp.mechanisms.answer import Answer
from retrodp.mechanisms.ordered import NoisyTree, cumulative
from retrodp.noise.prf import Coordinates
from retrodp.postprocess.halving import Cut, counts_below
from tests.mechanisms.trees import KEYS, noise_of, totals
from tests.support.plans import plan
from tests.support.stores import new_store, published

CELLS, ROUND = 64, 3
RELEASES = """
[release.spread]
kind = "quantiles"
of = "amount"
at = [0.5]
by = "country"
[release.below]
kind = "cdf"
of = "amount"
edges = [-5, -1, 0, 1, 2, 3, 5, 10, 15, 20]
[release.between]
kind = "range"
of = "amount"
edges = [-5, 0, 5, 10, 15, 20]
"""
NOISE = noise_of(7)
COUNTS = {3: 500, 40: 500}  # all else is empty


def noisy_differences(cuts: Sequence[Cut]) -> list[int]:
    counts = cumulative(totals(COUNTS), [b""])
    tree = NoisyTree(counts, CELLS, lambda where: NOISE.draw(ROUND, KEYS, where))
    return tree.differences(cuts)


def careless_differences(cuts: Sequence[Cut]) -> list[int]:
    (count,) = cumulative(totals(COUNTS), [b""])
    return [
        noisy if count.below(cut.low) < count.below(cut.high) else 0
        for noisy, cut in zip(noisy_differences(cuts), cuts, strict=True)
    ]


def flat_places(differences: object) -> int:
    """Neighbouring counts that lie exactly on a line: no noise between them."""
    counts = counts_below(CELLS, 1000, differences)  # type: ignore[arg-type]
    steps = [after - before for before, after in pairwise(counts)]
    return sum(one == other for one, other in pairwise(steps))


def test_counts_over_empty_cells_are_as_noisy_as_any() -> None:
    assert flat_places(noisy_differences) < CELLS / 4


def test_twin_leaving_out_empty_nodes_shows_them() -> None:
    assert flat_places(careless_differences) > CELLS / 2


def test_empty_stores_publish_every_edge_and_every_range(ram: Path) -> None:
    with new_store(ram / "store", plan(releases=RELEASES, epsilon=1)) as store:
        store.close_round()
    answers = {name: Answer.from_bytes(data) for name, data in published(ram / "store")[1].items()}
    assert len(answers["below"]) == 10
    # The fit pools what falls; intervals show the noise of every edge.
    assert len({bounds.low for bounds in answers["below"].each or ()}) > 3
    assert len(answers["between"]) == 5
    assert len(set(answers["between"].values)) > 3
    assert answers["spread"].values == (None,) * 4  # DE, FR, other, null


def test_no_two_nodes_share_their_noise() -> None:
    """Twin nodes would publish the difference of their counts exactly."""
    cuts: list[Cut] = []

    def asked(found: Sequence[Cut]) -> list[int]:
        cuts.extend(found)
        return [0] * len(found)

    groups = 3
    for group in range(groups):
        counts_below(CELLS, 0, asked, group=group)
    empty = cumulative({}, [b"a", b"b", b"c"])
    places: list[int] = []

    def draw(where: Coordinates) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        places.extend(where.lo.tolist())
        return np.zeros(len(where), dtype=np.int64)

    tree = NoisyTree(empty, CELLS, draw)
    tree.totals()
    tree.differences(cuts)
    assert len(places) == len(set(places)) == groups * CELLS


def test_a_short_window_is_compared_with_fresh_noise() -> None:
    """A windowed tree takes the better of the two, like any release."""
    daily = noise_of(7, window=1, horizon=365)
    ever = noise_of(7, horizon=365)
    assert (daily.process.factor.name, ever.process.factor.name) == ("fresh", "haar")
    assert daily.process.scale < Fraction(ever.process.scale)
