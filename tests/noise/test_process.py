"""Noise of a counter: reproducible, exactly the weighted sum of its nodes, and of the planned law."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from retrodp.errors import HorizonExceededError, KeyDestroyedError, PlanError
from retrodp.noise.factors import (
    BinaryFactor,
    DelannoyFactor,
    Factor,
    HaarFactor,
    best_delannoy,
    best_haar,
)
from retrodp.noise.key import KeyTree
from retrodp.noise.prf import BlockPRF, Coordinates
from retrodp.noise.process import Law, NoiseProcess

HORIZON = 12
KEYS = KeyTree.from_root(b"a fixed key that tests use only!", b"store", HORIZON)
MANY = 50_000  # a Laplace scale off by 20 % is then missed less than once in 10**15
ALPHA_SIGMAS = 6.2  # two-sided 1e-9 / 2 of a normal deviate, rounded up


def binary(horizon: int) -> Factor:
    return BinaryFactor(horizon=horizon)


PROCESSES = [
    NoiseProcess(factor=make(HORIZON), law=law, scale=Fraction(7, 2))
    for make in (binary, best_haar, best_delannoy)
    for law in ("laplace", "gaussian")
]


def noise(
    process: NoiseProcess, round_: int, where: Coordinates, *, keys: KeyTree = KEYS
) -> list[int]:
    drawn = process.draw(release="visits", round=round_, keys=keys, where=where)
    assert drawn.dtype == np.int64
    return [int(value) for value in drawn]


@pytest.mark.parametrize("process", PROCESSES)
def test_noise_is_the_rounded_sum_of_the_nodes_draws(process: NoiseProcess) -> None:
    """Worked out again in fractions; halves are rounded up, also below zero."""
    where, factor = Coordinates.of_indices(300), process.factor
    expected, ties = [], 0
    for round_ in range(1, HORIZON + 1):
        total = np.zeros(300, dtype=object)
        for node, weight in factor.nodes(round_):
            key = KEYS.node_key(
                release="visits", factor=factor.name, node=node, last=factor.last(node)
            )
            draws = process.node_law.draw(BlockPRF(key), where)
            total += [Fraction(weight * int(draw), factor.denominator) for draw in draws]
        ties += sum(value < 0 and (value + Fraction(1, 2)).denominator == 1 for value in total)
        expected.append([math.floor(value + Fraction(1, 2)) for value in total])
    assert [noise(process, t, where) for t in range(1, HORIZON + 1)] == expected
    assert (ties > 0) == (factor.denominator > 1)


@pytest.mark.parametrize("process", PROCESSES)
def test_wide_integers_give_the_same_noise_as_narrow_ones(
    process: NoiseProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, rounds = Coordinates.of_indices(3000), [5, 6, 12, 1]

    def all_ways() -> list[list[int]]:
        each = process.each_round(release="visits", rounds=rounds, keys=KEYS, where=where)
        drawn = process.draw_rounds(release="visits", rounds=rounds, keys=KEYS, where=where)
        alone = [noise(process, round_, where) for round_ in rounds]
        return [*alone, *(one.tolist() for one in each), *drawn.tolist()]

    assert process._width is np.int32
    narrow = all_ways()
    monkeypatch.setattr("retrodp.noise.process.NARROW", 0)
    assert process._width is np.int64
    assert all_ways() == narrow


def test_integers_are_as_wide_as_the_sums() -> None:
    factor = best_haar(1 << 20)  # weights of half a million on twenty nodes
    assert NoiseProcess(factor=factor, law="gaussian", scale=Fraction(30))._width is np.int64
    large = NoiseProcess(factor=best_haar(12), law="gaussian", scale=Fraction(10**6))
    assert large._width is np.int64


def test_a_single_round_is_rounded_like_any_other() -> None:
    process = NoiseProcess(factor=best_haar(1), law="gaussian", scale=Fraction(9))
    keys = KeyTree.from_root(b"a fixed key that tests use only!", b"store", 1)
    where = Coordinates.of_indices(200)
    alone = process.draw(release="visits", round=1, keys=keys, where=where)
    (first,) = process.each_round(release="visits", rounds=[1], keys=keys, where=where)
    assert len(set(alone.tolist())) > 3
    assert first.tolist() == alone.tolist()


@pytest.mark.parametrize("process", PROCESSES)
def test_a_coordinate_has_the_same_noise_in_any_batch(process: NoiseProcess) -> None:
    labels = Coordinates.of_labels([b"a", b"b", b"c", b"d"], b"k" * 32)
    together = noise(process, 5, labels)
    alone = [noise(process, 5, labels.take(np.array([i]))) for i in range(4)]
    backwards = noise(process, 5, labels.take(slice(None, None, -1)))
    assert [value for batch in alone for value in batch] == together
    assert backwards[::-1] == together


@pytest.mark.parametrize("process", PROCESSES)
def test_noise_is_drawn_alike_from_a_key_that_forgot_earlier_rounds(process: NoiseProcess) -> None:
    where = Coordinates.of_indices(20)
    before = {t: noise(process, t, where) for t in range(7, HORIZON + 1)}
    later = KEYS.advanced(7)
    assert {t: noise(process, t, where, keys=later) for t in before} == before


@pytest.mark.parametrize("process", PROCESSES)
def test_noise_of_a_past_round_cannot_be_drawn_again(process: NoiseProcess) -> None:
    with pytest.raises(KeyDestroyedError):
        noise(process, 1, Coordinates.of_indices(1), keys=KEYS.advanced(HORIZON))


def test_releases_factors_and_coordinates_draw_independently() -> None:
    where = Coordinates.of_indices(200)
    first = PROCESSES[1]
    other_factor = PROCESSES[3]
    one = first.draw(release="visits", round=3, keys=KEYS, where=where)
    two = first.draw(release="users", round=3, keys=KEYS, where=where)
    three = other_factor.draw(release="visits", round=3, keys=KEYS, where=where)
    drawn = np.array([one, two, three], dtype=float)
    apart = np.abs(np.corrcoef(drawn))[np.triu_indices(3, 1)]
    assert (apart < ALPHA_SIGMAS / math.sqrt(200)).all()
    assert len(set(one.tolist())) > 10


def square_test(process: NoiseProcess, *, planned: float, round_: int) -> bool:
    """Whether the variance of the noise fits the planned one, at alpha 1e-9."""
    drawn = process.draw(
        release="law", round=round_, keys=KEYS, where=Coordinates.of_indices(MANY)
    ).astype(float)
    squares = (drawn - drawn.mean()) ** 2
    return bool(abs(squares.mean() - planned) < ALPHA_SIGMAS * squares.std() / math.sqrt(MANY))


@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize(("scale", "fits"), [(1.0, True), (1 / 1.2, False), (1.2, False)])
def test_noise_has_the_planned_variance(process: NoiseProcess, scale: float, fits: bool) -> None:  # noqa: FBT001
    planned = process.variance(7) * scale**2
    assert square_test(process, planned=planned, round_=7) is fits


@pytest.mark.parametrize("process", PROCESSES)
def test_two_rounds_vary_together_as_far_as_they_share_nodes(process: NoiseProcess) -> None:
    """Rounds 4 and 9 = horizon + 1 - 4: a factor without sides would give minus the variance."""
    factor, where = process.factor, Coordinates.of_indices(MANY)
    shared = dict(factor.nodes(4))
    weight = sum(w * shared.get(node, 0) for node, w in factor.nodes(9))
    planned = weight / factor.denominator**2 * process.node_law.variance_exactish
    four = np.array(noise(process, 4, where), dtype=float)
    nine = np.array(noise(process, 9, where), dtype=float)
    products = (four - four.mean()) * (nine - nine.mean())
    bound = ALPHA_SIGMAS * products.std() / math.sqrt(MANY)
    assert abs(products.mean() - planned) < bound
    assert abs(products.mean() + process.variance(4)) > bound


@pytest.mark.parametrize("process", PROCESSES)
def test_maximum_and_mean_variance_are_those_of_the_rounds(process: NoiseProcess) -> None:
    variances = [process.variance(t) for t in range(1, HORIZON + 1)]
    assert process.max_variance == pytest.approx(max(variances))
    assert process.mean_variance == pytest.approx(sum(variances) / HORIZON)
    assert process.stddev(5) == pytest.approx(math.sqrt(variances[4]))


def test_rounding_counts_only_where_there_is_a_denominator() -> None:
    node = PROCESSES[1].node_law.variance_exactish
    haar = NoiseProcess(factor=best_haar(3), law="gaussian", scale=Fraction(7, 2))
    assert haar.factor.unit_variance(2) == Fraction(1, 4)
    assert haar.variance(2) == pytest.approx(node / 4 + 1 / 12)
    assert PROCESSES[1].variance(8) == pytest.approx(node)


@pytest.mark.parametrize(("round_", "mean"), [(1, 1 / 8), (2, 1 / 4), (3, 1 / 8)])
def test_rounding_halves_up_lifts_the_mean_of_a_sum_of_few_nodes(round_: int, mean: float) -> None:
    """By half of the lattice's step 2**-m, m nodes."""
    factor = HaarFactor(horizon=3, height=2, positions=(1, 2, 3))
    process = NoiseProcess(factor=factor, law="gaussian", scale=Fraction(8))
    keys = KeyTree.from_root(b"k" * 32, b"store", 3)
    where = Coordinates.of_indices(MANY)
    drawn = process.draw(release="r", round=round_, keys=keys, where=where)
    assert abs(drawn.mean() - mean) < ALPHA_SIGMAS * drawn.std() / math.sqrt(MANY)
    assert abs(drawn.mean()) > ALPHA_SIGMAS * drawn.std() / math.sqrt(MANY)


