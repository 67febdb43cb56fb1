"""Histograms over an open domain: who appears, and what the threshold costs."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from numpy.typing import NDArray

from retrodp.errors import PlanError
from retrodp.mechanisms.calibrate import choose_factor, gaussian_process, laplace_process
from retrodp.mechanisms.histogram import Histogram, SparseHistogram
from retrodp.mechanisms.threshold import threshold_for
from retrodp.noise.key import KeyTree
from retrodp.noise.prf import Coordinates
from retrodp.noise.process import NoiseProcess
from retrodp.privacy.budget import PureDP, zCDP
from tests.support.answers import pairs_of

HORIZON = 6
TREE = KeyTree.from_root(bytes(32), b"sparse", HORIZON)
Law = NDArray[np.float64]


def sparse(**options: object) -> SparseHistogram:
    settings: dict[str, object] = {"horizon": HORIZON, "budget": zCDP("1/2"), "delta": "1e-6"}
    return SparseHistogram(**settings | options)  # type: ignore[arg-type]


def test_only_bins_that_reach_the_threshold_appear_in_order_of_their_bytes() -> None:
    histogram = sparse()
    tau = histogram.threshold
    totals = {b"\xc3\xa4": 9 * tau, b"z": 9 * tau, b"a": 9 * tau, b"few": 1}
    answer = histogram.release(2, totals, TREE)
    assert answer.keys == ("a", "z", "ä")
    assert min(pairs_of(answer).values()) >= tau
    assert answer.threshold == tau


def test_a_bin_whose_records_are_gone_disappears_at_once() -> None:
    histogram = sparse()
    full = {b"tea": 10 * histogram.threshold, b"ink": 10 * histogram.threshold}
    before = histogram.release(2, full, TREE)
    after = histogram.release(3, {b"tea": full[b"tea"]}, TREE)
    assert (before.keys, after.keys) == (("ink", "tea"), ("tea",))


def test_an_empty_bin_never_appears_however_large_its_noise() -> None:
    histogram = SparseHistogram.of(sparse().noise, threshold=-1000, max_bins=10)
    assert histogram.release(1, {b"zero": 0}, TREE).keys == ()
    assert histogram.release(1, {b"one": 1}, TREE).keys == ("one",)


def test_a_label_has_its_noise_wherever_it_stands() -> None:
    """Position in the list, other bins and their number do not matter."""
    histogram = SparseHistogram.of(sparse().noise, threshold=-1000, max_bins=10)
    alone = pairs_of(histogram.release(4, {b"tea": 1}, TREE))["tea"]
    crowd = {f"bin{number}".encode(): 1 for number in range(300)} | {b"tea": 1}
    assert pairs_of(histogram.release(4, crowd, TREE))["tea"] == alone


def test_a_public_histogram_looks_at_no_other_label() -> None:
    histogram = Histogram(("b", "a"), horizon=HORIZON, budget=PureDP(1))
    assert histogram.release(1, {b"a": 5, b"other": 99}, TREE) == (
        histogram.release(1, {b"a": 5}, TREE)
    )
    assert histogram.bins == ("a", "b")


@pytest.mark.parametrize("bins", [(), ("a", "a")])
def test_a_public_set_of_bins_has_one_at_least_and_none_twice(bins: tuple[str, ...]) -> None:
    with pytest.raises(PlanError):
        Histogram(bins, horizon=HORIZON, budget=PureDP(1))


@pytest.mark.parametrize("delta", [0, 1, float("nan"), -0.1, 2, "1e400"])
def test_a_delta_that_is_no_probability_is_refused(delta: float) -> None:
    with pytest.raises(PlanError):
        sparse(delta=delta)


def node_law(process: NoiseProcess, reach: int) -> Law:
    """Probabilities of -reach..reach of one node's draw, from the formula."""
    k = np.arange(-reach, reach + 1, dtype=float)
    scale = float(process.scale)
    weights = (
        np.exp(-np.abs(k) / scale) if process.law == "laplace" else np.exp(-(k**2) / 2 / scale)
    )
    law: Law = weights / weights.sum()
    return law


