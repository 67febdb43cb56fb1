"""Axes of stamps: what one stamp moves, by brute force, and how good the best root is."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from retrodp.errors import PlanError
from retrodp.noise.factors.axis import (
    MOST_STAMPS,
    RootAxis,
    axis_from_spec,
    best_root,
    best_walk,
    optimal_prefix_covariance,
    signs_of,
)
from retrodp.noise.factors.dense import square_root
from retrodp.noise.factors.rows import exact_row


@pytest.mark.parametrize("stamps", [1, 2, 3, 7, 20, 41, 90])
def test_walks_hide_every_stamp_by_whole_shifts_on_few_slots(stamps: int) -> None:
    axis = best_walk(stamps)
    signs = signs_of(axis, 1, stamps).toarray()
    # Whatever the walks are: the shifts that hide a stamp solve signs @ shift = one from it on.
    shifts = np.linalg.lstsq(signs.astype(float), np.tri(stamps), rcond=None)[0]
    hidden = signs @ np.rint(shifts)
    if np.array_equal(hidden, np.tri(stamps)):
        sizes = np.abs(np.rint(shifts)).sum(axis=0)
        assert sizes.max() <= axis.moved
    by_intervals = _interval_shifts(stamps)
    assert np.array_equal(signs @ by_intervals, np.tri(stamps))
    assert np.abs(by_intervals).sum(axis=0).max() <= axis.moved == axis.shift_l2sq
    assert np.array_equal(np.abs(signs).sum(axis=1), axis.squares)


def _interval_shifts(stamps: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """A record moves every slot whose interval holds its stamp by one."""
    tree = best_walk(stamps).tree
    slots: dict[tuple[int | str, ...], None] = {}
    for stamp in range(1, stamps + 1):
        slots.update(dict.fromkeys(node for node, _ in tree.nodes(stamp)))
    shifts = np.zeros((len(slots), stamps))
    for row, node in enumerate(slots):
        low, high = int(node[2]), int(node[3])
        shifts[row, low : min(high, stamps)] = 1
    return shifts


@pytest.mark.parametrize("stamps", [1, 2, 5, 12, 30])
def test_a_root_hides_every_stamp_by_its_column_exactly(stamps: int) -> None:
    axis = best_root(stamps)
    matrix = axis.root.matrix()
    for stamp in range(1, stamps + 1):
        numerators, denominator = exact_row(matrix, stamp)
        row = [Fraction(one, denominator) for one in numerators]
        made = [
            sum((row[j] * int(matrix[j, t]) for j in range(stamp)), Fraction(0))
            for t in range(stamps)
        ]
        assert made == [Fraction(t < stamp) for t in range(stamps)]
    assert axis.shift_l2sq == max(int((matrix[:, t] ** 2).sum()) for t in range(stamps))


@pytest.mark.parametrize(
    ("stamps", "error"),
    [
        *((7, 1.477), (30, 1.890), (60, 2.096)),
        *(pytest.param(*own, marks=pytest.mark.sweep) for own in ((90, 2.218), (365, 2.647))),
    ],
)
def test_the_best_root_is_within_half_a_per_cent_of_the_least_error_of_any(
    stamps: int, error: float
) -> None:
    """Errors from an independent search without symmetry, interpolation or rounding."""
    axis = best_root(stamps)
    made = float(np.sqrt(axis.shift_l2sq * axis.squares.max()))
    _, _, bound = optimal_prefix_covariance(stamps)
    assert made == pytest.approx(error, rel=2e-3)
    assert np.sqrt(bound) <= made <= np.sqrt(bound) * 1.005
    sqrt = RootAxis(root=square_root(stamps))
    diagonals = np.cumprod([1.0, *((2 * k - 1) / (2 * k) for k in range(1, stamps))])
    assert np.sqrt(sqrt.shift_l2sq * sqrt.squares.max()) == pytest.approx(
        float((diagonals**2).sum()), rel=5e-3
    )
    assert made < float((diagonals**2).sum())


def test_the_lower_bound_is_attained_by_no_tree() -> None:
    """The binary tree pays sqrt(6 * 5) at 60 stamps, two and a half times the bound."""
    _, _, bound = optimal_prefix_covariance(60)
    used = [stamp.bit_count() for stamp in range(1, 61)]
    levels = 6
    assert np.sqrt(levels * max(used)) > 2.5 * np.sqrt(bound)


def test_axes_survive_their_descriptions() -> None:
    for axis in (best_root(9), best_walk(9)):
        assert axis_from_spec(axis.spec()) == axis


def test_roots_have_an_end() -> None:
    with pytest.raises(PlanError, match="at most"):
        best_root(MOST_STAMPS + 1)