@pytest.mark.parametrize("process", PROCESSES)
def test_a_process_survives_json(process: NoiseProcess) -> None:
    again = NoiseProcess.from_spec(json.loads(json.dumps(process.spec())))
    assert again == process
    where = Coordinates.of_indices(5)
    assert noise(again, 3, where) == noise(process, 3, where)


@pytest.mark.parametrize(
    "change",
    [
        {"law": "normal"},
        {"law": None},
        {"scale": "0"},
        {"scale": "-1"},
        {"scale": "nan"},
        {"scale": 1.5},
        {"factor": "binary"},
        {"factor": {"factor": "binary"}},
        {"seed": 1},
    ],
)
def test_a_description_that_is_no_process_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(PlanError):
        NoiseProcess.from_spec(PROCESSES[0].spec() | change)


@pytest.mark.parametrize(
    ("make", "law", "scale", "fits"),
    [
        (best_haar, "gaussian", 2**80, True),
        (best_haar, "laplace", 2**32, True),
        (best_haar, "laplace", 2**40, False),
        (best_delannoy, "laplace", 2**40, True),
        (binary, "gaussian", 2**80, True),
    ],
)
def test_scales_whose_sums_could_leave_64_bits_are_refused(
    make: Callable[[int], Factor],
    law: Law,
    scale: int,
    fits: bool,  # noqa: FBT001
) -> None:
    factor = make(4096)
    if fits:
        process = NoiseProcess(factor=factor, law=law, scale=Fraction(scale))
        worst = max(sum(abs(w) for _, w in factor.nodes(t)) for t in range(1, 4097))
        assert worst * process.node_law.max_magnitude < 2**63
    else:
        with pytest.raises(PlanError, match="64 bits"):
            NoiseProcess(factor=factor, law=law, scale=Fraction(scale))


@pytest.mark.parametrize(
    "factor",
    [
        BinaryFactor(horizon=1),
        HaarFactor(horizon=1, height=1, positions=(1,)),
        DelannoyFactor(horizon=1, w=1, z=1),
    ],
)
def test_a_horizon_of_one_round_works(factor: Factor) -> None:
    process = NoiseProcess(factor=factor, law="gaussian", scale=Fraction(4))
    keys = KeyTree.from_root(b"k" * 32, b"store", 1)
    drawn = process.draw(release="r", round=1, keys=keys, where=Coordinates.of_indices(100))
    assert len(set(drawn.tolist())) > 1
    with pytest.raises(HorizonExceededError):
        process.variance(2)


def test_keys_are_not_shown() -> None:
    assert "key" not in repr(PROCESSES[0])
