"""Dense factors in whole numbers: what hides a window, what it costs, and how near the best is."""

from __future__ import annotations

import base64
import json
import math
import zlib
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from retrodp.errors import PlanError, UsageError
from retrodp.noise.factors import BinaryFactor, Factor, best_haar, rows
from retrodp.noise.factors.dense import (
    DenseFactor,
    best_dense,
    expected_error,
    rows_of,
    square_root,
)
from retrodp.noise.factors.optimise import GAP, optimal_covariance
from retrodp.noise.factors.rows import certified_rows, exact_row
from retrodp.noise.factors.triangle import from_text, packed, to_text

Exact = list[list[int]]

FACTORS = [
    *(best_dense(horizon) for horizon in (1, 2, 3, 5, 8, 13, 21)),
    *(best_dense(horizon, window) for horizon, window in ((5, 1), (9, 2), (20, 7))),
    *(square_root(horizon, window) for horizon, window in ((1, None), (12, None), (15, 4))),
]
every_factor = pytest.mark.parametrize(
    "factor", FACTORS, ids=lambda f: f"{f.name}-{f.horizon}-{f.window}"
)


def integers(factor: DenseFactor) -> Exact:
    """R as Python integers, from its bytes alone."""
    entries = iter(zip(factor.root[::2], factor.root[1::2], strict=True))
    triangle = []
    for row in range(factor.horizon):
        values = [low + 256 * high for low, high in (next(entries) for _ in range(row + 1))]
        signed = [value - 65536 if value >= 32768 else value for value in values]
        triangle.append(signed + [0] * (factor.horizon - row - 1))
    return triangle


def windows(horizon: int, longest: int) -> list[tuple[int, int]]:
    """All (first round, round after the last) that live at most so long."""
    ends = range(2, horizon + 2)
    return [(b, e) for b in range(1, horizon + 1) for e in ends if 1 <= e - b <= longest]


def shift(root: Exact, begin: int, end: int) -> list[int]:
    """R (e_begin - e_end)."""
    beyond = len(root) + 1
    return [row[begin - 1] - (row[end - 1] if end < beyond else 0) for row in root]


def worst_square(factor: DenseFactor, longest: int) -> int:
    root = integers(factor)
    return max(
        sum(moved**2 for moved in shift(root, *window))
        for window in windows(factor.horizon, longest)
    )


def worst_error(factor: DenseFactor) -> float:
    """At rho = 1/2, before rounding."""
    return math.sqrt(factor.window_l2sq * rows_of(factor).squares.max())


def mean_error(factor: DenseFactor) -> float:
    return math.sqrt(factor.window_l2sq * rows_of(factor).squares.mean())


@every_factor
def test_the_shift_of_every_window_adds_one_inside_and_nothing_outside(factor: DenseFactor) -> None:
    """In whole numbers: L R (e_ws - e_we) over the row's denominator, for every round."""
    root, horizon = integers(factor), factor.horizon
    moved = []
    for round_ in range(1, horizon + 1):
        numerators, denominator = exact_row(factor.matrix(), round_)
        for begin, end in windows(horizon, horizon):
            total = sum(n * s for n, s in zip(numerators, shift(root, begin, end), strict=False))
            moved.append(total == (denominator if begin <= round_ < end else 0))
    assert len(moved) == horizon * horizon * (horizon + 1) // 2
    assert all(moved)


@every_factor
def test_the_sensitivity_is_that_of_the_worst_window(factor: DenseFactor) -> None:
    assert factor.window_l2sq == worst_square(factor, factor.window)


def test_a_factor_for_short_windows_would_cost_more_for_long_ones() -> None:
    """So the length must not be forgotten when the factor is read back."""
    short = best_dense(20, 7)
    assert worst_square(short, 20) > short.window_l2sq
    longer = DenseFactor.from_spec(short.spec() | {"window": 20})
    assert longer.window_l2sq == worst_square(short, 20)


