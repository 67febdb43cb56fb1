"""Noise of a dense factor: exactly the rounded rational combination, for any floating point."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from retrodp.errors import HorizonExceededError, KeyDestroyedError, PlanError
from retrodp.noise import dense
from retrodp.noise.dense import DenseProcess, combined
from retrodp.noise.factors.dense import DenseFactor, best_dense, rows_of, square_root
from retrodp.noise.factors.rows import exact_row
from retrodp.noise.factors.triangle import packed
from retrodp.noise.gaussian import DiscreteGaussian
from retrodp.noise.key import KeyTree, Node
from retrodp.noise.prf import BlockPRF, Coordinates
from retrodp.noise.processes import process_from_spec

HORIZON = 12
KEYS = KeyTree.from_root(b"a fixed key that tests use only!", b"store", HORIZON)
MANY = 50_000
ALPHA_SIGMAS = 6.2  # two-sided 1e-9 / 2 of a normal deviate, rounded up
RHO = Fraction(1, 2)


def at_rho_half(factor: DenseFactor) -> DenseProcess:
    return DenseProcess(factor=factor, scale=Fraction(factor.window_l2sq))


PROCESSES = [
    at_rho_half(best_dense(HORIZON)),
    at_rho_half(best_dense(HORIZON, 4)),
    at_rho_half(square_root(HORIZON)),
]
every_process = pytest.mark.parametrize("process", PROCESSES, ids=["dense", "windows", "sqrt"])


def noise(
    process: DenseProcess, round_: int, where: Coordinates, *, keys: KeyTree = KEYS
) -> list[int]:
    drawn = process.draw(release="visits", round=round_, keys=keys, where=where)
    assert drawn.dtype == np.int64
    return [int(value) for value in drawn]


def solved(root: list[list[int]], draws: list[int]) -> Fraction:
    """Sum of x with R x = z, by forward substitution: the noise of the round, exactly."""
    x: list[Fraction] = []
    for row, draw in zip(root, draws, strict=False):
        known = sum((r * value for r, value in zip(row, x, strict=False)), Fraction(0))
        x.append((draw - known) / row[len(x)])
    return sum(x, Fraction(0))


def rounded(factor: DenseFactor, draws: list[int]) -> int:
    return math.floor(solved(factor.matrix().tolist(), draws) + Fraction(1, 2))


def node_draws(process: DenseProcess, round_: int, where: Coordinates) -> list[list[int]]:
    """Draws of nodes 1 to the round, a list a coordinate, from the keys alone."""
    law = DiscreteGaussian(variance=process.scale)
    functions = [
        BlockPRF(
            KEYS.node_key(
                release="visits", factor=process.factor.name, node=(column,), last=HORIZON
            )
        )
        for column in range(1, round_ + 1)
    ]
    by_node = [law.draw(function, where).tolist() for function in functions]
    return [list(column) for column in zip(*by_node, strict=True)]


@every_process
def test_noise_is_the_rounded_solution_of_the_triangle(process: DenseProcess) -> None:
    """Worked out again in fractions, by another elimination than the product's own."""
    where = Coordinates.of_indices(200)
    expected = [
        [rounded(process.factor, draws) for draws in node_draws(process, round_, where)]
        for round_ in range(1, HORIZON + 1)
    ]
    assert [noise(process, t, where) for t in range(1, HORIZON + 1)] == expected


def naive(factor: DenseFactor, draws: NDArray[np.float64]) -> list[int]:
    """What plain floating point gives."""
    round_ = len(draws)
    totals = rows_of(factor).weights[round_ - 1, :round_] @ draws
    return [int(total) for total in np.floor(totals + 0.5)]


def bezout(numbers: tuple[int, ...]) -> tuple[int, list[int]]:
    """(g, c) with g = sum of c n, the greatest common divisor."""
    divisor, coefficients = 0, list[int]()
    for number in numbers:
        a, b, ca, cb, da, db = divisor, number, 1, 0, 0, 1
        while b:
            quotient = a // b
            a, b, ca, cb, da, db = (
                b,
                a - quotient * b,
                cb,
                ca - quotient * cb,
                db,
                da - quotient * db,
            )
        divisor, coefficients = a, [ca * c for c in coefficients] + [da]
    return divisor, coefficients


