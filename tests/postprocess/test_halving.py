"""Trees of differences: exact without noise, consistent with noise, and never crossing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from retrodp.postprocess import halving
from retrodp.postprocess.halving import (
    Cut,
    Search,
    Target,
    counts_below,
    depth,
    largest_weights,
    middle_weights,
    searched,
    weights_below,
)

FEW = settings(max_examples=40, deadline=None)
COUNTS = st.lists(st.integers(0, 9), min_size=1, max_size=40)
SHARES = st.fractions(0, 1).filter(lambda share: 0 < share < 1)


def exact(counts: Sequence[int]) -> Callable[[Sequence[Cut]], list[int]]:
    def asked(cuts: Sequence[Cut]) -> list[int]:
        return [
            sum(counts[cut.low : cut.middle]) - sum(counts[cut.middle : cut.high]) for cut in cuts
        ]

    return asked


def shaken(counts: Sequence[int], noise: Sequence[int]) -> Callable[[Sequence[Cut]], list[int]]:
    """Differences with noise by number of the node."""
    plain = exact(counts)
    return lambda cuts: [
        own + noise[cut.number % len(noise)] for own, cut in zip(plain(cuts), cuts, strict=True)
    ]


@FEW
@given(COUNTS)
def test_without_noise_counts_are_exact(counts: list[int]) -> None:
    sums = [sum(counts[: cell + 1]) for cell in range(len(counts))]
    assert counts_below(len(counts), sum(counts), exact(counts)) == sums


@FEW
@given(COUNTS.filter(any), SHARES)
def test_without_noise_a_search_ends_in_the_exact_quantile(
    counts: list[int], share: Fraction
) -> None:
    total = sum(counts)
    least = next(c for c in range(len(counts)) if sum(counts[: c + 1]) >= share * total)
    assert searched(len(counts), [Search(0, total, Target(share))], exact(counts)) == [least]


@FEW
@given(
    COUNTS,
    st.lists(st.integers(-30, 30), min_size=7, max_size=7),
    st.lists(SHARES, min_size=2, max_size=5),
    st.integers(0, 200),
)
def test_searches_of_one_tree_never_cross(
    counts: list[int], noise: list[int], shares: list[Fraction], total: int
) -> None:
    searches = [Search(0, total, Target(share)) for share in sorted(shares)]
    ends = searched(len(counts), searches, shaken(counts, noise))
    assert ends == sorted(ends)
    assert all(0 <= end < len(counts) for end in ends)


@FEW
@given(
    COUNTS,
    st.lists(st.integers(-30, 30), min_size=7, max_size=7),
    SHARES,
    st.tuples(st.fractions(0, 40), st.fractions(0, 40)),
    st.sampled_from([Fraction(0), Fraction(1, 2)]),
)
def test_ends_of_bands_lie_around_the_value_and_wider_bands_around_those(
    counts: list[int],
    noise: list[int],
    share: Fraction,
    reaches: tuple[Fraction, Fraction],
    rounding: Fraction,
) -> None:
    narrow, wide = sorted(reaches)
    targets = [
        Target(share, -1, wide, rounding),
        Target(share, -1, narrow, rounding),
        Target(share),
        Target(share, 1, narrow, rounding),
        Target(share, 1, wide, rounding),
    ]
    searches = [Search(0, sum(counts), target) for target in targets]
    ends = searched(len(counts), searches, shaken(counts, noise))
    assert ends == sorted(ends)


@FEW
@given(
    COUNTS,
    st.lists(st.integers(-30, 30), min_size=7, max_size=7),
    SHARES,
    st.tuples(st.fractions(1, 40), st.fractions(0, 1), st.fractions(1, 9)),
)
def test_a_reach_for_a_spread_narrows_the_band_where_the_weights_have_it_and_nowhere_else(
    counts: list[int], noise: list[int], share: Fraction, drawn: tuple[Fraction, ...]
) -> None:
    reach, part, times = drawn
    asked, total, cells = shaken(counts, noise), sum(counts), len(counts)
    plain, small, both = (
        [Search(0, total, Target(share, side, own, Fraction(0), narrower)) for side in (-1, 1)]
        for own, narrower in (
            (reach, ()),
            (part * reach, ()),
            (reach, ((times, part * reach),)),
        )
    )
    wide, narrow, mixed = (searched(cells, one, asked) for one in (plain, small, both))
    assert wide[0] <= mixed[0] <= narrow[0]
    assert narrow[1] <= mixed[1] <= wide[1]
    never = [
        Search(0, total, Target(share, 1, reach, Fraction(0), ((Fraction(999), Fraction(0)),)))
    ]
    assert searched(cells, never, asked) == wide[1:]


@FEW
@given(COUNTS, st.lists(st.integers(-30, 30), min_size=7, max_size=7), SHARES)
def test_a_search_and_the_list_of_all_counts_agree(
    counts: list[int], noise: list[int], share: Fraction
) -> None:
    """One tree gives one set of counts: the walk decides by those that are published."""
    asked, total = shaken(counts, noise), 25
    listed = counts_below(len(counts), total, asked)
    low, high = 0, len(counts)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if listed[middle - 1] >= share * total else (middle, high)
    assert searched(len(counts), [Search(0, total, Target(share))], asked) == [low]


@pytest.mark.parametrize("cells", [1, 2, 3, 7, 8, 50_001, 1 << 20])
def test_only_nodes_on_the_way_are_asked_each_once_and_a_level_at_a_time(cells: int) -> None:
    calls: list[list[Cut]] = []

    def asked(cuts: Sequence[Cut]) -> list[int]:
        calls.append(list(cuts))
        return [1 if cut.number % 2 else -1 for cut in cuts]

    searches = [Search(0, 100, Target(Fraction(part, 10))) for part in range(1, 10)]
    ends = searched(cells, searches, asked)
    assert all(0 <= end < cells for end in ends)
    assert len(calls) <= depth(cells)
    cuts = [cut for call in calls for cut in call]
    assert len(set(cuts)) == len(cuts) <= len(searches) * depth(cells)
    assert all(1 <= cut.number < 1 << depth(cells) for cut in cuts)


@pytest.mark.parametrize("cells", [1, 2, 3, 5, 16, 21])
def test_no_record_moves_more_than_a_level_has(cells: int) -> None:
    assert depth(cells) == max(
        sum(1 for cut in every_cut(cells) if cut.low <= cell < cut.high) for cell in range(cells)
    )
    assert len({cut.number for cut in every_cut(cells)}) == cells - 1


def every_cut(cells: int) -> list[Cut]:
    found: list[Cut] = []

    def asked(cuts: Sequence[Cut]) -> list[int]:
        found.extend(cuts)
        return [0] * len(cuts)

    counts_below(cells, 0, asked)
    return found


def responses(cells: int) -> list[list[Fraction]]:
    """Counts that a unit of noise on the total, and on each difference, adds."""
    rows = [counts_below(cells, 1, lambda cuts: [0] * len(cuts))]
    for own in every_cut(cells):

        def asked(cuts: Sequence[Cut], number: int = own.number) -> list[int]:
            return [int(cut.number == number) for cut in cuts]

        rows.append(counts_below(cells, 0, asked))
    return rows


@pytest.mark.parametrize("cells", [1, 2, 3, 8, 13, 16])
def test_weights_are_those_that_noise_is_seen_to_have(cells: int) -> None:
    columns = list(zip(*responses(cells), strict=True))
    assert [(w.squared, w.absolute) for w in weights_below(cells)] == [
        (sum(w * w for w in column), sum(abs(w) for w in column)) for column in columns
    ]
    largest = [max(w * w for w in column) for column in columns]
    bounds = [w.largest for w in weights_below(cells)]
    assert all(own <= bound for own, bound in zip(largest, bounds, strict=True))


@pytest.mark.parametrize("share", [Fraction(0), Fraction(1, 3), Fraction(95, 100)])
def test_weights_of_a_rank_by_level_are_those_of_the_even_tree(share: Fraction) -> None:
    levels = 4
    rows = responses(1 << levels)
    by_level = middle_weights(levels, share)
    for level, found in enumerate(by_level, start=1):
        step = 1 << (levels - level)
        for place in range(1 << (level - 1)):
            column = [row[(2 * place + 1) * step - 1] for row in rows]
            column[0] -= share
            assert found.squared[place] == pytest.approx(float(sum(w * w for w in column)))
            assert found.absolute[place] == pytest.approx(float(sum(abs(w) for w in column)))
            assert found.largest[place] >= float(max(w * w for w in column)) - 1e-12
    assert len(by_level) == levels


@pytest.mark.parametrize("listed", [1, 2, 5, 9])
@pytest.mark.parametrize("share", [Fraction(0), Fraction(1, 2), Fraction(99, 100)])
def test_levels_that_are_not_listed_are_bounded(
    monkeypatch: pytest.MonkeyPatch, listed: int, share: Fraction
) -> None:
    cells, all_levels = 1 << 14, middle_weights(14, share)
    squared = max(float(level.squared.max()) for level in all_levels)
    absolute = max(float(level.absolute.max()) for level in all_levels)
    assert largest_weights(cells, share) == pytest.approx((squared**0.5, absolute))
    monkeypatch.setattr(halving, "DEEPEST_ENUMERATED", listed)
    norm, total = largest_weights(cells, share)
    near = 2.0**-listed if listed < 9 else 1e-5  # the enumerated middles are coarser than usual
    assert squared <= norm**2 + 2 * near
    assert absolute <= total + near
    assert norm**2 < squared + 0.4


def test_the_noise_of_a_count_grows_with_the_levels_and_not_with_their_nodes() -> None:
    """A twelfth of a unit a level on average, where plain sums of nodes have a half."""
    means = [float(level.squared.mean()) for level in middle_weights(16)]
    steps = np.diff(means)
    assert steps[6:] == pytest.approx(1 / 12, abs=0.01)


def test_twin_plain_sums_of_nodes_would_have_six_times_the_variance() -> None:
    plain = np.mean([cell.bit_count() for cell in range(1 << 16)])
    ours = float(middle_weights(16)[-1].squared.mean())
    assert plain / ours > 4


@pytest.mark.parametrize(("before", "after"), [*pairwise([1, 2, 4, 8, 1 << 20])])
def test_depth_is_the_least_number_of_halvings(before: int, after: int) -> None:
    assert (1 << depth(after)) >= after > (1 << depth(after)) // 2
    assert depth(before) < depth(after)
