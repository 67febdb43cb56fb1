"""The two-dimensional noise: every pair of a stamp and a window, by brute force."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from retrodp.errors import KeyDestroyedError, PlanError
from retrodp.noise.factors.axis import RootAxis, WalkAxis, best_root, best_walk, signs_of
from retrodp.noise.factors.binary import BinaryFactor
from retrodp.noise.factors.contract import Factor
from retrodp.noise.factors.delannoy import best_delannoy
from retrodp.noise.factors.haar import best_haar
from retrodp.noise.factors.rows import exact_row
from retrodp.noise.key import KeyTree
from retrodp.noise.prf import Coordinates
from retrodp.noise.processes import process_from_spec
from retrodp.noise.product import ProductFactor, ProductProcess, _combined, _halved
from retrodp.noise.tails import half_widths, summed_tail, upper_tail
from tests.noise.test_factors import shifts, weights

Ints = NDArray[np.int64]


def product(horizon: int, kind: str, *, rounds: int | None = None) -> ProductFactor:
    name, _, over = kind.partition("-")
    arrival: Factor = best_haar(horizon)
    if name == "binary":
        arrival = BinaryFactor(horizon=horizon)
    elif name == "delannoy":
        arrival = best_delannoy(horizon)
    axis = best_root(horizon) if over == "root" else best_walk(horizon)
    return ProductFactor(arrival=arrival, axis=axis, rounds=rounds or horizon)


def axis_shifts(factor: ProductFactor) -> Ints:
    """What each stamp moves, shape (slots, stamps)."""
    if isinstance(factor.axis, RootAxis):
        return factor.axis.root.matrix()
    signs = signs_of(factor.axis, 1, factor.horizon).toarray()
    slots: dict[object, None] = {}
    for stamp in range(1, factor.horizon + 1):
        slots.update(dict.fromkeys(node for node, _ in factor.axis.tree.nodes(stamp)))
    moved = np.zeros((signs.shape[1], factor.horizon), dtype=np.int64)
    for row, node in enumerate(slots):
        assert isinstance(node, tuple)
        moved[row, int(node[2]) : int(node[3])] = 1
    return moved


def records(horizon: int) -> Iterator[tuple[int, int, int]]:
    """Stamp, first round and first round after, of every record: it arrives at its stamp or later."""
    for stamp in range(1, horizon + 1):
        for begin in range(stamp, horizon + 1):
            for end in range(begin + 1, horizon + 2):
                yield stamp, begin, end


def evaluated(factor: ProductFactor, draws: Ints, round_: int, used: Ints) -> Ints:
    """What is published of given draws in a round, shape (stamps,)."""
    sums = used[round_ - 1] @ draws
    first = factor.first_stamp(round_)
    slots = factor.axis.slots(round_)
    if isinstance(factor.axis, WalkAxis):
        total = signs_of(factor.axis, first, round_) @ sums[:slots, None]
        return _halved(total, factor.denominator)[:, 0]
    return _combined(factor.axis, sums[:slots, None], first, factor.denominator)[:, 0]


@pytest.mark.parametrize("kind", ["haar-root", "binary-root", "delannoy-walk", "haar-walk"])
@pytest.mark.parametrize("horizon", [1, 2, 3, 5, 8])
def test_every_stamp_and_window_is_hidden_by_the_product_of_its_shifts(
    kind: str, horizon: int
) -> None:
    """End to end: the published numbers of shifted draws differ by one there and nowhere else."""
    factor = product(horizon, kind)
    matrix, nodes = weights(factor.arrival)
    used = np.rint(matrix.toarray()).astype(np.int64)
    arrival = shifts(factor.arrival, nodes, range(1, horizon + 2)).astype(np.int64)
    moved = axis_shifts(factor)
    draws = np.random.default_rng(horizon).integers(-9999, 9999, (len(nodes), len(moved)))
    before = [evaluated(factor, draws, round_, used) for round_ in range(1, horizon + 1)]
    l1 = l2sq = count = wrong = 0
    for stamp, begin, end in records(horizon):
        shift = np.outer(arrival[:, begin - 1] - arrival[:, end - 1], moved[:, stamp - 1])
        l1, l2sq = max(l1, int(np.abs(shift).sum())), max(l2sq, int((shift**2).sum()))
        for round_ in range(1, horizon + 1):
            after = evaluated(factor, draws + shift, round_, used)
            stamps = np.arange(factor.first_stamp(round_), round_ + 1)
            wanted = (stamps >= stamp) & (begin <= round_ < end)
            wrong += not np.array_equal(after - before[round_ - 1], wanted)
            count += 1
    assert count > 0
    assert wrong == 0
    assert l2sq <= factor.window_l2sq
    if kind.endswith("walk"):
        assert l1 <= factor.window_l1
    # Both ends are attained somewhere, so the charge is no larger than it must be by much.
    if horizon == 8:
        assert l2sq >= 0.5 * factor.window_l2sq


def test_twin_a_stamp_charged_as_one_slot_is_too_cheap() -> None:
    factor = product(8, "haar-root")
    moved = axis_shifts(factor)
    one_slot = int((np.diag(moved) ** 2).max()) * factor.arrival.window_l2sq
    assert one_slot < factor.window_l2sq


@pytest.mark.parametrize(
    ("kind", "law", "error"),
    [
        pytest.param("haar-root", "gaussian", 11.36, marks=pytest.mark.sweep),
        ("delannoy-walk", "laplace", 176.3),
    ],
)
def test_the_worst_error_of_a_year(kind: str, law: str, error: float) -> None:
    """At rho = 1/2 and epsilon = 1: 27 and 529 with a binary tree over stamps."""
    factor = product(365, kind)
    scale = factor.window_l2sq if law == "gaussian" else factor.window_l1
    process = ProductProcess(factor=factor, law=law, scale=Fraction(scale))  # type: ignore[arg-type]
    assert math.sqrt(process.max_variance) == pytest.approx(error, rel=0.01)
    if law == "gaussian":  # an error for one axis times that of the other, both known alone
        assert math.sqrt(process.max_variance) == pytest.approx(4.29 * 2.647, rel=0.01)
        naive = 4.29 * math.sqrt(365)
        assert math.sqrt(process.max_variance) < naive / 7


HORIZON = 12
TREE = KeyTree.from_root(bytes(range(32)), b"product", HORIZON)


def process_of(kind: str, scale: int = 4000) -> ProductProcess:
    law = "gaussian" if kind.endswith("root") else "laplace"
    factor = product(HORIZON, kind)
    own = scale * factor.window_l2sq // 4 if law == "gaussian" else 9
    return ProductProcess(factor=factor, law=law, scale=Fraction(own))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["haar-root", "delannoy-walk"])
def test_a_bin_has_the_same_noise_in_any_batch(kind: str) -> None:
    process = process_of(kind)
    slots = process.slots(7)
    many = process.draw(release="r", round=7, keys=TREE, where=Coordinates.of_indices(slots * 5))
    alone = Coordinates.of_indices(np.arange(slots) * 5 + 3)
    one = process.draw(release="r", round=7, keys=TREE, where=alone)
    assert many.shape == (7, 5)
    assert np.array_equal(one[:, 0], many[:, 3])
    again = process_from_spec(process.spec())
    assert again == process


@pytest.mark.parametrize("kind", ["haar-root", "delannoy-walk"])
def test_past_rounds_cannot_be_drawn_again(kind: str) -> None:
    process = process_of(kind)
    where = Coordinates.of_indices(process.slots(3))
    advanced = TREE.advanced(9)
    with pytest.raises(KeyDestroyedError):
        process.draw(release="r", round=3, keys=advanced, where=where)
    later = Coordinates.of_indices(process.slots(9))
    now = process.draw(release="r", round=9, keys=advanced, where=later)
    assert np.array_equal(now, process.draw(release="r", round=9, keys=TREE, where=later))


def test_floating_point_decides_nothing() -> None:
    """Against ratios of whole numbers, exact halves included."""
    axis, horizon = best_root(6), 6
    rng = np.random.default_rng(3)
    sums = rng.integers(-(2**30), 2**30, (horizon, 40))
    first = axis.root.matrix()[0, 0]
    sums[0, :20] = first // 2 * rng.integers(-9, 9, 20) * 2 + first // 2  # halves in row 1
    made = _combined(axis, sums, 1, 4)
    wrong = 0
    for stamp in range(1, horizon + 1):
        numerators, under = exact_row(axis.root.matrix(), stamp)
        for column in range(sums.shape[1]):
            total = sum(n * int(s) for n, s in zip(numerators, sums[:stamp, column], strict=True))
            wrong += made[stamp - 1, column] != math.floor(
                Fraction(total, under * 4) + Fraction(1, 2)
            )
    assert made.size == 240
    assert wrong == 0


ALPHA = 1e-9
BINS = 20_000  # a deviation off by a fifth is missed with a probability below 1e-9


def spread_verdict(sample: Ints, variance: float) -> bool:
    """Whether the sum of squares is that of the variance; up to rounding normal, so chi-square."""
    total = float((sample.astype(float) ** 2).sum()) / variance
    low, high = (float(chi2.ppf(p, len(sample))) for p in (ALPHA / 2, 1 - ALPHA / 2))
    return low <= total <= high


@pytest.mark.parametrize("stamp", [1, 4, 9])
def test_noise_has_the_planned_spread_at_every_stamp(stamp: int) -> None:
    process = process_of("haar-root")
    where = Coordinates.of_indices(process.slots(9) * BINS)
    noise = process.draw(release="r", round=9, keys=TREE, where=where)[stamp - 1]
    planned = process.variance(9, stamp)
    assert spread_verdict(noise, planned)
    assert not spread_verdict(noise, planned * 1.2**2)
    assert not spread_verdict(noise, planned / 1.2**2)


def test_stamps_and_rounds_are_correlated_as_declared() -> None:
    process = process_of("haar-root")
    rows = {}
    for round_ in (6, 9):
        where = Coordinates.of_indices(process.slots(round_) * BINS)
        rows[round_] = process.draw(release="r", round=round_, keys=TREE, where=where)
    weights_of = {r: dict(process.factor.arrival.nodes(r)) for r in (6, 9)}
    under = process.factor.denominator**2
    arrival = sum(w * weights_of[9].get(n, 0) for n, w in weights_of[6].items()) / under
    matrix = process.factor.axis.root.matrix()  # type: ignore[union-attr]
    slots: list[list[Fraction]] = []
    for stamp in (3, 5):
        numerators, common = exact_row(matrix, stamp)
        slots.append([Fraction(one, common) for one in numerators])
    together = float(sum(a * b for a, b in zip(slots[0], slots[1], strict=False)))
    declared = arrival * together * float(process.scale)
    measured = float((rows[6][2] * rows[9][4]).mean())
    error = math.sqrt(process.variance(6, 3) * process.variance(9, 5) / BINS)
    assert abs(measured - declared) < 6.5 * error
    assert abs(declared) > 6.5 * error  # so that independent noise would be told apart


def test_tails_bound_what_is_drawn_and_count_every_published_pair() -> None:
    for kind in ("haar-root", "delannoy-walk"):
        process = process_of(kind)
        where = Coordinates.of_indices(process.slots(9) * BINS)
        noise = process.draw(release="r", round=9, keys=TREE, where=where)
        half = int(half_widths(process, 0.05)[8])
        outside = (np.abs(noise) > half).mean(axis=1)
        assert outside.max() <= 0.05 + 5 * math.sqrt(0.05 / BINS)
        if kind == "haar-root":
            assert outside.max() >= 0.04
        pairs = sum(r * upper_tail(process, r, 40) for r in range(1, HORIZON + 1))
        assert summed_tail(process, 40) == pytest.approx(pairs, rel=1e-6)
        few = ProductProcess(
            factor=product(HORIZON, kind, rounds=3), law=process.law, scale=process.scale
        )
        assert summed_tail(few, 40) < summed_tail(process, 40)


def test_scales_that_leave_exact_floats_are_refused() -> None:
    factor = product(100, "haar-walk")
    with pytest.raises(PlanError, match="too large"):
        ProductProcess(factor=factor, law="gaussian", scale=Fraction(2**79))
