"""Quantiles: exact without noise, honest with it, and silent where there may be nobody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray
from scipy.stats import binom

from retrodp.mechanisms.answer import Answer, Bounds
from retrodp.mechanisms.quantiles import rank_errors
from retrodp.noise.key import KeyTree
from retrodp.noise.prf import Coordinates
from retrodp.noise.process import Law
from retrodp.postprocess.halving import Cut, counts_below
from tests.contracts.mechanisms import Recording
from tests.mechanisms.trees import (
    EXACT,
    HORIZON,
    KEYS,
    LEVEL,
    below,
    exact_quantile,
    quantiles,
    rank_error,
    totals,
)

ALPHA = 1e-9  # one false alarm in 10**9 with fresh keys
RUNS = 300
CELLS = 200
AT = ("0.1", "0.5", "0.95")
LAWS: list[Law] = ["gaussian", "laplace"]
DATA: dict[str, Mapping[int, int]] = {
    "even": dict.fromkeys(range(CELLS), 40),
    "ties": {17: 6000, 120: 1999, 199: 1},
    "skewed": {cell: 4000 // (cell + 1) ** 2 for cell in range(60)},
    "gaps": {0: 900, 100: 900, 101: 900, 199: 900},
}


def values_by_share(answer: Answer) -> dict[str, NDArray[np.int64]]:
    """Published values of each share over the groups."""
    assert answer.keys is not None
    found: dict[str, list[int]] = {}
    for key, value in zip(answer.keys, answer.values, strict=True):
        assert value is not None
        found.setdefault(key.split(",")[-1].rstrip("]"), []).append(value)
    return {share: np.array(values) for share, values in found.items()}


def bounds_by_share(answer: Answer) -> dict[str, list[Bounds]]:
    assert answer.keys is not None
    assert answer.each is not None
    found: dict[str, list[Bounds]] = {}
    for key, bounds in zip(answer.keys, answer.each, strict=True):
        found.setdefault(key.split(",")[-1].rstrip("]"), []).append(bounds)
    return found


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(st.integers(0, 36), st.integers(2000, 9000), min_size=1, max_size=9),
    st.lists(st.sampled_from(["0.01", "1/3", "0.5", "0.9", "0.999"]), min_size=1, unique=True),
    st.sampled_from(LAWS),
)
def test_with_hardly_any_noise_they_are_those_of_a_sort(
    counts: dict[int, int], at: list[str], law: Law
) -> None:
    release = quantiles(37, at, law=law, budget=EXACT)
    answer = release.release(3, totals(counts), KEYS)
    values = np.sort(np.repeat([*counts], [*counts.values()]))
    for key, value in zip(answer.keys or (), answer.values, strict=True):
        assert value is not None
        ranks = (np.searchsorted(values, value), np.searchsorted(values, value, side="right"))
        assert ranks[0] - 4 <= float(Fraction(key) * len(values)) <= ranks[1] + 4


def test_800_000_equal_values_are_found_exactly() -> None:
    """Where the counts of all other values are 0, every quantile is the one value."""
    release = quantiles(50_001, AT)
    for cell in (0, 7, 25_000, 50_000):
        answer = release.release(5, totals({cell: 800_000}), KEYS)
        assert answer.values == (cell,) * 3
        assert {bounds[1:] for bounds in answer.each or ()} == {(cell,) * 4}


@pytest.mark.parametrize("cells", [1, 2, 3, 1 << 20])
@pytest.mark.parametrize("law", LAWS)
def test_grids_of_any_size_are_searched(cells: int, law: Law) -> None:
    release = quantiles(cells, AT, law=law, least=-5)
    last = release.release(1, totals({cells - 1: 50_000}), KEYS)
    assert last.values == (cells - 6,) * 3
    assert release.release(1, totals({0: 50_000}), KEYS).values == (-5,) * 3


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("data", DATA)
def test_every_interval_covers_the_exact_quantile(data: str, law: Law) -> None:
    counts, release = DATA[data], quantiles(CELLS, AT, runs=RUNS, law=law)
    sums = below(counts, CELLS)
    found = bounds_by_share(release.release(6, totals(counts, runs=RUNS), KEYS))
    most = binom.isf(ALPHA, RUNS, float(1 - LEVEL))
    for share, bounds in found.items():
        exact = exact_quantile(sums, Fraction(share))
        missed = sum(not b.low <= exact <= b.high for b in bounds)
        missed_all = sum(not b.low_all <= exact <= b.high_all for b in bounds)
        assert missed <= most
        assert missed_all <= binom.isf(ALPHA, RUNS, float(1 - LEVEL) / HORIZON)
    assert len(found) == len(AT)


@pytest.mark.parametrize("law", LAWS)
def test_intervals_for_all_rounds_hold_in_all_rounds(law: Law) -> None:
    runs, counts = 100, DATA["even"]
    release = quantiles(CELLS, ["0.5"], runs=runs, law=law)
    exact = exact_quantile(below(counts, CELLS), Fraction(1, 2))
    left: set[int] = set()
    for round_ in range(1, HORIZON + 1):
        answer = release.release(round_, totals(counts, runs=runs), KEYS)
        bounds = bounds_by_share(answer)["0.5"]
        left |= {run for run, b in enumerate(bounds) if not b.low_all <= exact <= b.high_all}
    assert len(left) <= binom.isf(ALPHA, runs, float(1 - LEVEL))


def test_twin_intervals_of_one_middle_only_miss_too_often() -> None:
    """A band for a single comparison ignores that a walk compares at every level."""
    counts, runs = DATA["even"], RUNS
    release = quantiles(CELLS, ["0.5"], runs=runs)
    narrow = float(LEVEL) / 10  # of the band's width
    answer = release.release(6, totals(counts, runs=runs), KEYS)
    exact = exact_quantile(below(counts, CELLS), Fraction(1, 2))
    (values,) = values_by_share(answer).values()
    bounds = bounds_by_share(answer)["0.5"]
    missed = sum(
        abs(value - exact) > narrow * (b.high - b.low) / 2
        for value, b in zip(values, bounds, strict=True)
    )
    assert missed > binom.isf(ALPHA, runs, float(1 - LEVEL))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("data", DATA)
def test_rank_errors_stay_within_what_is_predicted(data: str, law: Law) -> None:
    counts, release = DATA[data], quantiles(CELLS, AT, runs=RUNS, law=law)
    sums = below(counts, CELLS)
    predicted = rank_errors(release.noise, CELLS, release.at)
    found = values_by_share(release.release(6, totals(counts, runs=RUNS), KEYS))
    most = binom.isf(ALPHA, RUNS, float(1 - LEVEL))
    for share, values in found.items():
        errors = np.array([rank_error(sums, Fraction(share), cell) for cell in values.tolist()])
        assert np.count_nonzero(errors > predicted["half"]) <= most
        assert np.sqrt(np.mean(errors**2)) < float(predicted["stddev"])
    assert len(found) == len(AT)


def test_published_quantiles_never_cross_and_lie_in_their_intervals() -> None:
    at = ["0.05", "0.1", "0.5", "0.51", "0.52", "0.9"]
    release = quantiles(CELLS, at, runs=RUNS)
    answer = release.release(2, totals(DATA["even"], runs=RUNS), KEYS)
    found = values_by_share(answer)
    assert all((found[one] <= found[two]).all() for one, two in pairwise(at))
    nested = [
        b.low_all <= b.low <= value <= b.high <= b.high_all
        for value, b in zip(answer.values, answer.each or (), strict=True)
        if value is not None
    ]
    assert len(nested) == len(at) * RUNS
    assert all(nested)


@pytest.mark.parametrize("counts", [{}, {5: 1}, {5: 0, 6: 0}])
def test_where_there_may_be_nobody_there_is_no_value(counts: dict[int, int]) -> None:
    release = quantiles(CELLS, AT, least=-50)
    answer = release.release(4, totals(counts), KEYS)
    assert answer.values == (None,) * 3
    assert [b[1:] for b in answer.each or ()] == [(-50, 149, -50, 149)] * 3


def test_an_empty_group_hardly_ever_has_a_value() -> None:
    release = quantiles(CELLS, ["0.5"], runs=RUNS)
    answer = release.release(4, {}, KEYS)
    some = sum(value is not None for value in answer.values)
    assert some <= binom.isf(ALPHA, RUNS, float(1 - LEVEL))


def test_groups_are_independent_and_sorted_by_label() -> None:
    release = quantiles(CELLS, AT, runs=3)
    exact = totals({40: 5000}) | {b"50\n000001": 5000, b"60\n000002": 5000}
    answer = release.release(1, exact, KEYS)
    assert answer.keys == tuple(
        f'["{group}",{share}]' for group in ("000000", "000001", "000002") for share in AT
    )
    assert answer.values == (None,) * 3 + (50,) * 3 + (60,) * 3


def test_what_lies_in_no_public_group_is_not_looked_at() -> None:
    release = quantiles(CELLS, AT, runs=2)
    exact = totals(DATA["even"], runs=2)
    other = exact | {b"3\nelsewhere": 10**6}
    assert release.release(1, exact, KEYS) == release.release(1, other, KEYS)


def test_empty_nodes_are_asked_for_like_full_ones() -> None:
    """Noise is asked for by the same public labels, whatever there is."""
    release = quantiles(CELLS, AT)
    full, one = Recording(KEYS), Recording(KEYS)
    release.release(3, totals(DATA["even"]), full)
    release.release(3, totals({150: 8000}), one)
    assert full.labels == one.labels


def test_the_noise_of_a_node_does_not_depend_on_what_else_is_asked() -> None:
    """Few shares and many, or other groups, meet the same tree."""
    exact = totals(DATA["even"])
    few = quantiles(CELLS, ["0.5"]).release(3, exact, KEYS)
    many = quantiles(CELLS, AT).release(3, exact, KEYS)
    assert few.values[0] == dict(zip(many.keys or (), many.values, strict=True))["0.5"]


def test_an_answer_survives_its_bytes() -> None:
    answer = quantiles(CELLS, AT, runs=2).release(3, totals(DATA["gaps"], runs=2), KEYS)
    assert Answer.from_bytes(answer.to_bytes()) == answer


def test_predictions_grow_with_the_grid_and_say_what_they_are_of() -> None:
    facts = [quantiles(cells, ["0.5"]).describe() for cells in (2, 256, 1 << 16)]
    assert [fact["levels"] for fact in facts] == [2, 9, 17]
    errors = [fact["error_max"] for fact in facts]
    assert errors == sorted(errors)
    assert {fact["error_is"] for fact in facts} == {"of the rank, in records"}


@pytest.mark.parametrize("share", ["0.5", "0.95"])
def test_the_predicted_deviation_of_a_rank_is_met(share: str) -> None:
    """At the worst middle, within a tenth (3,000 runs: some 1.3 % of a deviation)."""
    runs, cells, round_ = 3000, 64, 6
    release = quantiles(cells, [share])
    where = Coordinates.of_indices(runs * cells)
    draws = release.noise.draw(round_, KEYS, where).reshape(runs, cells)
    ranks = draws @ _weights_of_ranks(cells, float(share))
    own = float(release.noise.stddev[round_ - 1])
    largest = max(map(float, release.noise.stddev))
    predicted = float(rank_errors(release.noise, cells, release.at)["stddev"]) * own / largest
    assert ranks.std(axis=0).max() == pytest.approx(predicted, rel=0.1)


def _weights_of_ranks(cells: int, share: float) -> NDArray[np.float64]:
    """What noise on each coordinate adds to each cumulative count less the share of the total."""
    rows = []
    for place in range(cells):
        unit = [int(place == number) for number in range(cells)]

        def asked(cuts: Sequence[Cut], unit: Sequence[int] = unit) -> list[int]:
            return [unit[cut.number] for cut in cuts]

        counts = counts_below(cells, unit[0], asked)
        rows.append([float(count) - share * unit[0] for count in counts[:-1]])
    return np.array(rows)


def test_keys_that_forgot_earlier_rounds_give_the_same_answer() -> None:
    release, exact = quantiles(CELLS, AT), totals(DATA["skewed"])
    late = KeyTree.from_root(bytes(range(32)), b"trees", HORIZON).advanced(5)
    assert release.release(6, exact, late) == release.release(6, exact, KEYS)