def beside_halves(factor: DenseFactor, round_: int, offsets: range) -> NDArray[np.float64]:
    """Draws whose combination is a half plus so many parts of the common denominator.

    Adding the denominator to a draw adds a whole number, so that the draws can be kept small.
    """
    numerators, denominator = exact_row(factor.matrix(), round_)
    divisor, coefficients = bezout(numerators)
    columns = []
    for offset in offsets:
        target = denominator // 2 // divisor + offset
        columns.append([c * target % (denominator // divisor) for c in coefficients])
    draws = np.array(columns, dtype=object).T
    assert draws.max() < 2**53
    return draws.astype(np.float64)


@pytest.mark.parametrize("round_", [2, 3, 4])
def test_combinations_a_millionth_of_a_millionth_beside_a_half_are_rounded_right(
    round_: int,
) -> None:
    """Plain floating point must fail here, or the halves are not near enough to test anything."""
    factor = best_dense(9)
    draws = beside_halves(factor, round_, range(-40, 41))
    expected = [rounded(factor, [int(z) for z in column]) for column in draws.T]
    exact = [solved(factor.matrix().tolist(), [int(z) for z in column]) for column in draws.T]
    nearest = min(abs(value - math.floor(value) - Fraction(1, 2)) for value in exact)
    assert nearest <= Fraction(1, 10**6)
    assert combined(factor, draws).tolist() == expected
    if round_ == 4:
        assert nearest < Fraction(1, 10**12)
        assert naive(factor, draws) != expected


def test_exact_halves_are_rounded_up_also_below_zero() -> None:
    """A root of even numbers: half of all combinations of round 1 are halves."""
    root = np.array([[2, 0, 0], [-2, 6, 0], [4, 2, 10]])
    factor = DenseFactor(name="dense", horizon=3, window=3, root=packed(root))
    some = [[a, b, c] for a in range(-7, 8) for b in range(-7, 8) for c in range(-9, 10)]
    exact = [[solved(root.tolist(), z[:round_]) for z in some] for round_ in (1, 2, 3)]
    halves = [sum((value - Fraction(1, 2)).denominator == 1 for value in row) for row in exact]
    assert min(halves) > 20
    draws = np.array(some, dtype=np.float64).T
    for round_ in (1, 2, 3):
        expected = [math.floor(value + Fraction(1, 2)) for value in exact[round_ - 1]]
        assert combined(factor, draws[:round_]).tolist() == expected


@every_process
def test_doubting_every_float_changes_nothing(
    process: DenseProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then all of it is worked out in whole numbers."""
    where = Coordinates.of_indices(50)
    before = [noise(process, t, where) for t in (1, 5, HORIZON)]
    asked: list[int] = []
    exactly = dense.exactly

    def counted(factor: DenseFactor, draws: NDArray[np.float64]) -> int:
        asked.append(len(draws))
        return exactly(factor, draws)

    monkeypatch.setattr(dense, "rounding_of", lambda _: 1e3)
    monkeypatch.setattr(dense, "exactly", counted)
    assert [noise(process, t, where) for t in (1, 5, HORIZON)] == before
    assert len(asked) == 150


def test_hardly_any_float_is_doubted() -> None:
    process = PROCESSES[0]
    rows, largest = rows_of(process.factor), 6 * math.sqrt(process.scale)
    doubt = dense.rounding_of(HORIZON) * float(np.abs(rows.weights).sum(axis=1).max()) * largest
    assert doubt + float(rows.drift.max()) * largest < 1e-12


@every_process
@pytest.mark.parametrize("batch", [1, 7, 10**6])
def test_a_coordinate_has_the_same_noise_in_any_batch(
    process: DenseProcess, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = Coordinates.of_labels([b"%d" % n for n in range(40)], b"k" * 32)
    together = noise(process, 7, labels)
    monkeypatch.setattr(dense, "MOST_DRAWS", batch)
    assert noise(process, 7, labels) == together
    alone = [noise(process, 7, labels.take(np.array([i]))) for i in range(40)]
    assert [value for values in alone for value in values] == together
    assert noise(process, 7, labels.take(slice(None, None, -1)))[::-1] == together


@every_process
def test_several_rounds_are_drawn_as_one_by_one(process: DenseProcess) -> None:
    where, rounds = Coordinates.of_indices(30), [5, 12, 1, 5]
    drawn = process.draw_rounds(release="visits", rounds=rounds, keys=KEYS, where=where)
    assert drawn.tolist() == [noise(process, t, where) for t in rounds]
    nothing = process.draw_rounds(release="visits", rounds=[], keys=KEYS, where=where)
    assert nothing.shape == (0, 30)


@every_process
@pytest.mark.parametrize("order", [[1, 2, 3, 7], [7, 2, 1], [3, 3, 5]])
def test_one_round_after_another_is_drawn_as_each_alone(
    process: DenseProcess, order: list[int]
) -> None:
    rounds = [min(round_, process.factor.horizon) for round_ in order]
    where = Coordinates.of_indices(5)
    each = process.each_round(release="visits", rounds=rounds, keys=KEYS, where=where)
    alone = [process.draw(release="visits", round=r, keys=KEYS, where=where) for r in rounds]
    assert [noise.tolist() for noise in each] == [noise.tolist() for noise in alone]


def test_no_coordinates_have_no_noise() -> None:
    assert noise(PROCESSES[0], 3, Coordinates.of_indices(0)) == []


class Recording:
    """Keys that note which nodes they were asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Node, int]] = []

    def node_key(self, *, release: str, factor: str, node: Node, last: int) -> bytes:
        self.asked.append((release, factor, node, last))
        return KEYS.node_key(release=release, factor=factor, node=node, last=last)

    def fresh_key(self, *, release: str, purpose: str, round: int) -> bytes:  # noqa: A002
        return KEYS.fresh_key(release=release, purpose=purpose, round=round)

    def lasting_key(self, *, release: str, purpose: str) -> bytes:
        return KEYS.lasting_key(release=release, purpose=purpose)


@every_process
def test_a_round_uses_the_nodes_of_the_rounds_so_far_and_no_other(process: DenseProcess) -> None:
    keys = Recording()
    process.draw(release="visits", round=5, keys=keys, where=Coordinates.of_indices(3))
    name = process.factor.name
    assert keys.asked == [("visits", name, (column,), HORIZON) for column in range(1, 6)]
    assert [node for node, _ in process.factor.nodes(5)] == [node for _, _, node, _ in keys.asked]


@every_process
def test_past_noise_stays_derivable_until_the_keys_are_destroyed(process: DenseProcess) -> None:
    where = Coordinates.of_indices(10)
    assert noise(process, 1, where, keys=KEYS.advanced(HORIZON)) == noise(process, 1, where)
    with pytest.raises(KeyDestroyedError):
        noise(process, 1, where, keys=KEYS.destroyed())


def test_releases_and_factors_draw_independently() -> None:
    where = Coordinates.of_indices(400)
    first, square = PROCESSES[0], PROCESSES[2]
    rows = [
        process.draw(release=release, round=6, keys=KEYS, where=where)
        for process, release in ((first, "visits"), (first, "users"), (square, "visits"))
    ]
    apart = np.abs(np.corrcoef(np.array(rows, dtype=float)))[np.triu_indices(3, 1)]
    assert (apart < ALPHA_SIGMAS / math.sqrt(400)).all()


@pytest.fixture(scope="module")
def samples() -> NDArray[np.float64]:
    """Noise of all rounds of the first process, shape (HORIZON, MANY)."""
    rounds = range(1, HORIZON + 1)
    where = Coordinates.of_indices(MANY)
    drawn = PROCESSES[0].draw_rounds(release="law", rounds=rounds, keys=KEYS, where=where)
    return drawn.astype(np.float64)


def planned_covariance(process: DenseProcess) -> NDArray[np.float64]:
    """s^2 L L' from the inverse of R, with 1/12 for rounding: an independent formula."""
    inverse = np.linalg.inv(process.factor.matrix().astype(np.float64)).cumsum(axis=0)
    covariance: NDArray[np.float64] = float(process.scale) * inverse @ inverse.T
    return covariance + np.eye(len(inverse)) / 12


@pytest.mark.parametrize(("scale", "fits"), [(1.0, True), (1 / 1.2, False), (1.2, False)])
def test_noise_has_the_planned_covariance(
    samples: NDArray[np.float64],
    scale: float,
    fits: bool,  # noqa: FBT001
) -> None:
    planned = planned_covariance(PROCESSES[0]) * scale**2
    deviations = samples - samples.mean(axis=1, keepdims=True)
    verdicts = []
    for one, other in zip(*np.tril_indices(HORIZON), strict=True):
        products = deviations[one] * deviations[other]
        allowed = ALPHA_SIGMAS * products.std() / math.sqrt(MANY)
        verdicts.append(abs(products.mean() - planned[one, other]) < allowed)
    assert all(verdicts) is fits


def test_the_difference_of_two_rounds_is_no_independent_noise(
    samples: NDArray[np.float64],
) -> None:
    """The twin: a draw of its own every round would be noticed."""
    planned = planned_covariance(PROCESSES[0])
    step = samples[5] - samples[4]
    independent = planned[5, 5] + planned[4, 4]
    assert step.var() < independent / 2
    assert abs(step.var() / (independent - 2 * planned[5, 4]) - 1) < 0.05


@every_process
def test_variances_are_those_of_the_rows(process: DenseProcess) -> None:
    planned = planned_covariance(process).diagonal()
    variances = [process.variance(t) for t in range(1, HORIZON + 1)]
    assert variances == pytest.approx(planned.tolist(), rel=1e-6)
    assert process.max_variance == pytest.approx(max(variances))
    assert process.mean_variance == pytest.approx(sum(variances) / HORIZON)
    assert process.stddev(5) == pytest.approx(math.sqrt(variances[4]))


@every_process
def test_a_process_survives_json(process: DenseProcess) -> None:
    again = process_from_spec(json.loads(json.dumps(process.spec())))
    assert again == process
    assert isinstance(again, DenseProcess)
    where = Coordinates.of_indices(5)
    assert noise(again, 3, where) == noise(process, 3, where)


@pytest.mark.parametrize(
    "change",
    [
        {"law": "laplace"},
        {"law": None},
        {"scale": "0"},
        {"scale": "nan"},
        {"scale": 1.5},
        {"factor": "dense"},
        {"factor": {"factor": "dense"}},
        {"factor": {"factor": "sqrt", "horizon": 3}},
        {"factor": {"factor": "blt", "horizon": 3}},
        {"seed": 1},
    ],
)
def test_a_description_that_is_no_process_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(PlanError):
        process_from_spec(PROCESSES[0].spec() | change)


@pytest.mark.parametrize(("sigma", "fits"), [(1e3, True), (1e8, True), (1e9, False), (1e40, False)])
def test_scales_that_floats_could_not_round_are_refused(
    sigma: float,
    fits: bool,  # noqa: FBT001
) -> None:
    """In steps; at the largest scale that fits, what floats leave in doubt is still exact."""
    factor = best_dense(HORIZON)
    scale = Fraction(round(sigma)) ** 2 * factor.window_l2sq
    if not fits:
        with pytest.raises(PlanError, match="coarser step"):
            DenseProcess(factor=factor, scale=scale)
        return
    process, where = DenseProcess(factor=factor, scale=scale), Coordinates.of_indices(20)
    expected = [rounded(factor, draws) for draws in node_draws(process, 9, where)]
    assert noise(process, 9, where) == expected


def test_a_horizon_of_one_round_works() -> None:
    process = at_rho_half(best_dense(1))
    keys = KeyTree.from_root(b"k" * 32, b"store", 1)
    drawn = process.draw(release="r", round=1, keys=keys, where=Coordinates.of_indices(1000))
    assert len(set(drawn.tolist())) > 3
    assert process.variance(1) == pytest.approx(1 + 1 / 12)
    with pytest.raises(HorizonExceededError):
        process.variance(2)
    with pytest.raises(HorizonExceededError):
        process.draw(release="r", round=2, keys=keys, where=Coordinates.of_indices(1))
    with pytest.raises(PlanError, match="round must be"):
        process.draw(release="r", round=0, keys=keys, where=Coordinates.of_indices(1))


def test_keys_and_roots_are_not_shown() -> None:
    assert "key" not in repr(PROCESSES[0])
    assert "root" not in repr(PROCESSES[0])


SCRIPT = """
import hashlib
from fractions import Fraction
from retrodp.noise.dense import DenseProcess
from retrodp.noise.factors.dense import square_root
from retrodp.noise.key import KeyTree
from retrodp.noise.prf import Coordinates
factor = square_root(200)
process = DenseProcess(factor=factor, scale=Fraction(factor.window_l2sq) * 10**12)
keys, where = KeyTree.from_root(b"k" * 32, b"store", 200), Coordinates.of_indices(3000)
drawn = process.draw_rounds(release="r", rounds=range(1, 201, 9), keys=keys, where=where)
print(hashlib.sha256(drawn.astype("<i8").tobytes()).hexdigest())
"""


@pytest.mark.sweep
def test_other_kernels_and_threads_of_a_library_give_the_same_bytes() -> None:
    """Kernels of OpenBLAS for several processors add up in different orders."""
    settings = [{}, *({"OPENBLAS_CORETYPE": core} for core in ("Prescott", "Nehalem", "Haswell"))]
    settings += [{"OPENBLAS_NUM_THREADS": threads} for threads in ("1", "2")]
    digests = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=os.environ | setting,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for setting in settings
    ]
    assert len(digests[0]) == 65
    assert digests == digests[:1] * len(settings)