@every_factor
def test_a_node_is_first_used_in_its_own_round_and_last_at_the_horizon(factor: DenseFactor) -> None:
    used = [
        {node for node, weight in factor.nodes(round_) if weight}
        for round_ in range(1, factor.horizon + 1)
    ]
    assert [(round_,) in nodes for round_, nodes in enumerate(used, 1)] == [True] * factor.horizon
    assert all(max(nodes) == (round_,) for round_, nodes in enumerate(used, 1))
    assert {factor.last(node) for nodes in used for node in nodes} == {factor.horizon}


@every_factor
def test_the_past_settles_how_far_a_node_moves(factor: DenseFactor) -> None:
    """Two windows that are alike up to a round move its node alike: the proof's adaptive case."""
    root, horizon = integers(factor), factor.horizon
    alike = [
        shift(root, begin, one)[: one - 1] == shift(root, begin, other)[: one - 1]
        for begin in range(1, horizon + 1)
        for one in range(begin + 1, horizon + 2)
        for other in range(one, horizon + 2)
    ]
    still = [shift(root, begin, horizon + 1)[: begin - 1] for begin in range(1, horizon + 1)]
    assert alike
    assert all(alike)
    assert not any(any(before) for before in still)


@pytest.mark.parametrize("node", [(0,), (6,), (1, 1), ("1",), (True, 2)])
def test_what_no_round_uses_is_no_node(node: tuple[int | str, ...]) -> None:
    with pytest.raises(UsageError, match="No round"):
        best_dense(5).last(node)


def test_two_rounds_have_the_optimum_of_pencil_and_paper() -> None:
    """Correlation c: windows cost 1 / (1 - c^2) and 2 / (1 + c), equal at c = 1/2: error 2/sqrt 3."""
    found = optimal_covariance(2, 2)
    assert found.bound <= 4 / 3 * (1 + 1e-12)
    assert 4 / 3 * (1 - 1e-12) <= found.squared_error <= found.bound * (1 + GAP)


@pytest.mark.parametrize(("horizon", "window"), [(1, 1), (9, 9), (17, 3), (40, 40), (33, 1)])
def test_the_search_ends_near_its_own_bound(horizon: int, window: int) -> None:
    found = optimal_covariance(horizon, window)
    assert found.bound <= found.squared_error * (1 + 1e-9) <= found.bound * (1 + GAP + 2e-9)
    if window == 1:  # independent noise
        assert found.squared_error == pytest.approx(1)


@pytest.mark.parametrize("horizon", [7, 12, 24])
def test_no_known_factor_beats_the_bound(horizon: int) -> None:
    bound = math.sqrt(optimal_covariance(horizon, horizon).bound)
    trees: list[Factor] = [BinaryFactor(horizon=horizon), best_haar(horizon)]
    errors = [
        math.sqrt(t.window_l2sq * float(t.profile().squares.max())) / t.denominator for t in trees
    ]
    errors += [worst_error(square_root(horizon)), worst_error(best_dense(horizon))]
    assert min(errors) >= bound
    assert errors[-1] == min(errors)


def test_an_optimum_is_its_own_mirror_image() -> None:
    covariance = optimal_covariance(11, 11).covariance
    assert np.allclose(covariance, covariance.T)
    assert np.allclose(covariance, covariance[::-1, ::-1])
    assert np.linalg.eigvalsh(covariance).min() > 0


@pytest.mark.parametrize(("horizon", "window"), [(16, 16), (64, 64), (64, 7)])
def test_rounding_the_root_costs_a_thousandth_at_most(horizon: int, window: int) -> None:
    sought = math.sqrt(optimal_covariance(horizon, window).squared_error)
    assert worst_error(best_dense(horizon, window)) == pytest.approx(sought, rel=1e-3)


@pytest.mark.parametrize(("horizon", "worst", "mean"), [(365, 3.746, 3.539), (1024, 4.213, 4.003)])
def test_the_square_root_has_the_errors_of_the_table(
    horizon: int, worst: float, mean: float
) -> None:
    factor = square_root(horizon)
    assert worst_error(factor) == pytest.approx(worst, abs=1e-3)
    assert mean_error(factor) == pytest.approx(mean, abs=1e-3)