def upper_tails(process: NoiseProcess, reach: int) -> Law:
    """P[rounded noise of a round >= x] for x = 0..reach, shape (rounds, reach + 1), by convolution."""
    law, tables = node_law(process, reach), []
    for round_ in range(1, HORIZON + 1):
        total = np.ones(1)
        for _, weight in process.factor.nodes(round_):
            spread = np.zeros((len(law) - 1) * abs(weight) + 1)
            spread[:: abs(weight)] = law if weight > 0 else law[::-1]
            total = np.convolve(total, spread)
        values = np.arange(len(total)) - len(total) // 2
        rounded = np.floor(values / process.factor.denominator + 0.5)
        tables.append([total[rounded >= x].sum() for x in range(reach + 1)])
    return np.array(tables)


def crossing(tails: Law, threshold: int, records: int, per_bin: int) -> float:
    """The worst split of the records over bins, by trying all."""
    worst = 0.0
    for bins in range(1, records + 1):
        for split in combinations_with_replacement(range(1, per_bin + 1), bins):
            if sum(split) == records:
                at = [max(threshold - held, 0) for held in split]
                worst = max(worst, float(sum(tails[:, x].sum() for x in at)))
    return worst


@pytest.mark.parametrize("name", ["binary", "delannoy", "haar"])
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize(("records", "per_bin"), [(1, 1), (3, 3), (4, 2)])
def test_a_threshold_is_the_least_that_brute_force_allows(
    name: str, law: str, records: int, per_bin: int
) -> None:
    factor = choose_factor(name, horizon=HORIZON, law=law)
    process = (
        laplace_process(factor, epsilon=Fraction(3), amount=1)
        if law == "laplace"
        else gaussian_process(factor, rho=Fraction(1), amount=1)
    )
    delta = 1e-4
    tails = upper_tails(process, 160)
    tau = threshold_for(process, delta=delta, records=records, per_bin=per_bin)
    assert crossing(tails, tau, records, per_bin) <= delta
    # Certified bounds are not exact: they may cost a step, or (Laplace on haar) a few more.
    spare = 7 if (law, name) == ("laplace", "haar") else 2
    assert crossing(tails, tau - spare, records, per_bin) > delta


def test_twin_the_threshold_of_one_record_is_too_low_for_several() -> None:
    factor = choose_factor("delannoy", horizon=HORIZON, law="laplace")
    process = laplace_process(factor, epsilon=Fraction(3), amount=1)
    tails = upper_tails(process, 160)
    one = threshold_for(process, delta=1e-4, records=1)
    assert crossing(tails, one, 1, 1) <= 1e-4
    assert crossing(tails, one, 4, 4) > 10 * 1e-4


def test_counts_at_the_end_of_64_bits_are_released_exactly() -> None:
    """Count and noise together may need more than 64 bits."""
    histogram, most = sparse(), 2**63 - 1
    totals = {f"bin{number}".encode(): most for number in range(50)}
    answer = histogram.release(2, totals, TREE)
    noise = [value - most for value in pairs_of(answer).values()]
    assert len(noise) == 50
    assert min(noise) < 0 < max(noise) < histogram.threshold


def test_a_release_is_each_bin_s_own_noise_and_threshold() -> None:
    """Worked out bin by bin, among bins without records."""
    histogram = SparseHistogram.of(sparse().noise, threshold=4, max_bins=10)
    totals = {f"bin{number:04d}".encode(): number % 7 for number in range(2000)}
    key = TREE.lasting_key(release=histogram.name, purpose="labels")
    expected = {}
    for label, count in totals.items():
        where = Coordinates.of_labels([label], key)
        value = count + int(histogram.noise.draw(3, TREE, where)[0])
        if count and value >= 4:
            expected[label.decode()] = value
    found = pairs_of(histogram.release(3, totals, TREE))
    assert found == expected
    assert 0 < len(found) < 2000
    assert list(found) == sorted(found)
