"""Revised series: what is published of every stamp, its bytes, errors, intervals and thresholds."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from retrodp.engine.compile import CompiledRelease, compile_plan
from retrodp.engine.resolve import resolve
from retrodp.errors import HorizonExceededError, PlanError, StoreCorruptError
from retrodp.mechanisms.answer import Answer, Spread
from retrodp.mechanisms.revised import RevisedSeries, SparseRevised
from retrodp.mechanisms.revised_bytes import packed_rows, unpacked_rows
from retrodp.noise.key import KeyTree
from retrodp.noise.tails import upper_tail
from retrodp.plan.plan import Plan
from retrodp.statistics.revised import seven_bits
from tests.support.plans import HORIZON
from tests.support.revised import one, revised

TREE = KeyTree.from_root(bytes(range(32)), b"revised", HORIZON)
ROUNDS = range(1, HORIZON + 1)


def compiled(plan: Plan) -> dict[str, CompiledRelease]:
    return {release.name: release for release in compile_plan(plan, resolve(plan))}


@cache
def all_of(model: Any = "zcdp") -> dict[str, CompiledRelease]:
    """All releases of the plan that holds every kind."""
    return compiled(revised("ids", model))


def totals(mechanism: Any, counts: dict[tuple[int, int], int]) -> dict[bytes, int]:
    """Totals by stamp and number of the bin."""
    if isinstance(mechanism, SparseRevised):
        return {seven_bits(s) + b"label %d" % b: n for (s, b), n in counts.items()}
    return {seven_bits(s) + seven_bits(b): n for (s, b), n in counts.items()}


def changes_of(one_: Answer, other: Answer) -> list[int]:
    """Value by value."""
    pairs = zip(one_.values, other.values, strict=True)
    return [a - b for a, b in pairs if a is not None and b is not None]


COUNTS = {(1, 0): 500, (2, 0): 700, (2, 1): 900, (5, 0): 40}


@pytest.mark.parametrize("model", ["zcdp", "pure"])
def test_every_stamp_is_published_in_every_round_whatever_changed(model: Any) -> None:
    for name, release in all_of(model).items():
        mechanism = release.mechanism
        assert isinstance(mechanism, RevisedSeries | SparseRevised), name
        if isinstance(mechanism, SparseRevised):
            continue
        for exact in ({}, totals(mechanism, COUNTS)):
            for round_ in ROUNDS:
                answer = mechanism.release(round_, exact, TREE)
                bins = max(1, len(mechanism.bins or ()))
                first = max(1, round_ - mechanism.series.factor.rounds + 1)
                assert answer.stamps == tuple(range(first, round_ + 1)) * bins
                assert answer.first_stamp == first
                assert len(answer) == len(answer.stamps)


def test_noise_is_added_to_the_count_of_each_stamp_or_up_to_it() -> None:
    releases = all_of()
    for name, wanted in (
        ("cases", [500, 700, 0, 0, 40]),
        ("so_far", [500, 1200, 1200, 1200, 1240]),
    ):
        mechanism = releases[name].mechanism
        assert isinstance(mechanism, RevisedSeries)
        exact = totals(mechanism, {place: n for place, n in COUNTS.items() if place[1] == 0})
        with_data = mechanism.release(5, exact, TREE)
        without = mechanism.release(5, {}, TREE)
        differences = changes_of(with_data, without)
        assert differences == wanted
        later = mechanism.release(4, exact, TREE)  # the future is not known
        assert len(later) == 4


def test_records_of_stamps_that_are_no_longer_published_count_where_stamps_add_up() -> None:
    releases = all_of()
    so_far = releases["money_so_far"].mechanism
    assert isinstance(so_far, RevisedSeries)
    assert so_far.series.factor.rounds == 4
    old = totals(so_far, {(1, 0): 1000})
    changes = changes_of(so_far.release(6, old, TREE), so_far.release(6, {}, TREE))
    assert changes == [1000] * 4
    assert releases["money_so_far"].window is None
    assert releases["cases_recent"].window == 3


def test_bytes_depend_on_key_round_and_totals_alone() -> None:
    for release in all_of().values():
        mechanism = release.mechanism
        assert isinstance(mechanism, RevisedSeries | SparseRevised)
        exact = totals(mechanism, COUNTS)
        made = [mechanism.release(r, exact, TREE).to_bytes() for r in ROUNDS]
        back = [
            mechanism.release(r, dict(reversed(exact.items())), TREE).to_bytes()
            for r in reversed(ROUNDS)
        ]
        assert back[::-1] == made
        again = [Answer.from_bytes(data) for data in made]
        assert [answer.to_bytes() for answer in again] == made


def test_the_horizon_is_an_end() -> None:
    longer = KeyTree.from_root(bytes(32), b"longer", HORIZON + 5)
    for release in all_of().values():
        mechanism = release.mechanism
        assert isinstance(mechanism, RevisedSeries | SparseRevised)
        with pytest.raises(HorizonExceededError):
            mechanism.release(HORIZON + 1, {}, longer)
        with pytest.raises(PlanError):
            mechanism.release(0, {}, TREE)


RUNS = 6000


@pytest.mark.parametrize(
    "text",
    ['shape = "per_stamp"', 'shape = "per_stamp"\nlast = "3d"', 'shape = "cumulative"'],
)
@pytest.mark.parametrize("model", ["zcdp", "pure"])
def test_predicted_errors_are_the_measured_ones_and_intervals_hold(text: str, model: Any) -> None:
    """Bins of a histogram stand for keys: each has noise of its own."""
    plan = Plan.loads(
        one(f'kind = "count"\n{text}', epsilon=1).text.replace(
            'model = "zcdp"', f'model = "{model}"'
        )
    )
    mechanism = compiled(plan)["r"].mechanism
    assert isinstance(mechanism, RevisedSeries)
    many = replace(mechanism, bins=tuple(f"{number:05d}" for number in range(RUNS)))
    for round_ in (3, HORIZON):
        answer = many.release(round_, {}, TREE)
        assert answer.spreads is not None
        noise = np.array(answer.values).reshape(RUNS, len(answer.spreads))
        for column, spread in zip(noise.T, answer.spreads, strict=True):
            assert column.std() == pytest.approx(float(spread.stddev), rel=0.1)
            assert (np.abs(column) > spread.half).mean() < 0.05 + 5 * math.sqrt(0.05 / RUNS)
            assert (np.abs(column) > spread.half_all).mean() < 0.05 / 3 + 0.01


def test_a_threshold_pays_for_every_pair_that_a_record_can_be_alone_in() -> None:
    """Attack 13: one stamp in all its rounds, or all pairs where stamps add up."""
    for text, cumulative in (("", False), ('shape = "cumulative"', True)):
        plan = one(f'kind = "histogram"\nby = "product"\n{text}')
        (entry,) = resolve(plan).releases
        release = compiled(plan)["r"].mechanism
        assert isinstance(release, SparseRevised)
        process = release.series.noise.process

        allowed = float(Fraction(entry["threshold_delta"]))
        at, below = (
            math.fsum(
                upper_tail(process, r, threshold - 1) * (r if cumulative else 1) for r in ROUNDS
            )
            for threshold in (release.threshold, release.threshold - 1)
        )
        assert at <= allowed < below


def test_a_limit_lowers_noise_and_threshold() -> None:
    def resolved(text: str) -> dict[str, Any]:
        (entry,) = resolve(one(text, horizon=60)).releases
        return dict(entry)

    open_ = 'kind = "histogram"\nby = "product"\n'
    whole, limited = resolved(open_), resolved(open_ + 'last = "7d"')
    assert max(limited["noise"]["half"]) < max(whole["noise"]["half"])
    assert limited["threshold"] < whole["threshold"]
    up_to = open_ + 'shape = "cumulative"\n'
    whole, limited = resolved(up_to), resolved(up_to + 'last = "7d"')
    assert limited["noise"]["half"] == whole["noise"]["half"]  # every stamp is the newest once
    assert limited["threshold"] <= whole["threshold"]


def test_only_labels_with_records_at_a_stamp_are_published_there() -> None:
    releases = all_of()
    for name, wanted in (
        ("by_product", {("label 0", 1), ("label 0", 2), ("label 1", 2), ("label 0", 5)}),
        (
            "product_so_far",
            {("label 0", s) for s in range(1, 6)} | {("label 1", s) for s in range(2, 6)},
        ),
    ):
        mechanism = releases[name].mechanism
        assert isinstance(mechanism, SparseRevised)
        answer = mechanism.release(5, totals(mechanism, COUNTS), TREE)
        assert answer.keys is not None
        assert answer.stamps is not None
        assert set(zip(answer.keys, answer.stamps, strict=True)) == wanted
        pairs = list(zip(answer.keys, answer.stamps, strict=True))
        assert pairs == sorted(pairs, key=lambda pair: (pair[0].encode(), pair[1]))


ROWS = st.integers(1, 6).flatmap(
    lambda length: st.lists(
        st.lists(st.integers(-(2**63), 2**63 - 1), min_size=length, max_size=length), max_size=4
    )
)


@given(ROWS)
def test_any_rows_survive_their_bits(rows: list[list[int]]) -> None:
    length = len(rows[0]) if rows else 3
    matrix = np.array(rows, dtype=np.int64).reshape(-1, length)
    again, rest = unpacked_rows(memoryview(packed_rows(matrix)), len(matrix), length)
    assert np.array_equal(again, matrix)
    assert len(rest) == 0


def test_quiet_counts_take_the_bits_of_their_noise() -> None:
    rng = np.random.default_rng(0)
    noise = np.rint(rng.normal(0, 4.3, (1, 3650))).astype(np.int64)
    assert len(packed_rows(noise + 10**9)) <= 3650 * 6 / 8 + 32
    level = np.arange(3650)[None, :] * 1000 + noise
    assert len(packed_rows(level)) <= 3650 * 7 / 8 + 32  # differences are quiet too


ANSWER = Answer(
    release="r",
    round=3,
    keys=("ink", "tea", "tea"),
    values=(5, -7, 2**62),
    step=Fraction(1, 2),
    stddev="4.3",
    half=9,
    half_all=14,
    level=Fraction(19, 20),
    stamps=(2, 1, 3),
    spreads=(Spread("4.1", 8, 13), Spread("4.1", 8, 13), Spread("4.3", 9, 14)),
    threshold=3,
)


def test_an_answer_by_stamp_survives_its_bytes_and_lists_its_rows() -> None:
    assert Answer.from_bytes(ANSWER.to_bytes()) == ANSWER
    assert ANSWER.columns[:3] == ("key", "stamp", "value")
    assert [row[:4] for row in ANSWER.rows()] == [
        ("ink", "2", "2.5", "4.1"),
        ("tea", "1", "-3.5", "4.1"),
        ("tea", "3", str(2**61), "4.3"),
    ]
    frame = ANSWER.to_arrow()
    assert frame.column("stamp").to_pylist() == [2, 1, 3]
    with pytest.raises(TypeError):
        _ = ANSWER.value


def test_rounds_and_stamps_are_numbered_on_together() -> None:
    later = ANSWER.numbered_on(10)
    assert (later.round, later.stamps, later.first_stamp) == (13, (12, 11, 13), 11)
    assert [figure.bounds for figure in later.figures()] == [
        figure.bounds for figure in ANSWER.figures()
    ]
    assert Answer.from_bytes(later.to_bytes()) == later


@pytest.mark.parametrize("cut", [-1, 30, 60])
def test_a_damaged_answer_is_refused(cut: int) -> None:
    with pytest.raises(StoreCorruptError):
        Answer.from_bytes(ANSWER.to_bytes()[:cut])
    with pytest.raises(StoreCorruptError):
        Answer.from_bytes(ANSWER.to_bytes() + b"\0")