def test_the_square_root_costs_what_its_formula_says() -> None:
    """(2 / pi) ln T + 1.0103 in squared norm, for a diagonal of ones."""
    scaled = square_root(365).window_l2sq / 4096**2
    assert scaled == pytest.approx(2 / math.pi * math.log(365) + 1.0103, rel=2e-3)


@pytest.mark.sweep
def test_a_year_of_rounds_has_the_error_of_the_table() -> None:
    bound = math.sqrt(optimal_covariance(365, 365).bound)
    factor = best_dense(365)
    assert bound == pytest.approx(3.246, abs=1e-3)
    assert bound < mean_error(factor) <= worst_error(factor) <= 3.26
    assert worst_error(factor) == pytest.approx(3.252, abs=2e-3)
    assert mean_error(factor) == pytest.approx(3.251, abs=2e-3)
    assert len(json.dumps(factor.spec())) < 20_000


@pytest.mark.sweep
@pytest.mark.parametrize("horizon", [128, 200, 256, 365, 512, 1000])
def test_the_error_of_long_horizons_is_expected(horizon: int) -> None:
    assert worst_error(best_dense(horizon)) == pytest.approx(expected_error(horizon), rel=5e-3)


@pytest.mark.parametrize("horizon", [1, 2, 3, 6, 11, 16, 23, 45, 64])
def test_the_error_of_a_search_is_expected_without_it(horizon: int) -> None:
    assert worst_error(best_dense(horizon)) == pytest.approx(expected_error(horizon), rel=5e-3)


@pytest.mark.parametrize("horizon", [0, 1025, 2.5, True])
def test_horizons_that_do_not_fit_are_refused(horizon: Any) -> None:
    for make in (best_dense, square_root, expected_error):
        with pytest.raises(PlanError):
            make(horizon)


@every_factor
def test_a_factor_survives_json(factor: DenseFactor) -> None:
    again = DenseFactor.from_spec(json.loads(json.dumps(factor.spec())))
    assert again == factor
    assert hash(again) == hash(factor)
    assert again.matrix().tolist() == integers(factor)


def test_any_triangle_of_sixteen_bits_survives_its_text() -> None:
    """Differences along diagonals may leave 16 bits; they come back."""
    extremes = [[-32768, 0, 0], [32767, 32767, 0], [-32768, 32767, -32768]]
    triangle = packed(np.array(extremes))
    assert from_text(to_text(triangle, 3), 3) == triangle


def text_of(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content)).decode()


@pytest.mark.parametrize(
    "change",
    [
        {"factor": "haar"},
        {"horizon": 6},
        {"horizon": 4},
        {"horizon": "5"},
        {"horizon": 2000},
        {"window": 0},
        {"window": 6},
        {"window": None},
        {"root": None},
        {"root": ""},
        {"root": "no base64!"},
        {"root": base64.b64encode(b"no zlib").decode()},
        {"root": text_of(b"short")},
        {"root": text_of(bytes(30) + b"and more")},
        {"root": text_of(bytes(30))},
        {"root": text_of(bytes(10**7))},
        {"root": base64.b64encode(zlib.compress(bytes(30)) + b"tail").decode()},
        {"root": base64.b64encode(zlib.compress(bytes(30))[:-3]).decode()},
        {"window_l2sq": 1},
    ],
)
def test_a_description_that_is_no_factor_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(PlanError):
        DenseFactor.from_spec(best_dense(5).spec() | change)


def changed(factor: DenseFactor, place: tuple[int, int], value: int) -> DenseFactor:
    matrix = factor.matrix()
    matrix[place] = value
    spec = factor.spec() | {"root": to_text(packed(matrix), factor.horizon)}
    return DenseFactor.from_spec(spec)


def test_a_root_that_was_tampered_with_is_charged_for_what_it_is() -> None:
    honest = best_dense(8)
    forged = changed(honest, (4, 0), 4000)
    assert forged.window_l2sq == worst_square(forged, 8) > honest.window_l2sq
    assert "window_l2sq" not in honest.spec()


