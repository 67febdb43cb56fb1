"""Truncated numbers of items: what a record moves, what is remembered, what an interval covers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest

from retrodp.audit.structure import Structure
from retrodp.errors import StoreCorruptError, UsageError
from retrodp.mechanisms.calibrate import gaussian_process, laplace_process
from retrodp.mechanisms.calibrated import CalibratedNoise
from retrodp.mechanisms.contract import Seen
from retrodp.mechanisms.flippancy import Flippancy, Flips, hashed
from retrodp.mechanisms.lived import Lived
from retrodp.noise.factors.delannoy import best_delannoy
from retrodp.noise.factors.haar import best_haar
from retrodp.noise.factors.switching import MOST_COUNTED, simple_bound, switching_l2sq
from retrodp.noise.key import KeyTree

KEY = bytes(range(32))
LEVEL = Fraction(19, 20)


@cache
def trajectories(present: tuple[int, ...], limits: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Truncated numbers, then items beyond each limit, of one item that is there in some rounds."""
    flips, found = Flips.none(), []
    item = hashed([b"x"], KEY)
    for there in present:
        flips = flips.after(item if there else item[:0], max(limits))
        found.append(
            (*(flips.truncated(w) for w in limits), *(flips.beyond(w) for w in limits)),
        )
    return list(zip(*found, strict=True))


