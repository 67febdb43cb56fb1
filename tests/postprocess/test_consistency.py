"""Consistent marginals are the least-squares fit, found by an independent formula, and exact."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import product

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from retrodp.postprocess.consistency import Columns, Consistency

Floats = NDArray[np.float64]
FINER = 10**6

TABLES: list[tuple[tuple[int, ...], tuple[Columns, ...]]] = [
    ((2, 3), ((0,), (1,), (0, 1))),
    ((2, 3, 4), ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2))),
    ((3, 2, 4), ((), (0,), (1, 2))),
    ((2, 2, 2), ((0, 1), (1, 2))),
    ((1, 3), ((0,), (0, 1))),
    ((2, 3, 2), ((1,), (0, 1, 2))),
    ((4,), ((0,),)),
]
FEW = settings(max_examples=15, deadline=None)
of_tables = pytest.mark.parametrize(("sizes", "tables"), TABLES)


def cells(sizes: tuple[int, ...], table: Columns) -> Iterator[tuple[int, ...]]:
    return product(*(range(sizes[column]) for column in table))


@cache
def projection(sizes: tuple[int, ...], tables: tuple[Columns, ...]) -> Floats:
    """Onto the tables that some data have: by the pseudo-inverse of the map from cells to tables."""
    full = list(cells(sizes, tuple(range(len(sizes)))))
    rows = [
        [float(all(one[c] == value for c, value in zip(table, cell, strict=True))) for one in full]
        for table in tables
        for cell in cells(sizes, table)
    ]
    matrix = np.array(rows)
    return np.asarray(matrix @ np.linalg.pinv(matrix), dtype=np.float64)


def noisy_tables(
    sizes: tuple[int, ...], tables: tuple[Columns, ...], data: st.DataObject
) -> dict[Columns, list[int]]:
    counts = st.integers(-(10**6), 10**6)
    return {table: [data.draw(counts) for _ in cells(sizes, table)] for table in tables}


@of_tables
@FEW
@given(data=st.data())
def test_the_estimate_is_the_orthogonal_projection(
    sizes: tuple[int, ...], tables: tuple[Columns, ...], data: st.DataObject
) -> None:
    noisy = noisy_tables(sizes, tables, data)
    found = Consistency(sizes, tables).estimate(noisy, finer=FINER)
    flat = np.array([value for table in tables for value in noisy[table]], dtype=np.float64)
    wanted = projection(sizes, tables) @ flat
    made = np.array([value / FINER for table in tables for value in found[table]])
    assert float(np.abs(made - wanted).max()) < 1e-3


@of_tables
@FEW
@given(data=st.data())
def test_tables_that_agree_are_left_as_they_are(
    sizes: tuple[int, ...], tables: tuple[Columns, ...], data: st.DataObject
) -> None:
    full = {one: data.draw(st.integers(0, 2**62)) for one in cells(sizes, tuple(range(len(sizes))))}
    exact = {
        table: [
            sum(
                count
                for one, count in full.items()
                if all(one[c] == value for c, value in zip(table, cell, strict=True))
            )
            for cell in cells(sizes, table)
        ]
        for table in tables
    }
    found = Consistency(sizes, tables).estimate(exact, finer=100)
    assert found == {table: [100 * value for value in own] for table, own in exact.items()}


@of_tables
@FEW
@given(data=st.data())
def test_consistent_tables_agree_up_to_their_rounding(
    sizes: tuple[int, ...], tables: tuple[Columns, ...], data: st.DataObject
) -> None:
    found = Consistency(sizes, tables).estimate(noisy_tables(sizes, tables, data), finer=FINER)
    totals = [sum(own) for own in found.values()]
    most = max(len(own) for own in found.values())
    assert max(totals) - min(totals) <= 2 * most


@of_tables
def test_weights_and_variance_are_those_of_the_projection(
    sizes: tuple[int, ...], tables: tuple[Columns, ...]
) -> None:
    made, rows, start = Consistency(sizes, tables), projection(sizes, tables), 0
    for table in tables:
        row = rows[start]
        start += made.cells(table)
        spread = made.spreads[table]
        assert abs(float(spread.squared) - float(row @ row)) < 1e-9
        assert abs(float(spread.absolute) - float(np.abs(row).sum())) < 1e-9
        assert 0 < spread.squared <= 1
        assert sum(many for _, many in made.weights(table)) == len(row)


def test_the_variance_of_a_margin_of_one_table_is_the_textbook_one() -> None:
    """A column of n = 3 values and a table of 3 x m: a margin alone, or the sum of m cells."""
    for m in (2, 5, 40):
        spread = Consistency((3, m), ((0,), (0, 1))).spreads[(0,)]
        # Variances 1 and m of two independent estimates of one number.
        assert spread.squared == Fraction(m, m + 1)


def test_twin_plain_averages_of_unequal_variance_are_no_least_squares() -> None:
    plain = Fraction(1, 4) * (1 + 40)
    assert plain > Consistency((3, 40), ((0,), (0, 1))).spreads[(0,)].squared


def test_values_are_rounded_to_the_nearest_part_with_ties_up() -> None:
    made = Consistency((2,), ((), (0,)))
    # The total is told by 1 and by 0 + 0 with twice the variance: 2/3.
    found = made.estimate({(): [1], (0,): [0, 0]}, finer=100)
    assert found == {(): [67], (0,): [33, 33]}
    tie = made.estimate({(): [3], (0,): [0, 0]}, finer=1)
    assert tie == {(): [2], (0,): [1, 1]}
    assert made.estimate({(): [-3], (0,): [0, 0]}, finer=2)[(0,)] == [-2, -2]