@pytest.mark.parametrize(("place", "value"), [((3, 3), 0), ((3, 3), -5), ((4, 1), 4097)])
def test_a_root_that_is_none_is_refused(place: tuple[int, int], value: int) -> None:
    with pytest.raises(PlanError, match="cannot be used"):
        changed(best_dense(8), place, value)


def test_a_root_without_a_usable_inverse_is_refused() -> None:
    """Its inverse grows 4096 times a row; nothing is warned of, nothing is guessed."""
    root = np.diag(np.ones(60, dtype=np.int64)) - 4096 * np.diag(np.ones(59, dtype=np.int64), -1)
    factor = DenseFactor(name="dense", horizon=60, window=60, root=packed(root))
    with pytest.raises(PlanError, match="full precision"):
        rows_of(factor)


def exact_rows(factor: DenseFactor) -> list[list[Fraction]]:
    found = []
    for round_ in range(1, factor.horizon + 1):
        numerators, denominator = exact_row(factor.matrix(), round_)
        row = [Fraction(n, denominator) for n in numerators]
        found.append(row + [Fraction(0)] * (factor.horizon - round_))
    return found


def test_exact_rows_solve_their_equations() -> None:
    """y R = (1, ..., 1, 0, ...), column by column."""
    factor = best_dense(13)
    root = integers(factor)
    rows_ = exact_rows(factor)
    products = [
        [sum(y * root[i][j] for i, y in enumerate(row)) for j in range(13)] for row in rows_
    ]
    assert products == [[1] * (row + 1) + [0] * (12 - row) for row in range(13)]


def certified(found: rows.Rows, exact: list[list[Fraction]]) -> bool:
    """Whether the floats are as near to the exact rows as they say."""
    near = [
        sum(
            abs(Fraction(float(w)) - e) * (1 - Fraction(1, 2**50))
            for w, e in zip(ws, es, strict=True)
        )
        <= Fraction(float(drift)) + sum(abs(e) for e in es) / 2**53
        for ws, es, drift in zip(found.weights, exact, found.drift, strict=True)
    ]
    squares = [
        sum(e * e for e in es) <= Fraction(float(square))
        for es, square in zip(exact, found.squares, strict=True)
    ]
    return len(near) == len(exact) and all(near) and all(squares)


@every_factor
def test_float_rows_are_as_near_as_they_say(factor: DenseFactor) -> None:
    found = rows_of(factor)
    assert certified(found, exact_rows(factor))
    assert found.drift.max() < 1e-18  # of grid units to steps, against weights of 1e-4


@pytest.mark.parametrize("wrong", [1e-9, 1e-4, 1e-2, 0.5])
def test_a_wrong_inverse_is_mended_or_refused(
    wrong: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The certificate is worked out from integers; no library is trusted to have inverted well."""
    factor = best_dense(21)
    noise = np.random.default_rng(7)

    def inverted(matrix: NDArray[np.float64], *_: Any, **__: Any) -> NDArray[np.float64]:
        blurred = np.linalg.inv(matrix) * (1 + wrong * noise.standard_normal(matrix.shape))
        return blurred.astype(np.float64)

    monkeypatch.setattr(rows, "solve_triangular", inverted)
    if wrong < 1e-3:
        assert certified(certified_rows(factor.matrix()), exact_rows(factor))
    else:
        with pytest.raises(PlanError, match="full precision"):
            certified_rows(factor.matrix())


def test_a_certificate_notices_rows_of_another_root() -> None:
    """The twin of the tests above: rows of a root that differs in one place by one part."""
    factor = best_dense(21)
    other = changed(factor, (20, 3), factor.matrix()[20, 3] + 1)
    assert not certified(rows_of(other), exact_rows(factor))


def test_errors_grow_with_the_horizon_and_with_the_window() -> None:
    by_horizon = [worst_error(best_dense(horizon)) for horizon in (4, 8, 16, 32)]
    by_window = [worst_error(best_dense(32, window)) for window in (1, 2, 4, 8, 16, 32)]
    assert all(less < more for less, more in pairwise(by_horizon))
    assert all(less < more for less, more in pairwise(by_window))


def test_the_root_is_not_shown() -> None:
    assert "root" not in repr(best_dense(3))