def neighbours(horizon: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Every presence of an item, and the same with one more record in every window."""
    for present in product((0, 1), repeat=horizon):
        for begin in range(horizon):
            for end in range(begin + 1, horizon + 1):
                rounds = enumerate(present)
                yield present, tuple(1 if begin <= r < end else there for r, there in rounds)


@cache
def differences(horizon: int, limit: int) -> tuple[set[tuple[int, ...]], set[tuple[int, ...]]]:
    """By how much one record can move the truncated number, and the items beyond the limit."""
    counts, beyond = set(), set()
    for one, two in neighbours(horizon):
        before, after = trajectories(one, (limit,)), trajectories(two, (limit,))
        moves = [tuple(np.subtract(b, a).tolist()) for a, b in zip(before, after, strict=True)]
        counts.add(moves[0])
        beyond.add(moves[1])
    return counts, beyond


def moves_of(sequence: Sequence[int]) -> int:
    return int(np.abs(np.diff([0, *sequence, 0])).sum())


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_no_record_shifts_the_nodes_by_more_than_is_charged(limit: int) -> None:
    horizon = 7
    counts, beyond = differences(horizon, limit)
    haar = best_haar(horizon)
    inverse = Structure.of(haar).inverse
    shifted = max(float(((inverse @ np.array(move)) ** 2).sum()) for move in counts)
    charged = switching_l2sq(haar.height, 2 * limit)
    assert shifted <= charged + 1e-9
    assert limit > 1 or charged == haar.window_l2sq
    # What is beyond the limit moves in a single window, up or down.
    assert max(map(moves_of, beyond)) == 2
    assert max(float(((inverse @ np.array(move)) ** 2).sum()) for move in beyond) <= (
        haar.window_l2sq + 1e-9
    )


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_record_moves_the_truncated_number_like_as_many_windows_as_flips(limit: int) -> None:
    counts, _ = differences(7, limit)
    assert max(map(moves_of, counts)) == 2 * limit
    assert max(abs(step) for move in counts for step in np.diff([0, *move])) == 1
    assert {value for move in counts for value in move} <= {-1, 0, 1}


def test_twin_half_as_many_moves_would_be_exceeded() -> None:
    """The bound (w + 1)(log2 T + 1) on the nodes of a binary tree, for w = 2 and T = 8, is too low."""
    counts, _ = differences(8, 2)

    def tree(move: tuple[int, ...]) -> int:
        steps = np.diff([0, *move])
        return sum(int((steps.reshape(-1, size).sum(axis=1) ** 2).sum()) for size in (1, 2, 4, 8))

    assert max(map(tree, counts)) > (2 + 1) * (3 + 1)


def test_twin_without_freezing_a_record_shifts_more_than_one_window() -> None:
    counts, _ = differences(8, 8)
    haar = best_haar(8)
    inverse = Structure.of(haar).inverse
    shifted = max(float(((inverse @ np.array(move)) ** 2).sum()) for move in counts)
    assert shifted > switching_l2sq(haar.height, 2)


@pytest.mark.parametrize("height", range(1, 22))
def test_two_moves_cost_what_a_window_costs(height: int) -> None:
    assert switching_l2sq(height, 2) == (2 * height + 2 if height > 1 else 4)


@pytest.mark.parametrize("height", [2, 5, 9, 13])
def test_the_simple_bound_is_above_the_count_of_shifts(height: int) -> None:
    for moves in (1, 2, 3, 8, 20, 40, MOST_COUNTED):
        assert switching_l2sq(height, moves) <= simple_bound(height, moves)
        assert simple_bound(height, moves) <= simple_bound(height, moves + 1)


def test_the_count_of_shifts_is_that_of_every_sequence_on_a_small_tree() -> None:
    height, size = 3, 8
    for moves in (2, 4, 6):
        best = 0
        for inner in product((-1, 0, 1), repeat=size - 1):
            g = (0, *inner, 0)
            signs = [value for value in g if value]
            crossings = sum(a != b for a, b in pairwise(signs))
            if crossings <= 1 and max(abs(np.diff(g))) <= 1 and moves_of(inner) <= moves:
                first_is_up = not signs or signs[0] > 0
                cost = 0
                for level in range(height):
                    cell = size >> level
                    for low in range(0, size, cell):
                        cost += (2 * g[low + cell // 2] - g[low] - g[low + cell]) ** 2
                best = max(best, cost if first_is_up else 0)
        assert switching_l2sq(height, moves) == best


def made(
    *,
    horizon: int = 12,
    limits: tuple[int, ...] = (1, 2),
    rho: str = "2",
    law: str = "gaussian",
) -> Flippancy:
    def noise(name: str) -> CalibratedNoise:
        process = (
            gaussian_process(best_haar(horizon), rho=Fraction(rho), amount=1)
            if law == "gaussian"
            else laplace_process(best_delannoy(horizon), epsilon=Fraction(rho), amount=1)
        )
        level = 1 - (1 - LEVEL) / (2 * len(limits))
        return CalibratedNoise.of(
            name, process, step=Fraction(1), amount=1, split=(1,), level=level
        )

    return Flippancy(
        name="d",
        limits=limits,
        counts=tuple(noise(f"d/up to {limit}") for limit in limits),
        beyond=tuple(noise(f"d/beyond {limit}") for limit in limits),
        level=LEVEL,
    )


def tree(number: int = 0, horizon: int = 12) -> KeyTree:
    return KeyTree.from_root(bytes(31) + bytes([number % 256]), b"%d" % number, horizon)


def test_the_state_says_how_often_items_flipped_and_not_which_they_are() -> None:
    mechanism, keys = made(), tree()
    state = mechanism.begin()
    label = b"a label in clear"
    for round_, totals in enumerate(({label: 3}, {label: 1, b"other": 2}, {}, {label: 1}), 1):
        _, state = mechanism.advance(round_, Seen(totals, {}), keys, state)
        assert label not in state
        assert b"other" not in state
    flips = Flips.from_bytes(state)
    assert sorted(flips.counts.tolist()) == [2, 3]
    assert len(state) == 1 + 18 * 2


def test_the_order_of_labels_and_totals_above_one_change_no_byte() -> None:
    mechanism, keys = made(), tree()
    one = mechanism.advance(1, Seen({b"a": 1, b"b": 5, b"c": 2}, {}), keys, mechanism.begin())
    two = mechanism.advance(1, Seen({b"c": 1, b"a": 9, b"b": 1}, {}), keys, mechanism.begin())
    assert one[0].to_bytes() == two[0].to_bytes()
    assert one[1] == two[1]


def test_a_state_cut_short_is_refused() -> None:
    state = Flips(hashed([b"a"], KEY), np.ones(1, "<u2")).to_bytes()
    with pytest.raises(StoreCorruptError):
        Flips.from_bytes(state[:-1])


def test_an_item_that_came_and_went_is_still_counted_once_its_limit_is_reached() -> None:
    flips = Flips.none()
    item = hashed([b"a"], KEY)
    for there in (1, 0, 1, 0, 1):
        flips = flips.after(item[:there], 2)
    assert (flips.truncated(1), flips.truncated(2)) == (1, 0)
    assert (flips.beyond(1), flips.beyond(2)) == (1, 1)
    assert flips.counts.tolist() == [3]  # counted no further


def test_histories_that_unite_do_not_unite_in_what_is_published() -> None:
    """The positive control of the retroactivity audit: memory shows in the law, as it is stated."""
    mechanism = made(limits=(1,), rho="50000")
    here = {b"a": 1}
    flapping: list[dict[bytes, int]] = [here, {}, here, {}, {}]
    quiet: list[dict[bytes, int]] = [{}, {}, {}, {}, {}]
    keys = tree()
    values = []
    for history in (flapping, quiet):
        lived = Lived(mechanism)
        answers = [lived.release(r, totals, keys) for r, totals in enumerate(history, 1)]
        values.append(answers[-1].values[0])
    assert mechanism.retroactive == "no"
    assert values[0] == values[1] + 1  # type: ignore[operator]


def test_what_was_lived_can_be_asked_again_but_not_out_of_order() -> None:
    lived, keys = Lived(made()), tree()
    first = lived.release(1, {b"a": 1}, keys)
    assert lived.release(1, {b"a": 1}, keys) == first
    lived.release(2, {}, keys)
    with pytest.raises(UsageError, match="remembers"):
        lived.release(1, {}, keys)
    with pytest.raises(UsageError):
        lived.release(4, {}, keys)


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_intervals_cover_the_true_number_however_much_items_flip(law: str) -> None:
    """400 keys; level 0.95: fewer than 360 covered has probability below 1e-4."""
    horizon, mechanism = 12, made(law=law)
    flips, truth = Flips.none(), 0
    for round_ in range(1, horizon + 1):
        # Item i flips every i + 1 rounds: some never again, some in every round.
        there = [b"%d" % item for item in range(40) if (round_ // (item + 1)) % 2 == 0]
        flips, truth = flips.after(hashed(there, KEY), 2), len(there)
    found = [mechanism.answer(horizon, flips, tree(number)).each for number in range(400)]
    assert sum(each is not None and each[0].low <= truth <= each[0].high for each in found) >= 360


def test_the_narrowest_interval_is_that_of_the_least_limit_that_the_data_keep() -> None:
    def limit_of(period: int) -> float:
        mechanism = made(limits=(1, 4), rho="1/2")
        wide = {"d/up to 1": 1, "d/up to 4": 2}
        noises = tuple(
            CalibratedNoise.of(
                name,
                gaussian_process(best_haar(12), rho=Fraction(1, 2), amount=amount),
                step=Fraction(1),
                amount=amount,
                split=(1,),
                level=LEVEL,
            )
            for name, amount in wide.items()
        )
        lived = Lived(
            Flippancy(name="d", limits=(1, 4), counts=noises, beyond=mechanism.beyond, level=LEVEL)
        )
        answer = None
        for round_ in range(1, 13):
            present = {b"%d" % i: 1 for i in range(200) if (round_ // period) % 2 == 0}
            answer = lived.release(round_, present, tree())
        assert answer is not None
        assert answer.each is not None
        return float(answer.each[0].stddev)

    assert limit_of(100) < limit_of(4)
